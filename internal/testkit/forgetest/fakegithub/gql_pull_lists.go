package fakegithub

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// addPullLists adds the fields of a pull request that are lists, or counts of them.
func (g *pullGraph) addPullLists(out fields, pr *memhost.PR) {
	st := g.at.pull(pr)
	out["labels"] = lazy(func(in args) (any, error) { return g.labels(pr.Labels, in) })
	out["assignees"] = lazy(func(in args) (any, error) { return g.at.s.graph.people("assignees", st.assignees, in) })
	out["comments"] = lazy(func(in args) (any, error) { return g.comments(pr, in) })
	out["files"] = lazy(func(in args) (any, error) { return g.files(pr, in) })
	out["reviews"] = lazy(func(in args) (any, error) {
		return g.reviews("reviews", pr, in, func(int) bool { return true })
	})
	out["latestReviews"] = lazy(func(in args) (any, error) {
		return g.reviews("latestReviews", pr, in, func(i int) bool {
			return !slices.ContainsFunc(pr.Reviews[i+1:], func(later gitprovider.Review) bool {
				return later.Author == pr.Reviews[i].Author
			})
		})
	})
	out["latestOpinionatedReviews"] = lazy(func(in args) (any, error) {
		isOpinion := func(r gitprovider.Review) bool {
			return r.State != gitprovider.ReviewCommented && r.State != gitprovider.ReviewPending
		}
		return g.reviews("latestOpinionatedReviews", pr, in, func(i int) bool {
			r := pr.Reviews[i]
			return isOpinion(r) && (!in.Bool("writersOnly") || g.at.rights().allows(r.Author, "write")) &&
				!slices.ContainsFunc(pr.Reviews[i+1:], func(later gitprovider.Review) bool {
					return later.Author == r.Author && isOpinion(later)
				})
		})
	})
	out["reviewThreads"] = lazy(func(in args) (any, error) { return g.threads(pr, in) })
	out["reviewRequests"] = lazy(func(in args) (any, error) { return g.requests(pr, in) })
	out["commits"] = lazy(func(in args) (any, error) { return g.pullCommits(pr, in) })
}

func (g *pullGraph) files(pr *memhost.PR, in args) (any, error) {
	if err := g.at.s.graph.spend(10); err != nil {
		return nil, err
	}
	diffs := g.at.rules().diff(pr)
	types := map[string]string{
		"added": "ADDED", "removed": "DELETED", "modified": "MODIFIED", "renamed": "RENAMED", "changed": "CHANGED",
	}
	return gql.Connection("PullRequestChangedFile", "files", gql.Items{
		Len: len(diffs), Key: func(i int) string { return diffs[i].path },
		Node: func(i int) *gql.Object {
			d := diffs[i]
			return &gql.Object{Type: "PullRequestChangedFile", Fields: fields{
				"path": d.path, "changeType": types[d.status],
			}}
		},
	}, in)
}

// reviewState returns a state in GraphQL's words, which REST uses too.
func reviewState(state gitprovider.ReviewState) string { return strings.ToUpper(string(state)) }

// reviews returns a connection of those reviews that are wanted, by their place, oldest first. A pending review is seen
// by its author only.
func (g *pullGraph) reviews(field string, pr *memhost.PR, in args, wanted func(i int) bool) (any, error) {
	var shown []int
	for i, r := range pr.Reviews {
		if wanted(i) && (r.State != gitprovider.ReviewPending || r.Author == viewer) {
			shown = append(shown, i)
		}
	}
	return gql.Connection("PullRequestReview", field, gql.Items{
		Len: len(shown), Key: func(i int) string { return strconv.Itoa(shown[i]) },
		Node: func(i int) *gql.Object { return g.review(pr, shown[i]) },
	}, in)
}

func (g *pullGraph) review(pr *memhost.PR, i int) *gql.Object {
	r := pr.Reviews[i]
	return &gql.Object{Type: "PullRequestReview", Fields: fields{
		"id":     nodeID(kindReview, g.at.id, fmt.Sprintf("%d/%d", pr.Number, i)),
		"author": g.account(r.Author), "body": r.Body, "state": reviewState(r.State), "submittedAt": when(r.SubmittedAt),
		"authorAssociation": g.at.rules().association(r.Author),
	}}
}

func (g *pullGraph) requests(pr *memhost.PR, in args) (any, error) {
	st := g.at.pull(pr)
	names := append(slices.Clone(st.reviewers), st.teams...)
	return gql.Connection("ReviewRequest", "reviewRequests", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object {
			who := g.account(names[i])
			if i >= len(st.reviewers) {
				who = g.team(names[i])
			}
			return &gql.Object{Type: "ReviewRequest", Fields: fields{
				"requestedReviewer": who,
			}}
		},
	}, in)
}

// commits returns the commits that a pull request adds, oldest first.
func (r *pullRules) commits(pr *memhost.PR) []string {
	var out []string
	for id := cmp.Or(r.at.set.Delays.Heads[pr.Number], pr.HeadCommit); id != "" && id != r.base(pr); {
		out = append(out, id)
		c := r.at.repo.Commits[id]
		if c == nil || len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	slices.Reverse(out)
	return out
}

func (g *pullGraph) pullCommits(pr *memhost.PR, in args) (any, error) {
	ids := g.at.rules().commits(pr)
	return gql.Connection("PullRequestCommit", "commits", gql.Items{
		Len: len(ids), Key: func(i int) string { return ids[i] },
		Node: func(i int) *gql.Object {
			return &gql.Object{Type: "PullRequestCommit", Fields: fields{
				"commit": lazy(func(args) (any, error) { return g.at.git().commit(ids[i]), nil }),
			}}
		},
	}, in)
}

// label returns a label of the repository, letter case aside, or nil.
func (g *pullGraph) label(name string) *gql.Object {
	i := g.at.labelAt(name)
	if i < 0 {
		return nil
	}
	name = g.at.set.Labels[i]
	return &gql.Object{Type: "Label", Fields: fields{"name": name}}
}

// labelAt returns the place of a label among those that the repository defines, or -1.
func (p *place) labelAt(name string) int {
	return slices.IndexFunc(p.set.Labels, func(have string) bool { return lower(have) == lower(name) })
}

// defineLabels adds what the repository does not define yet: who labels a pull request makes the label.
func (p *place) defineLabels(names ...string) {
	for _, name := range names {
		if p.labelAt(name) < 0 {
			p.set.Labels = append(p.set.Labels, name)
		}
	}
}

// labels returns a connection of labels. Those that somebody put on behind the doors are defined by that.
func (g *pullGraph) labels(names []string, in args) (any, error) {
	g.at.defineLabels(names...)
	return gql.Connection("Label", "labels", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object { return g.label(names[i]) },
	}, in)
}
