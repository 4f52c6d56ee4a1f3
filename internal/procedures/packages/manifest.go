package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// manifestName is the file that makes a folder a package.
const manifestName = "aam.yaml"

// Bounds of a manifest.
const (
	maxManifestBytes = 1 << 20
	maxDescription   = 256 // characters
	maxArtifacts     = 10_000
)

// ArtifactType is the type of an artifact, in the plural by which manifests list it.
type ArtifactType string

// The types.
const (
	Skills       ArtifactType = "skills"
	Agents       ArtifactType = "agents"
	Prompts      ArtifactType = "prompts"
	Instructions ArtifactType = "instructions"
)

// artifactTypes lists them.
func artifactTypes() []ArtifactType { return []ArtifactType{Agents, Skills, Prompts, Instructions} }

// singular returns the word for one artifact of the type, as tools' arguments have it.
func (t ArtifactType) singular() string { return strings.TrimSuffix(string(t), "s") }

// Artifact is one thing that a package brings.
type Artifact struct {
	Name        string `yaml:"name" json:"name"`
	Path        string `yaml:"path" json:"path"` // relative to the package, with slashes; of a folder it may end with one
	Description string `yaml:"description" json:"description"`
}

// Platform are a package's wishes for one platform.
type Platform struct {
	SkillScope           string `yaml:"skill_scope,omitempty" json:"skill_scope,omitempty"`
	DeployInstructionsAs string `yaml:"deploy_instructions_as,omitempty" json:"deploy_instructions_as,omitempty"`
	MergeInstructions    bool   `yaml:"merge_instructions,omitempty" json:"merge_instructions,omitempty"`
}

// Manifest is an aam.yaml. Keys that it does not know are kept out.
type Manifest struct {
	Name         string                      `yaml:"name"`
	Version      string                      `yaml:"version"`
	Description  string                      `yaml:"description"`
	Author       string                      `yaml:"author,omitempty"`
	License      string                      `yaml:"license,omitempty"`
	Repository   string                      `yaml:"repository,omitempty"`
	Homepage     string                      `yaml:"homepage,omitempty"`
	Keywords     []string                    `yaml:"keywords,omitempty"`
	Artifacts    map[ArtifactType][]Artifact `yaml:"artifacts"`
	Dependencies map[string]string           `yaml:"dependencies,omitempty"`
	Platforms    map[string]Platform         `yaml:"platforms,omitempty"`
}

// Counts says how many artifacts of each type there are.
func (m *Manifest) Counts() map[ArtifactType]int {
	out := map[ArtifactType]int{}
	for t, list := range m.Artifacts {
		if len(list) > 0 {
			out[t] = len(list)
		}
	}
	return out
}

// Total returns the number of artifacts.
func (m *Manifest) Total() int {
	n := 0
	for _, count := range m.Counts() {
		n += count
	}
	return n
}

// readManifest parses the text of a manifest. problems lists all errors, as `field: what`; warnings what could be
// better. m is nil if the text is not a YAML mapping.
func readManifest(text []byte) (m *Manifest, problems, warnings []string) {
	if len(text) > maxManifestBytes {
		return nil, []string{fmt.Sprintf("%s has more than %d bytes", manifestName, maxManifestBytes)}, nil
	}
	m = &Manifest{}
	var wrong *strictyaml.Error
	if _, err := strictyaml.Decode(text, m, strictyaml.Options{Unknown: true}); errors.As(err, &wrong) {
		if !wrong.Typed {
			return nil, []string{"YAML parse error: " + err.Error()}, nil
		}
		for _, problem := range wrong.Problems {
			problems = append(problems, "YAML: "+problem)
		}
	}
	more, warnings := m.check()
	return m, append(problems, more...), warnings
}

// check lists what is wrong with a manifest by itself.
func (m *Manifest) check() (problems, warnings []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if m.Name == "" {
		say("name: is missing")
	} else if _, err := parseName(m.Name); err != nil {
		say("name: %q has other than small letters, digits and hyphens", m.Name)
	}
	if m.Version == "" {
		say("version: is missing")
	} else if _, err := parseVersion(m.Version); err != nil {
		say("version: %q is not three numbers, such as 1.2.0", m.Version)
	}
	switch length := utf8.RuneCountInString(m.Description); {
	case strings.TrimSpace(m.Description) == "":
		warnings = append(warnings, "No description provided")
	case length > maxDescription:
		say("description: has %d characters; at most %d", length, maxDescription)
	}
	if m.Author == "" {
		warnings = append(warnings, "No author provided")
	}
	for _, t := range slices.Sorted(maps.Keys(m.Artifacts)) {
		if !slices.Contains(artifactTypes(), t) {
			say("artifacts.%s: is not one of agents, skills, prompts, instructions", t)
		}
	}
	if m.Total() == 0 {
		say("artifacts: lists none; at least one is needed")
	} else if m.Total() > maxArtifacts {
		say("artifacts: lists %d; at most %d", m.Total(), maxArtifacts)
	}
	for _, t := range artifactTypes() {
		problems = append(problems, checkArtifacts(t, m.Artifacts[t])...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Dependencies)) {
		if _, err := parseName(name); err != nil {
			say("dependencies: %q is not a valid package name", name)
		} else if _, err := parseConstraint(m.Dependencies[name]); err != nil {
			say("dependencies.%s: %q is not a valid version constraint", name, m.Dependencies[name])
		}
	}
	return problems, warnings
}

func checkArtifacts(t ArtifactType, list []Artifact) (problems []string) {
	seen := map[string]bool{}
	for i, a := range list {
		at := fmt.Sprintf("artifacts.%s.%d", t, i)
		say := func(format string, args ...any) { problems = append(problems, at+"."+fmt.Sprintf(format, args...)) }
		switch {
		case a.Name == "":
			say("name: is missing")
		case !validArtifactName(a.Name):
			say("name: %q has other than small letters, digits and hyphens", a.Name)
		case seen[a.Name]:
			say("name: %q is given twice", a.Name)
		}
		seen[a.Name] = true
		if why := badPath(a.Path); why != "" {
			say("path: %s", why)
		}
		if utf8.RuneCountInString(a.Description) > maxDescription {
			say("description: has more than %d characters", maxDescription)
		}
	}
	return problems
}

// badPath says why a path may not stand in a package; "" if it may.
func badPath(p string) string {
	clean := path.Clean(p)
	switch {
	case p == "":
		return "is missing"
	case strings.ContainsAny(p, "\\\x00\n") || !utf8.ValidString(p):
		return fmt.Sprintf("%q has characters that no path may have", p)
	case path.IsAbs(p) || len(p) > 1 && p[1] == ':':
		return fmt.Sprintf("%q is not relative to the package", p)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return fmt.Sprintf("%q leads out of the package", p)
	case clean == ".":
		return fmt.Sprintf("%q is the package itself", p)
	}
	return ""
}

// Marshal returns the manifest as a file.
func (m *Manifest) Marshal() ([]byte, error) { return marshal(m) }

// FileKind returns the manifests of packages as files that may be proposed, if they are sound by themselves.
func FileKind() gitprovider.FileKind {
	return gitprovider.FileKind{
		Name: ToolsetName, Patterns: []string{manifestName, "*/" + manifestName, "packages/*/" + manifestName},
		Validate: func(name, _, content string) (out []gitprovider.FileProblem) {
			_, problems, _ := readManifest([]byte(content))
			for _, p := range problems {
				out = append(out, gitprovider.NewFileProblem(path.Base(name)+": "+p))
			}
			return out
		},
	}
}

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
			v.Errors = []string{fmt.Sprintf("%s cannot be read: %s", manifestName, pathlessError(err))}
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
				out = append(out, fmt.Sprintf("Artifact path '%s' cannot be read: %s", a.Path, pathlessError(err)))
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
