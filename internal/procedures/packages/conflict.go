package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/procedures/packages/pubgrub"
)

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
		return r.missing(refusal, refusal.Facts[missing], wishes[0].Need.Package)
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

// missing returns the error about a package that no registry has, and that another one depends on.
func (r *resolver) missing(refusal *pubgrub.Refusal, f pubgrub.Fact, asked string) error {
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
