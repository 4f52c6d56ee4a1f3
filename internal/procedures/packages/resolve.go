package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Choice is a version of a package that was chosen.
type Choice struct {
	Name     Name
	Version  Published
	Registry Registry
	Asked    bool // by the caller, rather than by another package
	Needed   bool // by the caller, or by a package that the caller asked for
}

// maxSteps bounds the search for versions that fit together.
const maxSteps = 200_000

// Resolver chooses versions of packages and of all that they depend on.
type Resolver struct {
	Registries []Registry // in the order in which they are asked
	Unused     []string   // what is configured and not used, with the reasons, for errors
	// Prefer is a version that is taken if it fits, such as the installed one; "" for none.
	Prefer func(Name) string
	// Kept are packages that have to stay at their versions, and Installed what is known of all installed ones, so that they can stay
	// though no registry has them any more.
	Kept      []Spec
	Installed map[string]Locked

	known map[string][]candidate
	steps int
	worst *conflict
}

// candidate is a version that could be chosen.
type candidate struct {
	Published
	parsed   *semver.Version
	registry Registry
	latest   bool // the tag latest names it
	tags     []string
}

// requirement is a wish for a package, with who has it.
type requirement struct {
	name  Name
	want  func(candidate) bool
	text  string   // the constraint as it was written
	chain []string // packages from the one that was asked for to the one that has the wish
	asked bool
	spec  string // as the caller has it
	bare  bool   // no version is named: the one that the tag latest names is tried first
}

// conflict is why no version of a package could be chosen.
type conflict struct {
	name  Name
	wants []requirement
	known []candidate
}

// Resolve chooses a version for each spec and for all dependencies, the highest that fit together: the search goes back on a
// choice that leads nowhere. Packages may depend on each other in a circle. AAM_PACKAGE_NOT_FOUND for a package or version that no
// registry has, AAM_DEPENDENCY_CONFLICT with the chain of each constraint otherwise. The order is that of dependencies first.
func (r *Resolver) Resolve(specs []Spec) ([]Choice, error) {
	r.known, r.steps, r.worst = map[string][]candidate{}, 0, nil
	var wants []requirement
	for _, s := range specs {
		w, err := s.requirement()
		if err != nil {
			return nil, err
		}
		wants = append(wants, w)
	}
	for _, s := range r.Kept {
		w, err := s.requirement()
		if err != nil {
			return nil, err
		}
		w.asked, w.chain = false, []string{s.Name.String() + " " + s.Want + ", which is installed"}
		wants = append(wants, w)
	}
	chosen := map[string]candidate{}
	ok, err := r.search(wants, 0, chosen)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, r.conflictError()
	}
	return r.ordered(specs, chosen), nil
}

// requirement is what a spec asks for: a constraint, a tag, or the latest version.
func (s Spec) requirement() (requirement, error) {
	w := requirement{name: s.Name, text: s.Want, asked: true, spec: s.String()}
	switch c, err := ParseConstraint(s.Want); {
	case s.Want == "":
		w.bare = true
		w.text, w.want = "latest", func(c candidate) bool { return c.latest || c.parsed.Prerelease() == "" }
	case err == nil:
		w.want = func(v candidate) bool { return c.Admits(v.parsed) }
	case validTag(s.Want):
		w.want = func(v candidate) bool { return slices.Contains(v.tags, s.Want) }
	default:
		return requirement{}, err
	}
	return w, nil
}

// search chooses for the wishes from at on. It returns false when there is no way.
func (r *Resolver) search(wants []requirement, at int, chosen map[string]candidate) (bool, error) {
	if r.steps++; r.steps > maxSteps {
		return false, newError(DependencyConflict, "the versions of these packages have too many combinations; none that fits was found among %d", maxSteps).
			hint("ask for exact versions")
	}
	if at == len(wants) {
		return true, nil
	}
	w := wants[at]
	key := w.name.String()
	if have, ok := chosen[key]; ok {
		if w.want(have) {
			return r.search(wants, at+1, chosen)
		}
		r.note(w.name, wants[:at+1])
		return false, nil
	}
	candidates, err := r.candidates(w.name)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(candidates, w.want) {
		if w.asked {
			return false, r.notFound(w, candidates)
		}
		r.note(w.name, wants[:at+1])
		return false, nil
	}
	same := func(other requirement) bool { return other.name == w.name }
	if w.bare {
		candidates = slices.Clone(candidates)
		slices.SortStableFunc(candidates, func(a, b candidate) int { return first(a.latest, b.latest) })
	}
	for _, c := range candidates {
		fits := w.want(c)
		for _, other := range wants[at:] {
			fits = fits && (!same(other) || other.want(c))
		}
		if !fits {
			continue
		}
		needs, err := c.needs(w)
		if err != nil {
			continue // a version whose metadata is broken cannot be chosen
		}
		chosen[key] = c
		ok, err := r.search(slices.Concat(wants, needs), at+1, chosen)
		if ok || err != nil {
			return ok, err
		}
		delete(chosen, key)
	}
	r.note(w.name, wants)
	return false, nil
}

// needs are the wishes of a version.
func (c candidate) needs(by requirement) ([]requirement, error) {
	var out []requirement
	for name, text := range c.Dependencies {
		n, err := ParseName(name)
		if err != nil {
			return nil, err
		}
		constraint, err := ParseConstraint(text)
		if err != nil {
			return nil, err
		}
		out = append(out, requirement{
			name: n, text: text, want: func(v candidate) bool { return constraint.Admits(v.parsed) },
			chain: append(slices.Clone(by.chain), fmt.Sprintf("%s %s", by.name, c.Version)),
		})
	}
	slices.SortFunc(out, func(a, b requirement) int { return strings.Compare(a.name.String(), b.name.String()) })
	return out, nil
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

// candidates are the versions of a package in the order in which they are tried: the preferred one, then from the
// highest down. They are those of the first registry that has the package: whoever can write another one cannot have a
// higher version installed in its place.
func (r *Resolver) candidates(name Name) ([]candidate, error) {
	key := name.String()
	if known, ok := r.known[key]; ok {
		return known, nil
	}
	var out []candidate
	for _, registry := range r.Registries {
		m, err := registry.Metadata(name)
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
	if have, ok := r.Installed[key]; ok && !slices.ContainsFunc(out, func(c candidate) bool { return c.Version == have.Version }) {
		out = append(out, have.candidate()...)
	}
	if r.Prefer != nil {
		prefer := r.Prefer(name)
		slices.SortStableFunc(out, func(a, b candidate) int { return first(a.Version == prefer, b.Version == prefer) })
	}
	r.known[key] = out
	return out, nil
}

// candidate is an installed version.
func (l Locked) candidate() []candidate {
	v, err := semver.StrictNewVersion(l.Version)
	if err != nil {
		return nil
	}
	p := Published{Version: l.Version, Checksum: l.Checksum, Dependencies: l.Dependencies}
	return []candidate{{Published: p, parsed: v, registry: Registry{Name: l.Source, unusable: "it no longer has this version"}}}
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
	slices.SortStableFunc(out, func(a, b candidate) int { return b.parsed.Compare(a.parsed) })
	return out
}

// ordered lists the choices, dependencies before those that need them; a circle is cut where it is entered.
func (r *Resolver) ordered(specs []Spec, chosen map[string]candidate) []Choice {
	var out []Choice
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
		n, err := ParseName(name)
		if err == nil { // it was parsed before
			out = append(out, Choice{Name: n, Version: c.Published, Registry: c.registry, Asked: asked[name], Needed: needed})
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
