package prflow

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
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

// What follows posts the answers to a review. Each says in its first line which request it is of, and which comments it
// answers: by that it is known after a failure which are there, and none is posted twice.

// reviewAnswers holds the answers of one request to the review of a pull request.
type reviewAnswers struct {
	provider  gitprovider.Provider
	repo      gitprovider.RepoRef
	pr        gitprovider.PullRequest
	request   string
	commit    string   // that it was answered by; "" for none
	requested standing // what was asked for by then; zero where that is not known
	answers   []record.ReviewAnswer
}

// answersOf returns the answers of a recorded proposal.
func answersOf(p gitprovider.Provider, made record.Proposal, pr gitprovider.PullRequest) reviewAnswers {
	out := reviewAnswers{provider: p, repo: repoOf(made), pr: pr, request: made.ID, answers: made.Answers}
	if len(made.Files) > 0 {
		out.commit = made.Commit
	}
	return out
}

// due lists the answers that are still to be posted.
type due struct {
	main  bool // the comment that answers the review as a whole
	lines []record.ReviewAnswer
}

func (d due) none() bool { return !d.main && len(d.lines) == 0 }

// all returns all answers to post. A commit always gets a comment.
func (a reviewAnswers) all() due {
	return due{main: a.commit != "" || a.whole() != "", lines: slices.DeleteFunc(slices.Clone(a.answers), isWhole)}
}

func isWhole(answer record.ReviewAnswer) bool { return answer.Comment == "" }

// whole returns the answer to the review as a whole; "" for none.
func (a reviewAnswers) whole() string {
	if at := slices.IndexFunc(a.answers, isWhole); at >= 0 {
		return a.answers[at].Text
	}
	return ""
}

// posted returns the number of answers already posted when left remains.
func (a reviewAnswers) posted(left due) int {
	n := len(a.answers) - len(left.lines)
	if left.main && a.whole() != "" {
		n--
	}
	return n
}

// saidPosted says how many answers were posted; "" where there are none.
func saidPosted(posted int, answers []record.ReviewAnswer) string {
	if len(answers) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d replies posted", posted, len(answers))
}

// mainText returns the comment that answers the review as a whole.
func (a reviewAnswers) mainText() string {
	text := answerTo(a.commit, a.request, a.requested)
	if reply := a.whole(); reply != "" {
		text += "\n\n" + reply
	}
	return text
}

// opening returns the first line of an answer to comments on lines.
func (a reviewAnswers) opening(to ...record.ReviewAnswer) string {
	ids := make([]string, len(to))
	for i, answer := range to {
		ids[i] = answer.Comment
	}
	return fmt.Sprintf("%s(request %s%s%s).", gitprovider.ReplyOpening, a.request, commentsIn,
		strings.Join(ids, commentsBetween))
}

// commentsIn and commentsBetween stand before and between the ids of comments in an opening.
const (
	commentsIn      = ", comment "
	commentsBetween = ", "
)

// quotingText returns an answer with the first words of what it answers.
func quotingText(answer record.ReviewAnswer) string {
	return "> " + answer.Quote + "\n\n" + answer.Text
}

// findMissing finds what is not there yet.
func (a reviewAnswers) findMissing(ctx context.Context) (due, error) {
	left := a.all()
	reader, can := a.provider.(gitprovider.RemarkReader)
	if !can || left.none() {
		return left, nil
	}
	remarks, err := reader.Remarks(ctx, a.repo, a.pr.Number)
	if err != nil {
		return left, err
	}
	for _, text := range ourTexts(a.pr, remarks) {
		main, comments := a.isIn(text)
		left.main = left.main && !main
		left.lines = slices.DeleteFunc(left.lines,
			func(answer record.ReviewAnswer) bool { return slices.Contains(comments, answer.Comment) })
	}
	return left, nil
}

// ourTexts returns the texts among remarks that have the form of our answers and are by somebody who may have posted
// them.
func ourTexts(pr gitprovider.PullRequest, remarks []gitprovider.Remark) (out []string) {
	for _, r := range remarks {
		if isOurAnswer(pr, gitprovider.Remark{Author: r.Author, MayWrite: r.MayWrite, Body: r.Body}) {
			out = append(out, r.Body)
		}
		for _, c := range r.Lines {
			author := cmp.Or(c.Author, r.Author)
			if isOurAnswer(pr, gitprovider.Remark{Author: author, MayWrite: r.MayWrite && author == r.Author, Body: c.Body}) {
				out = append(out, c.Body)
			}
		}
	}
	return out
}

// isIn reads from the first line of a text what of this request it answers.
func (a reviewAnswers) isIn(text string) (main bool, comments []string) {
	first, _, _ := strings.Cut(text, "\n")
	_, after, found := strings.Cut(first, "(request "+a.request)
	switch {
	case !found:
		return false, nil
	case strings.HasPrefix(after, ")"):
		return true, nil
	}
	ids, isList := strings.CutPrefix(after, commentsIn)
	ids, _, closed := strings.Cut(ids, ").")
	if !isList || !closed {
		return false, nil
	}
	return false, strings.Split(ids, commentsBetween)
}

// post posts what is due. What it gives back was not posted, or is not known to be; err says why, and is that of the
// first failure. Answers to comments that a forge does not take where they stand are posted in one comment.
func (a reviewAnswers) post(ctx context.Context, now due) (left due, err error) {
	reviser, can := a.provider.(gitprovider.Reviser)
	if !can {
		return due{}, nil
	}
	left = now
	if left.main {
		if err = reviser.Comment(ctx, a.repo, a.pr.Number, a.mainText()); err == nil {
			left.main = false
		}
	}
	if len(left.lines) > 0 {
		failure := a.postAnswers(ctx, left.lines)
		if failure == nil {
			left.lines = nil
		}
		err = cmp.Or(err, failure)
		if failure != nil && !mayPass(failure) {
			return a.postTogether(ctx, reviser, left, err)
		}
	}
	if err == nil || !fault.CodeOf(err).Ambiguous() {
		return left, err
	}
	return a.lookAgain(ctx, left, err)
}

// postAnswers answers comments on lines where they stand.
func (a reviewAnswers) postAnswers(ctx context.Context, answers []record.ReviewAnswer) error {
	replier, can := a.provider.(gitprovider.Replier)
	if !can {
		return fault.New(fault.ProviderDisabled, "the provider %s cannot answer comments on lines", a.provider.Name())
	}
	var replies []gitprovider.LineReply
	for _, answer := range answers {
		opening := a.opening(answer) + "\n\n"
		replies = append(replies, gitprovider.LineReply{
			To: gitprovider.LineComment{
				ID: answer.Comment, Thread: answer.Thread, Path: answer.Path, Line: answer.Line, Before: answer.Before,
				Commit: answer.Commit,
			},
			Text: opening + answer.Text, Quoting: opening + quotingText(answer),
		})
	}
	return replier.Reply(ctx, a.repo, a.pr.Number, replies)
}

// postTogether posts in one comment the answers that were refused where they stand.
func (a reviewAnswers) postTogether(ctx context.Context, reviser gitprovider.Reviser, left due, failure error) (due,
	error) {
	left, err := a.lookAgain(ctx, left, nil)
	switch {
	case err != nil || left.none():
		return left, err
	case len(left.lines) == 0:
		return left, failure
	}
	text := a.opening(left.lines...)
	for _, answer := range left.lines {
		text += "\n\n" + quotingText(answer)
	}
	err = reviser.Comment(ctx, a.repo, a.pr.Number, text)
	switch {
	case err == nil && left.main:
		return due{main: true}, failure
	case err == nil:
		return due{}, nil
	case fault.CodeOf(err).Ambiguous():
		return a.lookAgain(ctx, left, err)
	}
	return left, err
}

// lookAgain leaves out of what is due what has come to be all the same. err is given back unless nothing is left.
func (a reviewAnswers) lookAgain(ctx context.Context, left due, err error) (due, error) {
	there, lookErr := a.findMissing(ctx)
	if lookErr != nil {
		return left, cmp.Or(err, lookErr)
	}
	left.main = left.main && there.main
	left.lines = slices.DeleteFunc(slices.Clone(left.lines), func(answer record.ReviewAnswer) bool {
		return !slices.ContainsFunc(there.lines, func(o record.ReviewAnswer) bool { return o.Comment == answer.Comment })
	})
	if left.none() {
		return left, nil
	}
	return left, err
}

// notPosted warns of what is left.
func (a reviewAnswers) notPosted(left due, why string) string {
	var what []string
	if left.main && (a.commit != "" || a.whole() != "") {
		what = append(what, "the review could not be answered by a comment")
	}
	if n := len(left.lines); n > 0 {
		ids := make([]string, n)
		for i, answer := range left.lines {
			ids[i] = answer.Comment
		}
		what = append(what, fmt.Sprintf("%d of the replies could not be posted (to the comments %s)", n,
			strings.Join(ids, ", ")))
	}
	warning := strings.Join(what, "; ") + ": " + why
	if len(a.answers) > 0 {
		warning += "; the identical call posts what is missing, once"
	}
	return warning
}
