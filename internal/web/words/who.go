package words

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Door says how something came in.
func Door(d record.Door) string {
	names := map[record.Door]string{
		record.DoorMCP: "agent, over MCP", record.DoorREST: "API", record.DoorCLI: "command line",
		record.DoorWeb:     "dashboard",
		record.DoorWebhook: "webhook", record.DoorPoll: "seen when asked",
	}
	return cmp.Or(names[d], string(d))
}

// Trigger says what started a session. name is the person who did, "" where that is not known; from the tier that
// handed over, 0 for none.
func Trigger(t sessions.Trigger, name string, from int) string {
	switch {
	case t == sessions.TriggerEscalation && from > 0:
		return "handed over by tier " + Count(from)
	case t == sessions.TriggerEscalation:
		return "handed over by a lower tier"
	case t == sessions.TriggerDashboard && name != "":
		return "by " + name
	}
	names := map[sessions.Trigger]string{
		sessions.TriggerCommand: "command line", sessions.TriggerSchedule: "by the schedule", sessions.TriggerREST: "API",
		sessions.TriggerDashboard: "dashboard",
	}
	return cmp.Or(names[t], string(t))
}

// Sentence returns a reason as a sentence of its own.
func Sentence(reason string) string {
	first, size := utf8.DecodeRuneInString(reason)
	if size == 0 {
		return ""
	}
	end := "."
	if last := reason[len(reason)-1]; last == '.' || last == '!' || last == '?' || last == '`' {
		end = ""
	}
	return string(unicode.ToUpper(first)) + reason[size:] + end
}

// Face returns the initials for somebody's round picture: at most two letters.
func Face(name string) string {
	letters := ""
	for _, word := range strings.FieldsFunc(name,
		func(r rune) bool { return r == ' ' || r == '-' || r == '.' || r == '_' || r == '@' }) {
		for _, r := range word {
			letters += string(r)
			break
		}
	}
	if runes := []rune(letters); len(runes) > 2 {
		letters = string(runes[:2])
	}
	return strings.ToUpper(cmp.Or(letters, "?"))
}
