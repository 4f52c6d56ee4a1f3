package packages

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// allowed checks that no file of somebody else would be replaced, and no folder of somebody else's skill be written
// into.
func (s *Service) allowed(ctx context.Context, d *change.Desired) (notes []string, err error) {
	owned, warnings, err := s.engine().Owned(ctx, owner)
	if err != nil {
		return nil, fromDeploy(err)
	}
	ours := map[string]string{}
	for _, f := range owned {
		if f.Project == s.settings.Project && len(f.Modules) > 0 {
			ours[f.Path] = f.Modules[0]
		} else {
			ours[f.Path] = "a package of " + f.Project
		}
	}
	foreign := map[string]string{} // the package that wants it, by path
	for key, f := range d.Files {
		switch by, known := ours[key.Path]; {
		case known && !slices.Contains(f.Modules, by) && !shared(s.settings.Project, key.Path, f, owned):
			return nil, twoWant(key.Path, by, f.Modules[0])
		case !known && change.Exists(key.Path):
			foreign[key.Path] = f.Modules[0]
		}
	}
	foreignInSkills(d, ours, foreign)
	if len(foreign) > 0 {
		return nil, inTheWay(foreign)
	}
	plan, err := s.engine().Plan(ctx, d)
	if err != nil {
		return nil, fromDeploy(err)
	}
	return append(warnings, plan.Warnings...), nil
}

// shared reports whether packages of other projects have the same file with the same bytes, as it may be in the user's
// folders.
func shared(project, name string, f change.DesiredFile, owned []change.FileState) bool {
	return !slices.ContainsFunc(owned, func(o change.FileState) bool {
		return o.Path == name && (o.Project == project || o.SHA256 != f.Content.SHA256())
	})
}

// inTheWay returns the error about existing files that no package owns; it names the package that wants the first of
// them.
func inTheWay(foreign map[string]string) error {
	paths := slices.Sorted(maps.Keys(foreign))
	pkg := foreign[paths[0]]
	paths = slices.DeleteFunc(paths, func(name string) bool { return foreign[name] != pkg })
	paths = paths[:min(len(paths), maxNamed)]
	return blame(newError(NameConflict, "%s would replace or join files that no package has put there: %s", pkg,
		strings.Join(paths, ", ")).
		With("paths", paths).Suggest("move them away, or install into another platform"), pkg)
}

// foreignInSkills adds files without an owner in the folders of skills that packages want for themselves.
func foreignInSkills(d *change.Desired, ours, foreign map[string]string) {
	seen := map[string]bool{}
	for key, f := range d.Files {
		folder := skillFolder(key.Path)
		if folder == "" || seen[folder] {
			continue
		}
		seen[folder] = true
		dir, err := files.OpenDir(folder)
		if err != nil {
			continue // what cannot be read is found when it is written
		}
		_ = fs.WalkDir(dir.FS(), ".", func(below string, e fs.DirEntry, err error) error {
			name := filepath.Join(folder, filepath.FromSlash(below))
			if err == nil && !e.IsDir() && ours[name] == "" {
				foreign[name] = f.Modules[0]
			}
			return nil
		})
		_ = dir.Close()
	}
}

// skillFolder returns the folder of the skill that a path is in; "" for none.
func skillFolder(name string) string {
	parts := strings.Split(filepath.ToSlash(name), "/")
	for i := range len(parts) - 2 {
		if parts[i] == "skills" && i > 0 && slices.Contains([]string{".cursor", ".claude", ".github", ".codex"}, parts[i-1]) {
			return filepath.FromSlash(path.Join("/", path.Join(parts[:i+2]...)))
		}
	}
	return ""
}
