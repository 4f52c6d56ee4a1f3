package views

import (
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// maxGist bounds the words on what a call was about, in characters.
const maxGist = 100

// ToolCall says in words what an agent did with a tool, such as "Ran", and what it did it to, such as a command. What
// is to be shown is untrusted.
func ToolCall(e sessions.Event) (did, what string) {
	var arguments map[string]any
	did, argument := toolVerb(e.Tool)
	if err := json.Unmarshal([]byte(e.Text), &arguments); err == nil {
		what, _ = arguments[argument].(string)
	}
	if what == "" {
		did, what = "Called", strings.TrimPrefix(e.Tool[strings.LastIndex(e.Tool, "__")+1:], "_")
	}
	if text := []rune(strings.Join(strings.Fields(what), " ")); len(text) > maxGist {
		what = string(text[:maxGist]) + " …"
	}
	return did, what
}

// toolVerb says what a call of one of the CLI's tools does, and which of its arguments names what it is done to.
func toolVerb(tool string) (did, argument string) {
	switch tool {
	case "Bash":
		return "Ran", "command"
	case "Read":
		return "Read", "file_path"
	case "Write":
		return "Wrote", "file_path"
	case "Edit", "MultiEdit":
		return "Edited", "file_path"
	case "Grep", "Glob":
		return "Searched for", "pattern"
	case "WebFetch":
		return "Fetched", "url"
	}
	return "Called", ""
}
