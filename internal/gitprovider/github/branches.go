package github

import (
	"context"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
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
	q.add("id")
	if gitprovider.CheckBranchName(branch) == nil { // git has no other branches
		q.text("ref", branchRef(branch))
		q.add("ref(qualifiedName: $ref) { target { oid } }")
	}
	var from *struct {
		ID  string
		Ref *refNode
	}
	// A branch that GitHub does not show yet is not gone: it would be left behind. After the waits it is: somebody may have
	// removed it.
	_, err := b.api.fresh.wait(ctx, branchObject(repo, branch),
		func(err error) bool { return err == nil && from.Ref == nil },
		func() (err error) {
			from, err = ask[struct {
				ID  string
				Ref *refNode
			}](ctx, b.api, q, needContents)
			return err
		})
	if err != nil {
		return "", err
	}
	b.facts.change(repo, func(f facts) facts {
		f.id = from.ID
		return f
	})
	if tip := from.Ref.tip(); tip != "" { // it is there, though other servers may not know it yet
		b.api.fresh.add(object(repo, tip))
	}
	return from.Ref.tip(), nil
}

// repositoryID gives a repository's node id, from the last snapshot of it if there was one.
func (b branches) repositoryID(ctx context.Context, repo gitprovider.RepoRef) (string, error) {
	if known := b.facts.of(repo); known.id != "" {
		return known.id, nil
	}
	_, err := b.Tip(ctx, repo, "")
	return b.facts.of(repo).id, err
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
	r := refused(err)
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
	if r := refused(err); r != nil && r.says("fast forward") {
		return fault.Wrap(err, fault.Conflict, "the branch %s has moved since it was read; somebody has added to it", branch)
	}
	return err
}

// node returns a branch with its node id; not_found if there is none.
func (b branches) node(ctx context.Context, repo gitprovider.RepoRef, branch string) (*refNode, error) {
	q := newQuery(repo)
	q.text("ref", branchRef(branch))
	q.add("ref(qualifiedName: $ref) { id target { oid } }")
	var ref *refNode
	_, err := b.api.fresh.wait(ctx, branchObject(repo, branch), func(err error) bool { return err == nil && ref == nil },
		func() error {
			from, err := ask[struct{ Ref *refNode }](ctx, b.api, q, needContents)
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
	first, err := b.page(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	all, err := follow(first, func(last *connection[refNode]) (*connection[refNode], error) {
		return b.page(ctx, repo, last.PageInfo.EndCursor)
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

func (b branches) page(ctx context.Context, repo gitprovider.RepoRef, cursor string) (*connection[refNode], error) {
	q := newQuery(repo)
	q.text("prefix", branchRef(gitprovider.BranchPrefix))
	q.add("refs(refPrefix: $prefix, first: " + strconv.Itoa(pageSize) + q.after(cursor) +
		") { pageInfo { hasNextPage endCursor } nodes { prefix name target { oid } } }")
	from, err := ask[struct{ Refs *connection[refNode] }](ctx, b.api, q, needContents)
	if err != nil {
		return nil, err
	}
	if from.Refs == nil {
		return nil, notShown("branches", repo)
	}
	return from.Refs, nil
}
