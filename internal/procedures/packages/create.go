package packages

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Recipe says how to make a manifest from what lies in a folder.
type Recipe struct {
	Dir         string // absolute
	Within      string // the folder that Dir does not lead out of, whatever links there are; "" for no limit
	Name        string // "" for that of the folder
	Version     string // "" for 0.1.0
	Description string
	Types       []string // in the singular; none for all
	DryRun      bool
}

// maxScanned bounds the entries that are looked at.
const maxScanned = 100_000

// Create finds skills, agents, prompts and instructions in a folder and writes an aam.yaml that lists them.
// AAM_INVALID_ARGUMENT if there are none, or an aam.yaml is there already.
func (s *Service) Create(ctx context.Context, r Recipe) (string, *Manifest, error) {
	target := filepath.Join(r.Dir, manifestName)
	root, err := openFolder(r.Dir, r.Within)
	if err != nil {
		return "", nil, newError(InvalidArgument, "%s cannot be read: %s", r.Dir,
			pathlessError(err)).Because(err).Suggest("name a folder")
	}
	defer func() { _ = root.Close() }()
	if root.Has(manifestName) {
		return "", nil, newError(InvalidArgument, "%s is there already", target).Suggest("edit it, or remove it first")
	}
	config, err := loadConfig(s.settings.Home, s.settings.Project)
	if err != nil {
		return "", nil, err
	}
	installed, err := s.installedFiles(ctx, r.Dir)
	if err != nil {
		return "", nil, err
	}
	m, err := r.manifest(&root.Dir, config, installed)
	if err != nil {
		return "", nil, err
	}
	if problems, _ := m.check(); len(problems) > 0 {
		return "", nil, newError(InvalidArgument, "the manifest would be invalid: %s",
			strings.Join(problems, "; ")).With("errors", problems)
	}
	text, err := m.Marshal()
	if err != nil {
		return "", nil, newError(InternalError, "the manifest cannot be written").Because(err)
	}
	if r.DryRun {
		return target, m, nil
	}
	if err := root.Put(manifestName, text, 0o644); err != nil {
		return "", nil, unwritable(target, err)
	}
	return target, m, nil
}

func (r Recipe) manifest(root *files.Dir, config Config, installed map[string]bool) (*Manifest, error) {
	found, err := scan(root, installed)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Name: r.Name, Version: r.Version, Description: r.Description, Author: config.stringValue("author.name"),
		Artifacts: map[ArtifactType][]Artifact{}}
	for t, list := range found {
		if len(list) > 0 && (len(r.Types) == 0 || slices.Contains(r.Types, t.singular())) {
			m.Artifacts[t] = list
		}
	}
	if m.Total() == 0 && root.Has("SKILL.md") {
		return nil, newError(InvalidArgument, "%s is a skill itself; a package has its skills in folders below it", r.Dir).
			Suggest("move the skill into a folder of its name, such as skills/" + artifactName(filepath.Base(r.Dir)) +
				"/, or run this in the folder above")
	}
	if m.Total() == 0 {
		return nil, newError(InvalidArgument, "%s has no skills, agents, prompts or instructions that could be packed",
			r.Dir).
			Suggest("a skill is a folder with a SKILL.md, an agent one with an agent.yaml; prompts lie in prompts/, " +
				"instructions in instructions/")
	}
	if m.Name == "" {
		m.Name = artifactName(filepath.Base(r.Dir))
		if scope := strings.TrimPrefix(config.stringValue("publish.default_scope"), "@"); scope != "" {
			m.Name = "@" + scope + "/" + m.Name
		}
	}
	if m.Version == "" {
		m.Version = "0.1.0"
	}
	if m.Description == "" {
		m.Description = m.about()
	}
	return m, nil
}

// about returns a description made of what the package holds.
func (m *Manifest) about() string {
	if m.Total() == 1 {
		for _, list := range m.Artifacts {
			if list[0].Description != "" {
				return list[0].Description
			}
		}
	}
	var parts []string
	for _, t := range artifactTypes() {
		for _, a := range m.Artifacts[t] {
			parts = append(parts, a.Name)
		}
	}
	return shortDescription("Brings " + strings.Join(parts, ", "))
}

// shortDescription shortens a description to what a manifest may have.
func shortDescription(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= maxDescription {
		return text
	}
	return string([]rune(text)[:maxDescription-1]) + "…"
}

// artifactName makes a name of what a file or folder is called.
func artifactName(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	name := b.String()
	return strings.Trim(name[:min(len(name), 64)], "-")
}

// installedFiles returns the files below a folder that packages have put there, by their path below it.
func (s *Service) installedFiles(ctx context.Context, dir string) (map[string]bool, error) {
	out := map[string]bool{}
	if !s.hasState() {
		return out, nil
	}
	owned, _, err := s.engine().Owned(ctx, owner)
	if err != nil {
		return nil, fromDeploy(err)
	}
	for _, f := range owned {
		if rel, err := filepath.Rel(dir, f.Path); err == nil {
			out[filepath.ToSlash(rel)] = true
		}
	}
	return out, nil
}

// scan finds the artifacts of a folder, those of installed packages aside. Links are not followed, and what no archive
// has is left out.
func scan(root *files.Dir, installed map[string]bool) (map[ArtifactType][]Artifact, error) {
	out := map[ArtifactType][]Artifact{}
	seen := 0
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxScanned {
			return newError(InvalidArgument, "the folder has more than %d entries",
				maxScanned).Suggest("name a folder with less in it")
		}
		if err != nil {
			return nil // what cannot be read is not packed
		}
		if skip, why := packable(name, d); skip || why != nil {
			return why
		}
		if !d.Type().IsRegular() || installed[name] {
			return nil
		}
		if t, artifactPath, artifact := artifactAt(name); t != "" && artifact != "" {
			out[t] = append(out[t], Artifact{unique(out[t], artifact), artifactPath, shortDescription(aboutFile(root, name))})
		}
		return nil
	})
	return out, err
}

// unique returns a name that no other artifact of the type has.
func unique(list []Artifact, name string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(a Artifact) bool { return a.Name == name })
	}
	out := name
	for n := 2; has(out); n++ {
		out = fmt.Sprintf("%s-%d", strings.TrimRight(name[:min(len(name), 58)], "-"), n)
	}
	return out
}

// artifactAt says what a file makes an artifact of, and where that is; t is "" if it makes none.
func artifactAt(name string) (t ArtifactType, at, artifact string) {
	dir, base := path.Dir(name), path.Base(name)
	ext := path.Ext(base)
	stem := artifactName(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, ext), ".prompt"), ".instructions"))
	switch {
	case base == "SKILL.md" && dir != ".":
		return Skills, dir + "/", artifactName(path.Base(dir))
	case base == "agent.yaml" && dir != ".":
		return Agents, dir + "/", artifactName(path.Base(dir))
	case dir == ".cursor/rules" && ext == ".mdc" && strings.HasPrefix(base, "agent-"):
		return Agents, name, artifactName(strings.TrimSuffix(strings.TrimPrefix(base, "agent-"), ext))
	case dir == ".claude/agents" && ext == ".md" || dir == ".github/agents" && strings.HasSuffix(base, ".agent.md"):
		return Agents, name, artifactName(strings.TrimSuffix(strings.TrimSuffix(base, ext), ".agent"))
	case ext == ".md" && slices.Contains([]string{"prompts", ".cursor/prompts", ".cursor/commands", ".github/prompts",
		".claude/commands"}, dir):
		return Prompts, name, stem
	case ext == ".md" && (dir == "instructions" || dir == ".github/instructions"), dir == ".cursor/rules" && ext == ".mdc":
		return Instructions, name, stem
	case name == "CLAUDE.md" || name == "AGENTS.md" || name == ".github/copilot-instructions.md":
		return Instructions, name, stem
	}
	return "", "", ""
}

// aboutFile returns the description in an artifact's file.
func aboutFile(root *files.Dir, name string) string {
	text, _, err := root.Read(name, 1<<20)
	if err != nil || !utf8.Valid(text) {
		return ""
	}
	if path.Ext(name) != ".yaml" {
		f, ok := strictyaml.CutFrontMatter(string(text))
		if !ok {
			return firstHeading(text)
		}
		fields, _ := f.Fields()
		return strictyaml.Text(fields, "description")
	}
	var about struct {
		Description string `yaml:"description"`
	}
	if err := unmarshalLenient(text, &about); err != nil {
		return ""
	}
	return about.Description
}

func firstHeading(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			return heading
		}
	}
	return ""
}
