package fault

import (
	"fmt"
	"strings"
)

// Facts are what a reader of the text alone has to know beside message and violations, a line or block each: the pull request that stands in
// the way with a reviewer's words, when the same call may succeed, and what to do next.
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

// Map is the pull request with all texts that others wrote as f gives them, such as a redactor.
func (p ExistingPR) Map(f func(string) string) ExistingPR {
	p.Title = f(p.Title)
	if p.LastReview != nil {
		quote := *p.LastReview
		quote.Author, quote.Text = f(quote.Author), f(quote.Text)
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
	// Each line is marked, so that no text can pretend to end the quotation.
	return []string{line, said + "\n> " + strings.ReplaceAll(q.Text, "\n", "\n> ")}
}
