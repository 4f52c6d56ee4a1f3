package deploy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/change"
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
	if problems, fatal := strictyaml.SkillProblems(string(text)); fatal {
		return invalidConfig("the module %s: SKILL.md: %s", m.ID, strings.Join(problems, "; ")).With("module_id", m.ID)
	}
	return nil
}

func checkCommand(m Module, text string) error {
	f, ok := strictyaml.CutFrontMatter(text)
	fields, _ := f.Fields()
	if !ok || strictyaml.Text(fields, "description") == "" {
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
