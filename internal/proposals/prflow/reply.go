package prflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// replying is a creation as far as it answers a review.
type replying struct{ *creation }

// heard returns the remarks that had been read, encoded for the mark. A request that only answers comments on lines,
// without a commit, leaves the other remarks open.
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

// waiting returns the comments on lines that wait for an answer.
func (s standing) waiting() []gitprovider.LineComment {
	return slices.DeleteFunc(slices.Clone(s.lines), func(c gitprovider.LineComment) bool { return !waits(c) })
}

// answers returns the answers of the request as they are posted.
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

// plainWords returns the first words of a text that others wrote, without what may mean something to a forge.
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

// draftOfReplies returns the draft of a request that changes nothing: the pull request keeps its title and its text,
// and gets a mark which says that its review was answered.
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
