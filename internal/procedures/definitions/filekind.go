package definitions

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FileKind is the definitions of a project as files that may be proposed, if they are sound.
func FileKind() gitprovider.FileKind {
	validator := sync.OnceValue(NewValidator)
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{".fractary/agents/**", ".fractary/tools/**"},
		Validate: func(name, content string) []gitprovider.FileProblem { return soundFile(validator(), name, content) },
	}
}

// soundFile says what is wrong with a file that would be proposed: one that is no definition, too.
func soundFile(v *Validator, name, content string) (out []gitprovider.FileProblem) {
	kind, ok := kindOfPath(name)
	if !ok {
		return []gitprovider.FileProblem{{
			Message:    "it is none of the files that a definition has",
			Suggestion: "name it .fractary/agents/NAME/agent.md or .fractary/agents/NAME.md, for a tool .fractary/tools/NAME/tool.md or .fractary/tools/NAME.md, or .yaml or .yml instead of .md",
		}}
	}
	_, problems := v.Validate(kind, name, []byte(content))
	for _, p := range problems.Errors() {
		message := p.Message
		if p.Field != "" {
			message = fmt.Sprintf("%s: %s", p.Field, message)
		}
		out = append(out, gitprovider.FileProblem{Line: p.Line, Column: p.Column, Message: message, Suggestion: p.Suggestion})
	}
	return out
}

// kindOfPath is the kind of the definition that a project's file holds.
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
