package prflow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// outgoing rewrites the agent's title and body so that they do nothing on a forge but be read: HTML comments are
// removed, mentions ping nobody, and no keyword closes an issue, as far as the policy does not allow it. What changed is
// told in warnings. Text in code spans and code blocks is left: forges take no action on it.
type outgoing struct {
	allowMentions []string // names that may be mentioned, without @, lower case
	allowClosing  bool
	warnings      []string
}

// The forms that forges act on. Names: GitHub and Gitea accept letters, digits, '-', '_', '.' and one slash for teams.
func mentionForm() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w/.\x60])@([A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)`)
}

// closingForm are GitHub's and Gitea's keywords (docs.github.com, "Linking a pull request to an issue"; Gitea's default
// CLOSE_KEYWORDS) before a reference to an issue.
func closingForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?[ \t]+)` +
		`((?:[\w.-]+/[\w.-]+)?[#!]\d+|GH-\d+|https?://\S+/(?:issues|pull|pulls)/\d+)`)
}

// title rewrites a title. It also becomes the subject of a commit, which forges read without markdown. What is left of
// a removal may read as a new mention, so it goes on until nothing changes.
func (o *outgoing) title(text string) string {
	for {
		before := text
		text = o.withoutComments("title", text)
		text = o.mentions("title", text, "")
		text = strings.Join(strings.Fields(o.closing("title", text)), " ")
		if text == before {
			return text
		}
	}
}

// body rewrites a markdown body.
func (o *outgoing) body(text string) string {
	text = o.withoutComments("body", text)
	return outsideCode(text, func(prose string) string {
		return o.closing("body", o.mentions("body", prose, "@ "))
	})
}

func (o *outgoing) warn(format string, args ...any) {
	if warning := fmt.Sprintf(format, args...); !slices.Contains(o.warnings, warning) {
		o.warnings = append(o.warnings, warning)
	}
}

// withoutComments removes HTML comments, wherever they stand: they hide text from a reviewer, and our mark is one. One
// that does not end reaches to the end of the text, as for browsers.
func (o *outgoing) withoutComments(where, text string) string {
	for {
		begin := strings.Index(text, "<!--")
		if begin < 0 {
			return text
		}
		o.warn("an HTML comment was removed from the %s", where)
		end := strings.Index(text[begin:], "-->")
		if end < 0 {
			return text[:begin]
		}
		text = text[:begin] + text[begin+end+len("-->"):]
	}
}

// mentions puts sign in the place of the @ of every mention that is not allowed.
func (o *outgoing) mentions(where, text, sign string) string {
	form := mentionForm()
	return form.ReplaceAllStringFunc(text, func(match string) string {
		parts := form.FindStringSubmatch(match)
		name := strings.TrimRight(parts[2], ".-")
		if slices.Contains(o.allowMentions, strings.ToLower(name)) {
			return match
		}
		o.warn("the mention of %s in the %s was made silent", name, where)
		return parts[1] + sign + parts[2]
	})
}

// closing puts a word between keyword and reference: forges act only on neighbours.
func (o *outgoing) closing(where, text string) string {
	if o.allowClosing {
		return text
	}
	form := closingForm()
	return form.ReplaceAllStringFunc(text, func(match string) string {
		parts := form.FindStringSubmatch(match)
		o.warn("%q in the %s was changed so that it closes nothing", match, where)
		return parts[1] + parts[2] + "(see) " + parts[3]
	})
}
