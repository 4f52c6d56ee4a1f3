package packages

import (
	"context"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/base/contract"
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
	v, err := s.open()
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
	if contract.Of[Code](err) == nil && err != nil {
		return nil, nil, err
	}
	if err != nil {
		notes = append(notes, "nothing can be upgraded: "+messageOf(err))
	}
	for _, c := range choices {
		wanted[c.Name.String()] = c.Version.Version
	}
	r := resolver{Registries: v.used(), Installed: v.lock.Packages}
	if _, err := r.begin(nil); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(v.lock.Packages)) {
		have := v.lock.Packages[name]
		n, err := parseName(name)
		if err != nil { // the lock file has none such
			return nil, nil, err
		}
		newest, err := r.newest(n)
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

// newest returns the version that the tag latest of a package names, else its highest release, else its highest
// version; one that no registry has any more comes last. The zero candidate if there is none.
func (r *resolver) newest(name Name) (candidate, error) {
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
func (v *view) latest(name Name) string {
	for _, r := range v.used() {
		m, err := r.metadata(name)
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
