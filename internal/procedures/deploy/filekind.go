package deploy

import (
	"strconv"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FileKind is the configuration of a deploy repository, and its modules, as files that may be proposed. The configuration must be
// sound. A module's file may hold anything that the gates let through: it is text for agents.
func FileKind() gitprovider.FileKind {
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{ConfigName, "modules/**"},
		Validate: func(name, content string) []gitprovider.FileProblem {
			if name != ConfigName {
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
