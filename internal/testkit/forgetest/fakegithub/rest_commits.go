package fakegithub

import (
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func commitRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/git/commits/{commit_sha}": func(p *place, a *exchange) {
			if p.empty(a) {
				return
			}
			if p.repo.Commits[a.path["commit_sha"]] == nil || p.hides(doorREST, a.path["commit_sha"]) {
				a.notFound()
				return
			}
			a.reply(http.StatusOK, p.rest().restCommit(a.path["commit_sha"]))
		},
		"POST /repos/{owner}/{repo}/git/commits": postCommit,
	}
}

func restSignature(who signature) object {
	return object{"name": who.name, "email": who.email, "date": stamp(who.at)}
}

// restCommit returns a commit as git knows it.
func (v *restView) restCommit(id string) object {
	c, d := v.at.repo.Commits[id], v.at.detailsOf(id)
	parents := []object{}
	for _, parent := range c.Parents {
		parents = append(parents, object{
			"sha": parent, "url": v.at.api("git/commits", parent), "html_url": v.at.web("commit", parent),
		})
	}
	verification := object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
	if d.committer.name == signer {
		verification = object{"verified": true, "reason": "valid", "signature": "-----BEGIN PGP SIGNATURE-----",
			"payload": "tree " + v.at.read().root(id), "verified_at": stamp(d.committer.at)}
	}
	return object{
		"sha": id, "node_id": nodeID(kindCommit, v.at.id, id), "url": v.at.api("git/commits", id),
		"html_url": v.at.web("commit", id), "author": restSignature(d.author), "committer": restSignature(d.committer),
		"tree":    object{"sha": v.at.read().root(id), "url": v.at.api("git/trees", v.at.read().root(id))},
		"message": c.Message, "parents": parents, "verification": verification,
	}
}

// restFullCommit returns a commit as the repository knows it: with accounts.
func (v *restView) restFullCommit(id string) object {
	short := v.restCommit(id)
	inner := object{"url": short["url"], "comment_count": 0}
	for _, field := range []string{"author", "committer", "message", "tree", "verification"} {
		inner[field] = short[field]
	}
	return object{
		"sha": id, "node_id": short["node_id"], "url": v.at.api("commits", id), "html_url": short["html_url"],
		"comments_url": v.at.api("commits", id, "comments"), "commit": inner, "author": nil, "committer": nil,
		"parents": short["parents"],
	}
}

func postCommit(p *place, a *exchange) {
	type person struct {
		Name, Email string
		Date        *time.Time
	}
	var body struct {
		Message, Tree     string
		Parents           []string
		Author, Committer *person
	}
	if !a.decode(&body) || !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	if _, known := p.read().tree(body.Tree); !known || p.hides(doorREST, body.Tree) {
		a.fail(http.StatusUnprocessableEntity, "Tree SHA does not exist")
		return
	}
	for _, parent := range body.Parents {
		if p.repo.Commits[parent] == nil {
			a.fail(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
			return
		}
	}
	who := func(given *person, otherwise signature) signature {
		if given == nil {
			return otherwise
		}
		out := signature{given.Name, given.Email, otherwise.at}
		if given.Date != nil {
			out.at = *given.Date
		}
		return out
	}
	author := who(body.Author, signature{viewer, viewer + "@users.noreply.github.example", p.s.host.Now()})
	id := p.repo.Add(&memhost.Commit{Parents: body.Parents, Files: p.read().filesOf(body.Tree), Message: body.Message})
	p.details[id] = commitDetails{author: author, committer: who(body.Committer, author)}
	p.made(id)
	a.reply(http.StatusCreated, p.rest().restCommit(id))
}
