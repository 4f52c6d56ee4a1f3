package packages

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Outdated is an installed package of which there is something newer.
type Outdated struct {
	Name      string
	Installed string
	Wanted    string // what an upgrade of all packages would come to
	Newest    string // of its registry: the one that the tag latest names, or the highest release
	Registry  string
	ForOthers bool
}

// Outdated lists the installed packages that are not the newest, by name. notes say why some cannot be checked.
func (s *Service) Outdated(ctx context.Context) (out []Outdated, notes []string, err error) {
	v, err := s.loadView()
	if err != nil || len(v.lock.Packages) == 0 {
		return nil, nil, err
	}
	run := installing{service: s, view: v, order: Order{Upgrade: true, DryRun: true}}
	if err := run.parseNames(); err != nil {
		return nil, nil, err
	}
	notes = v.unused()
	wanted := map[string]string{}
	choices, err := run.resolve(ctx)
	if fault.ContractErrorOf[Code](err) == nil && err != nil {
		return nil, nil, err
	}
	if err != nil {
		notes = append(notes, "nothing can be upgraded: "+messageOf(err))
	}
	for _, c := range choices {
		wanted[c.Name.String()] = c.Version.Version
	}
	r := resolver{Registries: v.used(), Installed: v.lock.Packages}
	if _, err := r.startResolution(nil); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(v.lock.Packages)) {
		have := v.lock.Packages[name]
		n, err := parseName(name)
		if err != nil { // the lock file has none such
			return nil, nil, err
		}
		newest, err := r.latestVersion(n)
		if err != nil {
			return nil, nil, err
		}
		one := Outdated{Name: name, Installed: have.Version, Wanted: orText(wanted[name], have.Version),
			Newest: newest.Version, Registry: newest.registry.Name, ForOthers: have.ForOthers}
		switch {
		case newest.gone || newest.parsed == nil:
			notes = append(notes, name+" "+have.Version+": no registry has this package any more")
		case one.Wanted != have.Version || newest.parsed.GreaterThan(have.candidate()[0].parsed):
			out = append(out, one)
		}
	}
	return out, notes, nil
}

// latestVersion returns the version that the tag latest of a package names, else its highest release, else its highest
// version; one that no registry has any more comes last. The zero candidate if there is none.
func (r *resolver) latestVersion(name Name) (candidate, error) {
	known, err := r.candidates(name)
	if err != nil {
		return candidate{}, err
	}
	for _, fits := range []func(candidate) bool{
		func(c candidate) bool { return c.latest },
		func(c candidate) bool { return !c.gone && c.parsed.Prerelease() == "" },
		func(c candidate) bool { return !c.gone },
		func(candidate) bool { return true },
	} {
		for _, c := range slices.Backward(known) {
			if fits(c) {
				return c, nil
			}
		}
	}
	return candidate{}, nil
}

// latest returns the version that the tag latest of a package names; "" if none does.
func (v *inventory) latest(name Name) string {
	for _, r := range v.used() {
		m, err := r.readMetadata(name)
		if err == nil {
			return m.latest()
		}
	}
	return ""
}

// parseNames wants the installed packages that are named, or all that somebody asked for, at their versions or newer
// ones. AAM_PACKAGE_NOT_INSTALLED for one that is not installed.
func (i *installing) parseNames() error {
	lock := i.view.lock
	names := i.order.Packages
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
			if !lock.Packages[name].ForOthers {
				names = append(names, name)
			}
		}
	}
	for _, text := range names {
		name, err := parseName(text)
		if err != nil {
			return err
		}
		have, installed := lock.Packages[name.String()]
		if !installed {
			return newError(PackageNotInstalled, "%s is not installed",
				name).Suggest("packages list shows what is; packages install installs")
		}
		i.specs = append(i.specs, Spec{name, ">=" + have.Version})
	}
	return nil
}

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
	gone, notes, err := s.uninstall(ctx, dryRun, func(lock *Lock) ([]string, error) {
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
	return s.uninstall(ctx, dryRun, func(lock *Lock) ([]string, error) { return lock.unneeded(), nil })
}

// uninstall removes the installed packages that which names, all together; none without a workspace.
func (s *Service) uninstall(ctx context.Context, dryRun bool, which func(*Lock) ([]string, error)) (gone []Removed,
	notes []string, err error) {
	w := workspace{s.settings.Project}
	if !w.exists() {
		return nil, nil, nil
	}
	unlock, notes, err := s.lockAndRepair(ctx, dryRun)
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
			if !dryRun && fileset.Exists(file) {
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
	tree, _, err := fileset.ReadTree(root, packageFolder(name.folderName()), nil)
	if err != nil {
		return nil, newError(IntegrityError, "the files of %s cannot be read", name).Because(err)
	}
	for file := range tree {
		out = append(out, w.packageFolder(name)+"/"+file)
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
