package mcpconfig

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxNameBytes bounds a server's name. Claude Code puts it before each tool's, and model APIs allow 128 bytes for both.
const maxNameBytes = 40

// Claude Code 2.1.329 calls a tool mcp__SERVER__TOOL, where each character of the server's name outside [A-Za-z0-9_-]
// becomes one "_" (observed: "claude.ops" and "claude ops" give the same tools, and "claudeops." gives
// mcp__claudeops___x, which the permission mcp__claudeops__* covers). So names are accepted only in a form that nothing
// normalises, and in which no "__" can stand for the end of another name.
const nameForm = `^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$`

// reserved lists names that Claude Code gives to servers of its own, or cannot use as keys. It drops some of them
// without an error (observed for workspace, computer-use and __proto__).
func reserved() []string {
	return []string{
		"ide", "sdk", "workspace", "computer-use", "webagent", "widgets", "visualize", "remote-browser", "batch",
		"constructor", "prototype", "hasownproperty", "isprototypeof", "propertyisenumerable", "tostring", "tolocalestring",
		"valueof",
	}
}

// reservedPrefixes begin the names of Claude Code's own connectors and of servers that plugins bring.
func reservedPrefixes() []string { return []string{"claude", "anthropic", "plugin", "mcp", "ccr"} }

// checkName reports why a contributed server may not have the name.
func (m *merge) checkName(name string) error {
	normal := fold(name)
	for _, ours := range m.system {
		if normal == ours {
			return fmt.Errorf("the name is that of the system server %s, which no repository can replace", ours)
		}
		if strings.HasPrefix(normal, ours) {
			return fmt.Errorf("the name shadows the system server %s: none may begin like it", ours)
		}
	}
	switch {
	case len(name) > maxNameBytes:
		return fmt.Errorf("the name is longer than %d bytes", maxNameBytes)
	case !regexp.MustCompile(nameForm).MatchString(name):
		return errors.New("the name is not made of letters and digits, with single hyphens or underscores between them")
	case slices.Contains(reserved(), normal):
		return errors.New("the name is reserved by Claude Code")
	}
	for _, prefix := range reservedPrefixes() {
		if strings.HasPrefix(normal, prefix) {
			return fmt.Errorf("names that begin with %s are reserved by Claude Code", prefix)
		}
	}
	return nil
}

// fold returns a server's name as Claude Code normalises it, in lower case.
func fold(name string) string {
	return strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllLiteralString(name, "_"))
}
