package definitions

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FileKind returns the definitions of a project as files that may be proposed, if they are sound.
func FileKind() gitprovider.FileKind {
	validator := sync.OnceValue(newValidator)
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{".fractary/agents/**", ".fractary/tools/**"},
		Validate: func(name, content string) []gitprovider.FileProblem { return soundFile(validator(), name, content) },
	}
}

// ClaudeFileKind is Claude Code's own agents as files that may be proposed, if they are sound and take no rights: what
// runs programs, opens servers or lowers the permissions of a session is for a person to write.
func ClaudeFileKind() gitprovider.FileKind {
	validator := sync.OnceValue(newValidator)
	return gitprovider.FileKind{
		Name: "claude-agents", Patterns: []string{claudeFolder + "/agents/*.md"}, Lifts: []string{claudeFolder + "/**"},
		Validate: func(name, content string) []gitprovider.FileProblem {
			definition, problems := validator().Validate(Agent, name, []byte(content))
			var out []gitprovider.FileProblem
			for _, p := range problems {
				switch {
				case p.Severity == SeverityError || p.Message == unknownField:
				case p.Field == "" && strings.HasPrefix(p.Message, notYAML): // which Claude Code may read in its own way
				default:
					continue
				}
				out = append(out, fileProblem(p))
			}
			for _, right := range []string{"hooks", "mcpServers", "permissionMode"} {
				if definition != nil && definition.tree.get(right) != nil {
					at := definition.tree.get(right)
					out = append(out, gitprovider.FileProblem{
						Line: at.line, Column: at.column, Message: right + ": gives the agent more rights, which only a person may",
						Suggestion: "leave " + right + " out, and ask a person to add it",
					})
				}
			}
			return out
		},
	}
}

// soundFile lists the problems of a file that would be proposed: one that is not a definition, too.
func soundFile(v *Validator, name, content string) (out []gitprovider.FileProblem) {
	kind, ok := kindOfPath(name)
	if !ok {
		return []gitprovider.FileProblem{{
			Message: "it is none of the files that a definition has",
			Suggestion: "name it .fractary/agents/NAME/agent.md or .fractary/agents/NAME.md, for a tool " +
				".fractary/tools/NAME/tool.md or .fractary/tools/NAME.md, or .yaml or .yml instead of .md",
		}}
	}
	_, problems := v.Validate(kind, name, []byte(content))
	for _, p := range problems.Errors() {
		out = append(out, fileProblem(p))
	}
	return out
}

func fileProblem(p Problem) gitprovider.FileProblem {
	message := p.Message
	if p.Field != "" {
		message = fmt.Sprintf("%s: %s", p.Field, message)
	}
	return gitprovider.FileProblem{Line: p.Line, Column: p.Column, Message: message, Suggestion: p.Suggestion}
}

// kindOfPath returns the kind of the definition that a project's file holds.
func kindOfPath(name string) (Kind, bool) {
	parts := strings.Split(name, "/")
	for _, kind := range Kinds() {
		ext := path.Ext(name)
		if len(parts) < 3 || parts[0] != ".fractary" || parts[1] != kind.folder() || !knownExtension(ext) {
			continue
		}
		flat, own := len(parts) == 3, len(parts) == 4 && parts[3] == string(kind)+ext
		if flat || own {
			return kind, true
		}
	}
	return "", false
}
