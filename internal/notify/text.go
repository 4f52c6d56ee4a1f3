package notify

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/record"
)

// Bounds of the human text.
const (
	shownPaths = 10  // entries
	shownPath  = 200 // runes
)

// Title is one line that says what happened and where. Of what agents wrote it holds at most the repository's name, as
// Text does.
func Title(m Message) string {
	in := ""
	if m.Repository != "" {
		in = " in " + plain(m.Repository, maxRepo)
	}
	switch m.Event {
	case record.EventOpened:
		return "Claude Ops: " + pullRequest(m) + " opened" + in
	case record.EventMerged:
		return "Claude Ops: " + pullRequest(m) + " merged" + in
	case record.EventClosed:
		return "Claude Ops: " + pullRequest(m) + " closed without merging" + in
	default:
		return "Claude Ops: proposal refused" + in
	}
}

// Text says in a few lines what a person needs, for chat and mail, as plain text. What agents wrote stands in quotes,
// on one line, said to be theirs, and without the characters that chats take for markup, mentions or links (a bare
// domain name can still become a link where a client guesses).
func Text(m Message) string {
	m = m.normal()
	lines := []string{opening(m)}
	if m.Event == record.EventRefused {
		lines = append(lines, refusal(m))
	}
	if m.Title != "" {
		lines = append(lines, fmt.Sprintf(`Title, as its author wrote it: "%s"`, plain(m.Title, maxTitle)))
	}
	if len(m.Paths) > 0 {
		lines = append(lines, "Files: "+fileList(m))
	}
	if m.URL != "" {
		lines = append(lines, m.URL)
	}
	if m.RequestID != "" {
		lines = append(lines, "Request "+plain(m.RequestID, maxID))
	}
	return strings.Join(lines, "\n")
}

// opening is the first sentence.
func opening(m Message) string {
	in, by := "", ""
	if m.Repository != "" {
		in = " in " + plain(m.Repository, maxRepo)
	}
	if m.Provider != "" {
		in += " on " + plain(m.Provider, maxName)
	}
	if m.Caller != "" {
		by = fmt.Sprintf(` by "%s"`, plain(m.Caller, maxName))
	}
	if m.Tier > 0 {
		by += fmt.Sprintf(" at tier %d", m.Tier)
	}
	switch m.Event {
	case record.EventOpened:
		return subject(m) + " was opened" + in + by + ". A person has to review it."
	case record.EventMerged:
		return subject(m) + " was merged" + in + by + "."
	case record.EventClosed:
		return subject(m) + " was closed without merging" + in + by + "."
	default:
		return "A proposal was refused" + in + by + "."
	}
}

func pullRequest(m Message) string {
	if m.Number < 1 {
		return "pull request"
	}
	return fmt.Sprintf("pull request #%d", m.Number)
}

// subject begins a sentence.
func subject(m Message) string {
	if m.Number < 1 {
		return "A pull request"
	}
	return fmt.Sprintf("Pull request #%d", m.Number)
}

func refusal(m Message) string {
	reason := "Reason: " + plain(string(m.Code), maxName)
	if m.Message != "" {
		reason += fmt.Sprintf(` "%s"`, plain(m.Message, maxMessage))
	}
	return reason
}

func fileList(m Message) string {
	var shown []string
	for _, path := range m.Paths[:min(len(m.Paths), shownPaths)] {
		shown = append(shown, plain(path, shownPath))
	}
	text := strings.Join(shown, ", ")
	if more := len(m.Paths) - len(shown) + m.PathsOmitted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// plain is text that others wrote, fit for the middle of a line of ours: cleaned, of at most so many runes, on one
// line, unable to end our quotes, and without what Markdown, HTML or a chat's own syntax would act on. Characters
// become ones that look alike, so that a person still reads what was written. An underscore stays: names of files are
// full of them, and the worst that it does is to slant a word.
func plain(text string, runes int) string {
	text = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\t':
			return ' '
		case '"', '`':
			return '\''
		case '@':
			return '＠'
		case '<':
			return '‹'
		case '>':
			return '›'
		case '[':
			return '('
		case ']':
			return ')'
		case '*':
			return '∗'
		case '~':
			return '∼'
		case '|':
			return '¦'
		case '\\':
			return '⧵'
		}
		return r
	}, clean(text, runes))
	return strings.ReplaceAll(text, "://", ": //")
}

// kind is Apprise's notification type of an event: it chooses a colour or an icon.
func kind(event record.Event) string {
	switch event {
	case record.EventMerged:
		return "success"
	case record.EventRefused:
		return "warning"
	default:
		return "info"
	}
}
