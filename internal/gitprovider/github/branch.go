package github

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// BranchTip implements gitprovider.Provider.
func (p *Provider) BranchTip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	ctx = about(ctx, repo)
	tip, _, err := p.tip(ctx, repo, branch)
	return tip, publish(err)
}

// DeleteBranch implements gitprovider.Provider. It looks, deletes under the condition that the tip is still the given
// one, and looks again if that was refused: GitHub's words are not needed to tell why. Beside the codes of the port:
// repo_not_allowed if a rule or the archive keeps the branch.
func (p *Provider) DeleteBranch(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	ctx = about(ctx, repo)
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if tip == "" {
		return fault.New(fault.InvalidArgument, "the branch %s can only be deleted with its expected commit", branch)
	}
	have, id, err := p.tip(ctx, repo, branch)
	if err != nil || have == "" {
		return publish(err)
	}
	if have != tip {
		return moved(branch)
	}
	return publish(p.removeBranch(ctx, repo, id, branch, tip))
}

func moved(branch string) error {
	return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it", branch)
}

// tip reads a branch's commit, "" if there is none, and the repository's node id.
func (p *Provider) tip(ctx context.Context, repo gitprovider.RepoRef, branch string) (tip, id string, err error) {
	q := newQuery(repo)
	q.add("id")
	if gitprovider.CheckBranchName(branch) == nil { // git has no other branches
		q.variable("ref", "String!", branchRef(branch))
		q.add("ref(qualifiedName: $ref) { target { oid } }")
	}
	var data struct {
		Repository *struct {
			ID  string
			Ref *struct{ Target struct{ Oid string } }
		}
	}
	if err := p.graphql(ctx, q.operation(needContents), &data); err != nil {
		return "", "", err
	}
	if data.Repository == nil {
		return "", "", p.notFound()
	}
	if data.Repository.Ref != nil {
		tip = data.Repository.Ref.Target.Oid
	}
	return tip, data.Repository.ID, nil
}

// noCommit is the object id that stands for "does not exist" in an update of references, for SHA-1 and, twice as long,
// for SHA-256.
func noCommit(like string) string { return strings.Repeat("0", len(like)) }

const removeDocument = `mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }`

// removeBranch deletes a branch if its tip is the given commit. That it is gone already is no error.
func (p *Provider) removeBranch(ctx context.Context, repo gitprovider.RepoRef, id, branch, tip string) error {
	input := map[string]any{
		"repositoryId": id,
		"refUpdates":   []any{map[string]any{"name": branchRef(branch), "beforeOid": tip, "afterOid": noCommit(tip)}},
	}
	op := operation{document: removeDocument, variables: map[string]any{"input": input}, write: true, need: needContents}
	var data struct{ UpdateRefs *struct{} }
	failure := p.graphql(ctx, op, &data)
	if failure == nil {
		return nil
	}
	have, _, err := p.tip(ctx, repo, branch)
	switch {
	case err != nil:
		return failure
	case have == "":
		return nil
	case have != tip:
		return moved(branch)
	}
	return failure
}
