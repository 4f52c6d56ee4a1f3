package github

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// history reads commits.
type history struct{ api *api }

type commitNode struct {
	Oid           string
	Message       string
	CommittedDate time.Time
	Author        *struct {
		Name string
		User *struct{ Login string }
	}
	Parents struct{ Nodes []struct{ Oid string } }
}

// author returns the account, or the name that the commit has.
func (n commitNode) author() string {
	switch {
	case n.Author == nil:
		return ""
	case n.Author.User != nil:
		return n.Author.User.Login
	}
	return n.Author.Name
}

func (h history) read(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	q := newQuery(repo)
	q.variable("oid", "GitObjectID!", id)
	q.add("object(oid: $oid) { ... on Commit { oid message committedDate author { name user { login } } parents(first: " +
		"10) { nodes { oid } } } }")
	var n *commitNode
	late, err := h.api.fresh.wait(ctx, object(repo, id),
		func(err error) bool { return err == nil && n == nil },
		func() error {
			from, err := ask[struct{ Object *commitNode }](ctx, h.api, q, needContents)
			if err == nil {
				n = from.Object
			}
			return err
		})
	switch {
	case err != nil:
		return none, err
	case late:
		return none, notYet("the commit "+forge.Clean(id), nil)
	case n == nil || n.Oid == "":
		return none, forge.NoCommit(repo, id)
	}
	info := gitprovider.CommitInfo{ID: n.Oid, Message: n.Message, Author: n.author(), Time: n.CommittedDate.UTC()}
	for _, parent := range n.Parents.Nodes {
		info.Parents = append(info.Parents, parent.Oid)
	}
	parent := ""
	if len(info.Parents) > 0 {
		parent = info.Parents[0]
	}
	info.Paths, err = h.differing(ctx, repo, parent, n.Oid)
	return info, err
}

// foldersAtOnce bounds the folders that one query reads, of two commits each.
const foldersAtOnce = 50

// differing lists the files that differ between two commits, sorted. The first may be "", for nothing. Object ids tell
// which folders differ, so that one query for each level of folders is enough.
func (h history) differing(ctx context.Context, repo gitprovider.RepoRef, from, to string) ([]string, error) {
	var paths []string
	for dirs := []string{""}; len(dirs) > 0; {
		at := dirs[:min(len(dirs), foldersAtOnce)]
		dirs = dirs[len(at):]
		before, after, err := h.folders(ctx, repo, from, to, at)
		if err != nil {
			return nil, err
		}
		all := maps.Clone(before)
		maps.Copy(all, after)
		for path := range all {
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

// folders reads the entries of folders in two commits, by their full paths. A folder that a commit lacks has none.
func (h history) folders(ctx context.Context, repo gitprovider.RepoRef, from, to string, dirs []string) (
	before, after gitprovider.Tree, err error) {
	q := newQuery(repo)
	for side, commit := range map[string]string{"before": from, "after": to} {
		for i, dir := range dirs {
			if commit != "" {
				alias := side + strconv.Itoa(i)
				q.text(alias, commit+":"+dir)
				q.add(alias + ": object(expression: $" + alias + ") { ... on Tree { entries { name mode oid } } }")
			}
		}
	}
	answer, err := ask[map[string]json.RawMessage](ctx, h.api, q, needContents)
	if err != nil {
		return nil, nil, err
	}
	before, after = gitprovider.Tree{}, gitprovider.Tree{}
	for side, into := range map[string]gitprovider.Tree{"before": before, "after": after} {
		for i, dir := range dirs {
			var folder struct{ Entries []treeEntry }
			if err := decodeField(*answer, side+strconv.Itoa(i), &folder); err != nil {
				return nil, nil, err
			}
			for _, e := range folder.Entries {
				into[strings.TrimPrefix(dir+"/"+e.Name, "/")] = e.entry()
			}
		}
	}
	return before, after, nil
}
