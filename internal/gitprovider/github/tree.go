package github

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
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

// fileNode is what GraphQL answers to Commit.file: a folder's entries or a file's text.
type fileNode struct {
	treeEntry
	Object *struct {
		Entries  []treeEntry
		ByteSize int64
		Text     *string
	}
}

// commitFields selects all that is read of the base commit: everything hangs on this one commit, so that nothing can move
// between the reads.
func (l *look) commitFields(q *query) string {
	var b strings.Builder
	file := func(alias, path, object string) {
		q.variable(alias, "String!", path)
		b.WriteString(" " + alias + ": file(path: $" + alias + ") { name mode oid object { " + object + " } }")
	}
	b.WriteString("target { oid ... on Commit { tree { oid entries { name mode oid } }")
	for i, dir := range l.dirs {
		file("dir"+decimal(i), dir, "... on Tree { entries { name mode oid } }")
	}
	if l.Contents {
		for i, path := range l.Paths {
			file("file"+decimal(i), path.String(), "... on Blob { byteSize text }")
		}
	}
	b.WriteString(" } }")
	return b.String()
}

// ref is the base branch, or nil.
func (l *look) ref() *refNode {
	if l.Base == "" {
		return l.repository.DefaultBranchRef
	}
	return l.repository.Base
}

func (l *look) target() map[string]json.RawMessage { return l.ref().Target }

// tree reads the base commit and the folders out of the answer.
func (l *look) tree(p *Provider) (commit string, tree gitprovider.Tree, err error) {
	var root struct {
		Oid     string
		Entries []treeEntry
	}
	if err := decodeField(l.target(), "oid", &commit); err != nil {
		return "", nil, err
	}
	if err := decodeField(l.target(), "tree", &root); err != nil {
		return "", nil, err
	}
	if commit == "" || root.Oid == "" {
		return "", nil, fault.New(fault.UpstreamError, "GitHub did not show the commit of the branch %s; try again later",
			clean(l.ref().Name))
	}
	p.trees.put(commit, root.Oid)
	tree = gitprovider.Tree{}
	for _, e := range root.Entries {
		tree[e.Name] = e.entry()
	}
	for i, dir := range l.dirs {
		var folder *fileNode
		if err := decodeField(l.target(), "dir"+decimal(i), &folder); err != nil {
			return "", nil, err
		}
		if folder == nil || folder.Mode&modeType != modeDir || folder.Object == nil {
			continue
		}
		for _, e := range folder.Object.Entries {
			tree[dir+"/"+e.Name] = e.entry()
		}
	}
	return commit, tree, nil
}

func (l *look) tips(into map[string]string) error {
	for i, branch := range l.Branches {
		var ref *struct{ Target struct{ Oid string } }
		if err := decodeField(l.dynamic, "tip"+decimal(i), &ref); err != nil {
			return err
		}
		if ref != nil {
			into[branch] = ref.Target.Oid
		}
	}
	return nil
}

// decodeField decodes one field of an object; one that is missing or null leaves out as it is.
func decodeField(object map[string]json.RawMessage, name string, out any) error {
	raw, given := object[name]
	if !given || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return notJSON(err)
	}
	return nil
}

// contents gives the bytes of the paths that are regular files within the limit. A text from GraphQL counts only if it
// hashes to the blob's id: what GitHub cut off or could not show as text is read by REST.
func (p *Provider) contents(ctx context.Context, repo gitprovider.RepoRef, target map[string]json.RawMessage,
	paths []gitprovider.Path) (map[gitprovider.Path][]byte, error) {
	var mu sync.Mutex
	out := map[gitprovider.Path][]byte{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, path := range paths {
		var file *fileNode
		if err := decodeField(target, "file"+decimal(i), &file); err != nil {
			return nil, err
		}
		if file == nil || file.entry().Kind != gitprovider.KindFile || file.Object == nil ||
			file.Object.ByteSize > gitprovider.MaxContentRead {
			continue
		}
		group.Go(func() error {
			content, err := p.content(ctx, repo, file)
			mu.Lock()
			defer mu.Unlock()
			out[path] = content
			return err
		})
	}
	return out, group.Wait()
}

func (p *Provider) content(ctx context.Context, repo gitprovider.RepoRef, file *fileNode) ([]byte, error) {
	if text := file.Object.Text; text != nil && gitprovider.BlobID([]byte(*text), file.Oid) == file.Oid {
		return []byte(*text), nil
	}
	var raw []byte
	_, err := p.rest(ctx, request{
		method: http.MethodGet, url: p.repoURL(repo, "git", "blobs", file.Oid), accept: rawBlob, need: needContents,
	}, &raw)
	if err != nil {
		return nil, err
	}
	if gitprovider.BlobID(raw, file.Oid) != file.Oid {
		return nil, fault.New(fault.UpstreamError, "GitHub answered with other bytes than the file's; try again later")
	}
	return raw, nil
}
