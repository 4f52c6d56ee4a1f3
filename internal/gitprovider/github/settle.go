package github

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Lateness implements gitprovider.Settler.
func (p *Provider) Lateness() time.Duration { return gitprovider.ForgeLateness }

// OurBranches implements gitprovider.Settler, with one query for each hundred branches.
func (p *Provider) OurBranches(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	ctx = about(ctx, repo)
	tips := map[string]string{}
	for cursor := ""; ; {
		at, err := p.branchesAfter(ctx, repo, cursor)
		if err != nil {
			return nil, publish(err)
		}
		for _, n := range at.Nodes {
			branch, isBranch := strings.CutPrefix(n.Prefix+n.Name, "refs/heads/")
			if isBranch && strings.HasPrefix(branch, gitprovider.BranchPrefix) {
				tips[branch] = n.Target.Oid
			}
		}
		switch {
		case !at.PageInfo.HasNextPage:
			return tips, nil
		case at.PageInfo.EndCursor == "" || at.PageInfo.EndCursor == cursor:
			return nil, fault.New(fault.UpstreamError, "GitHub promised more branches than it showed; try again later")
		}
		cursor = at.PageInfo.EndCursor
	}
}

type refConnection struct {
	PageInfo pageInfo
	Nodes    []struct {
		Prefix, Name string
		Target       struct{ Oid string }
	}
}

// branchesAfter reads one page of the branches below BranchPrefix.
func (p *Provider) branchesAfter(ctx context.Context, repo gitprovider.RepoRef, cursor string) (*refConnection, error) {
	q := newQuery(repo)
	q.variable("prefix", "String!", branchRef(gitprovider.BranchPrefix))
	after := ""
	if cursor != "" {
		q.variable("after", "String!", cursor)
		after = ", after: $after"
	}
	q.add("refs(refPrefix: $prefix, first: " + decimal(pageSize) + after +
		") { pageInfo { hasNextPage endCursor } nodes { prefix name target { oid } } }")
	var data struct {
		Repository *struct{ Refs *refConnection }
	}
	err := p.graphql(ctx, q.operation(needContents), &data)
	switch {
	case err != nil:
		return nil, err
	case data.Repository == nil:
		return nil, p.notFound()
	case data.Repository.Refs == nil:
		return nil, fault.New(fault.UpstreamError, "GitHub did not show the branches of %s; try again later", repo)
	}
	return data.Repository.Refs, nil
}

// Withdraw implements gitprovider.Settler: it looks, and then closes and writes the body in one request.
func (p *Provider) Withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	ctx = about(ctx, repo)
	if w.Number < 1 || w.Number > maxNumber {
		return publish(noSuchPull(repo, w.Number))
	}
	n, err := p.askPull(ctx, repo, w.Number, "...pull", nil, pullFragment)
	if err != nil {
		return publish(err)
	}
	pr := n.pullRequest()
	if err := w.Check(pr); err != nil {
		return err
	}
	change := map[string]string{"body": w.Body}
	if pr.State == gitprovider.StateOpen {
		change["state"] = "closed"
	}
	_, err = p.rest(ctx, request{
		method: http.MethodPatch, url: p.repoURL(repo, "pulls", decimal(w.Number)), body: change, need: needPulls,
	}, nil)
	return publish(p.pullMissing(err, repo, w.Number))
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, repo gitprovider.RepoRef, below int) ([]gitprovider.PullRequest, error) {
	ctx = about(ctx, repo)
	list := openPulls()
	first, err := p.pageAfter(ctx, repo, list, "")
	if err != nil {
		return nil, publish(err)
	}
	all, err := p.readOn(ctx, repo, list, first)
	if err != nil {
		return nil, publish(err)
	}
	prs, err := p.pullRequests(ctx, repo, slices.DeleteFunc(all, func(n *pullNode) bool {
		return n.Number >= below || !gitprovider.MayBeOurs(n.pullRequest())
	}))
	return prs, publish(err)
}
