package facts

import "strings"

// readRoles gives the frames of a line that chats put around what the system, the user or the model says.
func readRoles(u unit, line unitLine, plain string) []hit {
	if words := roleFrame(plain, u.prose); words != "" {
		return []hit{{Override, "Speaks as the system or a user", u.where, line.number, line.number, words}}
	}
	return nil
}

// roleFrame returns the text from a frame on; "" if a line has none.
func roleFrame(line string, prose bool) string {
	text := strings.TrimLeft(line, " \t>*_#-")
	if prose {
		role, rest, ok := strings.Cut(text, ":")
		if ok && isRole(role) && !isQuotedAnswer(role, rest) && strings.TrimSpace(strings.Trim(rest, "*_ ")) != "" {
			return text
		}
	}
	for at := 0; at < len(line); at++ {
		if line[at] != '<' && line[at] != '[' {
			continue
		}
		if isRoleTag(line[at:]) {
			return line[at:]
		}
	}
	return ""
}

// isRole says whether the text before a colon is the role of who speaks in a chat.
func isRole(text string) bool {
	const longest = len("system override")
	for len(text) > 0 && strings.IndexByte("*_ ", text[len(text)-1]) >= 0 {
		text = text[:len(text)-1]
	}
	if len(text) > longest {
		return false
	}
	switch strings.ToLower(text) {
	case "system", "assistant", "human", "system message", "system prompt", "system override", "admin override",
		"system note":
		return true
	}
	return false
}

// isQuotedAnswer says whether a text shows what an assistant says, in quotes, as definitions of agents do in examples.
func isQuotedAnswer(role, rest string) bool {
	rest = trimBlank(rest)
	return strings.HasPrefix(strings.ToLower(role), "assistant") &&
		(strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, "\u201c"))
}

// isRoleTag says whether a text begins with a mark that templates of chats put around roles, or a tag of the same kind.
func isRoleTag(text string) bool {
	const longest = 26
	text = text[:min(len(text), longest)]
	end := strings.IndexAny(text[1:], ">] ")
	if end < 1 || end > 24 {
		return false
	}
	name := text[1 : end+1]
	if text[0] == '[' {
		switch name {
		case "INST", "/INST", "SYSTEM", "/SYSTEM", "system", "/system":
			return end+2 >= len(text) || text[end+2] != '('
		}
		return false
	}
	if strings.HasPrefix(name, "|") && strings.HasSuffix(name, "|") {
		return true
	}
	switch strings.TrimPrefix(name, "/") {
	case "system", "SYSTEM", "INFORMATION", "IMPORTANT", "CRITICAL", "OVERRIDE", "ADMIN", "INSTRUCTIONS", "SECRET", "s",
		"<SYS>",
		"system-reminder", "system_prompt", "system-prompt", "admin", "override":
		return name != "s"
	}
	return false
}
