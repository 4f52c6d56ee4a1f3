package packages

import (
	"fmt"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/procedures/packages/pubgrub"
)

// asked is a Resolver as package pubgrub asks it.
type asked resolver

// Package implements pubgrub.World.
func (w *asked) Package(text string) (pubgrub.Package, error) {
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
				v.Broken = fmt.Sprintf("needs %q, which is no name of a package", other)
			} else if _, err := r.constraint(constraint); err != nil {
				v.Broken = fmt.Sprintf("needs %s %q, which is no constraint on versions", other, constraint)
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
func (w *asked) Admits(name, constraint string) (func(int) bool, error) {
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
