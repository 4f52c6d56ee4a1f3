package notify

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of the human text.
const (
	shownPaths = 10  // entries
	shownPath  = 200 // runes
)

// happened is what an event is about, and what became of it.
func happened(m Message) (subject, verb string) {
	switch {
	case m.Event == record.EventRefused:
		return "proposal", "refused"
	case m.Number < 1:
		subject = "pull request"
	default:
		subject = fmt.Sprintf("pull request #%d", m.Number)
	}
	switch m.Event {
	case record.EventClosed:
		return subject, "closed without merging"
	case record.EventDeployWaits:
		return subject, "merged and not deployed yet"
	}
	return subject, string(m.Event)
}

func inRepository(m Message) string {
	if m.Repository == "" {
		return ""
	}
	return " in " + plain(m.Repository, maxRepo)
}

// Title is one line that says what happened and where. Of what agents wrote it holds at most the repository's name, as
// Text does.
func Title(m Message) string {
	subject, verb := happened(m)
	return "Claude Ops: " + subject + " " + verb + inRepository(m)
}

// Text says in a few lines what a person needs, for chat and mail, as plain text. What agents wrote stands in quotes,
// on one line, said to be theirs, and without the characters that chats take for markup, mentions or links (a bare
// domain name can still become a link where a client guesses).
func Text(m Message) string {
	m = m.normal()
	lines := []string{opening(m)}
	if m.Event == record.EventRefused || m.Event == record.EventDeployWaits {
		reason := "Reason: " + plain(string(m.Code), maxName)
		if m.Message != "" {
			reason += fmt.Sprintf(` "%s"`, plain(m.Message, maxMessage))
		}
		lines = append(lines, reason)
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
	subject, verb := happened(m)
	if m.Event == record.EventRefused || m.Number < 1 {
		subject = "A " + subject
	}
	text := strings.ToUpper(subject[:1]) + subject[1:] + " was " + verb + inRepository(m)
	if m.Provider != "" {
		text += " on " + plain(m.Provider, maxName)
	}
	if m.Caller != "" {
		text += fmt.Sprintf(` by "%s"`, plain(m.Caller, maxName))
	}
	if m.Tier > 0 {
		text += fmt.Sprintf(" at tier %d", m.Tier)
	}
	if m.Event == record.EventOpened || m.Event == record.EventRevised {
		return text + ". A person has to review it."
	}
	if m.Event == record.EventDeployWaits {
		return text + ". A person has to decide."
	}
	return text + "."
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
	return strings.NewReplacer(
		"\n", " ", "\r", " ", "\t", " ", `"`, "'", "`", "'", "@", "＠", "<", "‹", ">", "›", "[", "(", "]", ")", "*", "∗", "~",
		"∼",
		"|", "¦", `\`, "⧵", "://", ": //",
	).Replace(content.Clean(text, runes))
}

// kind is Apprise's notification type of an event: it chooses a colour or an icon.
func kind(event record.Event) string {
	switch event {
	case record.EventMerged, record.EventDeployed:
		return "success"
	case record.EventRefused, record.EventDeployWaits:
		return "warning"
	default:
		return "info"
	}
}
