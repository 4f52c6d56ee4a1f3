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

// happened returns the subject of an event, and what happened to it.
func happened(m Message) (subject, verb string) {
	switch {
	case aboutSession(m.Event):
		return fmt.Sprintf("session of tier %d", m.Tier), endOf(m.Event)
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

// endOf is what has become of a session, as a verb.
func endOf(event record.Event) string {
	switch event {
	case record.EventSessionSkipped:
		return "was due and did not start"
	case record.EventSessionLimit:
		return "reached its limit"
	case record.EventSessionLogin:
		return "could not sign in"
	default:
		return "failed"
	}
}

func inRepository(m Message) string {
	if m.Repository == "" {
		return ""
	}
	return " in " + plain(m.Repository, maxRepo)
}

// Title says in one line what happened and where. Of what agents wrote it holds at most the repository's name, as Text
// does.
func Title(m Message) string {
	subject, verb := happened(m)
	return "Claude Ops: " + subject + " " + verb + inRepository(m)
}

// Text says in a few lines what a person needs, for chat and mail, as plain text. What agents wrote stands in quotes,
// on one line, said to be theirs, and without the characters that chats take for markup, mentions or links (a bare
// domain name can still become a link where a client guesses).
func Text(m Message) string {
	m = m.normal()
	if aboutSession(m.Event) {
		return textOfSession(m)
	}
	lines := []string{opening(m)}
	if m.Event == record.EventRefused || m.Event == record.EventDeployWaits {
		reason := "Code: " + plain(string(m.Code), maxName)
		if m.Message != "" {
			reason += fmt.Sprintf(` "%s"`, plain(m.Message, maxMessage))
		}
		lines = append(lines, reason)
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

// textOfSession says how a session ended, and what a person has to do.
func textOfSession(m Message) string {
	text := fmt.Sprintf("A session of tier %d %s.", m.Tier, endOf(m.Event))
	switch m.Event {
	case record.EventSessionLogin:
		text += " Claude Code needs a new credential."
	case record.EventSessionSkipped:
		text += " Further ones are not reported until one ends otherwise."
	}
	if m.Message != "" {
		text += fmt.Sprintf("\nReason: \"%s\"", plain(m.Message, maxMessage))
	}
	return text + "\nSession " + plain(m.Session, maxID)
}

// opening is the act as a sentence, and what a person has to do. Names and titles stand in quotes: others chose them.
func opening(m Message) string {
	act := record.Act{Verb: m.Did, Number: m.Number, Title: m.Title, Repository: m.Repository, Reason: m.Reason}
	if m.Event == record.EventRefused {
		act.Number = 0
	}
	text := act.Sentence(func(text string) string { return plain(text, maxTitle) }) + "."
	if m.Who == "" {
		text = "Somebody" + text
	} else {
		text = fmt.Sprintf(`"%s"%s`, plain(m.Who, maxName), text)
	}
	switch m.Event {
	case record.EventOpened, record.EventRevised:
		text += " A person has to review it."
	case record.EventDeployWaits:
		text += " A person has to decide."
	}
	var where []string
	if m.Provider != "" {
		where = append(where, "on "+plain(m.Provider, maxName))
	}
	if m.Tier > 0 {
		where = append(where, fmt.Sprintf("at tier %d", m.Tier))
	}
	if len(where) > 0 {
		text += "\nIt was " + strings.Join(where, ", ") + "."
	}
	return text
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

// plain prepares a text of others for the middle of a line of ours: cleaned, of at most runes runes, on one line,
// unable to end our quotes, and without what Markdown, HTML or a chat's own syntax would act on. Characters become ones
// that look alike, so that a person still reads what was written. An underscore stays: names of files are full of them,
// and at worst it makes a word italic.
func plain(text string, runes int) string {
	return strings.NewReplacer(
		"\n", " ", "\r", " ", "\t", " ", `"`, "'", "`", "'", "@", "＠", "<", "‹", ">", "›", "[", "(", "]", ")", "*", "∗", "~",
		"∼",
		"|", "¦", `\`, "⧵", "://", ": //",
	).Replace(content.Clean(text, runes))
}

// kind returns Apprise's notification type of an event: it chooses a colour or an icon.
func kind(event record.Event) string {
	switch event {
	case record.EventMerged, record.EventDeployed:
		return "success"
	case record.EventRefused, record.EventDeployWaits, record.EventSessionFailed, record.EventSessionSkipped,
		record.EventSessionLimit, record.EventSessionLogin:
		return "warning"
	default:
		return "info"
	}
}
