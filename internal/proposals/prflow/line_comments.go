package prflow

import (
	"cmp"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Bounds of the comments on lines in one answer, of get_pr_status and of a refusal: the newest count.
const (
	maxLineComments = 50
	maxLineRunes    = 20_000 // of their texts together
	maxLineQuotes   = 20
	maxLineQuote    = 500 // runes
)

// lineEntries returns the comments on lines of each review, in the reviews' order; left counts, by review, those that
// are beyond the bounds. textOf is the text of the line that a comment is on; nil where it is not known.
func lineEntries(reviews []gitprovider.Review, head string,
	textOf func(gitprovider.LineComment) string) (entries [][]LineEntry, left []int) {
	entries, left = make([][]LineEntry, len(reviews)), make([]int, len(reviews))
	count, runes := 0, 0
	for i, r := range slices.Backward(reviews) {
		left[i] = r.UnreadComments
		for _, c := range slices.Backward(r.Comments) {
			body := clean(c.Body, maxReview)
			if count == maxLineComments || runes+len([]rune(body)) > maxLineRunes {
				left[i]++
				continue
			}
			count, runes = count+1, runes+len([]rune(body))
			entry := LineEntry{
				ID: clean(c.ID, maxName), Path: clean(c.Path, gitprovider.MaxPathBytes), Line: c.Line, Before: c.Before,
				Outdated: c.Commit != head, Resolved: c.Resolved, Body: body,
			}
			if c.Author != r.Author {
				entry.Author = clean(c.Author, maxName)
			}
			if textOf != nil {
				entry.Text = textOf(c)
			}
			entries[i] = append(entries[i], entry)
		}
		slices.Reverse(entries[i])
	}
	return entries, left
}

// quoted returns a remark, with comments on lines that are not resolved.
func quoted(r *gitprovider.Remark, lines []gitprovider.LineComment) *fault.Quote {
	out := &fault.Quote{Author: clean(r.Author, maxName), Text: clean(r.Body, maxReview), Untrusted: untrustedQuote}
	lines = slices.DeleteFunc(slices.Clone(lines),
		func(c gitprovider.LineComment) bool { return c.Resolved || c.IsAnswer() })
	for _, c := range lines[max(0, len(lines)-maxLineQuotes):] {
		out.Comments = append(out.Comments, fault.LineQuote{
			ID: clean(c.ID, maxName), Author: clean(cmp.Or(c.Author, r.Author), maxName),
			Path: clean(c.Path, gitprovider.MaxPathBytes), Line: c.Line, Before: c.Before,
			Text: clean(c.Body, maxLineQuote),
		})
	}
	return out
}
