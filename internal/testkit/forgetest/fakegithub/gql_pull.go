package fakegithub

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// pullNamed finds a pull request by its number in digits, or nil.
func (r *pullRules) pullNamed(number string) *memhost.PR {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	return r.at.repo.PR(n)
}

// addPullFields adds the fields of a repository that lead to pull requests and labels.
func (g *pullGraph) addPullFields(out fields) {
	out["pullRequest"] = g.at.rights().guarded(func(in args) (any, error) {
		if err := g.at.s.graph.spend(1); err != nil {
			return nil, err
		}
		if pr := g.at.repo.PR(in.Int("number")); pr != nil && !g.at.hides(doorGraph, pullName(pr.Number)) {
			return g.pull(pr), nil
		}
		return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
			"Could not resolve to a PullRequest with the number of %d.", in.Int("number"))}
	}, "pull_requests")
	out["pullRequests"] = g.at.rights().guarded(func(in args) (any, error) { return g.pulls("pullRequests", in) },
		"pull_requests")
	out["label"] = lazy(func(in args) (any, error) { return g.label(in.String("name")), nil })
	out["labels"] = lazy(func(in args) (any, error) {
		var names []string
		for _, name := range g.at.set.Labels {
			if strings.Contains(lower(name), lower(in.String("query"))) {
				names = append(names, name)
			}
		}
		return g.labels(names, in)
	})
}

func (g *pullGraph) pulls(field string, in args) (any, error) {
	if err := g.at.s.graph.spend(in.Int("first")); err != nil {
		return nil, err
	}
	prs := g.at.rules().listed(in)
	return gql.Connection("PullRequest", field, gql.Items{
		Len: len(prs), Key: func(i int) string { return strconv.Itoa(prs[i].Number) },
		Node: func(i int) *gql.Object { return g.pull(prs[i]) },
	}, in)
}

// when returns a time, or null if there is none.
func when(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at
}

// merger is the user who merges the pull requests of the fake.
const merger = "ann"

func (g *pullGraph) pull(pr *memhost.PR) *gql.Object {
	st := g.at.pull(pr)
	owner, branch := g.at.headOf(pr)
	var mergedAt any
	if pr.State == gitprovider.StateMerged {
		mergedAt = when(pr.ClosedAt)
	}
	read := sync.OnceValue(func() *bool { return g.at.rules().mergeable(pr) }) // however often one document asks
	out := fields{
		"id": nodeID(kindPull, g.at.id, strconv.Itoa(pr.Number)), "number": pr.Number, "title": pr.Title, "body": pr.Body,
		"url": g.at.web("pull", strconv.Itoa(pr.Number)), "state": strings.ToUpper(string(pr.State)),
		"closedAt": when(pr.ClosedAt), "mergedAt": mergedAt, "createdAt": pr.CreatedAt, "updatedAt": st.updated,
		"isCrossRepository": owner != g.at.repo.Ref.Owner, "author": g.at.s.graph.user(g.at.rules().author(pr)),
		"headRefName": branch, "headRefOid": cmp.Or(g.at.set.Delays.Heads[pr.Number], pr.HeadCommit), "baseRefName": pr.Base,
		"mergeable": lazy(func(args) (any, error) { return gqlMergeable(read()), nil }),
	}
	out["mergedBy"] = lazy(func(args) (any, error) {
		if mergedAt == nil {
			return nil, nil
		}
		return g.at.s.graph.user(merger), nil
	})
	g.addPullRefs(out, pr)
	g.addPullLists(out, pr)
	return &gql.Object{Type: "PullRequest", Fields: out}
}

func (g *pullGraph) addPullRefs(out fields, pr *memhost.PR) {
	out["repository"] = lazy(func(args) (any, error) { return g.repo(), nil })
	out["headRepository"] = lazy(func(args) (any, error) {
		if owner, _ := g.at.headOf(pr); owner != g.at.repo.Ref.Owner {
			return g.fork(owner), nil
		}
		return g.repo(), nil
	})
	out["headRef"] = lazy(func(args) (any, error) { return g.at.git().ref(pr.Branch), nil })
}

// baseTip returns the commit that a pull request is to be merged into, or was merged into.
func (r *pullRules) baseTip(pr *memhost.PR) string {
	if merge := r.mergeCommit(pr); merge != "" {
		return r.at.repo.Commits[merge].Parents[0]
	}
	if tip := r.at.tip(pr.Base); tip != "" {
		return tip
	}
	return r.base(pr)
}

// fork returns somebody's fork of the repository. The fake has no more of it than this.
func (g *pullGraph) fork(owner string) *gql.Object {
	out := g.repo()
	out.Fields["id"], out.Fields["databaseId"] = nodeID(kindRepo, g.at.id, owner), g.at.id*10
	out.Fields["owner"] = g.at.s.graph.user(owner)
	out.Fields["url"] = g.at.s.host.Web() + "/" + owner + "/" + g.at.repo.Ref.Name
	out.Fields["isFork"], out.Fields["viewerPermission"] = true, "READ"
	return out
}

func gqlMergeable(ok *bool) string {
	switch {
	case ok == nil:
		return "UNKNOWN"
	case *ok:
		return "MERGEABLE"
	default:
		return "CONFLICTING"
	}
}

// author returns the author of a pull request: its head's owner if it comes from a fork, else the owner of the token.
func (r *pullRules) author(pr *memhost.PR) string {
	if owner, _ := r.at.headOf(pr); owner != r.at.repo.Ref.Owner {
		return owner
	}
	return viewer
}

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

// thread is a conversation about one line: the first comment of a review, and the answers.
type thread struct {
	review   int // place of the review that began it
	comments []lineAt
	on       gitprovider.LineComment
}

// lineAt is the place of a comment on a line: of its review, and in that.
type lineAt struct{ review, line int }

// lineID returns REST's id of a comment on a line.
func lineID(p *place, at lineAt) int { return p.id*1_000_000 + at.review*1000 + at.line }

// threadsOf returns the conversations of a pull request, oldest first. Those of a pending review are seen by its author
// only.
func threadsOf(pr *memhost.PR) (out []thread) {
	for i, r := range pr.Reviews {
		if r.State == gitprovider.ReviewPending && r.Author != viewer {
			continue
		}
		for n, c := range r.Comments {
			same := func(t thread) bool {
				if c.Thread != "" {
					return c.Thread == fmt.Sprint(t.comments[0])
				}
				return t.review == i && t.on.Path == c.Path && t.on.Line == c.Line && t.on.Before == c.Before
			}
			at := slices.IndexFunc(out, same)
			if at < 0 {
				at, out = len(out), append(out, thread{review: i, on: c})
			}
			out[at].comments = append(out[at].comments, lineAt{i, n})
			out[at].on.Resolved = out[at].on.Resolved || c.Resolved
		}
	}
	return out
}

// threads returns a connection of the conversations. Where the head has moved since, one is outdated and has its former
// line alone.
func (g *pullGraph) threads(pr *memhost.PR, in args) (any, error) {
	all := threadsOf(pr)
	return gql.Connection("PullRequestReviewThread", "reviewThreads", gql.Items{
		Len: len(all), Key: strconv.Itoa,
		Node: func(i int) *gql.Object {
			t := all[i]
			side, outdated, line := "RIGHT", t.on.Commit != pr.HeadCommit, any(t.on.Line)
			if t.on.Before {
				side = "LEFT"
			}
			if outdated {
				line = nil
			}
			return &gql.Object{Type: "PullRequestReviewThread", Fields: fields{
				"path": t.on.Path, "diffSide": side,
				"line": line, "originalLine": t.on.Line, "isOutdated": outdated, "isResolved": t.on.Resolved,
				"comments": lazy(func(in args) (any, error) { return g.threadComments(pr, t, in) }),
			}}
		},
	}, in)
}

func (g *pullGraph) threadComments(pr *memhost.PR, t thread, in args) (any, error) {
	return gql.Connection("PullRequestReviewComment", "comments", gql.Items{
		Len: len(t.comments), Key: strconv.Itoa,
		Node: func(i int) *gql.Object {
			at := t.comments[i]
			r := pr.Reviews[at.review]
			c := r.Comments[at.line]
			author := cmp.Or(c.Author, r.Author)
			return &gql.Object{Type: "PullRequestReviewComment", Fields: fields{
				"fullDatabaseId": strconv.Itoa(lineID(g.at, at)), "author": g.account(author),
				"body": c.Body, "isMinimized": false,
				"originalCommit":    lazy(func(args) (any, error) { return g.at.git().commit(c.Commit), nil }),
				"pullRequestReview": lazy(func(args) (any, error) { return g.review(pr, at.review), nil }),
			}}
		},
	}, in)
}

// comments returns a connection of the comments, oldest first.
func (g *pullGraph) comments(pr *memhost.PR, in args) (any, error) {
	return gql.Connection("IssueComment", "comments", gql.Items{
		Len: len(pr.Comments), Key: strconv.Itoa,
		Node: func(i int) *gql.Object {
			c := pr.Comments[i]
			return &gql.Object{Type: "IssueComment", Fields: fields{
				"id":     nodeID(kindComment, g.at.id, fmt.Sprintf("%d/%d", pr.Number, i)),
				"author": g.account(c.Author), "authorAssociation": g.at.rules().association(c.Author), "body": c.Body,
				"createdAt": c.At, "isMinimized": false,
			}}
		},
	}, in)
}

// association returns somebody's relation to the repository.
func (r *pullRules) association(login string) string {
	given := r.at.set.People.Associations[login]
	switch {
	case given != "":
		return given
	case login == r.at.repo.Ref.Owner:
		return "OWNER"
	case login == viewer, r.at.rights().allows(login, "write"), r.at.set.People.Roles[login] != "":
		return "COLLABORATOR"
	}
	return "NONE"
}
