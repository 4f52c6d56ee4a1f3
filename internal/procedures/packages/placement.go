package packages

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/system/change"
)

// owner is the owner of packages' files in deploy's ledger. There, a file's source is always the workspace.
const owner change.Owner = "packages"

// targetOf returns a platform in the words of deploy.
func targetOf(platform string) change.TargetName {
	switch platform {
	case "claude":
		return deploy.ClaudeCode
	case "copilot":
		return deploy.VSCode
	case "codex":
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
			if f.Project == s.settings.Project && len(f.Modules) > 0 && change.Below(home, f.Path) {
				there[f.Modules[0]] = true
			}
		}
	}
	return func(name string) bool { return there[name] }, nil
}

// contentsOf gives the files of a package.
type contentsOf func(name Name) (change.Tree, *Manifest, error)

// desired returns the files that some packages want in platforms, by what a lock file says. A package that it does not
// have wants none. AAM_NAME_CONFLICT if two want the same file. notes name the packages whose files outside of the
// project are left out.
func (s *Service) desired(lock *Lock, names []string, contents contentsOf, leave mayLeave) (d *change.Desired,
	notes []string, err error) {
	d = change.NewDesired(owner, s.settings.Project, s.settings.Project, deploy.TargetNames()...)
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
			files, err := place(m, platform, tree)
			if err != nil {
				return nil, nil, err
			}
			if leavesProject(platform) && !leave(name) {
				all := len(files)
				if files = slices.DeleteFunc(files, func(f placed) bool { return f.home }); len(files) < all {
					notes = append(notes, leftInProject(name, platform, s.settings.CodexHome))
				}
			}
			if err := s.add(d, files, takers); err != nil {
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

func (s *Service) add(d *change.Desired, files []placed, takers map[string]string) error {
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
