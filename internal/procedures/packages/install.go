package packages

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/base/contract"
	"github.com/claudeops/claudeops/internal/system/change"
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
	unlock, notes, err := s.begin(ctx, o.DryRun)
	if err != nil {
		return Done{}, err
	}
	defer unlock()
	v, err := s.open()
	if err != nil {
		return Done{}, err
	}
	run := installing{service: s, view: v, order: o, done: Done{Notes: append(notes, v.unused()...)}}
	defer run.cleanUp()
	if o.Upgrade {
		err = run.parseNames()
	} else {
		run.parse()
	}
	if err != nil {
		return Done{}, err
	}
	for {
		choices, err := run.choose(ctx)
		if err != nil {
			return Done{}, err
		}
		err = run.write(ctx)
		if run.giveUp(choices, err) {
			continue
		}
		return run.done, err
	}
}

// installing is an installation on its way.
type installing struct {
	service *Service
	view    *view
	order   Order
	done    Done

	specs   []Spec
	folders map[string]string // of packages that are installed, or about to be: the name of each
	fresh   []choice          // to be installed, dependencies first
	trees   map[string]change.Tree
	models  map[string]*Manifest
	staged  map[string]bool
	stage   string // the folder where packages wait; "" before there is one
}

func (i *installing) parse() {
	for _, text := range i.order.Packages {
		spec, err := parseSpec(text)
		if err != nil {
			i.fail(text, err)
			continue
		}
		i.specs = append(i.specs, spec)
	}
}

// choose resolves and reads every archive, until all that is left can be had.
func (i *installing) choose(ctx context.Context) ([]choice, error) {
	for len(i.specs) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		choices, err := i.resolve(ctx)
		if err == nil {
			err = i.read(ctx, choices)
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
	e := contract.Of[Code](err)
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

// write makes the new lock file, and carries all of it out.
func (i *installing) write(ctx context.Context) error {
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
