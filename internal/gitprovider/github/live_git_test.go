package github_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// liveCommit is what is read of a commit.
type liveCommit struct {
	SHA     string
	Message string
	Tree    struct{ SHA string }
	Parents []struct{ SHA string }
}

func (w *liveWorld) commit(id string) (c liveCommit) {
	w.t.Helper()
	w.must(http.MethodGet, "git/commits/"+id, nil, &c)
	return c
}

// tip is the commit of a branch, or "".
func (w *liveWorld) tip(branch string) string {
	w.t.Helper()
	var ref struct{ Object struct{ SHA string } }
	switch status, answer := w.call(http.MethodGet, "git/ref/heads/"+branch, nil, &ref); status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusConflict: // the repository has no commit
	default:
		w.t.Fatalf("reading the branch %s: %d %.300s", branch, status, answer)
	}
	return ref.Object.SHA
}

// Push waits until open pull requests show it.
func (w *liveWorld) Push(branch string, files ...providertest.File) string {
	w.t.Helper()
	from := w.tip(branch)
	if from == "" {
		made := w.write(w.tip(providertest.MainBranch), files)
		w.must(http.MethodPost, "git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": made}, nil)
		return made
	}
	made := w.write(from, files)
	w.must(http.MethodPatch, "git/refs/heads/"+branch, map[string]any{"sha": made}, nil)
	w.untilNoticed(branch, made)
	return made
}

// write makes a commit on another one, or, with "", one that is a beginning.
func (w *liveWorld) write(parent string, files []providertest.File) string {
	w.t.Helper()
	tree, commit := map[string]any{}, map[string]any{"message": "pushed", "parents": []string{}}
	if parent != "" {
		tree["base_tree"] = w.commit(parent).Tree.SHA
		commit["parents"] = []string{parent}
	}
	var entries []map[string]any
	for _, f := range files {
		entries = append(entries, w.entry(f))
	}
	tree["tree"] = entries
	var made struct{ SHA string }
	w.must(http.MethodPost, "git/trees", tree, &made)
	commit["tree"] = made.SHA
	w.must(http.MethodPost, "git/commits", commit, &made)
	return made.SHA
}

// entry is a file as a new tree has it.
func (w *liveWorld) entry(f providertest.File) map[string]any {
	w.t.Helper()
	if !utf8.ValidString(f.Content) {
		w.t.Fatalf("%s is no text, which JSON cannot carry as it is", f.Path)
	}
	out := map[string]any{"path": f.Path, "mode": "100644", "type": "blob", "content": f.Content}
	switch {
	case f.Kind == gitprovider.KindSubmodule:
		return map[string]any{"path": f.Path, "mode": "160000", "type": "commit", "sha": strings.Repeat("ab", 20)}
	case f.Kind == gitprovider.KindSymlink:
		out["mode"] = "120000"
	case f.Executable:
		out["mode"] = "100755"
	}
	return out
}

// Branches is empty for a repository without a commit, about which GitHub answers 409.
func (w *liveWorld) Branches() map[string]string {
	w.t.Helper()
	var refs []struct {
		Ref    string
		Object struct{ SHA string }
	}
	status, answer := w.call(http.MethodGet, "git/matching-refs/heads/", nil, &refs)
	if status != http.StatusOK && status != http.StatusConflict {
		w.t.Fatalf("reading the branches: %d %.300s", status, answer)
	}
	out := map[string]string{}
	for _, ref := range refs {
		out[strings.TrimPrefix(ref.Ref, "refs/heads/")] = ref.Object.SHA
	}
	return out
}

// emptyTree is git's id of a tree without entries, which GitHub does not show.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func (w *liveWorld) Files(commit string) []providertest.File {
	w.t.Helper()
	id := w.commit(commit).Tree.SHA
	if id == emptyTree {
		return nil
	}
	var tree struct {
		Truncated bool
		Tree      []struct{ Path, Mode, SHA string }
	}
	w.must(http.MethodGet, "git/trees/"+id+"?recursive=1", nil, &tree)
	if tree.Truncated {
		w.t.Fatalf("the tree of %s is too large to be read", commit)
	}
	var out []providertest.File
	for _, e := range tree.Tree {
		f := providertest.File{Path: e.Path, Kind: gitprovider.KindFile, Executable: e.Mode == "100755"}
		switch e.Mode {
		case "040000":
			continue
		case "120000":
			f.Kind = gitprovider.KindSymlink
		case "160000":
			f.Kind = gitprovider.KindSubmodule
		}
		if f.Kind != gitprovider.KindSubmodule {
			f.Content = w.blob(e.SHA)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b providertest.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// blob reads a content once.
func (w *liveWorld) blob(id string) string {
	w.t.Helper()
	if content, known := w.blobs[id]; known {
		return content
	}
	var blob struct{ Content string }
	w.must(http.MethodGet, "git/blobs/"+id, nil, &blob)
	raw, err := base64.StdEncoding.DecodeString(blob.Content) // which passes over the line breaks
	if err != nil {
		w.t.Fatalf("the blob %s: %v", id, err)
	}
	w.blobs[id] = string(raw)
	return w.blobs[id]
}

func (w *liveWorld) Parents(commit string) (out []string) {
	w.t.Helper()
	for _, parent := range w.commit(commit).Parents {
		out = append(out, parent.SHA)
	}
	return out
}

func (w *liveWorld) Message(commit string) string {
	w.t.Helper()
	return w.commit(commit).Message
}
