package fakegithub

import (
	"maps"
	"net/http"
	"strconv"

	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// appRoutes are what an app asks in its own name.
func (s *Server) appRoutes() map[string]func(*exchange) {
	return map[string]func(*exchange){
		"GET /app": s.signed(func(a *exchange) { a.reply(http.StatusOK, s.restApp()) }),
		"GET /repos/{owner}/{repo}/installation": s.signed(func(a *exchange) {
			s.inRepo(a, func(p *place, a *exchange) { s.getInstallation(a, p.repo.Ref.Owner, s.app.sees(p.repo.Ref)) })
		}),
		"GET /orgs/{org}/installation": s.signed(func(a *exchange) {
			s.getInstallation(a, a.path["org"], lower(a.path["org"]) == organisation)
		}),
		"GET /users/{username}/installation": s.signed(func(a *exchange) {
			s.getInstallation(a, a.path["username"], lower(a.path["username"]) == owner)
		}),
		"POST /app/installations/{installation_id}/access_tokens": s.signed(s.postAccessToken),
	}
}

func (s *Server) getInstallation(a *exchange, account string, found bool) {
	if !found || s.app.Uninstalled {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, s.restInstallation(account))
}

// postAccessToken makes a token for the repositories and permissions that are asked for: all if none are named.
func (s *Server) postAccessToken(a *exchange) {
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int             `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	switch {
	case !a.decode(&in):
		return
	case a.number("installation_id") != installationID || s.app.Uninstalled:
		a.notFound()
		return
	case s.app.Suspended:
		a.fail(http.StatusForbidden, "This installation has been suspended")
		return
	}
	if len(in.Repositories)+len(in.RepositoryIDs) != 1 || len(in.Permissions) == 0 {
		s.t.Errorf("the fake GitHub makes tokens for one repository and named permissions, not %s", a.body)
	}
	p := s.installedRepo(in.Repositories, in.RepositoryIDs)
	if p == nil {
		a.fail(http.StatusUnprocessableEntity,
			"There is at least one repository that does not exist or is not accessible to the parent installation.")
		return
	}
	for name, level := range in.Permissions {
		if !s.app.grants(name, level) {
			a.fail(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			return
		}
	}
	token := s.makeAppToken(p.repo.Ref, in.Permissions)
	a.reply(http.StatusCreated, object{
		"token": token.Token, "expires_at": stamp(token.expires), "permissions": token.Permissions,
		"repository_selection": "selected", "repositories": []any{p.rest().restRepo()},
	})
}

// installedRepo opens the repository that a token is asked for by its name, which is its present one, or its id; nil if the
// installation is not for it.
func (s *Server) installedRepo(names []string, ids []int) *place {
	var repo *memhost.Repo
	for _, id := range ids {
		repo = s.byID[id]
	}
	for _, name := range names {
		repo = s.host.Repo(gitprovider.RepoRef{Owner: owner, Name: name})
	}
	if repo == nil || !s.app.sees(repo.Ref) || s.place(repo).deleted {
		return nil
	}
	return s.place(repo)
}

func (s *Server) restApp() object {
	return object{
		"id": appNumber(s.app.ID), "slug": s.app.Slug, "client_id": "Iv1.fake", "node_id": nodeID(kindUser, 0, s.app.Slug),
		"owner": s.restUser(owner), "name": s.app.Slug, "description": nil, "external_url": s.host.Web(),
		"html_url": s.host.Web() + "/apps/" + s.app.Slug, "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		"permissions": s.app.Permissions, "events": []string{}, "installations_count": 1,
	}
}

func appNumber(id string) int {
	if n, err := strconv.Atoi(id); err == nil {
		return n
	}
	return 1
}

func (s *Server) restInstallation(account string) object {
	selection, suspended := "all", any(nil)
	if s.app.Selected != nil {
		selection = "selected"
	}
	if s.app.Suspended {
		suspended = stamp(epoch())
	}
	permissions := map[string]string{"metadata": "read"}
	maps.Copy(permissions, s.app.Permissions)
	id := strconv.Itoa(installationID)
	return object{
		"id": installationID, "account": s.restUser(account), "repository_selection": selection, "app_id": appNumber(s.app.ID),
		"app_slug": s.app.Slug, "target_id": userID(account), "target_type": "User", "permissions": permissions,
		"access_tokens_url": s.URL() + "/app/installations/" + id + "/access_tokens",
		"repositories_url":  s.URL() + "/installation/repositories",
		"html_url":          s.host.Web() + "/settings/installations/" + id, "events": []string{},
		"created_at": stamp(epoch()), "updated_at": stamp(epoch()), "single_file_name": nil,
		"suspended_at": suspended, "suspended_by": nil,
	}
}
