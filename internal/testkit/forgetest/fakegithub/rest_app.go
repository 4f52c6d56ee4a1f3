package fakegithub

import (
	"maps"
	"net/http"
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// routes returns the routes that an app uses in its own name.
func (i *appInstallation) routes() map[string]func(*exchange) {
	return map[string]func(*exchange){
		"GET /app": i.signed(func(a *exchange) { a.reply(http.StatusOK, i.restApp()) }),
		"GET /repos/{owner}/{repo}/installation": i.signed(func(a *exchange) {
			i.s.rest.inRepo(a, func(p *place, a *exchange) { i.getInstallation(a, p.repo.Ref.Owner, i.app.sees(p.repo.Ref)) })
		}),
		"GET /orgs/{org}/installation": i.signed(func(a *exchange) {
			i.getInstallation(a, a.path["org"], lower(a.path["org"]) == organisation)
		}),
		"GET /users/{username}/installation": i.signed(func(a *exchange) {
			i.getInstallation(a, a.path["username"], lower(a.path["username"]) == owner)
		}),
		"POST /app/installations/{installation_id}/access_tokens": i.signed(i.postAccessToken),
		conversionRoute: i.postConversion,
	}
}

func (i *appInstallation) getInstallation(a *exchange, account string, found bool) {
	if !found || i.app.Uninstalled {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, i.restInstallation(account))
}

// postAccessToken makes a token for the repositories and permissions that are asked for: all if none are named.
func (i *appInstallation) postAccessToken(a *exchange) {
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int             `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	switch {
	case !a.decode(&in):
		return
	case a.number("installation_id") != installationID || i.app.Uninstalled:
		a.notFound()
		return
	case i.app.Suspended:
		a.fail(http.StatusForbidden, "This installation has been suspended")
		return
	}
	if len(in.Repositories)+len(in.RepositoryIDs) != 1 || len(in.Permissions) == 0 {
		i.s.t.Errorf("the fake GitHub makes tokens for one repository and named permissions, not %s", a.body)
	}
	p := i.installedRepo(in.Repositories, in.RepositoryIDs)
	if p == nil {
		a.fail(http.StatusUnprocessableEntity,
			"There is at least one repository that does not exist or is not accessible to the parent installation.")
		return
	}
	for name, level := range in.Permissions {
		if !i.app.grants(name, level) {
			a.fail(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			return
		}
	}
	token := i.makeToken(p.repo.Ref, in.Permissions)
	a.reply(http.StatusCreated, object{
		"token": token.Token, "expires_at": stamp(token.expires), "permissions": token.Permissions,
		"repository_selection": "selected", "repositories": []any{p.rest().restRepo()},
	})
}

// installedRepo opens the repository that a token is asked for by its name, which is its present one, or its id; nil if
// the installation is not for it.
func (i *appInstallation) installedRepo(names []string, ids []int) *place {
	var repo *memhost.Repo
	for _, id := range ids {
		repo = i.s.repos.byID[id]
	}
	for _, name := range names {
		repo = i.s.host.Repo(gitprovider.RepoRef{Owner: owner, Name: name})
	}
	if repo == nil || !i.app.sees(repo.Ref) || i.s.repos.place(repo).deleted {
		return nil
	}
	return i.s.repos.place(repo)
}

func (i *appInstallation) restApp() object {
	return object{
		"id": appNumber(i.app.ID), "slug": i.app.Slug, "client_id": "Iv1.fake", "node_id": nodeID(kindUser, 0, i.app.Slug),
		"owner": i.s.restUser(owner), "name": i.app.Slug, "description": nil, "external_url": i.s.host.Web(),
		"html_url": i.s.host.Web() + "/apps/" + i.app.Slug, "created_at": stamp(epoch()), "updated_at": stamp(epoch()),
		"permissions": i.app.Permissions, "events": []string{}, "installations_count": 1,
	}
}

func appNumber(id string) int {
	if n, err := strconv.Atoi(id); err == nil {
		return n
	}
	return 1
}

func (i *appInstallation) restInstallation(account string) object {
	selection, suspended := "all", any(nil)
	if i.app.Selected != nil {
		selection = "selected"
	}
	if i.app.Suspended {
		suspended = stamp(epoch())
	}
	permissions := map[string]string{"metadata": "read"}
	maps.Copy(permissions, i.app.Permissions)
	id := strconv.Itoa(installationID)
	return object{
		"id": installationID, "account": i.s.restUser(account), "repository_selection": selection,
		"app_id":   appNumber(i.app.ID),
		"app_slug": i.app.Slug, "target_id": userID(account), "target_type": "User", "permissions": permissions,
		"access_tokens_url": i.s.URL() + "/app/installations/" + id + "/access_tokens",
		"repositories_url":  i.s.URL() + "/installation/repositories",
		"html_url":          i.s.host.Web() + "/settings/installations/" + id, "events": []string{},
		"created_at": stamp(epoch()), "updated_at": stamp(epoch()), "single_file_name": nil,
		"suspended_at": suspended, "suspended_by": nil,
	}
}
