package github

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// treeEntry is an entry of a folder. Mode is git's mode as a decimal number: 33188 is 0100644.
type treeEntry struct {
	Name string
	Mode int
	Oid  string
}

// The types in git's modes, and the executable bit.
const (
	modeType       = 0o170000
	modeDir        = 0o040000
	modeSymlink    = 0o120000
	modeSubmodule  = 0o160000
	modeExecutable = 0o111
)

func (e treeEntry) entry() gitprovider.Entry {
	switch e.Mode & modeType {
	case modeDir:
		return gitprovider.Entry{Kind: gitprovider.KindDir, ID: e.Oid}
	case modeSymlink:
		return gitprovider.Entry{Kind: gitprovider.KindSymlink, ID: e.Oid}
	case modeSubmodule:
		return gitprovider.Entry{Kind: gitprovider.KindSubmodule, ID: e.Oid}
	}
	return gitprovider.Entry{Kind: gitprovider.KindFile, Executable: e.Mode&modeExecutable != 0, ID: e.Oid}
}

// fileNode is GraphQL's answer for Commit.file: a folder's entries or a file's text.
type fileNode struct {
	treeEntry
	Object *struct {
		Entries  []treeEntry
		ByteSize int64
		Text     *string
	}
}

// commitFields selects all that is read of the base commit: everything hangs on this one commit, so that nothing can
// move between the reads.
func (s *snapshotQuery) commitFields(q *query) string {
	var b strings.Builder
	file := func(alias, path, object string) {
		q.text(alias, path)
		b.WriteString(" " + alias + ": file(path: $" + alias + ") { name mode oid object { " + object + " } }")
	}
	b.WriteString("target { oid ... on Commit { tree { oid entries { name mode oid } }")
	for i, dir := range s.dirs {
		file("dir"+strconv.Itoa(i), dir, "... on Tree { entries { name mode oid } }")
	}
	if s.Contents {
		for i, path := range s.Paths {
			file("file"+strconv.Itoa(i), path.String(), "... on Blob { byteSize text }")
		}
	}
	b.WriteString(" } }")
	return b.String()
}

// base returns the base branch, or nil.
func (s *snapshotQuery) base() *baseNode {
	if s.Base == "" {
		return s.repository.DefaultBranchRef
	}
	return s.repository.Base
}

// tree reads the base commit, the id of its root tree, and the folders out of the answer.
func (s *snapshotQuery) tree() (commit, rootID string, tree gitprovider.Tree, err error) {
	target := s.base().Target
	var root struct {
		Oid     string
		Entries []treeEntry
	}
	if err := decodeField(target, "oid", &commit); err != nil {
		return "", "", nil, err
	}
	if err := decodeField(target, "tree", &root); err != nil {
		return "", "", nil, err
	}
	if commit == "" || root.Oid == "" {
		return "", "", nil, fault.New(fault.UpstreamError, "GitHub did not show the commit of the branch %s; try again later",
			forge.Clean(s.base().Name))
	}
	tree = gitprovider.Tree{}
	for _, e := range root.Entries {
		tree[e.Name] = e.entry()
	}
	for i, dir := range s.dirs {
		var folder fileNode
		if err := decodeField(target, "dir"+strconv.Itoa(i), &folder); err != nil {
			return "", "", nil, err
		}
		if folder.Mode&modeType != modeDir || folder.Object == nil {
			continue
		}
		for _, e := range folder.Object.Entries {
			tree[dir+"/"+e.Name] = e.entry()
		}
	}
	return commit, root.Oid, tree, nil
}

// contents gives the bytes of the paths that are regular files within the limit. A text from GraphQL counts only if it
// hashes to the blob's id: what GitHub cut off or could not show as text is read by REST.
func (s snapshots) contents(ctx context.Context, repo gitprovider.RepoRef, target map[string]json.RawMessage,
	paths []gitprovider.Path) (map[gitprovider.Path][]byte, error) {
	var mu sync.Mutex
	out := map[gitprovider.Path][]byte{}
	return out, forge.Each(ctx, paths, func(ctx context.Context, i int, path gitprovider.Path) error {
		var file fileNode
		if err := decodeField(target, "file"+strconv.Itoa(i), &file); err != nil {
			return err
		}
		if file.entry().Kind != gitprovider.KindFile || file.Object == nil ||
			file.Object.ByteSize > gitprovider.MaxContentRead {
			return nil
		}
		content, err := s.content(ctx, repo, file)
		mu.Lock()
		defer mu.Unlock()
		out[path] = content
		return err
	})
}

func (s snapshots) content(ctx context.Context, repo gitprovider.RepoRef, file fileNode) ([]byte, error) {
	if text := file.Object.Text; text != nil && gitprovider.BlobID([]byte(*text), file.Oid) == file.Oid {
		return []byte(*text), nil
	}
	var raw []byte
	_, err := s.api.send(ctx, request{
		method: http.MethodGet, url: s.api.repoURL(repo, "git", "blobs", file.Oid), accept: rawBlob, need: needContents,
	}, &raw)
	if err != nil {
		return nil, err
	}
	if gitprovider.BlobID(raw, file.Oid) != file.Oid {
		return nil, fault.New(fault.UpstreamError, "GitHub answered with other bytes than the file's; try again later")
	}
	return raw, nil
}

// blob reads one blob by its id.
func (s snapshots) blob(ctx context.Context, repo gitprovider.RepoRef, id string) ([]byte, error) {
	if id == "" || strings.Trim(id, "0123456789abcdef") != "" {
		return nil, fault.New(fault.NotFound, "%.100q is not an object id", id)
	}
	var raw []byte
	_, err := s.api.send(ctx, request{
		method: http.MethodGet, url: s.api.repoURL(repo, "git", "blobs", id), accept: rawBlob, need: needContents,
	}, &raw)
	switch {
	case err != nil:
		return nil, err
	case len(raw) > gitprovider.MaxContentRead:
		return nil, gitprovider.BlobTooLarge(id)
	case gitprovider.BlobID(raw, id) != id:
		return nil, fault.New(fault.UpstreamError, "GitHub answered with other bytes than the file's; try again later")
	}
	return raw, nil
}

// list reads every plain file below a folder in one request.
func (s snapshots) list(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile, bool,
	error) {
	id, prefix := at.BaseCommit, ""
	if folder != "" {
		id, prefix = at.Tree[folder].ID, folder+"/"
	}
	var answer struct {
		Tree []struct {
			Path, Mode, SHA string
			Size            int64
		}
		Truncated bool
	}
	where := s.api.repoURL(at.Repo, "git", "trees", id)
	where.RawQuery = "recursive=1"
	_, err := s.api.send(ctx, request{method: http.MethodGet, url: where, need: needContents}, &answer)
	if err != nil {
		return nil, false, err
	}
	var files []gitprovider.ListedFile
	for _, e := range answer.Tree {
		if e.Mode == "100644" || e.Mode == "100755" {
			files = append(files, gitprovider.ListedFile{Path: prefix + e.Path, ID: e.SHA, Size: e.Size})
		}
	}
	sorted, complete := gitprovider.SortListed(files)
	return sorted, complete && !answer.Truncated, nil
}
