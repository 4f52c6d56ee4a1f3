package fakegithub

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
