package github

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// branches reads and removes branches.
type branches struct {
	api   *api
	facts *repositoryFacts
}

// branchRef returns the full name of a branch: GitHub takes a short one for a tag as well.
func branchRef(branch string) string { return "refs/heads/" + branch }

// refNode is a reference as GraphQL answers it.
type refNode struct {
	ID           string // where it was asked for
	Prefix, Name string
	Target       struct{ Oid string }
}

// tip returns a reference's commit, "" for none.
func (n *refNode) tip() string {
	if n == nil {
		return ""
	}
	return n.Target.Oid
}

// Tip implements forge.Branches. It learns the repository's node id besides.
func (b branches) Tip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	q := newQuery(repo)
	q.selectField("id")
	if gitprovider.CheckBranchName(branch) == nil { // git has no other branches
		q.textVariable("ref", branchRef(branch))
		q.selectField("ref(qualifiedName: $ref) { target { oid } }")
	}
	var from *struct {
		ID  string
		Ref *refNode
	}
	// A branch that GitHub does not show yet is not gone: it would be left behind. After the waits it is: somebody may
	// have removed it.
	_, err := b.api.fresh.retryUntilKnown(ctx, branchObject(repo, branch),
		func(err error) bool { return err == nil && from.Ref == nil },
		func() (err error) {
			from, err = queryRepository[struct {
				ID  string
				Ref *refNode
			}](ctx, b.api, q, needContents)
			return err
		})
	if err != nil {
		return "", err
	}
	b.facts.updateFacts(repo, func(f facts) facts {
		f.id = from.ID
		return f
	})
	if tip := from.Ref.tip(); tip != "" { // it is there, though other servers may not know it yet
		b.api.fresh.add(objectKey(repo, tip))
	}
	return from.Ref.tip(), nil
}

// repositoryID gives a repository's node id, from the last snapshot of it if there was one.
func (b branches) repositoryID(ctx context.Context, repo gitprovider.RepoRef) (string, error) {
	if known := b.facts.cached(repo); known.id != "" {
		return known.id, nil
	}
	_, err := b.Tip(ctx, repo, "")
	return b.facts.cached(repo).id, err
}

const removeDocument = `mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }`

// Remove implements forge.Branches, under the condition that the tip is the given commit.
func (b branches) Remove(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	id, err := b.repositoryID(ctx, repo)
	if err != nil {
		return err
	}
	none := strings.Repeat("0", len(tip)) // the object id for "does not exist", of SHA-1 or, twice as long, of SHA-256
	input := map[string]any{
		"repositoryId": id,
		"refUpdates":   []any{map[string]any{"name": branchRef(branch), "beforeOid": tip, "afterOid": none}},
	}
	var data struct{ UpdateRefs *struct{} }
	err = b.api.graphql(ctx, mutation(removeDocument, map[string]any{"input": input}), &data)
	if lacksUpdateRefs(err) {
		err = b.removeByID(ctx, repo, branch, tip)
	}
	if err == nil {
		b.api.fresh.gone(branchObject(repo, branch))
	}
	return err
}

// lacksUpdateRefs reports whether an Enterprise Server is too old for the mutation. It checks a document before it does
// anything.
func lacksUpdateRefs(err error) bool {
	r := asRefusal(err)
	return r != nil && r.code != "" && r.says("updaterefs")
}

const (
	removeByIDDocument = `mutation($input: DeleteRefInput!) { deleteRef(input: $input) { clientMutationId } }`
	moveByIDDocument   = `mutation($input: UpdateRefInput!) { updateRef(input: $input) { clientMutationId } }`
)

// removeByID removes a branch by its node id, just after having seen that it is at a commit: old servers know no
// condition.
func (b branches) removeByID(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	ref, err := b.node(ctx, repo, branch)
	if err != nil {
		return err
	}
	if ref.tip() != tip {
		return fault.New(fault.Conflict, "the branch %s has moved since; somebody has added to it", branch)
	}
	var data struct{ DeleteRef *struct{} }
	input := map[string]any{"refId": ref.ID}
	return b.api.graphql(ctx, mutation(removeByIDDocument, map[string]any{"input": input}), &data)
}

// moveByID moves a branch by its node id to a commit that follows its present one, else GitHub refuses it.
func (b branches) moveByID(ctx context.Context, repo gitprovider.RepoRef, branch, commit string) error {
	ref, err := b.node(ctx, repo, branch)
	if err != nil {
		return err
	}
	input := map[string]any{"refId": ref.ID, "oid": commit, "force": false}
	var data struct{ UpdateRef *struct{} }
	err = b.api.graphql(ctx, mutation(moveByIDDocument, map[string]any{"input": input}), &data)
	if r := asRefusal(err); r != nil && r.says("fast forward") {
		return fault.Wrap(err, fault.Conflict, "the branch %s has moved since it was read; somebody has added to it", branch)
	}
	return err
}

// node returns a branch with its node id; not_found if there is none.
func (b branches) node(ctx context.Context, repo gitprovider.RepoRef, branch string) (*refNode, error) {
	q := newQuery(repo)
	q.textVariable("ref", branchRef(branch))
	q.selectField("ref(qualifiedName: $ref) { id target { oid } }")
	var ref *refNode
	_, err := b.api.fresh.retryUntilKnown(ctx, branchObject(repo, branch), func(err error) bool {
		return err == nil &&
			ref == nil
	},
		func() error {
			from, err := queryRepository[struct{ Ref *refNode }](ctx, b.api, q, needContents)
			if err == nil {
				ref = from.Ref
			}
			return err
		})
	if err == nil && ref == nil {
		err = fault.New(fault.NotFound, "the repository %s has no branch %s any more", repo, branch)
	}
	return ref, err
}

// ours gives the tips of the branches below BranchPrefix, with one query for each hundred.
func (b branches) ours(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	first, err := b.refPage(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	all, err := collectPages(first, func(last *connection[refNode]) (*connection[refNode], error) {
		return b.refPage(ctx, repo, last.PageInfo.EndCursor)
	})
	tips := map[string]string{}
	for _, n := range all {
		branch, isBranch := strings.CutPrefix(n.Prefix+n.Name, branchRef(""))
		if isBranch && strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			tips[branch] = n.tip()
		}
	}
	return tips, err
}

func (b branches) refPage(ctx context.Context, repo gitprovider.RepoRef, cursor string) (*connection[refNode], error) {
	q := newQuery(repo)
	q.textVariable("prefix", branchRef(gitprovider.BranchPrefix))
	q.selectField("refs(refPrefix: $prefix, first: " + strconv.Itoa(pageSize) + q.cursorArgument(cursor) +
		") { pageInfo { hasNextPage endCursor } nodes { prefix name target { oid } } }")
	from, err := queryRepository[struct{ Refs *connection[refNode] }](ctx, b.api, q, needContents)
	if err != nil {
		return nil, err
	}
	if from.Refs == nil {
		return nil, notShown("branches", repo)
	}
	return from.Refs, nil
}

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

func (h history) readCommitInfo(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo,
	error) {
	none := gitprovider.CommitInfo{}
	q := newQuery(repo)
	q.variable("oid", "GitObjectID!", id)
	q.selectField("object(oid: $oid) { ... on Commit { oid message committedDate author { name user { login } } parents(first: " +
		"10) { nodes { oid } } } }")
	var n *commitNode
	late, err := h.api.fresh.retryUntilKnown(ctx, objectKey(repo, id),
		func(err error) bool { return err == nil && n == nil },
		func() error {
			from, err := queryRepository[struct{ Object *commitNode }](ctx, h.api, q, needContents)
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
				q.textVariable(alias, commit+":"+dir)
				q.selectField(alias + ": object(expression: $" + alias + ") { ... on Tree { entries { name mode oid } } }")
			}
		}
	}
	answer, err := queryRepository[map[string]json.RawMessage](ctx, h.api, q, needContents)
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
				into[strings.TrimPrefix(dir+"/"+e.Name, "/")] = e.toEntry()
			}
		}
	}
	return before, after, nil
}
