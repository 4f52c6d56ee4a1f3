package prflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/outgoing"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ReplyRequest answers one comment on a line.
type ReplyRequest struct {
	Comment string `json:"comment" required:"true" minLength:"1" doc:"id" fix:"give the id of a comment on a line, as get_pr_status has it"`
	Text    string `json:"text" required:"true" minLength:"1" maxBytes:"4000" fix:"answer in a few words"`
}

// replying is a creation as far as it answers a review.
type replying struct{ *creation }

// answers reports whether the request has answers to a review.
func (r *CreateRequest) answers() bool { return r.Reply != "" || len(r.Replies) > 0 }

// repliesOnly reports whether the request answers a review and changes nothing.
func (r *CreateRequest) repliesOnly() bool {
	return r.Revises > 0 && len(r.Files) == 0 && r.answers()
}

// identity is what tells the request from others of the same files.
func (r *CreateRequest) identity() []any {
	if !r.answers() {
		return nil
	}
	return []any{r.Reply, r.Replies}
}

// maxReplyBytes is how many bytes the longest answer may have.
func maxReplyBytes() int {
	return strictjson.Limit(reflect.TypeFor[CreateRequest](), "reply", "maxBytes")
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

// rewriteReplies sets the answers as they leave. how says what to leave out of one that is too long then.
func (r *request) rewriteReplies(rules outgoing.Rules, how string) (out []fault.Violation) {
	rewrite := func(at, text string, most int) string {
		rewritten, warnings := rules.Body(text)
		for _, w := range warnings {
			r.text.warnings = append(r.text.warnings, "in "+at+": "+w)
		}
		if len(rewritten) > most && len(text) <= most {
			out = append(out,
				invalid(at,
					fmt.Sprintf("`%s` has %d bytes when it is written so that it does and hides nothing; at most %d are accepted",
						at, len(rewritten), most), how))
		}
		return rewritten
	}
	if r.asked.Reply != "" {
		r.text.reply = rewrite("reply", r.asked.Reply, maxReplyBytes())
	}
	most := strictjson.Limit(reflect.TypeFor[ReplyRequest](), "text", "maxBytes")
	for i, reply := range r.asked.Replies {
		r.text.replies = append(r.text.replies, rewrite(fmt.Sprintf("replies[%d].text", i), reply.Text, most))
	}
	return out
}

// replyTexts are the answers, for the gate of the content.
func (r CreateRequest) replyTexts() (out []text) {
	if r.Reply != "" {
		out = append(out, text{label: "reply", what: "reply", value: r.Reply})
	}
	for i, reply := range r.Replies {
		at := fmt.Sprintf("replies[%d].text", i)
		out = append(out, text{label: at, what: at, value: reply.Text})
	}
	return out
}

// isReply reports whether a text is one of replyTexts.
func isReply(t text) bool {
	return t.what == t.label && !t.isPath && t.what != "title" && t.what != "body"
}

// heard is what the mark says of the remarks that were read. A request that answers comments on lines alone, without a
// commit, leaves open what else was asked.
func (c replying) heard() string {
	rev := c.evidence.revision
	if !c.request.asked.repliesOnly() || c.request.asked.Reply != "" {
		return rev.heard
	}
	open := map[string]bool{}
	for _, remark := range rev.asking {
		if !c.request.asked.answersAll(remark) {
			open[remark.ID] = true
		}
	}
	return heardOf(slices.DeleteFunc(slices.Clone(rev.remarks), func(r gitprovider.Remark) bool { return open[r.ID] }))
}

// answersAll reports whether each comment on a line of a remark is answered, and there is one.
func (r *CreateRequest) answersAll(remark gitprovider.Remark) bool {
	waiting := 0
	for _, line := range remark.Lines {
		if !waits(line) {
			continue
		}
		waiting++
		if !slices.ContainsFunc(r.Replies, func(reply ReplyRequest) bool { return reply.Comment == line.ID }) {
			return false
		}
	}
	return waiting > 0
}

// waits reports whether a comment on a line of a remark that asks waits for an answer.
func waits(c gitprovider.LineComment) bool { return c.ID != "" && !c.Resolved && !c.IsAnswer() }

// waiting are the comments on lines that wait for an answer.
func (s standing) waiting() []gitprovider.LineComment {
	return slices.DeleteFunc(slices.Clone(s.lines), func(c gitprovider.LineComment) bool { return !waits(c) })
}

// answers are what the request answers, as it is posted.
func (c replying) answers() (out []record.ReviewAnswer) {
	text, lines := c.request.text, c.evidence.revision.waiting()
	if text.reply != "" {
		out = append(out, record.ReviewAnswer{Text: text.reply})
	}
	for i, reply := range c.request.asked.Replies {
		at := slices.IndexFunc(lines, func(l gitprovider.LineComment) bool { return l.ID == reply.Comment })
		if at < 0 || i >= len(text.replies) { // of a revision that was made: the record has them
			continue
		}
		on := lines[at]
		out = append(out, record.ReviewAnswer{
			Comment: on.ID, Thread: on.Thread, Path: on.Path, Line: on.Line, Before: on.Before, Commit: on.Commit,
			Text:  text.replies[i],
			Quote: fmt.Sprintf("%s:%d: %s", plainWords(on.Path), on.Line, plainWords(c.rules.secrets.Redact(on.Body))),
		})
	}
	return out
}

// maxQuotedWords bounds, in characters, what is repeated of a comment.
const maxQuotedWords = 80

// plainWords are the first words of a text that others wrote, without what may mean something to a forge.
func plainWords(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(clean(s, maxLine)), "\n")
	first = strings.Map(func(r rune) rune {
		if strings.ContainsRune("@#`<>[]()*_~|\\!&$", r) {
			return ' '
		}
		return r
	}, strings.ReplaceAll(first, "://", " "))
	words := strings.Join(strings.Fields(first), " ")
	if runes := []rune(words); len(runes) > maxQuotedWords {
		words = string(runes[:maxQuotedWords]) + "…"
	}
	return words
}

// draftOfReplies is the draft of a request that changes nothing: the pull request keeps its title and its text, and
// gets a mark which says that its review was answered.
func (c replying) draftOfReplies(d draft, m mark, key []byte) (draft, error) {
	rev := c.evidence.revision
	m.Contents = rev.mark.Contents
	signed, err := m.sign(key)
	d.title = strings.TrimPrefix(rev.pr.Title, draftTitle)
	d.body = strings.TrimRight(markForm().ReplaceAllLiteralString(rev.pr.Body, ""), " \t\r\n") + "\n\n" + signed + "\n"
	return d, err
}

// replyCalls says what would be done to answer without a commit.
func (c replying) replyCalls(number int) []string {
	calls := []string{fmt.Sprintf("note in the mark of #%d that its review was answered", number)}
	if c.request.asked.Reply != "" {
		calls = append(calls, fmt.Sprintf("answer in a comment on #%d", number))
	}
	return append(calls, c.lineCalls(number)...)
}

// lineCalls says which comments on lines would be answered.
func (c replying) lineCalls(number int) (calls []string) {
	for _, a := range c.draft.answers {
		if a.Comment != "" {
			calls = append(calls, fmt.Sprintf("answer the comment %s on line %d of %s of #%d", a.Comment, a.Line, quote(a.Path),
				number))
		}
	}
	return calls
}

// takeAnswers takes the answers of a dry run. One that only answers has the text of its pull request, which is not
// asked for.
func (r *CreateRequest) takeAnswers(p record.Proposal) {
	for _, a := range p.Answers {
		if a.Comment == "" {
			r.Reply = a.Text
			continue
		}
		r.Replies = append(r.Replies, ReplyRequest{Comment: a.Comment, Text: a.Text})
	}
	if r.answers() && len(p.Files) == 0 {
		r.Title, r.Body = "", ""
	}
}
