package github

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReadCommit implements gitprovider.Settler. One query reads the commit, and one for each level of folders compares it with
// its parent: object ids tell which folders differ.
func (p *Provider) ReadCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	ctx = about(ctx, repo)
	info, err := p.readCommit(ctx, repo, id)
	if err != nil {
		return gitprovider.CommitInfo{}, publish(err)
	}
	return info, nil
}

type commitNode struct {
	Oid           string
	Message       string
	CommittedDate time.Time
	Parents       struct{ Nodes []struct{ Oid string } }
}

func (p *Provider) readCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	q := newQuery(repo)
	q.variable("oid", "GitObjectID!", id)
	q.add("object(oid: $oid) { ... on Commit { oid message committedDate parents(first: 10) { nodes { oid } } } }")
	var data struct{ Repository *struct{ Object *commitNode } }
	err := p.graphql(ctx, q.operation(needContents), &data)
	switch {
	case err != nil:
		return none, err
	case data.Repository == nil:
		return none, p.notFound()
	case data.Repository.Object == nil || data.Repository.Object.Oid == "":
		return none, fault.New(fault.NotFound, "the repository %s has no commit %s", repo, clean(id))
	}
	n := data.Repository.Object
	info := gitprovider.CommitInfo{ID: n.Oid, Message: n.Message, Time: n.CommittedDate.UTC()}
	for _, parent := range n.Parents.Nodes {
		info.Parents = append(info.Parents, parent.Oid)
	}
	parent := ""
	if len(info.Parents) > 0 {
		parent = info.Parents[0]
	}
	info.Paths, err = p.differing(ctx, repo, parent, n.Oid)
	return info, err
}

// foldersAtOnce bounds the folders that one query reads, of two commits each.
const foldersAtOnce = 50

// differing lists the files that differ between two commits, sorted. The first may be "", for nothing.
func (p *Provider) differing(ctx context.Context, repo gitprovider.RepoRef, from, to string) ([]string, error) {
	var paths []string
	for dirs := []string{""}; len(dirs) > 0; {
		at := dirs[:min(len(dirs), foldersAtOnce)]
		dirs = dirs[len(at):]
		before, after, err := p.folders(ctx, repo, from, to, at)
		if err != nil {
			return nil, err
		}
		for path := range union(before, after) {
			was, is := before[path], after[path]
			if was == is {
				continue
			}
			if was.Kind == gitprovider.KindDir || is.Kind == gitprovider.KindDir {
				dirs = append(dirs, path)
			}
			if was.ID != "" && was.Kind != gitprovider.KindDir || is.ID != "" && is.Kind != gitprovider.KindDir {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func union(a, b gitprovider.Tree) map[string]bool {
	out := map[string]bool{}
	for path := range a {
		out[path] = true
	}
	for path := range b {
		out[path] = true
	}
	return out
}

// folders reads the entries of folders in two commits, by their full paths. A folder that a commit lacks has none.
func (p *Provider) folders(ctx context.Context, repo gitprovider.RepoRef, from, to string, dirs []string) (
	before, after gitprovider.Tree, err error) {
	q := newQuery(repo)
	for side, commit := range map[string]string{"before": from, "after": to} {
		for i, dir := range dirs {
			if commit != "" {
				alias := side + decimal(i)
				q.variable(alias, "String!", commit+":"+dir)
				q.add(alias + ": object(expression: $" + alias + ") { ... on Tree { entries { name mode oid } } }")
			}
		}
	}
	var data struct{ Repository map[string]json.RawMessage }
	if err := p.graphql(ctx, q.operation(needContents), &data); err != nil {
		return nil, nil, err
	}
	if data.Repository == nil {
		return nil, nil, p.notFound()
	}
	before, after = gitprovider.Tree{}, gitprovider.Tree{}
	for side, into := range map[string]gitprovider.Tree{"before": before, "after": after} {
		for i, dir := range dirs {
			var tree *struct{ Entries []treeEntry }
			if err := decodeField(data.Repository, side+decimal(i), &tree); err != nil {
				return nil, nil, err
			}
			if tree == nil {
				continue
			}
			prefix := ""
			if dir != "" {
				prefix = dir + "/"
			}
			for _, e := range tree.Entries {
				into[prefix+e.Name] = e.entry()
			}
		}
	}
	return before, after, nil
}
