package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// header is the front matter of a Markdown file.
type header struct {
	fields map[string]any
	lines  map[string]int // the line of each field, from 0
}

func readHeader(text string) header {
	h := header{lines: map[string]int{}}
	f, ok := strictyaml.CutFrontMatter(text)
	if !ok {
		return h
	}
	h.fields, _ = f.Fields()
	for i, line := range splitLines(f.Header) {
		if key, _, ok := strings.Cut(line, ":"); ok && key != "" && key == strings.TrimSpace(key) {
			h.lines[strings.Trim(key, `"'`)] = i + 1
		}
	}
	return h
}

// headerFacts gives the fields of a file's header that give more rights than the old ones, or run something by
// themselves.
func headerFacts(f File) []Fact {
	before, after := readHeader(f.Old), readHeader(f.New)
	var facts []Fact
	add := func(class Class, line int, removed bool, words, sentence string) {
		words, sentence = oneLine(words), shortened(sentence, MaxWords+80)
		facts = append(facts, Fact{Class: class, Path: f.Path, Line: line + 1, Removed: removed, Where: FrontMatter,
			Words:    words,
			Sentence: sentence})
	}
	for _, field := range widening() {
		old, now := fieldText(before.fields[field.name]), fieldText(after.fields[field.name])
		if old == now {
			continue
		}
		words := field.name + ": " + now
		switch _, removed := before.fields[field.name], after.fields[field.name] == nil; {
		case removed && field.limits:
			add(Rights, before.lines[field.name], true, field.name+": "+old, fmt.Sprintf("Removes the limit %s: %s",
				field.name, clip(old)))
		case removed:
		case field.always || field.widens(old, now, before.fields != nil):
			for _, class := range field.classes {
				add(class, after.lines[field.name], false, words, fmt.Sprintf("%s %s: %s (before: %s)", field.says, field.name,
					clip(now), clip(old)))
			}
		}
	}
	return facts
}

// headerField is a field of a header that gives rights.
type headerField struct {
	name    string
	says    string
	list    bool // of names, of which more give more rights
	limits  bool // what is not in it is not allowed
	always  bool // it is a fact wherever it stands
	grants  bool // it gives rights by itself: see Grants
	classes []Class
}

// widens says whether a value gives more than the one before. existed says whether there was a header.
func (f headerField) widens(old, now string, existed bool) bool {
	switch {
	case !f.list:
		return existed
	case f.limits && old == "":
		return false // without the field, nothing was forbidden
	case givesAll(old):
		// who runs any command gains little by the other tools, but a server's may have credentials of their own
		return !givesEverything(old) && (givesEverything(now) || existed && slices.ContainsFunc(added(old, now), isOfServer))
	}
	return existed && len(added(old, now)) > 0 || givesAll(now)
}

func widening() []headerField {
	rights, code := []Class{Rights}, []Class{Rights, RunsCode}
	var fields []headerField
	add := func(says string, f headerField, names ...string) {
		for _, name := range names {
			f.name, f.says = name, says
			fields = append(fields, f)
		}
	}
	add("Allows tools:", headerField{list: true, grants: true, classes: rights}, "allowed-tools", "allowed_tools",
		"allowedTools")
	add("Allows tools:", headerField{list: true, limits: true, classes: rights}, "tools")
	add("Forbids other tools:", headerField{limits: true, classes: rights}, "disallowedTools", "disallowed-tools",
		"disable-model-invocation")
	add("Runs by itself:", headerField{always: true, grants: true, classes: code}, "hooks", "mcpServers", "mcp-servers",
		"mcp_servers")
	add("Sets permissions:", headerField{always: true, grants: true, classes: rights}, "permissions", "permissionMode",
		"permission-mode")
	add("Sets how it runs:", headerField{always: true, classes: rights}, "context")
	add("Sets how it runs:", headerField{classes: rights}, "model", "agent", "user-invocable", "isolation", "memory")
	return fields
}

// fieldText gives the value of a field on one line. Commas part the items of a list, semicolons the fields of a map.
func fieldText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, fieldText(item))
		}
		return strings.Join(parts, ", ")
	case string:
		return strings.TrimSpace(v)
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text := fieldText(v[key])
			if _, nested := v[key].(map[string]any); nested {
				text = "(" + text + ")"
			}
			parts = append(parts, key+": "+text)
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(value)
}

// added gives the names of a list that were not in another.
func added(old, now string) []string {
	var names []string
	had := toolNames(old)
	for _, name := range toolNames(now) {
		if !slices.Contains(had, name) {
			names = append(names, name)
		}
	}
	return names
}

// toolNames parts a list by commas, and by spaces outside of brackets.
func toolNames(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

// givesAll says whether a list of tools has one that runs any command.
func givesAll(list string) bool {
	return slices.ContainsFunc(toolNames(list), func(name string) bool {
		switch name {
		case "*", "all", "Bash", "Bash(*)", "Bash(*:*)", "Bash(:*)", "shell", "Shell", "bash", "run_shell_command", "execute":
			return true
		}
		return false
	})
}

// givesEverything says whether a list of tools has one that stands for all.
func givesEverything(list string) bool {
	return slices.ContainsFunc(toolNames(list), func(name string) bool { return name == "*" || name == "all" })
}

// isOfServer says whether a tool is one of an MCP server.
func isOfServer(name string) bool { return strings.HasPrefix(name, "mcp__") }

func clip(text string) string {
	if text == "" {
		return "nothing"
	}
	return shortened(text, 50)
}
