package packages

import (
	"path/filepath"

	"github.com/claudeops/claudeops/internal/deploy"
)

// owner is who packages' files belong to in deploy's ledger. There, a file's source is always the workspace.
const owner deploy.Owner = "packages"

// targetOf is a platform in the words of deploy.
func targetOf(platform string) deploy.TargetName {
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

// contentsOf gives the files of a package.
type contentsOf func(name Name) (deploy.Tree, *Manifest, error)

// desired are the files that some packages want in platforms, by what a lock file says. A package that it does not have wants none.
// AAM_NAME_CONFLICT if two want the same file.
func (s *Service) desired(lock *Lock, names []string, contents contentsOf) (*deploy.Desired, error) {
	d := deploy.NewDesired(owner, s.settings.Project, s.settings.Project, deploy.TargetNames()...)
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
		n, err := ParseName(name)
		if err != nil {
			return nil, err
		}
		tree, m, err := contents(n)
		if err != nil {
			return nil, err
		}
		for _, platform := range locked.Platforms {
			files, err := place(m, platform, tree)
			if err != nil {
				return nil, err
			}
			if err := s.add(d, files, takers); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (s *Service) add(d *deploy.Desired, files []placed, takers map[string]string) error {
	for _, f := range files {
		if f.section != "" {
			continue
		}
		root := s.settings.Project
		if f.home {
			if s.settings.CodexHome == "" {
				return newError(PermissionDenied, "there is no home folder for %s", f.platform).hint("set HOME or CODEX_HOME")
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
	return newError(NameConflict, "%s is %s's, and %s wants it, too", name, first, second).with("path", name).
		with("packages", []string{first, second}).hint("uninstall one of the two").of(second)
}

// maxNamed bounds the paths that an error names.
const maxNamed = 20
