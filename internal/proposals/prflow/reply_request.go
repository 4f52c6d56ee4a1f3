package prflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
)

// answers reports whether the request has answers to a review.
func (r *CreateRequest) answers() bool { return r.Reply != "" || len(r.Replies) > 0 }

// repliesOnly reports whether the request answers a review and changes nothing.
func (r *CreateRequest) repliesOnly() bool {
	return r.Revises > 0 && len(r.Files) == 0 && r.answers()
}

// identity returns the fields that distinguish the request from others of the same files.
func (r *CreateRequest) identity() []any {
	if !r.answers() {
		return nil
	}
	return []any{r.Reply, r.Replies}
}

// maxReplyBytes returns the maximum number of bytes of an answer.
func maxReplyBytes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "reply", "maxBytes")
}

// maxReplies returns the maximum number of comments that one request may answer.
func maxReplies() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "replies", "maxItems")
}

// withoutNeeds leaves out that title, body and files are missing, of a request that only answers: the pull request
// keeps its own.
func (r *CreateRequest) withoutNeeds(violations []fault.Violation) []fault.Violation {
	if !r.repliesOnly() {
		return violations
	}
	return slices.DeleteFunc(violations, func(v fault.Violation) bool {
		return v.Path == "title" && r.Title == "" || v.Path == "body" && r.Body == "" || v.Path == "files" && r.Files == nil
	})
}

// checkReplies finds what does not belong together.
func (r *CreateRequest) checkReplies() (out []fault.Violation) {
	if r.Files != nil && len(r.Files) == 0 && !r.repliesOnly() {
		out = append(out, invalid("files", "`files` is empty", "name at least one file"))
	}
	if r.Reply != "" && strings.TrimSpace(r.Reply) == "" {
		out = append(out, invalid("reply", "`reply` is blank", "say what answers the review, or leave it out"))
	}
	for i, reply := range r.Replies {
		if at := fmt.Sprintf("replies[%d].text", i); reply.Text != "" && strings.TrimSpace(reply.Text) == "" {
			out = append(out, invalid(at, "`"+at+"` is blank", "say what answers the comment"))
		}
	}
	if r.Revises > 0 {
		return out
	}
	const how = "give revises, the number of the pull request whose review it answers, or leave it out"
	if r.Reply != "" {
		out = append(out, invalid("reply", "`reply` was given without `revises`", how))
	}
	if len(r.Replies) > 0 {
		out = append(out, invalid("replies", "`replies` was given without `revises`", how))
	}
	return out
}
