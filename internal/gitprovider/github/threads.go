package github

import (
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxThreads and commentsOfThread bound the comments on lines that are read of one pull request: the newest
// conversations, and the first comments of each. GitHub makes a review of its own of every answer, so that a comment
// belongs to the review that it came with.
const (
	maxThreads       = 100
	commentsOfThread = 30
)

// threadFields select the conversations about lines, and the head that lines of those that are not outdated are counted
// in.
func threadFields() string {
	return "linesHead: headRefOid reviewThreads(last: " + strconv.Itoa(maxThreads) +
		") { nodes { isResolved isOutdated path line originalLine diffSide " +
		"comments(first: " + strconv.Itoa(commentsOfThread) +
		") { nodes { fullDatabaseId author { login } body isMinimized " +
		"originalCommit { oid } pullRequestReview { id } } } } } "
}

// threadsNode is a pull request as it answers threadFields.
type threadsNode struct {
	LinesHead     string
	ReviewThreads connection[threadNode]
}

type threadNode struct {
	IsResolved, IsOutdated bool
	Path, DiffSide         string
	Line, OriginalLine     int // 0 where GitHub has none
	Comments               connection[lineNode]
}

type lineNode struct {
	FullDatabaseID    string
	Author            *person
	Body              string
	IsMinimized       bool
	OriginalCommit    *struct{ Oid string }
	PullRequestReview *struct{ ID string }
}

// byReview gives the comments on lines of each review, by its node id. What is hidden is left out.
func (n threadsNode) byReview() map[string][]gitprovider.LineComment {
	out := map[string][]gitprovider.LineComment{}
	for _, t := range n.ReviewThreads.Nodes {
		if t == nil {
			continue
		}
		for _, c := range t.Comments.Nodes {
			if c != nil && c.PullRequestReview != nil && !c.IsMinimized {
				one := t.comment(c, n.LinesHead)
				if first := t.Comments.Nodes[0]; first != nil && first != c {
					one.Thread = first.FullDatabaseID
				}
				out[c.PullRequestReview.ID] = append(out[c.PullRequestReview.ID], one)
			}
		}
	}
	return out
}

// comment returns one comment of a conversation. A line is counted in the head, or, where that has moved on, in the
// commit that it was written for.
func (t *threadNode) comment(c *lineNode, head string) gitprovider.LineComment {
	out := gitprovider.LineComment{
		ID: c.FullDatabaseID, Path: t.Path, Line: t.Line, Commit: head, Before: t.DiffSide == "LEFT", Resolved: t.IsResolved,
		Body: strings.ReplaceAll(c.Body, "\r\n", "\n"),
	}
	if t.IsOutdated || t.Line == 0 {
		out.Line, out.Commit = t.OriginalLine, ""
		if c.OriginalCommit != nil {
			out.Commit = c.OriginalCommit.Oid
		}
	}
	if c.Author != nil {
		out.Author = c.Author.Login
	}
	return out
}
