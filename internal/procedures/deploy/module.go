package deploy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"

	"go.yaml.in/yaml/v3"
)

// checkModule holds a module's files against what its type needs. E_CONFIG_INVALID says what is missing.
func checkModule(m Module, t change.Tree) error {
	switch m.Type {
	case Instructions:
		if _, ok := t["AGENTS.md"]; !ok {
			return invalidConfig("the module %s has no AGENTS.md", m.ID).With("module_id", m.ID)
		}
	case Skill:
		return checkSkill(m, t)
	case Prompt, Command:
		paths := t.Paths()
		if len(paths) != 1 || strings.Contains(paths[0], "/") || path.Ext(paths[0]) != ".md" {
			return invalidConfig("the module %s must be exactly one file *.md; it has %d files", m.ID,
				len(paths)).With("module_id", m.ID)
		}
		if m.Type == Command {
			text, err := t[paths[0]].Content.Bytes()
			if err != nil {
				return err
			}
			return checkCommand(m, string(text))
		}
	}
	return nil
}

// frontMatter returns the fields between two lines of three hyphens at a text's beginning; ok is false if there are
// none.
func frontMatter(text string) (fields map[string]any, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, begins := strings.CutPrefix(text, "---\n")
	header, _, ends := strings.Cut(rest+"\n", "\n---\n")
	if !begins || !ends || yaml.Unmarshal([]byte(header), &fields) != nil {
		return nil, false
	}
	return fields, true
}

// skillFile is the file that makes a folder a skill.
const skillFile = "SKILL.md"

func checkSkill(m Module, t change.Tree) error {
	file, ok := t[skillFile]
	if !ok {
		return invalidConfig("the module %s has no SKILL.md", m.ID).With("module_id", m.ID)
	}
	text, err := file.Content.Bytes()
	if err != nil {
		return err
	}
	fields, ok := frontMatter(string(text))
	if !ok {
		return invalidConfig("the module %s: SKILL.md has no front matter", m.ID).With("module_id", m.ID)
	}
	for _, name := range []string{"name", "description"} {
		if text, _ := fields[name].(string); strings.TrimSpace(text) == "" {
			return invalidConfig("the module %s: SKILL.md's front matter has no %s", m.ID, name).With("module_id", m.ID)
		}
	}
	return nil
}

func checkCommand(m Module, text string) error {
	fields, ok := frontMatter(text)
	if description, _ := fields["description"].(string); !ok || strings.TrimSpace(description) == "" {
		return invalidConfig("the module %s: the command's front matter has no description", m.ID).With("module_id", m.ID)
	}
	if runsShell := regexp.MustCompile("(?m)!\\s*`|!bash").MatchString(text); runsShell &&
		!allowsBash(fields["allowed-tools"]) {
		return invalidConfig("the module %s: the command runs a shell, and its allowed-tools have no Bash(...)",
			m.ID).With("module_id", m.ID)
	}
	return nil
}

func allowsBash(tools any) bool {
	switch v := tools.(type) {
	case string:
		return strings.Contains(v, "Bash(")
	case []any:
		return slices.ContainsFunc(v, allowsBash)
	}
	return false
}
