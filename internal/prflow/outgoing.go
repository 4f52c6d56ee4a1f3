package prflow

import (
	"fmt"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/outgoing"
)

// leaving is a request's title and body as they leave, rewritten so that they do nothing but be read, and what was changed.
type leaving struct {
	title, body string
	warnings    []string
}

// rewriteTexts sets c.leaving. A text that is too long once it is rewritten is refused, so that what a dry run shows can be
// proposed as it is.
func (c *creation) rewriteTexts() []fault.Violation {
	rules := outgoing.Rules{Mentions: c.Policy.Text.Mentions, ClosingKeywords: c.Policy.Text.ClosingKeywords}
	title, aboutTitle := rules.Title(c.req.Title)
	body, aboutBody := rules.Body(c.req.Body)
	c.leaving = leaving{title, body, append(aboutTitle, aboutBody...)}
	const how = "leave out what the pull request shall only show and not do: mentions, keywords that close issues, switches of CI, HTML"
	var out []fault.Violation
	if n := utf8.RuneCountInString(title); n > MaxTitleRunes() {
		out = append(out, invalid("title", fmt.Sprintf("`title` has %d characters when it is written so that it does nothing (%+q); "+
			"at most %d are accepted", n, title, MaxTitleRunes()), how))
	}
	if len(body) > MaxBodyBytes() {
		out = append(out, invalid("body", fmt.Sprintf("`body` has %d bytes when it is written so that it does and hides nothing; "+
			"at most %d are accepted", len(body), MaxBodyBytes()), how))
	}
	return out
}
