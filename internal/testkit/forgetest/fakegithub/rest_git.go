package fakegithub

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
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

func treeRoutes() map[string]handler {
	return map[string]handler{
		"GET /repos/{owner}/{repo}/git/trees/{tree_sha}": getTree,
		"POST /repos/{owner}/{repo}/git/trees":           postTree,
		"GET /repos/{owner}/{repo}/git/blobs/{file_sha}": getBlob,
		"POST /repos/{owner}/{repo}/git/blobs":           postBlob,
	}
}

func (v *restView) restTree(id string, recursive bool) object {
	entries := []object{}
	show := func(path string, e treeEntry) {
		entry := object{"path": path, "mode": e.mode, "type": e.kind(), "sha": e.id}
		switch e.kind() {
		case "blob":
			entry["size"], entry["url"] = len(e.file.Content), v.at.api("git/blobs", e.id)
		case "tree":
			entry["url"] = v.at.api("git/trees", e.id)
		}
		entries = append(entries, entry)
	}
	if recursive {
		v.at.read().walk(id, "", show)
	} else {
		for _, e := range v.at.objects.trees[id] {
			show(e.name, e)
		}
	}
	return object{"sha": id, "url": v.at.api("git/trees", id), "tree": entries, "truncated": false}
}

// getTree takes the id of a tree, or anything that stands for a commit.
func getTree(p *place, a *exchange) {
	if p.empty(a) {
		return
	}
	id := a.path["tree_sha"]
	if commit := p.read().commitOf(id); commit != "" {
		id = p.read().root(commit)
	}
	if _, known := p.read().tree(id); !known {
		a.notFound()
		return
	}
	a.reply(http.StatusOK, p.rest().restTree(id, a.query.Has("recursive"))) // whatever its value
}

// postTree makes a tree from a base and entries: with content, with the id of an object, or, with an id that is null,
// the removal of what is there.
func postTree(p *place, a *exchange) {
	var body struct {
		BaseTree string `json:"base_tree"`
		Tree     []struct {
			Path, Mode, Type string
			SHA              json.RawMessage
			Content          *string
		}
	}
	if !a.decode(&body) || !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	files := map[string]memhost.File{}
	if body.BaseTree != "" {
		base := body.BaseTree
		if p.repo.Commits[base] != nil {
			base = p.read().root(base)
		}
		if _, known := p.read().tree(base); !known || p.hides(doorREST, base) {
			a.notFound()
			return
		}
		files = p.read().filesOf(base)
	}
	for _, e := range body.Tree {
		var id string
		if len(e.SHA) > 0 && json.Unmarshal(e.SHA, &id) != nil {
			a.fail(http.StatusUnprocessableEntity, "tree.sha is malformed")
			return
		}
		content, hasObject := p.read().blob(id)
		switch {
		case badPath(e.Path):
			a.fail(http.StatusUnprocessableEntity, "tree.path contains a malformed path component")
			return
		case string(e.SHA) == "null":
			if !removePath(files, e.Path) {
				a.fail(http.StatusUnprocessableEntity, "GitRPC::BadObjectState")
				return
			}
			continue
		case e.Content != nil:
			content = *e.Content
		case e.Mode == modeSubmodule && e.Type == "commit" && id != "": // of another repository; which one is not kept
			content = ""
		case id == "" || !hasObject || e.Type == "tree":
			a.fail(http.StatusUnprocessableEntity, "tree.sha "+id+" is not a valid blob")
			return
		}
		putFile(files, fileOf(e.Path, e.Mode, content))
	}
	if len(files) == 0 {
		a.fail(http.StatusUnprocessableEntity, "Invalid tree info")
		return
	}
	id := p.objects.addTree(files)
	p.made(id)
	a.reply(http.StatusCreated, p.rest().restTree(id, false))
}

// removePath removes a file, or a folder with what is in it; false if there is neither.
func removePath(files map[string]memhost.File, path string) bool {
	found := false
	for have := range files {
		if have == path || strings.HasPrefix(have, path+"/") {
			delete(files, have)
			found = true
		}
	}
	return found
}

func getBlob(p *place, a *exchange) {
	if p.empty(a) {
		return
	}
	id := a.path["file_sha"]
	content, known := p.read().blob(id)
	if !known {
		a.notFound()
		return
	}
	if wantsRaw(a) {
		a.header.Set("Content-Type", "application/vnd.github.raw+json; charset=utf-8")
		a.reply(http.StatusOK, nil)
		a.raw = []byte(content)
		return
	}
	a.reply(http.StatusOK, object{
		"sha": id, "node_id": nodeID(kindBlob, p.id, id), "size": len(content), "url": p.api("git/blobs", id),
		"content": wrapped(content), "encoding": "base64",
	})
}

// wantsRaw reports whether the client takes bytes rather than JSON.
func wantsRaw(a *exchange) bool {
	return strings.Contains(a.r.Header.Get("Accept"), ".raw")
}

// wrapped is Base64 in lines of 60, each ended, as GitHub writes it.
func wrapped(content string) string {
	code := base64.StdEncoding.EncodeToString([]byte(content))
	var b strings.Builder
	for len(code) > 0 {
		n := min(60, len(code))
		b.WriteString(code[:n] + "\n")
		code = code[n:]
	}
	return b.String()
}

func postBlob(p *place, a *exchange) {
	var body struct{ Content, Encoding string }
	if !a.decode(&body) || !p.rights().mayWrite(a, "contents", "write") || p.empty(a) {
		return
	}
	content := body.Content
	if body.Encoding == "base64" {
		raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(content, "\n", ""))
		if err != nil {
			a.fail(http.StatusUnprocessableEntity, "content is not valid Base64")
			return
		}
		content = string(raw)
	}
	id := gitprovider.BlobID([]byte(content), "")
	p.objects.blobs[id] = content
	a.reply(http.StatusCreated, object{"sha": id, "url": p.api("git/blobs", id)})
}
