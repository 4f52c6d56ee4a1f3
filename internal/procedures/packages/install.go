package packages

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Order says what to install.
type Order struct {
	Packages []string // specs
	Platform string   // "" for those of the configuration
	Force    bool     // again what is installed
	NoDeploy bool     // into no platform
	DryRun   bool     // everything but writing
	Person   bool     // a person has given the order, at the terminal
	// Upgrade takes installed packages to their newest versions: Packages are names, none means all. They stay what they
	// were for, and in the platforms that they are in.
	Upgrade bool
}

// Done is the result of an installation.
type Done struct {
	Installed []InstalledPackage // those that were asked for and those that came with them, dependencies first
	Already   []string
	Failed    []FailedSpec
	Notes     []string
}

// InstalledPackage is a package that is installed.
type InstalledPackage struct {
	Name string
	Locked
	Counts map[ArtifactType]int
}

// FailedSpec is a package that was asked for and could not be had.
type FailedSpec struct {
	Spec string
	Err  *Error
}

// Install installs packages with all that they depend on. A package that cannot be had fails alone; the others are
// installed together or not at all. AAM_NOT_INITIALIZED without a workspace; AAM_DEPENDENCY_CONFLICT if versions do not
// go together; AAM_NAME_CONFLICT if a file is another's.
func (s *Service) Install(ctx context.Context, o Order) (Done, error) {
	if err := (workspace{s.settings.Project}).need(); err != nil {
		return Done{}, err
	}
	if o.Platform != "" {
		if err := checkPlatform(o.Platform); err != nil {
			return Done{}, err
		}
	}
	unlock, notes, err := s.lockAndRepair(ctx, o.DryRun)
	if err != nil {
		return Done{}, err
	}
	defer unlock()
	v, err := s.loadView()
	if err != nil {
		return Done{}, err
	}
	run := installing{service: s, view: v, order: o, done: Done{Notes: append(notes, v.unused()...)}}
	defer run.cleanUp()
	if o.Upgrade {
		err = run.parseNames()
	} else {
		run.parseSpecs()
	}
	if err != nil {
		return Done{}, err
	}
	for {
		choices, err := run.resolveAll(ctx)
		if err != nil {
			return Done{}, err
		}
		err = run.applyInstall(ctx)
		if run.giveUp(choices, err) {
			continue
		}
		return run.done, err
	}
}

// installing is an installation on its way.
type installing struct {
	service *Service
	view    *inventory
	order   Order
	done    Done

	specs   []Spec
	folders map[string]string // of packages that are installed, or about to be: the name of each
	fresh   []choice          // to be installed, dependencies first
	trees   map[string]fileset.Tree
	models  map[string]*Manifest
	staged  map[string]bool
	stage   string // the folder where packages wait; "" before there is one
}

func (i *installing) parseSpecs() {
	for _, text := range i.order.Packages {
		spec, err := parseSpec(text)
		if err != nil {
			i.fail(text, err)
			continue
		}
		i.specs = append(i.specs, spec)
	}
}

// resolveAll resolves and reads every archive, until all that is left can be had.
func (i *installing) resolveAll(ctx context.Context) ([]choice, error) {
	for len(i.specs) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		choices, err := i.resolve(ctx)
		if err == nil {
			err = i.stageArchives(ctx, choices)
		}
		if err == nil {
			return choices, nil
		}
		if !i.giveUp(choices, err) {
			return nil, err
		}
	}
	i.cleanUp()
	i.fresh = nil
	return nil, nil
}

// giveUp takes an error that is about some of the packages for their failure. It returns false if it is about none of
// them.
func (i *installing) giveUp(choices []choice, err error) bool {
	e := fault.ContractErrorOf[Code](err)
	if e == nil {
		return false
	}
	if spec, ok := e.Details["spec"].(string); ok && e.Code == PackageNotFound {
		return i.drop(err, func(s Spec) bool { return s.String() == spec })
	}
	var because *culpritError
	return errors.As(err, &because) && i.dropDependents(choices, because.pkg, err)
}

// resolve chooses versions. Packages that somebody asked for stay as they are unless they are asked for again; those
// that came with them stay if they fit.
func (i *installing) resolve(ctx context.Context) ([]choice, error) {
	lock := i.view.lock
	asked := map[string]bool{}
	for _, s := range i.specs {
		asked[s.Name.String()] = true
	}
	r := resolver{Registries: i.view.used(), Unused: i.view.unused()}
	r.Prefer = func(n Name) string {
		switch {
		case i.order.Upgrade && (asked[n.String()] || len(i.order.Packages) == 0):
			return i.view.latest(n)
		case asked[n.String()]:
			return ""
		}
		return lock.Packages[n.String()].Version
	}
	r.Installed = lock.Packages
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		if n, err := parseName(name); err == nil && !lock.Packages[name].ForOthers && !asked[name] {
			r.Kept = append(r.Kept, Spec{n, lock.Packages[name].Version})
		}
	}
	return r.Resolve(ctx, i.specs)
}

// targets returns the platforms that a package goes into: those that are asked for, if it is needed, and those that it
// is in already.
func (i *installing) targets(c choice) []string {
	var out []string
	_, had := i.view.lock.Packages[c.Name.String()]
	switch {
	case i.order.NoDeploy || !c.Needed || i.order.Upgrade && had:
	case i.order.Platform != "":
		out = append(out, i.order.Platform)
	default:
		out = append(out, i.view.config.platforms()...)
	}
	out = append(out, i.view.lock.Packages[c.Name.String()].Platforms...)
	slices.Sort(out)
	return slices.Compact(out)
}

// changes reports whether a chosen package has to be installed, or put into one more platform.
func (i *installing) changes(c choice) bool {
	have, installed := i.view.lock.Packages[c.Name.String()]
	return !installed || have.Version != c.Version.Version || i.order.Force && c.Asked ||
		!slices.Equal(i.targets(c), have.Platforms)
}

// applyInstall makes the new lock file, and carries all of it out.
func (i *installing) applyInstall(ctx context.Context) error {
	i.done.Installed = nil
	if len(i.fresh) == 0 {
		return nil
	}
	after := i.view.lock.clone()
	asked := map[string]bool{}
	for _, s := range i.specs {
		asked[s.Name.String()] = true
	}
	var touched []string
	for _, c := range i.fresh {
		name := c.Name.String()
		touched = append(touched, name)
		before, had := after.Packages[name]
		locked := i.locked(c, name)
		locked.ForOthers = (!asked[name] || i.order.Upgrade) && (!had || before.ForOthers)
		locked.Sections = before.Sections
		after.Packages[name] = locked
		i.done.Installed = append(i.done.Installed, InstalledPackage{name, locked, i.models[name].Counts()})
	}
	for name := range asked { // what came with another is kept for its own sake from now on
		if locked, ok := after.Packages[name]; ok && !i.order.Upgrade {
			locked.ForOthers = false
			after.Packages[name] = locked
		}
	}
	notes, err := i.service.carryOut(ctx, &changeOfPackages{
		workspace: i.view.workspace, before: i.view.lock, after: after, trees: i.trees, models: i.models, staged: i.staged,
		touched: touched, stage: i.stage,
		named: i.order.Person && i.order.Platform != "",
	}, i.order.DryRun)
	i.done.Notes = append(i.done.Notes, notes...)
	return err
}

func (i *installing) locked(c choice, name string) Locked {
	sums := &FileChecksums{Algorithm: "sha256", Files: map[string]string{}}
	for file, f := range i.trees[name] {
		sums.Files[file] = f.Content.SHA256()
	}
	return Locked{
		Version: c.Version.Version, Source: c.Registry.Name, Checksum: c.Version.Checksum,
		Dependencies:  maps.Clone(i.models[name].Dependencies),
		FileChecksums: sums, Platforms: i.targets(c),
	}
}

// stageArchives fetches and checks the archives of what has to be installed, and stages them.
func (i *installing) stageArchives(ctx context.Context, choices []choice) error {
	i.cleanUp()
	i.fresh, i.trees, i.models, i.folders, i.done.Already = nil, map[string]fileset.Tree{}, map[string]*Manifest{}, nil,
		nil
	i.staged = map[string]bool{}
	for _, c := range choices {
		name := c.Name.String()
		if !i.changes(c) {
			if c.Asked {
				i.done.Already = append(i.done.Already, name)
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.fetch(c); err != nil {
			return blame(err, name)
		}
		i.fresh = append(i.fresh, c)
	}
	return nil
}

// fetch reads one package, from its registry or, if only a platform is to be added, from where it is installed.
func (i *installing) fetch(c choice) error {
	name := c.Name.String()
	if have, ok := i.view.lock.Packages[name]; ok && have.Version == c.Version.Version && (!i.order.Force || !c.Asked) {
		tree, m, err := installedTree(i.view.workspace, c.Name, have)
		i.trees[name], i.models[name] = tree, m
		return err
	}
	if err := i.folderIsFree(c.Name); err != nil {
		return err
	}
	if c.Version.Checksum == "" && i.view.config.values["security.require_checksum"] == true {
		return newError(IntegrityError, "the registry %q has no checksum of %s %s", c.Registry.Name, name, c.Version.Version).
			Suggest("set security.require_checksum to false to install it all the same")
	}
	packed, err := c.Registry.Archive(c.Name, c.Version)
	if err != nil {
		return err
	}
	if err := i.signed(); err != nil {
		return err
	}
	i.models[name] = packed.Manifest
	if i.order.DryRun {
		tree := fileset.Tree{}
		for _, f := range packed.Files {
			tree[f.Name] = fileset.TreeFile{Content: fileset.Bytes(f.Content), Executable: f.Executable}
		}
		i.trees[name] = tree
		return nil
	}
	i.trees[name], err = i.stagePackage(c.Name, packed)
	i.staged[name] = true
	return err
}

// signed applies the configuration's rule about signatures, which no package has.
func (i *installing) signed() error {
	if i.view.config.values["security.require_signature"] != true {
		return nil
	}
	switch i.view.config.stringValue("security.on_signature_failure") {
	case "error":
		return newError(IntegrityError, "the configuration requires signatures, and packages have none").
			Suggest("set security.require_signature to false; checksums are verified all the same")
	case "warn":
		if note := "packages have no signatures, which the configuration asks for; their checksums were verified"; !slices.Contains(i.done.Notes, note) {
			i.done.Notes = append(i.done.Notes, note)
		}
	}
	return nil
}

// folderIsFree is AAM_NAME_CONFLICT if a package of another name has the folder.
func (i *installing) folderIsFree(name Name) error {
	if i.folders == nil {
		i.folders = map[string]string{}
		for other := range i.view.lock.Packages {
			if n, err := parseName(other); err == nil {
				i.folders[n.folderName()] = other
			}
		}
	}
	if other, taken := i.folders[name.folderName()]; taken && other != name.String() {
		return newError(NameConflict, "%s and %s would lie in the same folder", name,
			other).Suggest("uninstall one of them first")
	}
	i.folders[name.folderName()] = name.String()
	return nil
}

// stagePackage writes a package to where it waits.
func (i *installing) stagePackage(name Name, packed *Packed) (fileset.Tree, error) {
	w := i.view.workspace
	root, err := files.OpenWriting(w.Project)
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = root.Close() }()
	if i.stage == "" {
		i.stage = filepath.ToSlash(filepath.Join(temporary, rand.Text()))
	}
	folder := i.stage + "/new/" + name.folderName()
	tree := fileset.Tree{}
	for _, f := range packed.Files {
		tree[f.Name] = fileset.TreeFile{Content: fileset.Bytes(f.Content), Executable: f.Executable}
	}
	if at, err := fileset.Stage(root, folder, tree); err != nil {
		return nil, unwritable(at, err)
	}
	return readTree(&root.Dir, folder)
}

func readTree(root *files.Dir, folder string) (fileset.Tree, error) {
	tree, ok, err := fileset.ReadTree(root, folder, nil)
	if err != nil || !ok {
		return nil, newError(IntegrityError, "%s cannot be read", folder).Because(cmp.Or(err, os.ErrNotExist))
	}
	return tree, nil
}

// unwritable returns the error for a file that cannot be written. A name that no file can have is not a matter of
// permissions.
func unwritable(name string, err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return newError(InvalidArgument, "%s cannot be written: %s", name,
			pathlessError(err)).Because(err).Suggest("give it a shorter name")
	}
	return newError(PermissionDenied, "%s cannot be written: %s", name,
		pathlessError(err)).Because(err).Suggest("look at the rights of the folder and at the room on the disk")
}

// cleanUp removes what was staged and not used. A transaction that could neither be finished nor taken back still needs
// it.
func (i *installing) cleanUp() {
	root, err := files.OpenWriting(i.view.workspace.Project)
	if i.stage == "" || err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if !root.Has(transactionFile) {
		_ = root.RemoveAll(i.stage)
		_ = root.Remove(temporary)
	}
	i.stage = ""
}

// installedTree returns the files of an installed package, held against what was recorded of them.
func installedTree(w workspace, name Name, have Locked) (fileset.Tree, *Manifest, error) {
	root, err := files.OpenDir(w.Project)
	if err != nil {
		return nil, nil, unwritable(w.Project, err)
	}
	defer func() { _ = root.Close() }()
	m, err := w.manifest(name)
	if err != nil {
		return nil, nil, err
	}
	tree, err := readTree(root, workspaceName+"/packages/"+name.folderName())
	if err != nil {
		return nil, nil, err
	}
	if changed := have.changed(tree); len(changed) > 0 {
		return nil, nil, newError(IntegrityError, "files of the installed package %s were changed: %s", name,
			strings.Join(changed, ", ")).
			Suggest(fmt.Sprintf("install %s again with force", name))
	}
	return tree, m, nil
}

// changed lists the files that are other than recorded, missing, or too many.
func (l Locked) changed(tree fileset.Tree) []string {
	if l.FileChecksums == nil {
		return nil
	}
	var out []string
	for name, sum := range l.FileChecksums.Files {
		if f, ok := tree[name]; !ok || f.Content.SHA256() != sum {
			out = append(out, name)
		}
	}
	for name := range tree {
		if _, known := l.FileChecksums.Files[name]; !known {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (i *installing) fail(spec string, err error) {
	var e *Error
	if !asError(err, &e) {
		e = newError(InternalError, "the package could not be installed").Because(err)
	}
	i.done.Failed = append(i.done.Failed, FailedSpec{spec, e})
}

// drop gives up some of the specs.
func (i *installing) drop(err error, which func(Spec) bool) bool {
	before := len(i.specs)
	i.specs = slices.DeleteFunc(i.specs, func(s Spec) bool {
		if !which(s) {
			return false
		}
		i.fail(s.String(), err)
		return true
	})
	return len(i.specs) < before
}

// dropDependents gives up the specs whose packages need the one that failed.
func (i *installing) dropDependents(choices []choice, culprit string, err error) bool {
	graph := Lock{Packages: map[string]Locked{}}
	for _, c := range choices {
		graph.Packages[c.Name.String()] = Locked{Dependencies: c.Version.Dependencies}
	}
	names := append(graph.dependents(culprit), culprit)
	return i.drop(err, func(s Spec) bool { return slices.Contains(names, s.Name.String()) })
}
