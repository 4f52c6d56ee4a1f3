package packages

import (
	"context"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Removed is what an uninstallation came to.
type Removed struct {
	Name       string
	Version    string
	Files      int      // that are gone, of the package and in platforms; sections count as one each
	Dependents []string // installed packages that need it, directly or by way of others
	Notes      []string
}

// Uninstall removes a package, and what it has put into platforms; nothing else. What somebody has changed stays, and notes name it.
// AAM_PACKAGE_NOT_INSTALLED if it is not installed.
func (s *Service) Uninstall(ctx context.Context, text string, dryRun bool) (Removed, error) {
	name, err := ParseName(text)
	if err != nil {
		return Removed{}, err
	}
	missing := newError(PackageNotInstalled, "%s is not installed", name).Suggest("aam_list shows what is")
	if !(Workspace{s.settings.Project}).Exists() {
		return Removed{}, missing
	}
	unlock, notes, err := s.begin(ctx, dryRun)
	if err != nil {
		return Removed{}, err
	}
	defer unlock()
	w := Workspace{s.settings.Project}
	lock, err := w.Lock()
	if err != nil {
		return Removed{}, err
	}
	locked, installed := lock.Packages[name.String()]
	if !installed {
		return Removed{}, missing
	}
	out := Removed{Name: name.String(), Version: locked.Version, Dependents: lock.dependents(name.String()), Notes: notes}
	before, err := s.footprint(ctx, w, name, locked)
	if err != nil {
		return Removed{}, err
	}
	after := lock.clone()
	delete(after.Packages, name.String())
	notes, err = s.carryOut(ctx, &changeOfPackages{workspace: w, before: lock, after: after, touched: []string{name.String()}}, dryRun)
	out.Notes = append(out.Notes, notes...)
	if err != nil {
		return Removed{}, err
	}
	out.Files = len(before)
	for _, file := range before {
		if !dryRun && change.Exists(file) {
			out.Files-- // somebody has changed it, or another project has it, too
		}
	}
	out.Files += len(locked.Sections)
	return out, nil
}

// footprint is the files of a package: its own, and those in platforms.
func (s *Service) footprint(ctx context.Context, w Workspace, name Name, locked Locked) (out []string, err error) {
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
