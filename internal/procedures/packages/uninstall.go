package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Removed is the result of an uninstallation.
type Removed struct {
	Name       string
	Version    string
	Files      int      // that are gone, of the package and in platforms; sections count as one each
	Dependents []string // installed packages that need it, directly or indirectly
	Notes      []string

	left []string // packages that nothing needs any more without it
}

// Uninstall removes a package, and what it has put into platforms; nothing else. What somebody has changed stays, and
// notes name it. They also name what came with it and is needed by nothing any more. AAM_PACKAGE_NOT_INSTALLED if it is
// not installed.
func (s *Service) Uninstall(ctx context.Context, text string, dryRun bool) (Removed, error) {
	name, err := parseName(text)
	if err != nil {
		return Removed{}, err
	}
	missing := newError(PackageNotInstalled, "%s is not installed", name).Suggest("aam_list shows what is")
	gone, notes, err := s.remove(ctx, dryRun, func(lock *Lock) ([]string, error) {
		if _, installed := lock.Packages[name.String()]; !installed {
			return nil, missing
		}
		return []string{name.String()}, nil
	})
	if err != nil {
		return Removed{}, err
	}
	if len(gone) == 0 {
		return Removed{}, missing
	}
	out := gone[0]
	out.Notes = notes
	if len(out.left) > 0 {
		out.Notes = append(out.Notes, "these came with it and stay, though nothing needs them any more: "+
			strings.Join(out.left, ", ")+"; claudeops packages autoremove removes them")
	}
	return out, nil
}

// Autoremove removes the packages that came with others, and that nothing needs any more.
func (s *Service) Autoremove(ctx context.Context, dryRun bool) (gone []Removed, notes []string, err error) {
	return s.remove(ctx, dryRun, func(lock *Lock) ([]string, error) { return lock.unneeded(), nil })
}

// remove removes the installed packages that which names, all together; none without a workspace.
func (s *Service) remove(ctx context.Context, dryRun bool, which func(*Lock) ([]string, error)) (gone []Removed,
	notes []string, err error) {
	w := workspace{s.settings.Project}
	if !w.exists() {
		return nil, nil, nil
	}
	unlock, notes, err := s.begin(ctx, dryRun)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	lock, err := w.Lock()
	if err != nil {
		return nil, nil, err
	}
	names, err := which(lock)
	if err != nil || len(names) == 0 {
		return nil, notes, err
	}
	after := lock.clone()
	for _, name := range names {
		delete(after.Packages, name)
	}
	before := map[string][]string{} // files, by the name of the package
	for _, text := range names {
		name, err := parseName(text)
		if err != nil { // the lock file has none such
			return nil, nil, err
		}
		if before[text], err = s.footprint(ctx, w, name, lock.Packages[text]); err != nil {
			return nil, nil, err
		}
	}
	said, err := s.carryOut(ctx, &changeOfPackages{workspace: w, before: lock, after: after, touched: names}, dryRun)
	if err != nil {
		return nil, nil, err
	}
	known := lock.unneeded()
	left := slices.DeleteFunc(after.unneeded(), func(name string) bool { return slices.Contains(known, name) })
	for _, name := range names {
		locked := lock.Packages[name]
		one := Removed{Name: name, Version: locked.Version, Files: len(before[name]) + len(locked.Sections),
			Dependents: lock.dependents(name), left: left}
		for _, file := range before[name] {
			if !dryRun && change.Exists(file) {
				one.Files-- // somebody has changed it, or another project has it, too
			}
		}
		gone = append(gone, one)
	}
	return gone, append(notes, said...), nil
}

// footprint returns the files of a package: its own, and those in platforms.
func (s *Service) footprint(ctx context.Context, w workspace, name Name, locked Locked) (out []string, err error) {
	root, err := files.OpenDir(w.Project)
	if err != nil {
		return nil, unwritable(w.Project, err)
	}
	defer func() { _ = root.Close() }()
	tree, _, err := change.ReadTree(root, packageFolder(name.folder()), nil)
	if err != nil {
		return nil, newError(IntegrityError, "the files of %s cannot be read", name).Because(err)
	}
	for file := range tree {
		out = append(out, w.folderOf(name)+"/"+file)
	}
	if len(locked.Platforms) == 0 {
		return out, nil
	}
	owned, _, err := s.engine().Owned(ctx, owner)
	if err != nil {
		return nil, fromDeploy(err)
	}
	for _, f := range owned {
		if f.Project == s.settings.Project && len(f.Modules) > 0 && f.Modules[0] == name.String() {
			out = append(out, f.Path)
		}
	}
	return out, nil
}
