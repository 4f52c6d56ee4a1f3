package scripts

import "strings"

// commentHelp is the help that stands in a comment of PowerShell.
type commentHelp struct {
	found                 bool
	synopsis, description string
	parameters            map[string]string // by name in small letters
}

// parseHelp reads a comment. It is help if it has one of the keywords.
func parseHelp(text string) commentHelp {
	help := commentHelp{parameters: map[string]string{}}
	keyword, argument := "", ""
	var lines []string
	flush := func() {
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		switch keyword {
		case "SYNOPSIS":
			help.synopsis = text
		case "DESCRIPTION":
			help.description = strings.TrimSpace(strings.Join(trimmed(lines), "\n"))
		case "PARAMETER":
			help.parameters[strings.ToLower(argument)] = text
		}
		lines = nil
	}
	for _, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		word, rest, _ := strings.Cut(strings.ReplaceAll(bare, "\t", " "), " ")
		name, dotted := strings.CutPrefix(word, ".")
		if dotted && isHelpKeyword(strings.ToUpper(name)) {
			flush()
			keyword, argument, help.found = strings.ToUpper(name), strings.TrimSpace(rest), true
			continue
		}
		lines = append(lines, line)
	}
	flush()
	return help
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimSpace(line)
	}
	return out
}

// isHelpKeyword knows the keywords of comment-based help (about_Comment_Based_Help of PowerShell's documentation).
func isHelpKeyword(word string) bool {
	switch word {
	case "SYNOPSIS", "DESCRIPTION", "PARAMETER", "EXAMPLE", "INPUTS", "OUTPUTS", "NOTES", "LINK", "COMPONENT", "ROLE",
		"FUNCTIONALITY",
		"FORWARDHELPTARGETNAME", "FORWARDHELPCATEGORY", "REMOTEHELPRUNSPACE", "EXTERNALHELP":
		return true
	}
	return false
}
