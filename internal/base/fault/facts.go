package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Facts returns the facts that a reader of the text alone needs beside message and violations, a line or block each:
// the pull request that blocks the call with a reviewer's words, when the same call may succeed, and what to do next.
func (w Wire) Facts() (out []string) {
	if pr := w.ExistingPR; pr != nil {
		out = append(out, pr.text()...)
	}
	if w.RetryAfterSeconds > 0 {
		out = append(out, fmt.Sprintf("retry after %d s", w.RetryAfterSeconds))
	}
	if w.Next != "" {
		out = append(out, "next: "+w.Next)
	}
	return out
}

// Map returns the pull request with all texts that others wrote as f gives them, such as a redactor.
func (p ExistingPR) Map(f func(string) string) ExistingPR {
	p.Title = f(p.Title)
	if p.LastReview != nil {
		quote := *p.LastReview
		quote.Author, quote.Text, quote.Comments = f(quote.Author), f(quote.Text), slices.Clone(quote.Comments)
		for i := range quote.Comments {
			c := &quote.Comments[i]
			c.ID, c.Author, c.Path, c.Text = f(c.ID), f(c.Author), f(c.Path), f(c.Text)
		}
		p.LastReview = &quote
	}
	return p
}

func (p ExistingPR) text() []string {
	line := fmt.Sprintf("existing pull request: #%d %s", p.Number, p.URL)
	if len(p.Paths) > 0 {
		line += " changes " + strings.Join(p.Paths, ", ")
	}
	if p.LastReview == nil {
		return []string{line}
	}
	q := p.LastReview
	said := fmt.Sprintf("last said about #%d, by %s; %s:", p.Number, q.Author, q.Untrusted)
	text := q.Text
	for _, c := range q.Comments {
		side := ""
		if c.Before {
			side = " before the change"
		}
		if c.ID != "" {
			side += " (comment " + c.ID + ")"
		}
		text += fmt.Sprintf("\n%s, on %s line %d%s: %s", c.Author, c.Path, c.Line, side, c.Text)
	}
	// Each line is marked, so that no text can pretend to end the quotation.
	return []string{line, said + "\n> " + strings.ReplaceAll(strings.TrimPrefix(text, "\n"), "\n", "\n> ")}
}
