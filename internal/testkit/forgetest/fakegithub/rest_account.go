package fakegithub

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// routes returns the routes that are not about one repository. Each takes the host's lock itself.
func (c *accounts) routes() map[string]func(*exchange) {
	locked := func(answer func(*exchange)) func(*exchange) {
		return func(a *exchange) { c.s.host.Locked(func() { answer(a) }) }
	}
	return map[string]func(*exchange){
		"GET /user":       locked(func(a *exchange) { a.reply(http.StatusOK, c.restSelf(a.by.who)) }),
		"GET /rate_limit": locked(func(a *exchange) { a.reply(http.StatusOK, c.restRateLimit()) }),
		"POST /user/repos": func(a *exchange) {
			c.postRepo(a, viewer)
		},
		"POST /orgs/{org}/repos": func(a *exchange) {
			if lower(a.path["org"]) != organisation {
				a.notFound()
				return
			}
			c.postRepo(a, organisation)
		},
		"PATCH /user/repository_invitations/{invitation_id}": locked(c.acceptInvitation),
	}
}

// defaultLabels returns the names of stockLabels.
func defaultLabels() []string { return slices.Sorted(maps.Keys(stockLabels())) }

// postRepo makes a repository of the viewer's or of their organisation's. They administer it.
func (c *accounts) postRepo(a *exchange, owner string) {
	var in struct {
		Name     string
		Private  bool
		AutoInit bool `json:"auto_init"`
	}
	if !a.decode(&in) {
		return
	}
	c.s.repos.making.Lock() // the host's lock is not held throughout
	defer c.s.repos.making.Unlock()
	taken := false
	ref := gitprovider.RepoRef{Owner: owner, Name: in.Name}
	c.s.host.Locked(func() { taken = c.s.repos.find(owner, in.Name, false) != nil })
	switch {
	case gitprovider.CheckRepoPart(in.Name) != nil: // GitHub would make another name of it
		a.invalid("Repository", "name", "invalid")
		return
	case taken:
		a.fail(http.StatusUnprocessableEntity, "Repository creation failed.", object{
			"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account",
		})
		return
	}
	var files []memhost.File
	if in.AutoInit {
		files = append(files, memhost.File{Path: "README.md", Content: "# " + in.Name})
	}
	c.s.host.Add(owner, in.Name, files...)
	c.s.host.Locked(func() {
		p := c.s.repos.place(c.s.host.Repo(ref))
		p.set.Token.Permission, p.set.Private, p.set.Labels = "admin", in.Private, defaultLabels()
		p.rename(p.repo.Default, c.s.repos.initial)
		a.header.Set("Location", p.api())
		a.reply(http.StatusCreated, p.rest().restFullRepo())
	})
}

// rename gives a branch another name, to pull requests into it and as the default branch too.
func (p *place) rename(branch, name string) {
	if tip := p.tip(branch); tip != "" {
		delete(p.repo.Branches, branch)
		p.repo.Branches[name] = tip
	}
	if p.repo.Default == branch {
		p.repo.Default = name
	}
	for _, pr := range p.repo.PRs {
		if pr.Base == branch {
			pr.Base = name
		}
	}
}

// restSelf returns the owner of a token, as they see themselves.
func (c *accounts) restSelf(login string) object {
	out := c.s.restUser(login)
	for _, field := range []string{"bio", "blog", "company", "email", "hireable", "location", "name"} {
		out[field] = nil
	}
	for _, field := range []string{"followers", "following", "public_gists", "public_repos"} {
		out[field] = 0
	}
	out["created_at"], out["updated_at"] = stamp(epoch()), stamp(epoch())
	return out
}

func (c *accounts) restRateLimit() object {
	core := object{"limit": 5000, "remaining": 5000 - c.s.served%5000, "used": c.s.served % 5000,
		"reset": epoch().Add(resetAfter).Unix()}
	resources := object{}
	for _, name := range []string{"core", "search", "graphql"} {
		resources[name] = core
	}
	return object{"resources": resources, "rate": core}
}

// acceptInvitation makes the invited user a collaborator. Only that user may accept.
func (c *accounts) acceptInvitation(a *exchange) {
	inv := c.invitations[a.number("invitation_id")]
	if inv == nil || inv.invitee != a.by.who || c.s.repos.states[inv.repo].deleted {
		a.notFound()
		return
	}
	delete(c.invitations, inv.id)
	set := c.s.repos.states[inv.repo].set
	set.People.Collaborators = append(set.People.Collaborators, inv.invitee)
	a.reply(http.StatusNoContent, nil)
}

// restMinimalRepo returns the repository as invitations show it.
func (v *restView) restMinimalRepo() object {
	all, out := v.restRepo(), v.links()
	for _, field := range []string{"id", "node_id", "name", "full_name", "owner", "private", "html_url", "url",
		"description", "fork"} {
		out[field] = all[field]
	}
	return out
}

// restInvitation returns an invitation that has just been made.
func (v *restView) restInvitation(inv *invitation) object {
	self := fmt.Sprintf("%s/user/repository_invitations/%d", v.at.s.URL(), inv.id)
	return object{
		"id": inv.id, "node_id": nodeID(kindInvitation, v.at.id, inv.invitee), "repository": v.restMinimalRepo(),
		"invitee": v.at.s.restUser(inv.invitee), "inviter": v.at.s.restUser(viewer), "permissions": inv.role,
		"created_at": stamp(epoch()), "expired": false, "url": self, "html_url": v.at.web("invitations"),
	}
}

// adminRoutes returns the routes for administrators of a repository only.
func adminRoutes() map[string]handler {
	return map[string]handler{
		"DELETE /repos/{owner}/{repo}":                        deleteRepo,
		"POST /repos/{owner}/{repo}/branches/{branch}/rename": renameBranch,
		"PUT /repos/{owner}/{repo}/collaborators/{username}":  putCollaborator,

		"GET /repos/{owner}/{repo}/collaborators/{username}/permission": getPermission,
	}
}

// getPermission tells what somebody may do. Triage counts as reading, and maintaining as writing.
func getPermission(p *place, a *exchange) {
	login := a.path["username"]
	switch {
	case !p.rights().allows(a.by.who, "write") && p.s.apps.acting == nil:
		a.fail(http.StatusForbidden, "Must have push access to view collaborator permission.")
		return
	case slices.Contains(p.set.People.Bots, login):
		a.fail(http.StatusNotFound, login+" is not a user")
		return
	}
	role := p.rights().roleOf(login)
	a.reply(http.StatusOK, object{
		"permission": cmp.Or(map[string]string{"triage": "read", "maintain": "write"}[role], role), "role_name": role,
		"user": p.s.restUser(login),
	})
}

// deleteRepo needs no repository that takes writes: archived ones go too.
func deleteRepo(p *place, a *exchange) {
	if p.set.Token.MissingScopes || !p.rights().allows(a.by.who, "admin") {
		(&refusal{status: http.StatusForbidden, message: "Must have admin rights to Repository.",
			accepts: "administration=write"}).rest(a)
		return
	}
	p.deleted = true
	a.reply(http.StatusNoContent, nil)
}

func renameBranch(p *place, a *exchange) {
	var in struct {
		NewName string `json:"new_name"`
	}
	if !a.decode(&in) || !p.rights().mayWrite(a, "administration", "admin") {
		return
	}
	branch := a.path["branch"]
	switch {
	case p.tip(branch) == "":
		a.fail(http.StatusNotFound, "Branch not found")
	case badRefName(in.NewName) || p.tip(in.NewName) != "":
		a.invalid("Branch", "new_name", "invalid")
	default:
		p.rename(branch, in.NewName)
		p.changed()
		a.reply(http.StatusCreated, p.rest().restBranch(in.NewName))
	}
}

// putCollaborator invites somebody, once: they become a collaborator when they accept.
func putCollaborator(p *place, a *exchange) {
	in := struct{ Permission string }{"push"}
	if !a.decode(&in) || !p.rights().mayWrite(a, "administration", "admin") {
		return
	}
	invitee := p.s.accounts.named(a.path["username"])
	switch {
	case invitee == "":
		a.notFound()
		return
	case invitee == p.repo.Ref.Owner:
		a.custom("Repository", "Repository owner cannot be a collaborator")
		return
	case slices.Contains(p.set.People.Collaborators, invitee):
		a.reply(http.StatusNoContent, nil)
		return
	}
	for _, inv := range p.s.accounts.invitations {
		if inv.repo == p.repo && inv.invitee == invitee {
			a.reply(http.StatusCreated, p.rest().restInvitation(inv))
			return
		}
	}
	role := map[string]string{"pull": "read", "push": "write"}[in.Permission]
	if role == "" {
		role = in.Permission
	}
	p.s.accounts.invited++
	inv := &invitation{id: p.s.accounts.invited, repo: p.repo, invitee: invitee, role: role}
	p.s.accounts.invitations[inv.id] = inv
	a.header.Set("Location", fmt.Sprintf("%s/user/repository_invitations/%d", p.s.URL(), inv.id))
	a.reply(http.StatusCreated, p.rest().restInvitation(inv))
}
