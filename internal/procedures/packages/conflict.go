package packages

import (
	"fmt"
	"strings"
)

// note keeps the conflict with the most wishes: it tells most.
func (r *Resolver) note(name Name, wants []requirement) {
	var about []requirement
	for _, w := range wants {
		if w.name == name {
			about = append(about, w)
		}
	}
	if r.worst == nil || len(about) > len(r.worst.wants) {
		r.worst = &conflict{name: name, wants: about, known: r.known[name.String()]}
	}
}

func (r *Resolver) conflictError() error {
	c := r.worst
	if len(c.known) == 0 {
		return r.notFound(c.wants[len(c.wants)-1], nil)
	}
	e := newError(DependencyConflict, "no version of %s fits: %s. There are %s", c.name, describe(c.wants), versionsOf(c.known))
	var constraints []map[string]any
	for _, w := range c.wants {
		constraints = append(constraints, map[string]any{"constraint": w.text, "chain": append([]string{}, w.chain...)})
	}
	return e.with("package", c.name.String()).with("constraints", constraints).hint("ask for versions whose dependencies agree")
}

func describe(wants []requirement) string {
	var out []string
	for _, w := range wants {
		by := "the caller"
		if len(w.chain) > 0 {
			by = strings.Join(w.chain, " > ")
		}
		out = append(out, fmt.Sprintf("%s is wanted by %s", w.text, by))
	}
	return strings.Join(out, ", ")
}

func versionsOf(known []candidate) string {
	if len(known) == 0 {
		return "no versions"
	}
	var out []string
	for _, c := range known[:min(len(known), 10)] {
		out = append(out, c.Version)
	}
	return strings.Join(out, ", ")
}

func (r *Resolver) notFound(w requirement, known []candidate) error {
	names := make([]string, len(r.Registries))
	for i, registry := range r.Registries {
		names[i] = registry.Name
	}
	var e *Error
	switch {
	case len(known) == 0 && len(r.Registries) == 0:
		e = newError(RegistryNotConfigured, "no registry is configured, so that %s cannot be found", w.name).hint("add one with aam_registry_add").with("spec", w.spec)
	case len(known) == 0 && len(w.chain) == 0:
		e = newError(PackageNotFound, "no registry has a package %s", w.name).hint("search for it with aam_search").with("spec", w.spec)
	case len(known) == 0:
		e = newError(PackageNotFound, "no registry has the package %s, which %s depends on", w.name, strings.Join(w.chain, " > ")).
			with("needed_by", w.chain).hint("ask who made the package; its registry lacks what it depends on")
	default:
		e = newError(PackageNotFound, "no version of %s satisfies %s; there are %s", w.name, w.text, versionsOf(known)).hint("ask for one of these versions").with("spec", w.spec)
	}
	if len(r.Unused) > 0 {
		e = e.hint(strings.Join(append([]string{e.Hint}, r.Unused...), "; "))
	}
	if len(w.chain) > 0 {
		e = e.of(strings.Fields(w.chain[0])[0])
	}
	return e.with("package", w.name.String()).with("registries", names)
}
