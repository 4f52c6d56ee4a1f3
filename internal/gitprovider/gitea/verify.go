package gitea

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// verify demands that the commit is on the base that the gates saw and holds exactly the approved change. The server
// rewrites odd paths, filters contents (Git LFS) and takes the base as it is when the request arrives, all silently.
//
// The best proof costs no request: the id of the root tree follows from the snapshot and the change. Where it differs
// (git keeps file modes from long ago that a snapshot does not show) the files that the answer lists decide, and, since
// it lists 30 at most, the commit's own tree.
func (w commitWriter) verify(ctx context.Context, req gitprovider.CommitRequest, made filesChanged) error {
	if len(made.Commit.Parents) != 1 || made.Commit.Parents[0] == nil ||
		made.Commit.Parents[0].SHA != req.Snapshot.BaseCommit {
		return forge.BaseMoved(req.Snapshot, nil)
	}
	expected := expectedTree(req)
	if made.Commit.Tree != nil && made.Commit.Tree.SHA == treeID(expected, req.Snapshot.BaseCommit) {
		return nil
	}
	if listsExactly(req, made) {
		return nil
	}
	got, err := w.trees.commit(ctx, req.Snapshot.Repo, made.Commit.SHA, req.Changes.Paths())
	if err != nil {
		return w.api.toFault(err, req.Snapshot.Repo, "")
	}
	if path := firstDifference(expected, got.tree, foldersOf(req.Changes.Paths())); path != "" {
		return w.otherFiles(req, path)
	}
	return nil
}

// firstDifference names an entry of the folders that differs between what was expected and what there is; "" if none
// does. Of folders only the existence counts: their ids follow from what is in them.
func firstDifference(expected, got gitprovider.Tree, folders map[string]bool) string {
	for path, entry := range expected {
		have, exists := got[path]
		if folders[parentOf(path)] && (!exists || entry.Kind != gitprovider.KindDir && have != entry) {
			return path
		}
	}
	for path := range got {
		if _, exists := expected[path]; !exists {
			return path
		}
	}
	return ""
}

// otherFiles returns a definite refusal: the same call would be answered in the same way.
func (w commitWriter) otherFiles(req gitprovider.CommitRequest, path string) error {
	return fault.New(fault.ContentDenied, "%s wrote other files than were approved (%.200q in %s), as it does where the "+
		"repository filters files, by Git LFS for example; leave that file to a person", w.api.base.Host, path,
		req.Snapshot.Repo)
}

// expectedTree returns the snapshot's tree with the change made: the folders that lead to it, and all that is in them.
// Folders that the change empties are gone; the ids of folders that it touches are empty.
func expectedTree(req gitprovider.CommitRequest) gitprovider.Tree {
	tree := maps.Clone(req.Snapshot.Tree)
	for _, c := range req.Changes.Changes() {
		path := c.Path.String()
		if c.Action == gitprovider.ActionDelete {
			delete(tree, path)
		} else {
			tree[path] = gitprovider.Entry{
				Kind: gitprovider.KindFile, Executable: tree[path].Executable,
				ID: gitprovider.BlobID([]byte(c.Content), req.Snapshot.BaseCommit),
			}
		}
		for _, dir := range c.Path.Ancestors() {
			tree[dir] = gitprovider.Entry{Kind: gitprovider.KindDir}
		}
	}
	dropEmpty(tree)
	return tree
}

// dropEmpty removes touched folders without an entry, the deepest first: git stores no empty folder.
func dropEmpty(tree gitprovider.Tree) {
	paths := slices.Sorted(maps.Keys(tree))
	for _, path := range slices.Backward(paths) {
		if tree[path].Kind == gitprovider.KindDir && tree[path].ID == "" && len(childrenOf(tree, path)) == 0 {
			delete(tree, path)
		}
	}
}

// childrenOf gives the names of a folder's entries.
func childrenOf(tree gitprovider.Tree, dir string) []string {
	var names []string
	for path := range tree {
		if parentOf(path) == dir {
			names = append(names, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	return names
}

// treeID computes the id of the root folder as git does: the ids of touched folders follow from their entries.
func treeID(tree gitprovider.Tree, sample string) string { return folderID(tree, "", sample) }

func folderID(tree gitprovider.Tree, dir, sample string) string {
	names := childrenOf(tree, dir)
	at := func(name string) gitprovider.Entry { return tree[strings.TrimPrefix(dir+"/"+name, "/")] }
	// git sorts the names of folders as if they ended with a slash.
	key := func(name string) string {
		if at(name).Kind == gitprovider.KindDir {
			return name + "/"
		}
		return name
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	var body []byte
	for _, name := range names {
		entry := at(name)
		id := entry.ID
		if id == "" {
			id = folderID(tree, strings.TrimPrefix(dir+"/"+name, "/"), sample)
		}
		raw, err := hex.DecodeString(id)
		if err != nil {
			return ""
		}
		body = append(body, modeOf(entry)+" "+name+"\x00"...)
		body = append(body, raw...)
	}
	return gitprovider.ObjectID("tree", body, sample)
}

func modeOf(e gitprovider.Entry) string {
	switch {
	case e.Kind == gitprovider.KindDir:
		return "40000"
	case e.Kind == gitprovider.KindSymlink:
		return "120000"
	case e.Kind == gitprovider.KindSubmodule:
		return "160000"
	case e.Executable:
		return "100755"
	}
	return "100644"
}

// listsExactly reports whether the answer lists every file that was written, each with its path and bytes, and no
// other.
func listsExactly(req gitprovider.CommitRequest, made filesChanged) bool {
	wrote := map[string]string{}
	for _, f := range made.Files {
		if f != nil {
			wrote[f.Path] = f.SHA
		}
	}
	want := map[string]string{}
	for _, c := range req.Changes.Changes() {
		if c.Action != gitprovider.ActionDelete {
			want[c.Path.String()] = gitprovider.BlobID([]byte(c.Content), req.Snapshot.BaseCommit)
		}
	}
	return len(made.Files) == req.Changes.Len() && maps.Equal(wrote, want)
}
