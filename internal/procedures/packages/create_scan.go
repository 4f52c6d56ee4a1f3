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

// put returns the files below a folder that packages have put there, by their path below it.
func (s *Service) put(ctx context.Context, dir string) (map[string]bool, error) {
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
			out[t] = append(out[t], Artifact{unique(out[t], artifact), artifactPath, cut(aboutFile(root, name))})
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
