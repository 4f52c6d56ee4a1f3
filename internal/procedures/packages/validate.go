package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Validation is the result of validating a package in a folder.
type Validation struct {
	Manifest       *Manifest
	Errors         []string
	Warnings       []string
	ArtifactsValid bool
}

// valid reports whether there is no error.
func (v Validation) valid() bool { return len(v.Errors) == 0 }

// validate judges a package: its manifest, whether everything that it lists is there, and whether its files can be
// packed. name is the folder or its aam.yaml. Nothing outside of the folder is looked at, and with within the folder
// does not lead out of that.
func validate(name, within string) Validation {
	if filepath.Base(name) == manifestName {
		name = filepath.Dir(name)
	}
	var v Validation
	root, err := openFolder(name, within)
	if err != nil {
		v.Errors = []string{fmt.Sprintf("No %s found at %s", manifestName, name)}
		return v
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(manifestName, maxManifestBytes)
	if err != nil {
		v.Errors = []string{fmt.Sprintf("No %s found at %s", manifestName, name)}
		if !errors.Is(err, fs.ErrNotExist) {
			v.Errors = []string{fmt.Sprintf("%s cannot be read: %s", manifestName, reason(err))}
		}
		return v
	}
	v.Manifest, v.Errors, v.Warnings = readManifest(text)
	if v.Manifest == nil || len(v.Errors) > 0 {
		return v
	}
	missing := missingArtifacts(&root.Dir, v.Manifest)
	v.ArtifactsValid = len(missing) == 0
	v.Errors = append(v.Errors, missing...)
	v.Warnings = append(v.Warnings, skillWarnings(&root.Dir, v.Manifest)...)
	if _, err := packedFiles(&root.Dir); err != nil {
		v.Errors = append(v.Errors, messageOf(err))
	}
	return v
}

// skillWarnings say which skills agents may not use, or read otherwise than they are meant.
func skillWarnings(root *files.Dir, m *Manifest) (out []string) {
	for _, a := range m.Artifacts[Skills] {
		text, _, err := root.Read(path.Join(path.Clean(a.Path), "SKILL.md"), maxManifestBytes)
		if err != nil {
			continue // which missingArtifacts says
		}
		problems, _ := strictyaml.SkillProblems(string(text))
		for _, problem := range problems {
			out = append(out, fmt.Sprintf("Artifact path '%s': SKILL.md: %s", a.Path, problem))
		}
	}
	return out
}

// missingArtifacts lists the artifacts whose path is not there, or is of the wrong kind.
func missingArtifacts(root *files.Dir, m *Manifest) (out []string) {
	for _, t := range artifactTypes() {
		for _, a := range m.Artifacts[t] {
			info, err := root.Stat(path.Clean(a.Path))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				out = append(out, fmt.Sprintf("Artifact path '%s' does not exist", a.Path))
			case err != nil:
				out = append(out, fmt.Sprintf("Artifact path '%s' cannot be read: %s", a.Path, reason(err)))
			case t == Skills && !info.IsDir():
				out = append(out, fmt.Sprintf("Artifact path '%s' is a file; a skill is a folder with a SKILL.md", a.Path))
			case t == Skills:
				if _, err := root.Stat(path.Join(a.Path, "SKILL.md")); err != nil {
					out = append(out, fmt.Sprintf("Artifact path '%s' has no SKILL.md", a.Path))
				}
			case (t == Prompts || t == Instructions) && info.IsDir():
				out = append(out, fmt.Sprintf("Artifact path '%s' is a folder; a file is needed", a.Path))
			}
		}
	}
	return out
}
