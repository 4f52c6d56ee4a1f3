package definitions

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// offered is a definition that a plugin of a registry has.
type offered struct {
	plugin IndexPlugin
	item   ManifestItem
}

// registryOffers is what registries offer of a kind, and what kept others from being asked.
type registryOffers struct {
	found  []offered
	failed []error
}

// offers lists the definitions of a kind in all plugins of all registries, which are asked side by side, once for all calls: a
// registry that does not answer is waited for once.
func (r *Registries) offers(ctx context.Context, kind Kind) ([]offered, []error) {
	r.offering.Lock()
	defer r.offering.Unlock()
	if known, has := r.offered[kind]; has {
		return known.found, known.failed
	}
	each := make([]registryOffers, len(r.list))
	var group errgroup.Group
	group.SetLimit(registriesAtOnce)
	for i, registry := range r.list {
		group.Go(func() error {
			each[i] = r.offersOf(ctx, registry, kind)
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	var all registryOffers
	for _, one := range each {
		all.found, all.failed = append(all.found, one.found...), append(all.failed, one.failed...)
	}
	r.offered[kind] = all
	return all.found, all.failed
}

// troubles are what kept registries from saying what they offer, as far as they were asked.
func (r *Registries) troubles() (all []error) {
	r.offering.Lock()
	defer r.offering.Unlock()
	for _, kind := range Kinds() {
		for _, err := range r.offered[kind].failed {
			if !slices.ContainsFunc(all, func(known error) bool { return messageOf(known) == messageOf(err) }) {
				all = append(all, err)
			}
		}
	}
	return all
}

// offersOf is what one registry offers. When the time is over it fails once, not for each plugin.
func (r *Registries) offersOf(ctx context.Context, registry Registry, kind Kind) (out registryOffers) {
	index, err := r.index(ctx, registry)
	if err != nil {
		return registryOffers{failed: []error{err}}
	}
	manifests, errs := make([]*Manifest, len(index.Plugins)), make([]error, len(index.Plugins))
	var group errgroup.Group
	group.SetLimit(registriesAtOnce)
	for i, p := range index.Plugins {
		group.Go(func() error {
			manifests[i], errs[i] = r.manifest(ctx, p)
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	late := false
	for i, p := range index.Plugins {
		if errs[i] != nil {
			if overdue := ctx.Err() != nil; !overdue || !late {
				out.failed, late = append(out.failed, errs[i]), overdue
			}
			continue
		}
		for _, item := range manifests[i].items(kind) {
			out.found = append(out.found, offered{p, item})
		}
	}
	return out
}

// components are the definitions of a kind in a list.
func (r *Registries) components(ctx context.Context, kind Kind) ([]Summary, Problems) {
	offers, failed := r.offers(ctx, kind)
	var out []Summary
	for _, o := range offers {
		out = append(out, Summary{
			Kind: kind, Name: o.item.Name, Version: o.item.Version, Description: o.item.Description, Tags: o.plugin.Tags,
			Source: Stockyard, Path: o.address(),
		})
	}
	return out, failures(failed)
}

func (o offered) address() string {
	if l, err := parseLocation(o.item.Source, o.plugin.registry.URL); err == nil && o.item.Source != "" {
		return l.String()
	}
	return o.plugin.Name + "/" + o.item.Name
}

func failures(errs []error) Problems {
	var out Problems
	for _, err := range errs {
		out = append(out, Problem{Message: messageOf(err), Severity: SeverityError})
	}
	return out
}

// component finds a definition in the registries: the highest version that satisfies the range, of the first registry that has one.
func (r *Registries) component(ctx context.Context, v *Validator, kind Kind, ref Reference) (*Found, Problems) {
	offers, failed := r.offers(ctx, kind)
	offers = slices.DeleteFunc(slices.Clone(offers), func(o offered) bool { return o.item.Name != ref.Name || !ref.admits(o.item.Version) })
	slices.SortStableFunc(offers, func(a, b offered) int {
		if byPriority := a.plugin.registry.Priority - b.plugin.registry.Priority; byPriority != 0 {
			return byPriority
		}
		return -compareVersions(a.item.Version, b.item.Version)
	})
	for _, o := range offers {
		content, err := r.checked(ctx, o.plugin.registry, o.item.Source, o.item.Checksum, fmt.Sprintf("the %s %s", kind, o.item.Name))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		definition, problems := v.Validate(kind, o.item.Source, content)
		if definition == nil {
			failed = append(failed, newError(ValidationError, "%s", problems[0]))
			continue
		}
		return &Found{Definition: definition, Source: Stockyard, Path: o.address(), Problems: problems}, nil
	}
	return nil, failures(failed)
}
