package deploy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// checkModule holds a module's files against what its type needs. E_CONFIG_INVALID says what is missing.
func checkModule(m Module, t fileset.Tree) error {
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

func checkSkill(m Module, t fileset.Tree) error {
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

// broken gathers what is wrong with modules, so that one answer names all of it.
type broken struct{ problems []*Error }

// isOfModule reports whether an error says that a module is invalid.
func isOfModule(err error) bool {
	e := fault.ContractErrorOf[Code](err)
	return e != nil && e.Code == ConfigInvalid && e.Details["module_id"] != nil
}

// collectInvalid keeps an error that says that a module is invalid, and returns any other.
func (b *broken) collectInvalid(err error) error {
	if !isOfModule(err) {
		return err
	}
	e := fault.ContractErrorOf[Code](err)
	same := func(known *Error) bool { return known.Message == e.Message }
	if !slices.ContainsFunc(b.problems, same) {
		b.problems = append(b.problems, e)
	}
	return nil
}

// maxNamedProblems bounds how many problems a message names; details have all of them.
const maxNamedProblems = 20

// err returns one error for all; nil if there is none.
func (b *broken) err() error {
	switch len(b.problems) {
	case 0:
		return nil
	case 1:
		return b.problems[0]
	}
	var problems []string
	var ids []any
	for _, e := range b.problems {
		problems = append(problems, e.Message)
		if id := e.Details["module_id"]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	named := strings.Join(problems[:min(len(problems), maxNamedProblems)], "; ")
	if more := len(problems) - maxNamedProblems; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return invalidConfig("%d problems: %s", len(problems), named).With("problems", problems).With("module_ids", ids)
}

// FileKind returns the configuration of a deploy repository, and its modules, as files that may be proposed. The
// configuration must be sound, and so must the front matter of a skill. Else a module's file may hold anything that the
// gates let through: it is text for agents.
func FileKind() gitprovider.FileKind {
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{configName, "modules/**"}, Skills: []string{"modules/*/**/" + skillFile},
		Validate: func(name, _, content string) []gitprovider.FileProblem {
			if path.Base(name) == skillFile {
				return skillProblems(content)
			}
			if name != configName {
				return nil
			}
			if len(content) > maxConfigBytes {
				return []gitprovider.FileProblem{{Message: "it has more than " + strconv.Itoa(maxConfigBytes) + " bytes"}}
			}
			if _, err := parseConfig([]byte(content)); err != nil {
				return []gitprovider.FileProblem{gitprovider.NewFileProblem(err.Error())}
			}
			return nil
		},
	}
}

func skillProblems(content string) []gitprovider.FileProblem {
	if err := checkSkill(Module{ID: "of this file"},
		fileset.Tree{skillFile: {Content: fileset.Bytes([]byte(content))}}); err != nil {
		return []gitprovider.FileProblem{gitprovider.NewFileProblem(errorOf(err).Message)}
	}
	return nil
}
