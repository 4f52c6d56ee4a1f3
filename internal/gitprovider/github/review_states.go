package github

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReviewStates implements gitprovider.ReviewLister with one query over the newest 50 reviews of each.
func (p *Provider) ReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	states, err := p.discussion.reviewStates(about(ctx, repo), repo, numbers)
	return states, publish(err)
}

func (d discussion) reviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	const fields = `reviews(last: 50) { nodes { author { login } authorAssociation body submittedAt state } }`
	out := map[int]gitprovider.ReviewState{}
	q := newQuery(repo)
	for _, number := range numbers[:min(len(numbers), gitprovider.MaxReviewStates)] {
		if alias := "pull" + strconv.Itoa(number); number > 0 {
			q.variable(alias, "Int!", number)
			q.add(alias + ": pullRequest(number: $" + alias + ") { " + fields + " }")
		}
	}
	if len(q.fields) == 0 {
		return out, nil
	}
	q.tolerate = func(e graphError) bool { // a pull request that is not there is null
		return e.Type == "NOT_FOUND" && len(e.Path) > 1
	}
	from, err := ask[map[string]json.RawMessage](ctx, d.pulls.api, q, needPullsRead)
	if err != nil {
		return nil, err
	}
	for alias := range *from {
		var pr struct{ Reviews connection[remarkNode] }
		if err := decodeField(*from, alias, &pr); err != nil {
			return nil, err
		}
		var remarks []gitprovider.Remark
		for _, n := range pr.Reviews.Nodes {
			if n != nil && n.Author != nil && n.SubmittedAt != nil {
				remarks = append(remarks, n.remark(n.SubmittedAt.UTC()))
			}
		}
		number, err := strconv.Atoi(strings.TrimPrefix(alias, "pull"))
		if state := gitprovider.StateOfReview(remarks); state != "" && err == nil {
			out[number] = state
		}
	}
	return out, nil
}
