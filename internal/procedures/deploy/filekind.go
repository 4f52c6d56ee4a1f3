package deploy

import (
	"path"
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/change"
)

// FileKind returns the configuration of a deploy repository, and its modules, as files that may be proposed. The
// configuration must be sound, and so must the front matter of a skill. Else a module's file may hold anything that the
// gates let through: it is text for agents.
func FileKind() gitprovider.FileKind {
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{configName, "modules/**"}, Skills: []string{"modules/*/**/" + skillFile},
		Validate: func(name, content string) []gitprovider.FileProblem {
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
		change.Tree{skillFile: {Content: change.Bytes([]byte(content))}}); err != nil {
		return []gitprovider.FileProblem{gitprovider.NewFileProblem(errorOf(err).Message)}
	}
	return nil
}
