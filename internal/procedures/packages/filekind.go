package packages

import (
	"path"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FileKind returns the manifests of packages as files that may be proposed, if they are sound by themselves.
func FileKind() gitprovider.FileKind {
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{manifestName, "*/" + manifestName, "packages/*/" + manifestName},
		Validate: func(name, content string) (out []gitprovider.FileProblem) {
			_, problems, _ := readManifest([]byte(content))
			for _, p := range problems {
				out = append(out, gitprovider.NewFileProblem(path.Base(name)+": "+p))
			}
			return out
		},
	}
}
