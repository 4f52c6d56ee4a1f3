// Package mcpconfig merges what mounted repositories contribute to an MCP client's configuration with our own entries,
// so that no contribution replaces, shadows or imitates one of ours, and says what was refused and why. It reads
// neither disk nor environment.
package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a merge.
const (
	MaxFileBytes = 64 << 10 // of one contribution
	MaxServers   = 20       // of all contributions together; also of one contribution
)

// Mode is the power that the operator grants to mounted repositories.
type Mode string

// The modes. Off is the zero value's meaning too.
const (
	Off  Mode = "off"  // no contribution is admitted
	HTTP Mode = "http" // servers that the client reaches over HTTP
	All  Mode = "all"  // and servers that the client starts: code that the repository chooses
)

// ParseMode reads a mode, letter case aside; ok is false for anything else, and the mode is then Off.
func ParseMode(s string) (mode Mode, ok bool) {
	mode = Mode(strings.ToLower(s))
	if mode == Off || mode == HTTP || mode == All {
		return mode, true
	}
	return Off, s == ""
}

// System is an entry of ours. Its JSON is in the result byte for byte.
type System struct {
	Name string
	JSON json.RawMessage
}

// Contribution is the text of one repository's .claude-ops/mcp.json. Problem says why it could not be read, "" if it
// was.
type Contribution struct {
	From    string // the repository's folder
	Text    []byte
	Problem string
}

// Rules are the operator's part in a merge.
type Rules struct {
	Mode Mode
	// Env are the variables that a contribution may have expanded.
	Env []string
	// Blank are the variables that servers which the client starts get as empty: those of ours, tokens first of all.
	Blank []string
	// Forges are the prefixes of the names of forges' variables, such as GITHUB_.
	Forges []string
	// Binary is the path of our own program, which no contribution may start.
	Binary string
}

// Server is one entry of the merged configuration.
type Server struct {
	Name   string          `json:"name"`
	From   string          `json:"from"` // the folder of the repository, "" for an entry of ours
	Type   string          `json:"type"`
	Target string          `json:"target"` // the command or the URL, quoted for a terminal
	JSON   json.RawMessage `json:"-"`
}

// Refusal is a server, or with an empty Name a whole contribution, that is not in the result. Name is quoted for a
// terminal.
type Refusal struct {
	From   string `json:"from"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// String returns the refusal as one line.
func (r Refusal) String() string {
	if r.Name == "" {
		return fmt.Sprintf("%s: its MCP servers are left out: %s", r.From, r.Reason)
	}
	return fmt.Sprintf("%s: the MCP server %s is left out: %s", r.From, r.Name, r.Reason)
}

// Result is a merged configuration. Servers holds our entries first, then the others in the order of the folders'
// names.
type Result struct {
	Servers []Server  `json:"servers"`
	Refused []Refusal `json:"refused"`
}

// Config returns the file that the client reads: an object of the member mcpServers.
func (r Result) Config() map[string]map[string]json.RawMessage {
	servers := map[string]json.RawMessage{}
	for _, s := range r.Servers {
		servers[s.Name] = s.JSON
	}
	return map[string]map[string]json.RawMessage{"mcpServers": servers}
}

// Merge adds to our entries what the contributions may add. It never fails: what is malformed or not admitted is
// refused alone, and our entries are in the result whatever the contributions hold. Of two contributed servers with
// names that are equal but for letter case, the one of the folder that sorts first is kept.
func Merge(system []System, contributions []Contribution, rules Rules) Result {
	m := configMerge{rules: rules, taken: map[string]string{}, result: Result{Servers: []Server{}, Refused: []Refusal{}}}
	for _, s := range system {
		m.system = append(m.system, fold(s.Name))
		m.result.Servers = append(m.result.Servers, Server{Name: s.Name, Type: "stdio", Target: quote(rules.Binary),
			JSON: bytes.Clone(s.JSON)})
	}
	ordered := slices.Clone(contributions)
	slices.SortStableFunc(ordered, func(a, b Contribution) int { return strings.Compare(a.From, b.From) })
	for _, c := range ordered {
		m.contribute(c)
	}
	return m.result
}

type configMerge struct {
	rules  Rules
	system []string          // names of our entries, folded
	taken  map[string]string // folded name of an admitted server -> the folder that it is from
	result Result
}

func (m *configMerge) addRefusal(from, name, format string, args ...any) {
	m.result.Refused = append(m.result.Refused, Refusal{From: from, Name: name, Reason: fmt.Sprintf(format, args...)})
}

func (m *configMerge) contribute(c Contribution) {
	switch {
	case c.Problem != "":
		m.addRefusal(c.From, "", "%s", c.Problem)
		return
	case len(c.Text) > MaxFileBytes:
		m.addRefusal(c.From, "", "the file is larger than %d bytes", MaxFileBytes)
		return
	case m.rules.Mode != HTTP && m.rules.Mode != All:
		m.addRefusal(c.From, "", "CLAUDEOPS_MOUNTED_MCP is off; http or all admits them")
		return
	}
	servers, err := parseFile(c.Text)
	if err != nil {
		m.addRefusal(c.From, "", "%s", err)
		return
	}
	for _, s := range servers {
		m.admit(c.From, s)
	}
}

// admit checks one server and adds it to the result, or refuses it with the first reason.
func (m *configMerge) admit(from string, s rawServer) {
	shown := quote(s.name)
	if err := m.checkName(s.name); err != nil {
		m.addRefusal(from, shown, "%s", err)
		return
	}
	entry, err := m.rules.parseEntry(s.json)
	if err != nil {
		m.addRefusal(from, shown, "%s", err)
		return
	}
	if first, isTaken := m.taken[fold(s.name)]; isTaken {
		m.addRefusal(from, shown, "%s has a server of this name already, and comes first", first)
		return
	}
	if len(m.taken) >= MaxServers {
		m.addRefusal(from, shown, "there are %d servers of mounted repositories already", MaxServers)
		return
	}
	m.taken[fold(s.name)] = from
	m.result.Servers = append(m.result.Servers, Server{Name: s.name, From: from, Type: entry.Type,
		Target: quote(entry.commandOrURL()), JSON: entry.json()})
}

// quote makes text of a repository fit for a terminal, a log line and a page: ASCII in quotes, cut at 100 bytes.
func quote(s string) string {
	const limit = 100
	if len(s) > limit {
		return fmt.Sprintf("%+q...", s[:limit])
	}
	return fmt.Sprintf("%+q", s)
}

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
func (m *configMerge) checkName(name string) error {
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
