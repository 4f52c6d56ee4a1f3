package scripts

import (
	"fmt"
	"strings"
)

// Bounds of the text for an agent about scripts before it lists its tools.
const (
	maxAdvised      = 40
	maxAdvisedBytes = 200 // of each script's summary
)

// Advice names the scripts that callers of a tier have as tools of the MCP server with a name, and says to prefer them
// to shell commands; "" if there are none. least is the lowest tier that the policy gives a tool, 0 if it says nothing.
func (l Listing) Advice(server string, tier int, least func(tool string) int) string {
	var lines []string
	more := 0
	for _, s := range l.Scripts {
		from := max(s.Tier, least(s.Name))
		switch {
		case from > tier:
		case len(lines) == maxAdvised:
			more++
		default:
			lines = append(lines, fmt.Sprintf("- `mcp__%s__%s`: %s From tier %d.\n", server, s.Name, sentence(s.Summary()),
				from))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	text := "The operator's scripts are tools of " + server +
		", each with its arguments. Call the tool, not a shell command that does the same:\n\n" + strings.Join(lines, "")
	if more > 0 {
		text += fmt.Sprintf("- and %d more, which the list of tools has\n", more)
	}
	return text + "\nAn exitCode other than 0 is what the script found, not a failure of the tool.\n"
}

// sentence returns the first line of a text, with a full stop.
func sentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > maxAdvisedBytes {
		return strings.ToValidUTF8(text[:maxAdvisedBytes], "") + " ..."
	}
	return strings.TrimRight(text, ".") + "."
}
