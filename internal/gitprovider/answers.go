package gitprovider

import (
	"context"
	"strings"
)

const (
	// AnswerOpening begins the comment by which we say that a review was answered by a commit.
	AnswerOpening = "Revised by Claude Ops in "
	// ReplyOpening begins what we post without a commit, and each reply to a comment on a line.
	ReplyOpening = "Answered by Claude Ops "
)

// Replier is an optional ability of a Provider: it answers comments on lines in their conversations. Every adapter here
// has it.
type Replier interface {
	// Reply posts the replies to comments on lines of a pull request. It may stop half-way, and is not safe to repeat:
	// after a failure RemarkReader tells which are there. not_found if there is no such number, or no such comment.
	Reply(ctx context.Context, repo RepoRef, number int, replies []LineReply) error
}

// LineReply answers one comment on a line.
type LineReply struct {
	To   LineComment
	Text string
	// Quoting is the text with the first words of the comment, for a host that puts it beside the comment and not below.
	Quoting string
}

// IsAnswer reports whether the remark has the form of our answers to reviews.
func (r Remark) IsAnswer() bool {
	if strings.TrimSpace(r.Body) != "" {
		return isAnswer(r.Body)
	}
	for _, c := range r.Lines {
		if !c.IsAnswer() {
			return false
		}
	}
	return len(r.Lines) > 0
}

// IsAnswer reports whether the comment has the form of our answers.
func (c LineComment) IsAnswer() bool { return isAnswer(c.Body) }

func isAnswer(text string) bool {
	return strings.HasPrefix(text, AnswerOpening) || strings.HasPrefix(text, ReplyOpening)
}
