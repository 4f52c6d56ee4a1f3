package prflow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// This file posts the answers to a review. Each says in its first line which request it is of, and which comments it
// answers: by that it is known after a failure which are there, and none is posted twice.

// reviewAnswers holds the answers of one request to the review of a pull request.
type reviewAnswers struct {
	provider gitprovider.Provider
	repo     gitprovider.RepoRef
	pr       gitprovider.PullRequest
	request  string
	commit   string   // that it was answered by; "" for none
	asked    standing // what was asked for by then; zero where that is not known
	answers  []record.ReviewAnswer
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
	text := answerTo(a.commit, a.request, a.asked)
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

// look finds what is not there yet.
func (a reviewAnswers) look(ctx context.Context) (due, error) {
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
		failure := a.reply(ctx, left.lines)
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

// reply answers comments on lines where they stand.
func (a reviewAnswers) reply(ctx context.Context, answers []record.ReviewAnswer) error {
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
	there, lookErr := a.look(ctx)
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
