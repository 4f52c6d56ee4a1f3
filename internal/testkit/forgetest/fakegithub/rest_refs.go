package fakegithub

import (
	"net/http"
	"strings"
)

func refRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/git/ref/{ref}":           getRef,
		"GET /repos/{owner}/{repo}/git/matching-refs/{ref}": matchingRefs,
		"POST /repos/{owner}/{repo}/git/refs":               postRef,
		"PATCH /repos/{owner}/{repo}/git/refs/{ref}":        patchRef,
		"DELETE /repos/{owner}/{repo}/git/refs/{ref}":       deleteRef,
	}
}

func (v *restView) restRef(branch string) object {
	return object{
		"ref": "refs/heads/" + branch, "node_id": nodeID(kindRef, v.at.id, "refs/heads/"+branch),
		"url": v.at.api("git/refs/heads", branch), "object": object{
			"sha": v.at.tip(branch), "type": "commit", "url": v.at.api("git/commits", v.at.tip(branch)),
		},
	}
}

// empty refuses reads of git data in a repository without a commit.
func (p *place) empty(a *exchange) bool {
	if len(p.branches()) > 0 {
		return false
	}
	a.fail(http.StatusConflict, "Git Repository is empty.")
	return true
}

func getRef(p *place, a *exchange) {
	if p.empty(a) {
		return
	}
	branch, ok := strings.CutPrefix(a.path["ref"], "heads/")
	if !ok || p.tip(branch) == "" {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, p.rest().restRef(branch))
}

func matchingRefs(p *place, a *exchange) {
	if p.empty(a) {
		return
	}
	prefix, _ := strings.CutPrefix(a.path["ref"], "heads/")
	refs := []object{}
	for _, branch := range p.branches() {
		if strings.HasPrefix(branch, prefix) {
			refs = append(refs, p.rest().restRef(branch))
		}
	}
	a.reply(http.StatusOK, refs)
}

func postRef(p *place, a *exchange) {
	var body struct{ Ref, SHA string }
	if !a.decode(&body) || !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	branch, ok := strings.CutPrefix(body.Ref, "refs/heads/")
	switch hindered := p.rights().hindered(branch, "create"); {
	case !ok || badRefName(branch):
		a.fail(http.StatusUnprocessableEntity, body.Ref+" is not a valid ref name.")
	case p.tip(branch) != "":
		a.fail(http.StatusUnprocessableEntity, "Reference already exists")
	case p.repo.Commits[body.SHA] == nil:
		a.fail(http.StatusUnprocessableEntity, "Object does not exist")
	case hindered != nil:
		hindered.rest(a)
	case p.inTheWay(branch):
		a.fail(http.StatusUnprocessableEntity, "Reference update failed")
	default:
		p.repo.Branches[branch] = body.SHA
		p.changed()
		a.header.Set("Location", p.api("git/refs/heads", branch))
		a.reply(http.StatusCreated, p.rest().restRef(branch))
	}
}

func patchRef(p *place, a *exchange) {
	var body struct {
		SHA   string
		Force bool
	}
	if !a.decode(&body) || !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	branch, _ := strings.CutPrefix(a.path["ref"], "heads/")
	switch hindered := p.rights().hindered(branch, "update"); {
	case p.tip(branch) == "":
		a.fail(http.StatusUnprocessableEntity, "Reference does not exist")
	case p.repo.Commits[body.SHA] == nil:
		a.fail(http.StatusUnprocessableEntity, "Object does not exist")
	case hindered != nil:
		hindered.rest(a)
	case !body.Force && !p.repo.Contains(body.SHA, p.tip(branch)):
		a.fail(http.StatusUnprocessableEntity, "Update is not a fast forward")
	default:
		p.repo.Branches[branch] = body.SHA
		p.changed()
		a.reply(http.StatusOK, p.rest().restRef(branch))
	}
}

func deleteRef(p *place, a *exchange) {
	if !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	branch, _ := strings.CutPrefix(a.path["ref"], "heads/")
	switch hindered := p.rights().hindered(branch, "delete"); {
	case p.tip(branch) == "":
		a.fail(http.StatusUnprocessableEntity, "Reference does not exist")
	case branch == p.repo.Default:
		a.fail(http.StatusUnprocessableEntity, "Cannot delete the default branch")
	case hindered != nil:
		hindered.rest(a)
	default:
		delete(p.repo.Branches, branch)
		p.changed()
		a.reply(http.StatusNoContent, nil)
	}
}
