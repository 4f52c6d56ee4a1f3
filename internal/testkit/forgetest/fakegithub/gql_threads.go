package fakegithub

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
