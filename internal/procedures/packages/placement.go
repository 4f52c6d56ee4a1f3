package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// owner is the owner of packages' files in deploy's ledger. There, a file's source is always the workspace.
const owner fileset.Owner = "packages"

// targetOf returns a platform in the words of deploy.
func targetOf(platform string) fileset.TargetName {
	switch platform {
	case "claude":
		return deploy.ClaudeCode
	case "copilot":
		return deploy.VSCode
	case "codex", "agents": // deploy has Codex write .agents/skills, too
		return deploy.Codex
	}
	return deploy.Cursor
}

// mayLeave says which packages may have files outside of the project, below the user's folder of a platform.
type mayLeave func(name string) bool

// leaving returns mayLeave for the packages of the project: all if the user's own configuration names the platform, or
// a person at the terminal has named it in this call; else those that have files there already. A project's file, or an
// agent, puts nothing there that is new.
func (s *Service) leaving(ctx context.Context, named bool) (mayLeave, error) {
	own, err := loadConfig(s.settings.Home, "")
	if err != nil {
		return nil, err
	}
	if named || slices.ContainsFunc(own.platforms(), leavesProject) {
		return func(string) bool { return true }, nil
	}
	there := map[string]bool{}
	if s.hasState() && s.settings.CodexHome != "" {
		owned, _, err := s.engine().Owned(ctx, owner)
		if err != nil {
			return nil, fromDeploy(err)
		}
		home := real(s.settings.CodexHome)
		for _, f := range owned {
			if f.Project == s.settings.Project && len(f.Modules) > 0 && fileset.Below(home, f.Path) {
				there[f.Modules[0]] = true
			}
		}
	}
	return func(name string) bool { return there[name] }, nil
}

// contentsOf gives the files of a package.
type contentsOf func(name Name) (fileset.Tree, *Manifest, error)

// desired returns the files that some packages want in platforms, by what a lock file says. A package that it does not
// have wants none. AAM_NAME_CONFLICT if two want the same file. notes name what is left out: artifacts that a platform
// has no place for, and files outside of the project.
func (s *Service) desired(lock *Lock, names []string, contents contentsOf, leave mayLeave) (d *fileset.Desired,
	notes []string, err error) {
	d = fileset.NewDesired(owner, s.settings.Project, s.settings.Project, deploy.TargetNames()...)
	d.Modules = names
	d.KeepChanged = true
	for _, target := range deploy.TargetNames() {
		d.AddRoot(target, s.settings.Project, s.settings.Project, false)
		if target == deploy.Codex && s.settings.CodexHome != "" {
			home := filepath.Dir(real(s.settings.CodexHome))
			d.AddRoot(target, home, home, false)
		}
	}
	takers := map[string]string{}
	for _, name := range names {
		locked, wanted := lock.Packages[name]
		if !wanted || len(locked.Platforms) == 0 {
			continue
		}
		n, err := parseName(name)
		if err != nil {
			return nil, nil, err
		}
		tree, m, err := contents(n)
		if err != nil {
			return nil, nil, err
		}
		for _, platform := range locked.Platforms {
			files, err := planArtifacts(m, platform, tree)
			if err != nil {
				return nil, nil, err
			}
			if without := placeless(m, platform); len(without) > 0 {
				notes = append(notes, fmt.Sprintf("the platform %s has no place for these of %s, so they are left out: %s",
					platform, name, strings.Join(without[:min(len(without), maxNamed)], ", ")))
			}
			if leavesProject(platform) && !leave(name) {
				all := len(files)
				if files = slices.DeleteFunc(files, func(f placed) bool { return f.home }); len(files) < all {
					notes = append(notes, leftInProject(name, platform, s.settings.CodexHome))
				}
			}
			if err := s.addDesired(d, files, takers); err != nil {
				return nil, nil, err
			}
		}
	}
	return d, notes, nil
}

func leftInProject(name, platform, home string) string {
	return fmt.Sprintf(
		"not used: your own configuration does not name the platform %s, so what %s has for %s was left out; to put it "+
			"there, run: "+
			"claudeops packages install %s --platform %s --force", platform, name, home, name, platform)
}

func (s *Service) addDesired(d *fileset.Desired, files []placed, takers map[string]string) error {
	for _, f := range files {
		if f.section != "" {
			continue
		}
		root := s.settings.Project
		if f.home {
			if s.settings.CodexHome == "" {
				return newError(PermissionDenied, "there is no home folder for %s", f.platform).Suggest("set HOME or CODEX_HOME")
			}
			codex := real(s.settings.CodexHome)
			root, f.path = filepath.Dir(codex), filepath.Base(codex)+"/"+f.path
		}
		name := filepath.Join(root, filepath.FromSlash(f.path))
		if other, taken := takers[name]; taken && other != f.pkg {
			return twoWant(name, other, f.pkg)
		}
		takers[name] = f.pkg
		if err := d.Add(targetOf(f.platform), root, f.path, f.file, f.pkg); err != nil {
			return fromDeploy(err)
		}
	}
	return nil
}

func twoWant(name, first, second string) error {
	return blame(newError(NameConflict, "%s is %s's, and %s wants it, too", name, first, second).With("path", name).
		With("packages", []string{first, second}).Suggest("uninstall one of the two"), second)
}

// maxNamed bounds the paths that an error names.
const maxNamed = 20

// allowed checks that no file of somebody else would be replaced, and no folder of somebody else's skill be written
// into.
func (s *Service) allowed(ctx context.Context, d *fileset.Desired) (notes []string, err error) {
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
		case !known && fileset.Exists(key.Path):
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
func shared(project, name string, f fileset.DesiredFile, owned []fileset.FileState) bool {
	return !slices.ContainsFunc(owned, func(o fileset.FileState) bool {
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
func foreignInSkills(d *fileset.Desired, ours, foreign map[string]string) {
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
		if parts[i] == "skills" && i > 0 &&
			slices.Contains([]string{".cursor", ".claude", ".github", ".codex", ".agents"}, parts[i-1]) {
			return filepath.FromSlash(path.Join("/", path.Join(parts[:i+2]...)))
		}
	}
	return ""
}

// putFiles makes platforms have what some packages want by the text of a lock file. The packages' folders are at their
// places.
func (s *Service) putFiles(ctx context.Context, root *files.Dir, text []byte, names []string,
	named bool) (notes []string, err error) {
	lock, err := parseLock(text)
	if err != nil {
		return nil, newError(InternalError, "the lock file of the change cannot be read").Because(err)
	}
	leave, err := s.leaving(ctx, named)
	if err != nil {
		return nil, err
	}
	w := workspace{s.settings.Project}
	d, _, err := s.desired(lock, names, func(n Name) (fileset.Tree, *Manifest, error) {
		m, err := w.manifest(n)
		if err != nil {
			return nil, nil, err
		}
		tree, err := readTree(root, packageFolder(n.folderName()))
		return tree, m, err
	}, leave)
	if err != nil {
		return nil, err
	}
	if len(d.Files) == 0 && !s.hasState() {
		return nil, nil // nothing was ever put into a platform
	}
	plan, done, err := s.engine().Apply(ctx, d, fileset.Approval{})
	if err != nil {
		return nil, fromDeploy(err)
	}
	if err := s.reached("platforms"); err != nil {
		return nil, err
	}
	notes = plan.Warnings
	if done != nil {
		for _, name := range done.Changed {
			notes = append(notes, name+" was changed meanwhile; it was left as it is")
		}
	}
	return notes, nil
}

func (s *Service) hasState() bool { return fileset.Exists(filepath.Join(s.settings.State, "state")) }

func (s *Service) engine() *fileset.Engine {
	return fileset.NewEngine(s.settings.State, s.settings.Now)
}

// fromDeploy words an error of deploy's engine as the contract does.
func fromDeploy(err error) error {
	var e *fileset.Error
	if !errors.As(err, &e) {
		return err
	}
	code := InternalError
	switch e.Code {
	case fileset.DesiredStateConflict, fileset.AdoptConfirmRequired:
		code = NameConflict
	case fileset.PermissionDenied:
		code = PermissionDenied
	case fileset.Locked:
		code = Busy
	case fileset.ConfigInvalid:
		code = IntegrityError
	case fileset.Unexpected:
		if _, has := e.Details["path"]; has {
			code = PermissionDenied
		}
	}
	out := newError(code, "%s", e.Message).Because(err)
	for key, value := range e.Details {
		if key == "path" || key == "owner" || key == "sample_paths" {
			out = out.With(key, value)
		}
	}
	return out
}
