package fakegithub

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// addPullLists are the fields of a pull request that are lists, or counts of them.
func (p *place) addPullLists(out fields, pr *memhost.PR) {
	st := p.pull(pr)
	out["labels"] = lazy(func(in args) (any, error) { return p.gqlLabels(pr.Labels, in) })
	out["assignees"] = lazy(func(in args) (any, error) { return p.s.people("assignees", st.assignees, in) })
	out["comments"] = lazy(func(in args) (any, error) { return p.gqlComments(pr, in) })
	out["files"] = lazy(func(in args) (any, error) { return p.gqlFiles(pr, in) })
	out["reviews"] = lazy(func(in args) (any, error) {
		wanted := in.Strings("states")
		return p.gqlReviews("reviews", pr, in, func(i int) bool {
			r := pr.Reviews[i]
			return (len(wanted) == 0 || slices.Contains(wanted, reviewState(r.State))) &&
				(!in.Has("author") || in.String("author") == r.Author)
		})
	})
	out["latestReviews"] = lazy(func(in args) (any, error) {
		return p.gqlReviews("latestReviews", pr, in, func(i int) bool {
			return !slices.ContainsFunc(pr.Reviews[i+1:], func(later gitprovider.Review) bool {
				return later.Author == pr.Reviews[i].Author
			})
		})
	})
	out["reviewRequests"] = lazy(func(in args) (any, error) { return p.gqlRequests(pr, in) })
	out["commits"] = lazy(func(in args) (any, error) { return p.gqlPullCommits(pr, in) })
	for field, count := range map[string]func(d fileDiff) int{
		"changedFiles": func(fileDiff) int { return 1 },
		"additions":    func(d fileDiff) int { return d.additions },
		"deletions":    func(d fileDiff) int { return d.deletions },
	} {
		out[field] = lazy(func(args) (any, error) {
			n := 0
			for _, d := range p.diff(pr) {
				n += count(d)
			}
			return n, nil
		})
	}
}

func (p *place) gqlFiles(pr *memhost.PR, in args) (any, error) {
	diffs := p.diff(pr)
	types := map[string]string{
		"added": "ADDED", "removed": "DELETED", "modified": "MODIFIED", "renamed": "RENAMED", "changed": "CHANGED",
	}
	return gql.Connection("PullRequestChangedFile", "files", gql.Items{
		Len: len(diffs), Key: func(i int) string { return diffs[i].path },
		Node: func(i int) *gql.Object {
			d := diffs[i]
			return &gql.Object{Type: "PullRequestChangedFile", Fields: fields{
				"path": d.path, "changeType": types[d.status], "additions": d.additions, "deletions": d.deletions,
				"viewerViewedState": "UNVIEWED",
			}}
		},
	}, in, nil)
}

// reviewState is a state in GraphQL's words, which REST uses too.
func reviewState(state gitprovider.ReviewState) string { return strings.ToUpper(string(state)) }

// gqlReviews is a connection of those reviews that are wanted, by their place, oldest first. A pending review is seen by
// its author only.
func (p *place) gqlReviews(field string, pr *memhost.PR, in args, wanted func(i int) bool) (any, error) {
	var shown []int
	for i, r := range pr.Reviews {
		if wanted(i) && (r.State != gitprovider.ReviewPending || r.Author == viewer) {
			shown = append(shown, i)
		}
	}
	return gql.Connection("PullRequestReview", field, gql.Items{
		Len: len(shown), Key: func(i int) string { return strconv.Itoa(shown[i]) },
		Node: func(i int) *gql.Object { return p.gqlReview(pr, shown[i]) },
	}, in, nil)
}

func (p *place) gqlReview(pr *memhost.PR, i int) *gql.Object {
	r := pr.Reviews[i]
	created := r.SubmittedAt
	if created.IsZero() {
		created = pr.CreatedAt
	}
	return &gql.Object{Type: "PullRequestReview", Fields: fields{
		"id": nodeID(kindReview, p.id, fmt.Sprintf("%d/%d", pr.Number, i)), "databaseId": p.id*1000 + i,
		"author": p.s.gqlUser(r.Author), "body": r.Body, "state": reviewState(r.State), "submittedAt": when(r.SubmittedAt),
		"createdAt": created, "updatedAt": created, "authorAssociation": p.association(r.Author),
		"viewerDidAuthor": r.Author == viewer,
		"url":             p.web("pull", fmt.Sprintf("%d#pullrequestreview-%d", pr.Number, i)),
		"commit":          lazy(func(args) (any, error) { return p.gqlCommit(pr.HeadCommit), nil }),
	}}
}

func (p *place) gqlRequests(pr *memhost.PR, in args) (any, error) {
	st := p.pull(pr)
	names := append(slices.Clone(st.reviewers), st.teams...)
	return gql.Connection("ReviewRequest", "reviewRequests", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object {
			who := p.s.gqlUser(names[i])
			if i >= len(st.reviewers) {
				who = p.gqlTeam(names[i])
			}
			return &gql.Object{Type: "ReviewRequest", Fields: fields{
				"id": nodeID(kindRequest, p.id, fmt.Sprintf("%d/%s", pr.Number, names[i])), "databaseId": i + 1,
				"asCodeOwner": false, "requestedReviewer": who,
			}}
		},
	}, in, nil)
}

// commits are those that a pull request adds, oldest first.
func (p *place) commits(pr *memhost.PR) []string {
	var out []string
	for id := pr.HeadCommit; id != "" && id != p.base(pr); {
		out = append(out, id)
		c := p.repo.Commits[id]
		if c == nil || len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	slices.Reverse(out)
	return out
}

func (p *place) gqlPullCommits(pr *memhost.PR, in args) (any, error) {
	ids := p.commits(pr)
	return gql.Connection("PullRequestCommit", "commits", gql.Items{
		Len: len(ids), Key: func(i int) string { return ids[i] },
		Node: func(i int) *gql.Object {
			return &gql.Object{Type: "PullRequestCommit", Fields: fields{
				"id":     nodeID(kindPullCommit, p.id, fmt.Sprintf("%d/%s", pr.Number, ids[i])),
				"url":    p.web("pull", strconv.Itoa(pr.Number), "commits", ids[i]),
				"commit": lazy(func(args) (any, error) { return p.gqlCommit(ids[i]), nil }),
			}}
		},
	}, in, nil)
}

// gqlLabel is a label of the repository, letter case aside, or nil.
func (p *place) gqlLabel(name string) *gql.Object {
	i := p.labelAt(name)
	if i < 0 {
		return nil
	}
	name = p.set.Labels[i]
	look := p.look(name)
	return &gql.Object{Type: "Label", Fields: fields{
		"id": nodeID(kindLabel, p.id, name), "name": name, "color": look.color, "description": look.description, "isDefault": look.isDefault,
		"url": escaped(p.web("labels", name)), "createdAt": epoch(),
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
	}}
}

// labelAt is the place of a label among those that the repository defines, or -1.
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

// gqlLabels is a connection of labels. Those that somebody put on behind the doors are defined by that.
func (p *place) gqlLabels(names []string, in args) (any, error) {
	p.defineLabels(names...)
	names = slices.Clone(names)
	if in.Object("orderBy").String("field") == "NAME" {
		slices.Sort(names)
	}
	if in.Object("orderBy").String("direction") == "DESC" {
		slices.Reverse(names)
	}
	return gql.Connection("Label", "labels", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object { return p.gqlLabel(names[i]) },
	}, in, nil)
}
