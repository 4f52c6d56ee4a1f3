package github

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Status implements gitprovider.Provider with one query, and further ones for further pages of reviews and checks. GitHub
// computes whether a pull request can be merged after it was asked for the first time: it is asked up to three times more
// within 2.4 s, then Mergeable stays nil. Checks that the token may not see count as not reported: fine-grained tokens
// cannot be given the permission for all of them.
func (p *Provider) Status(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	ctx = about(ctx, repo)
	status, err := p.status(ctx, repo, number)
	if err != nil {
		return gitprovider.Status{}, publish(err)
	}
	return status, nil
}

const (
	reviewFields = `pageInfo { hasNextPage endCursor } nodes { author { login } state body submittedAt }`
	rollupFields = `commits(last: 1) { nodes { commit { statusCheckRollup { state contexts(first: 100%s) {
      pageInfo { hasNextPage endCursor }
      nodes { __typename ... on CheckRun { name status conclusion } ... on StatusContext { context state } }
    } } } } }`
)

// statusNode is a pull request with what Status wants to know besides.
type statusNode struct {
	pullNode
	Mergeable string
	MergedBy  *struct{ Login string }
	Reviews   *reviewConnection
	Commits   *struct {
		Nodes []struct {
			Commit struct{ StatusCheckRollup *rollup }
		}
	}
}

type reviewConnection struct {
	PageInfo pageInfo
	Nodes    []*struct {
		Author      *struct{ Login string }
		State, Body string
		SubmittedAt *time.Time
	}
}

func (p *Provider) status(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	none := gitprovider.Status{}
	if number < 1 || number > maxNumber {
		return none, noSuchPull(repo, number)
	}
	n, err := p.askPull(ctx, repo, number, "...pull ...changed mergeable mergedBy { login } reviews(first: 100) { "+reviewFields+" } "+
		rollupSelection(""), nil, pullFragment+changedFragment)
	if err != nil {
		return none, err
	}
	prs, err := p.pullRequests(ctx, repo, []*pullNode{&n.pullNode})
	if err != nil {
		return none, err
	}
	status := gitprovider.Status{PullRequest: prs[0]}
	if n.MergedBy != nil {
		status.MergedBy = n.MergedBy.Login
	}
	if status.Reviews, err = p.reviews(ctx, repo, number, n.Reviews); err != nil {
		return none, err
	}
	if status.Checks, err = p.checks(ctx, repo, number, n); err != nil {
		return none, err
	}
	if status.State == gitprovider.StateOpen {
		status.Mergeable, err = p.mergeable(ctx, repo, number, n.Mergeable)
	}
	return status, err
}

// askPull selects fields of one pull request. variables are strings.
func (p *Provider) askPull(ctx context.Context, repo gitprovider.RepoRef, number int, fields string,
	variables map[string]string, fragments string) (*statusNode, error) {
	q := newQuery(repo)
	for name, value := range variables {
		q.variable(name, "String!", value)
	}
	q.fragment(fragments)
	var n statusNode
	if err := p.askOne(ctx, repo, number, q, fields, "statusCheckRollup", &n); err != nil {
		return nil, err
	}
	return &n, nil
}

// askAbout selects fields of one pull request into out. What is below the field hidden may be forbidden, and is null then.
func (p *Provider) askAbout(ctx context.Context, repo gitprovider.RepoRef, number int, fields, hidden string, out any) error {
	if number < 1 || number > maxNumber {
		return noSuchPull(repo, number)
	}
	return p.askOne(ctx, repo, number, newQuery(repo), fields, hidden, out)
}

func (p *Provider) askOne(ctx context.Context, repo gitprovider.RepoRef, number int, q *query, fields, hidden string,
	out any) error {
	q.variable("number", "Int!", number)
	q.add("pullRequest(number: $number) { " + fields + " }")
	q.tolerate = func(e graphError) bool { return e.Type == "FORBIDDEN" && hidden != "" && e.under(hidden) }
	var data struct {
		Repository *struct{ PullRequest json.RawMessage }
	}
	err := p.graphql(ctx, q.operation(needPullsRead), &data)
	if r := refused(err); r != nil && r.kind == "NOT_FOUND" && r.fault.Code == fault.NotFound && r.says("pullrequest") {
		return noSuchPull(repo, number)
	}
	switch {
	case err != nil:
		return err
	case data.Repository == nil:
		return p.notFound()
	case len(data.Repository.PullRequest) == 0 || string(data.Repository.PullRequest) == "null":
		return noSuchPull(repo, number)
	}
	if err := json.Unmarshal(data.Repository.PullRequest, out); err != nil {
		return notJSON(err)
	}
	return nil
}

// mergeableWaits are the pauses before GitHub is asked again.
func mergeableWaits() []time.Duration {
	return []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 1200 * time.Millisecond}
}

func (p *Provider) mergeable(ctx context.Context, repo gitprovider.RepoRef, number int, answer string) (*bool, error) {
	for _, wait := range mergeableWaits() {
		if answer != "UNKNOWN" {
			break
		}
		p.sleep(ctx, wait)
		n, err := p.askPull(ctx, repo, number, "mergeable", nil, "")
		if err != nil {
			return nil, err
		}
		answer = n.Mergeable
	}
	yes := answer == "MERGEABLE"
	if !yes && answer != "CONFLICTING" {
		return nil, nil
	}
	return &yes, nil
}

// reviews reads all pages, which GitHub gives oldest first.
func (p *Provider) reviews(ctx context.Context, repo gitprovider.RepoRef, number int, at *reviewConnection) (
	[]gitprovider.Review, error) {
	var out []gitprovider.Review
	for at != nil {
		for _, n := range at.Nodes {
			if n == nil {
				continue
			}
			review := gitprovider.Review{Author: "ghost", State: reviewState(n.State), Body: n.Body} // as GitHub calls the deleted
			if n.Author != nil {
				review.Author = n.Author.Login
			}
			if n.SubmittedAt != nil {
				review.SubmittedAt = n.SubmittedAt.UTC()
			}
			out = append(out, review)
		}
		if !at.PageInfo.HasNextPage {
			break
		}
		next, err := p.askPull(ctx, repo, number, "reviews(first: 100, after: $after) { "+reviewFields+" }",
			map[string]string{"after": at.PageInfo.EndCursor}, "")
		if err != nil {
			return nil, err
		}
		at = next.Reviews
	}
	return out, nil
}

func reviewState(s string) gitprovider.ReviewState {
	switch s {
	case "APPROVED":
		return gitprovider.ReviewApproved
	case "CHANGES_REQUESTED":
		return gitprovider.ReviewChangesRequested
	case "DISMISSED":
		return gitprovider.ReviewDismissed
	case "PENDING":
		return gitprovider.ReviewPending
	}
	return gitprovider.ReviewCommented
}
