package packages

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

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
			reason(err)).Because(err).Suggest("name a folder")
	}
	defer func() { _ = root.Close() }()
	if root.Has(manifestName) {
		return "", nil, newError(InvalidArgument, "%s is there already", target).Suggest("edit it, or remove it first")
	}
	config, err := loadConfig(s.settings.Home, s.settings.Project)
	if err != nil {
		return "", nil, err
	}
	installed, err := s.put(ctx, r.Dir)
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
	m := &Manifest{Name: r.Name, Version: r.Version, Description: r.Description, Author: config.text("author.name"),
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
		if scope := strings.TrimPrefix(config.text("publish.default_scope"), "@"); scope != "" {
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
	return cut("Brings " + strings.Join(parts, ", "))
}

// cut shortens a description to what a manifest may have.
func cut(text string) string {
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
