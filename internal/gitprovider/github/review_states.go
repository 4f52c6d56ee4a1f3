package github

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReviewStates implements gitprovider.ReviewLister with one query, as a rule, over the last opinion of each reviewer who
// may write.
func (p *Provider) ReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	numbers = numbers[:min(len(numbers), gitprovider.MaxReviewStates)]
	states, err := p.discussion.reviewStates(about(ctx, repo), repo, numbers)
	return states, publish(err)
}

// reviewStates asks about all together, or, if that is too much for GitHub, about one half after the other.
func (d discussion) reviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	states, err := d.askReviewStates(ctx, repo, numbers)
	if !tooMuch(err) || len(numbers) < 2 {
		return states, err
	}
	half := len(numbers) / 2
	states, err = d.reviewStates(ctx, repo, numbers[:half])
	if err != nil {
		return nil, err
	}
	more, err := d.reviewStates(ctx, repo, numbers[half:])
	maps.Copy(states, more)
	return states, err
}

func (d discussion) askReviewStates(ctx context.Context, repo gitprovider.RepoRef,
	numbers []int) (map[int]gitprovider.ReviewState, error) {
	out := map[int]gitprovider.ReviewState{}
	q := newQuery(repo)
	var fresh []int
	for _, number := range numbers {
		if alias := "pull" + strconv.Itoa(number); number > 0 {
			if d.pulls.api.fresh.has(pullObject(repo, number)) {
				fresh = append(fresh, number)
			}
			q.variable(alias, "Int!", number)
			q.add(alias + ": pullRequest(number: $" + alias + ") { " + opinionFields + "}")
		}
	}
	if len(q.fields) == 0 {
		return out, nil
	}
	q.tolerate = func(e graphError) bool { // a pull request that is not there is null
		return e.Type == "NOT_FOUND" && len(e.Path) > 1
	}
	var from *map[string]json.RawMessage
	read := func() (err error) {
		from, err = ask[map[string]json.RawMessage](ctx, d.pulls.api, q, needPullsRead)
		return err
	}
	missing := func(err error) bool {
		return err == nil && slices.ContainsFunc(fresh, func(number int) bool {
			return isNull((*from)["pull"+strconv.Itoa(number)])
		})
	}
	if _, err := d.pulls.api.fresh.waitWhile(ctx, missing, read); err != nil {
		return nil, err
	}
	for alias := range *from {
		var pr struct{ LatestOpinionatedReviews connection[remarkNode] }
		if err := decodeField(*from, alias, &pr); err != nil {
			return nil, err
		}
		var remarks []gitprovider.Remark
		for _, n := range pr.LatestOpinionatedReviews.Nodes {
			if n != nil && n.Author != nil && n.SubmittedAt != nil {
				remark := n.remark()
				remark.MayWrite = true
				remarks = append(remarks, remark)
			}
		}
		number, err := strconv.Atoi(strings.TrimPrefix(alias, "pull"))
		if state := gitprovider.StateOfReview(remarks); state != "" && err == nil {
			out[number] = state
		}
	}
	return out, nil
}
