package fakegithub

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
)

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
