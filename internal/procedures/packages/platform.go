package packages

import (
	"path"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// platformNames returns the platforms that packages are put into, as arguments and configuration name them. agents is
// the folder .agents, whose skills several programs read; the original has no such platform.
func platformNames() []string { return []string{"cursor", "claude", "copilot", "codex", "agents"} }

// leavesProject reports whether a platform has files outside of the project.
func leavesProject(platform string) bool { return platform == "codex" }

// checkPlatform is AAM_INVALID_ARGUMENT for a platform that does not exist.
func checkPlatform(name string) error {
	if slices.Contains(platformNames(), name) {
		return nil
	}
	return newError(InvalidArgument, "there is no platform %q; there are %s", name, strings.Join(platformNames(), ", ")).
		With("valid_platforms", platformNames())
}

// shape is the form of an artifact in a platform.
type shape int

const (
	wholeFolder shape = iota
	oneFile
	section // of a file that others write, too
)

// spot is the place for an artifact of a type.
type spot struct {
	shape shape
	// home says that it goes below Codex's folder of the user, rather than below the project.
	home bool
	path string // with slashes; NAME stands for the artifact's
	head header // what stands before the text
}

// header is the front matter that a platform wants.
type header int

const (
	noHeader     header = iota
	alwaysApply         // description, alwaysApply: true
	nameAndAbout        // name, description
	everywhere          // applyTo: "**"
)

// spotOf returns the place for an artifact in a platform. Its path is "" where the platform has none for the type.
func spotOf(platform string, t ArtifactType) spot {
	spots := map[string]map[ArtifactType]spot{
		"cursor": {
			Skills:       {wholeFolder, false, ".cursor/skills/NAME", noHeader},
			Agents:       {oneFile, false, ".cursor/rules/agent-NAME.mdc", alwaysApply},
			Prompts:      {oneFile, false, ".cursor/prompts/NAME.md", noHeader},
			Instructions: {oneFile, false, ".cursor/rules/NAME.mdc", alwaysApply},
		},
		"claude": {
			Skills:       {wholeFolder, false, ".claude/skills/NAME", noHeader},
			Agents:       {oneFile, false, ".claude/agents/NAME.md", nameAndAbout},
			Prompts:      {oneFile, false, ".claude/commands/NAME.md", noHeader},
			Instructions: {section, false, "CLAUDE.md", noHeader},
		},
		"copilot": {
			Skills:       {wholeFolder, false, ".github/skills/NAME", noHeader},
			Agents:       {oneFile, false, ".github/agents/NAME.agent.md", nameAndAbout},
			Prompts:      {oneFile, false, ".github/prompts/NAME.md", noHeader},
			Instructions: {oneFile, false, ".github/instructions/NAME.instructions.md", everywhere},
		},
		"codex": {
			Skills: {wholeFolder, true, "skills/NAME", noHeader}, Agents: {section, false, "AGENTS.md", noHeader},
			Prompts: {oneFile, true, "prompts/NAME.md", noHeader}, Instructions: {section, false, "AGENTS.md", noHeader},
		},
		"agents": {Skills: {wholeFolder, false, ".agents/skills/NAME", noHeader}},
	}
	return spots[platform][t]
}

// placed is a file, or a section of one, that a package wants in a platform.
type placed struct {
	pkg      string // the package
	platform string
	home     bool
	path     string // with slashes
	file     fileset.TreeFile
	section  string // the words of its marks, such as "look instruction"; "" for a whole file
}

// planArtifacts lists what the artifacts of a package want in a platform.
func planArtifacts(m *Manifest, platform string, files fileset.Tree) ([]placed, error) {
	var out []placed
	for _, t := range artifactTypes() {
		for _, a := range m.Artifacts[t] {
			at := spotOf(platform, t)
			if at.path == "" {
				continue
			}
			one := placed{pkg: m.Name, platform: platform, home: at.home, path: strings.ReplaceAll(at.path, "NAME", a.Name)}
			if at.shape == wholeFolder {
				out = append(out, artifactFiles(one, a, files)...)
				continue
			}
			text, err := textOf(m, t, a, files)
			if err != nil {
				return nil, err
			}
			if at.shape == section {
				one.section = a.Name + " " + t.singular()
			} else if text, err = at.head.before(a, text); err != nil {
				return nil, err
			}
			one.file.Content = fileset.Bytes(text)
			out = append(out, one)
		}
	}
	return out, nil
}

// placeless lists the artifacts of a package that a platform has no place for, such as "prompt ask".
func placeless(m *Manifest, platform string) (out []string) {
	for _, t := range artifactTypes() {
		for _, a := range m.Artifacts[t] {
			if spotOf(platform, t).path == "" {
				out = append(out, t.singular()+" "+a.Name)
			}
		}
	}
	return out
}

func artifactFiles(to placed, a Artifact, files fileset.Tree) (out []placed) {
	from := path.Clean(a.Path) + "/"
	for name, f := range files {
		if rest, within := strings.CutPrefix(name, from); within {
			one := to
			one.path, one.file = to.path+"/"+rest, f
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b placed) int { return strings.Compare(a.path, b.path) })
	return out
}

// textOf returns the text of an artifact that is one file, or of the prompt of an agent in a folder.
func textOf(m *Manifest, t ArtifactType, a Artifact, files fileset.Tree) ([]byte, error) {
	name := path.Clean(a.Path)
	if f, ok := files[name]; ok {
		if t != Agents || path.Base(name) != "agent.yaml" {
			return f.Content.Bytes()
		}
		name = path.Dir(name)
	}
	if t == Agents {
		about, _ := files[path.Join(name, "agent.yaml")].Content.Bytes()
		prompt := promptName(about)
		for _, candidate := range []string{path.Join(name, "system-prompt.md"), path.Join(name, prompt)} {
			if f, ok := files[candidate]; ok && strings.HasPrefix(candidate, name+"/") {
				return f.Content.Bytes()
			}
		}
	}
	return nil, newError(ManifestInvalid, "%s %s: the %s %s has no text at %s", m.Name, m.Version, t.singular(), a.Name,
		a.Path).
		Suggest("ask who made the package")
}

// promptName returns the file that an agent.yaml names for its prompt.
func promptName(text []byte) string {
	var agent struct {
		SystemPrompt string `yaml:"system_prompt"`
	}
	if err := unmarshalLenient(text, &agent); err != nil || agent.SystemPrompt == "" {
		return "system-prompt.md"
	}
	return agent.SystemPrompt
}

// before puts the front matter before a text, unless it has one.
func (h header) before(a Artifact, text []byte) ([]byte, error) {
	if _, has := strictyaml.CutFrontMatter(string(text)); has || h == noHeader {
		return text, nil
	}
	var fields any
	switch h {
	case alwaysApply:
		fields = struct {
			Description string `yaml:"description"`
			AlwaysApply bool   `yaml:"alwaysApply"`
		}{a.Description, true}
	case nameAndAbout:
		about := a.Description
		if about == "" {
			about = a.Name
		}
		fields = struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
		}{a.Name, about}
	default:
		fields = struct {
			ApplyTo string `yaml:"applyTo"`
		}{"**"}
	}
	head, err := marshal(fields)
	if err != nil {
		return nil, newError(InternalError, "the header of %s cannot be written", a.Name).Because(err)
	}
	return slices.Concat([]byte("---\n"), head, []byte("---\n\n"), text), nil
}
