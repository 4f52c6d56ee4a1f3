package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/claudeops/claudeops/internal/procedures/packages/pubgrub"
)

// choice is a version of a package that was chosen.
type choice struct {
	Name     Name
	Version  Published
	Registry Registry
	Asked    bool // by the caller, rather than by another package
	Needed   bool // by the caller, or by a package that the caller asked for
}

// resolver chooses versions of packages and of all that they depend on.
type resolver struct {
	Registries []Registry // in the order in which they are asked
	Unused     []string   // what is configured and not used, with the reasons, for errors
	// Prefer is a version that is taken if it fits, such as the installed one; "" for none.
	Prefer func(Name) string
	// Kept are packages that have to stay at their versions, and Installed what is known of all installed ones, so that
	// they can stay though no registry has them any more.
	Kept      []Spec
	Installed map[string]Locked

	known       map[string][]candidate
	constraints map[string]Constraint // that were read
	// packages of which no version is named: the one that the tag latest names is tried first
	bare map[string]bool
}

// candidate is a version that could be chosen.
type candidate struct {
	Published
	parsed   *semver.Version
	registry Registry
	latest   bool // the tag latest names it
	tags     []string
	gone     bool // no registry has it: it is installed
}

// Resolve chooses a version for each spec and for all dependencies, the highest that fit together: what leads nowhere
// is found and not tried again (package pubgrub). Packages may depend on each other in a circle. AAM_PACKAGE_NOT_FOUND
// for a package or version that no registry has, AAM_DEPENDENCY_CONFLICT with the chain of reasons otherwise. The order
// is that of dependencies first.
func (r *resolver) Resolve(ctx context.Context, specs []Spec) ([]choice, error) {
	wishes, err := r.startResolution(specs)
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		if _, err := r.best(s); err != nil {
			return nil, err
		}
	}
	for _, s := range r.Kept {
		need := pubgrub.Need{Package: s.Name.String(), Constraint: s.Want}
		wishes = append(wishes, pubgrub.Wish{Need: need, Why: s.Name.String() + " " + s.Want + " is installed"})
	}
	places, err := pubgrub.Solve(ctx, (*resolverWorld)(r), wishes)
	if refusal := (*pubgrub.Refusal)(nil); errors.As(err, &refusal) {
		return nil, r.conflict(refusal)
	}
	if err != nil {
		return nil, err
	}
	chosen := map[string]candidate{}
	for name, at := range places {
		chosen[name] = r.known[name][at]
	}
	return r.ordered(specs, chosen), nil
}

// startResolution forgets what was known, and makes wishes of specs. AAM_INVALID_ARGUMENT for one that asks for neither
// a version nor a tag.
func (r *resolver) startResolution(specs []Spec) ([]pubgrub.Wish, error) {
	r.known, r.constraints, r.bare = map[string][]candidate{}, map[string]Constraint{}, map[string]bool{}
	var wishes []pubgrub.Wish
	for _, s := range specs {
		name := s.Name.String()
		if _, named := r.bare[name]; !named {
			r.bare[name] = s.Want == ""
		}
		why := name + " " + s.Want + " is asked for"
		if s.Want == "" {
			why = name + " is asked for"
		} else if _, err := r.constraint(s.Want); err != nil && !validTag(s.Want) {
			return nil, err
		}
		wishes = append(wishes, pubgrub.Wish{Need: pubgrub.Need{Package: name, Constraint: s.Want}, Why: why})
	}
	return wishes, nil
}

// best returns the version that a spec asks for, whatever else is asked for. AAM_PACKAGE_NOT_FOUND if there is none.
func (r *resolver) best(s Spec) (candidate, error) {
	known, err := r.candidates(s.Name)
	if err != nil {
		return candidate{}, err
	}
	admits, err := (*resolverWorld)(r).Admits(s.Name.String(), s.Want)
	if err != nil {
		return candidate{}, err
	}
	for _, at := range r.order(s.Name, known) {
		if admits(at) {
			return known[at], nil
		}
	}
	return candidate{}, r.notFound(s, known)
}

// constraint is parseConstraint, once for each text.
func (r *resolver) constraint(text string) (Constraint, error) {
	if c, ok := r.constraints[text]; ok {
		return c, nil
	}
	c, err := parseConstraint(text)
	if err == nil {
		r.constraints[text] = c
	}
	return c, err
}

// first orders what has a property before what has not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// candidates returns the versions of a package, from the lowest to the highest. They come from the first registry that
// has the package: somebody who can write to another registry cannot have a higher version installed in its place.
func (r *resolver) candidates(name Name) ([]candidate, error) {
	key := name.String()
	if known, ok := r.known[key]; ok {
		return known, nil
	}
	var out []candidate
	for _, registry := range r.Registries {
		m, err := registry.readMetadata(name)
		if codeOfError(err) == PackageNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = m.candidates(registry); len(out) > 0 {
			break
		}
	}
	if have, ok := r.Installed[key]; ok && !slices.ContainsFunc(out,
		func(c candidate) bool { return c.Version == have.Version }) {
		out = append(out, have.candidate()...)
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return a.parsed.Compare(b.parsed) })
	r.known[key] = out
	return out, nil
}

// order returns the order in which the versions of a package are tried: the one that the tag latest names if no version
// was requested, the preferred one, then from the highest down; one that no registry has comes last.
func (r *resolver) order(name Name, known []candidate) []int {
	out := make([]int, len(known))
	for i := range out {
		out[i] = i
	}
	prefer := ""
	if r.Prefer != nil {
		prefer = r.Prefer(name)
	}
	bare := r.bare[name.String()]
	slices.SortStableFunc(out, func(i, j int) int {
		a, b := known[i], known[j]
		return cmp.Or(
			first(bare && a.latest, bare && b.latest),
			first(prefer != "" && a.Version == prefer, prefer != "" && b.Version == prefer),
			first(!a.gone, !b.gone),
			b.parsed.Compare(a.parsed),
		)
	})
	return out
}

// candidate returns an installed version.
func (l Locked) candidate() []candidate {
	v, err := semver.StrictNewVersion(l.Version)
	if err != nil {
		return nil
	}
	p := Published{Version: l.Version, Checksum: l.Checksum, Dependencies: l.Dependencies}
	return []candidate{{Published: p, parsed: v,
		registry: Registry{Name: l.Source, unusable: "it no longer has this version"}, gone: true}}
}

func (m *Metadata) candidates(registry Registry) []candidate {
	latest := m.latest()
	var out []candidate
	for _, p := range m.Versions {
		v, err := semver.StrictNewVersion(p.Version)
		if err != nil {
			continue
		}
		c := candidate{Published: p, parsed: v, registry: registry, latest: p.Version == latest}
		for tag, version := range m.DistTags {
			if version == p.Version {
				c.tags = append(c.tags, tag)
			}
		}
		out = append(out, c)
	}
	return out
}

// ordered lists the choices, dependencies before those that need them; a circle is cut where it is entered.
func (r *resolver) ordered(specs []Spec, chosen map[string]candidate) []choice {
	var out []choice
	seen := map[string]bool{}
	asked := map[string]bool{}
	for _, s := range specs {
		asked[s.Name.String()] = true
	}
	needed := true
	var visit func(name string)
	visit = func(name string) {
		c, ok := chosen[name]
		if seen[name] || !ok {
			return
		}
		seen[name] = true
		var needs []string
		for dependency := range c.Dependencies {
			needs = append(needs, dependency)
		}
		slices.Sort(needs)
		for _, dependency := range needs {
			visit(dependency)
		}
		n, err := parseName(name)
		if err == nil { // it was parsed before
			out = append(out, choice{Name: n, Version: c.Published, Registry: c.registry, Asked: asked[name], Needed: needed})
		}
	}
	for _, s := range specs {
		visit(s.Name.String())
	}
	needed = false
	for _, s := range r.Kept {
		visit(s.Name.String())
	}
	return out
}

// resolverWorld is a Resolver as package pubgrub asks it.
type resolverWorld resolver

// Package implements pubgrub.World.
func (w *resolverWorld) Package(text string) (pubgrub.Package, error) {
	r := (*resolver)(w)
	name, err := parseName(text)
	if err != nil {
		return pubgrub.Package{}, err
	}
	known, err := r.candidates(name)
	if err != nil {
		return pubgrub.Package{}, err
	}
	out := pubgrub.Package{Versions: make([]pubgrub.Version, len(known)), Order: r.order(name, known)}
	for i, c := range known {
		v := pubgrub.Version{Text: c.Version}
		for _, other := range slices.Sorted(maps.Keys(c.Dependencies)) {
			constraint := c.Dependencies[other]
			if _, err := parseName(other); err != nil {
				v.Broken = fmt.Sprintf("needs %q, which is not a valid package name", other)
			} else if _, err := r.constraint(constraint); err != nil {
				v.Broken = fmt.Sprintf("needs %s %q, which is not a valid version constraint", other, constraint)
			}
			v.Needs = append(v.Needs, pubgrub.Need{Package: other, Constraint: constraint})
		}
		if v.Broken != "" {
			v.Needs = nil
		}
		out.Versions[i] = v
	}
	return out, nil
}

// Admits implements pubgrub.World. What the caller asks for may also be a tag, or nothing: the latest version.
func (w *resolverWorld) Admits(name, constraint string) (func(int) bool, error) {
	r := (*resolver)(w)
	known := r.known[name]
	if constraint == "" {
		return func(at int) bool { return known[at].latest || known[at].parsed.Prerelease() == "" }, nil
	}
	c, err := r.constraint(constraint)
	switch {
	case err == nil:
		return func(at int) bool { return c.Admits(known[at].parsed) }, nil
	case validTag(constraint):
		return func(at int) bool { return slices.Contains(known[at].tags, constraint) }, nil
	}
	return nil, err
}

// maxReasons bounds the sentences of a message; details have more.
const maxReasons = 12

// conflict says why no versions go together. If all that was asked for is one package, and something that it needs is
// in no registry, that is the error.
func (r *resolver) conflict(refusal *pubgrub.Refusal) error {
	var wishes []pubgrub.Fact
	for _, f := range refusal.Facts {
		if f.Wish != nil {
			wishes = append(wishes, f)
		}
	}
	missing := slices.IndexFunc(refusal.Facts, func(f pubgrub.Fact) bool { return f.Missing && f.Wish == nil })
	if missing >= 0 && len(wishes) == 1 {
		return r.missingPackage(refusal, refusal.Facts[missing], wishes[0].Need.Package)
	}
	about := mostWanted(refusal.Facts)
	text := refusal.Error()
	more := len(refusal.Reasons) - maxReasons
	if more > 0 {
		text = fmt.Sprintf("(%d reasons before these are in the details.) %s", more,
			strings.Join(refusal.Reasons[more:], " "))
	}
	e := newError(DependencyConflict, "%s Of %s there are %s", text, about, versionsOf(r.known[about]))
	if more > 0 {
		e = e.With("reasons", refusal.Reasons)
	}
	constraints := []map[string]any{}
	for _, f := range refusal.Facts {
		if f.Need.Package == about {
			constraints = append(constraints, map[string]any{"constraint": constraintOf(f), "chain": chainTo(refusal.Facts, f)})
		}
	}
	return e.With("package", about).With("constraints", constraints).Suggest("ask for versions whose dependencies agree")
}

// constraintOf returns the constraint of a fact as people write it.
func constraintOf(f pubgrub.Fact) string {
	if f.Need.Constraint == "" {
		return "latest"
	}
	return f.Need.Constraint
}

// mostWanted returns the package that the reasons turn on: one that has no version as it is wanted, or the one that
// most facts want something of.
func mostWanted(facts []pubgrub.Fact) string {
	best, most := "", -1
	number := map[string]int{}
	for _, f := range facts {
		if f.Need.Package == "" {
			continue
		}
		if number[f.Need.Package]++; f.Unmet {
			number[f.Need.Package] += len(facts)
		}
		if n := number[f.Need.Package]; n > most {
			best, most = f.Need.Package, n
		}
	}
	return best
}

// chainTo returns the packages from one that is asked for, or installed, to the one that has a need.
func chainTo(facts []pubgrub.Fact, to pubgrub.Fact) []string {
	if to.Wish != nil {
		return []string{}
	}
	by := map[string]pubgrub.Fact{} // the fact by which a package was come to
	var queue []string
	for _, f := range facts {
		if f.Wish != nil {
			by[f.Need.Package] = f
			queue = append(queue, f.Need.Package)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, f := range facts {
			if _, has := by[f.Need.Package]; f.Wish == nil && f.Of == queue[0] && f.Need.Package != "" && !has {
				by[f.Need.Package] = f
				queue = append(queue, f.Need.Package)
			}
		}
	}
	chain := []string{to.Who()}
	for f, ok := by[to.Of]; ok && f.Wish == nil && len(chain) <= len(facts); f, ok = by[f.Of] {
		chain = append(chain, f.Who())
	}
	slices.Reverse(chain)
	return chain
}

func versionsOf(known []candidate) string {
	if len(known) == 0 {
		return "no versions"
	}
	var out []string
	for _, c := range slices.Backward(known[max(0, len(known)-10):]) {
		out = append(out, c.Version)
	}
	return strings.Join(out, ", ")
}

// missingPackage returns the error about a package that no registry has, and that another one depends on.
func (r *resolver) missingPackage(refusal *pubgrub.Refusal, f pubgrub.Fact, asked string) error {
	chain := chainTo(refusal.Facts, f)
	e := newError(PackageNotFound, "no registry has the package %s, which %s depends on", f.Need.Package,
		strings.Join(chain, " > ")).
		With("needed_by", chain).Suggest("ask who made the package; its registry lacks what it depends on")
	if len(refusal.Reasons) > 1 { // other versions cannot be had for other reasons
		e = e.With("reasons", refusal.Reasons)
	}
	return blame(r.nowhere(e, f.Need.Package), asked)
}

// notFound returns the error about a requested package.
func (r *resolver) notFound(s Spec, known []candidate) error {
	var e *Error
	switch {
	case len(known) == 0 && len(r.Registries) == 0:
		e = newError(RegistryNotConfigured, "no registry is configured, so that %s cannot be found",
			s.Name).Suggest("add one with aam_registry_add")
	case len(known) == 0:
		e = newError(PackageNotFound, "no registry has a package %s", s.Name).Suggest("search for it with aam_search")
	case s.Want == "":
		e = newError(PackageNotFound, "%s has no release; there are %s", s.Name,
			versionsOf(known)).Suggest("ask for one of these versions")
	default:
		e = newError(PackageNotFound, "no version of %s satisfies %s; there are %s", s.Name, s.Want,
			versionsOf(known)).Suggest("ask for one of these versions")
	}
	return r.nowhere(e.With("spec", s.String()), s.Name.String())
}

// nowhere adds to an error where a package was looked for.
func (r *resolver) nowhere(e *Error, name string) *Error {
	names := make([]string, len(r.Registries))
	for i, registry := range r.Registries {
		names[i] = registry.Name
	}
	return e.Suggest(r.Unused...).With("package", name).With("registries", names)
}
