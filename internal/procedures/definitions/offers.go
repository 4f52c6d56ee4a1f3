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

// registryOffers holds what registries offer of a kind, and the errors of those that could not be asked.
type registryOffers struct {
	found  []offered
	failed []error
	silent []Registry // those that failed, entirely or in part
}

// offers lists the definitions of a kind in all plugins of all registries, which are asked side by side, once for all
// calls: a registry that does not answer is waited for once. A name is that of the first registry that has it.
func (r *Registries) offers(ctx context.Context, kind Kind) registryOffers {
	r.offering.Lock()
	defer r.offering.Unlock()
	if known, has := r.offered[kind]; has {
		return known
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
	owners := map[string]int{}
	for i, one := range each {
		for _, o := range one.found {
			if owner, has := owners[o.item.Name]; !has || owner == i {
				owners[o.item.Name] = i
				all.found = append(all.found, o)
			}
		}
		if len(one.failed) > 0 {
			all.failed, all.silent = append(all.failed, one.failed...), append(all.silent, r.list[i])
		}
	}
	r.offered[kind] = all
	return all
}

// troubles returns the errors of the registries that were asked for their offers.
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

// offersOf returns what one registry offers. When the time is over it fails once, not for each plugin.
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

// components returns the definitions of a kind in a list.
func (r *Registries) components(ctx context.Context, kind Kind) ([]Summary, Problems) {
	offers := r.offers(ctx, kind)
	var out []Summary
	for _, o := range offers.found {
		out = append(out, Summary{
			Kind: kind, Name: o.item.Name, Version: o.item.Version, Description: o.item.Description, Tags: o.plugin.Tags,
			Source: Stockyard, Path: o.address(), Registry: o.plugin.registry.Name,
		})
	}
	return out, failures(offers.failed)
}

func (o offered) address() string {
	if l, err := o.plugin.registry.refer(o.item.Source); err == nil && o.item.Source != "" {
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

// component finds a definition in the first registry that has it: the highest version that satisfies the range. While a
// registry does not answer that is preferred to that one, there is none.
func (r *Registries) component(ctx context.Context, v *Validator, kind Kind, ref Reference) (*Found, Problems) {
	all := r.offers(ctx, kind)
	offers, failed := slices.Clone(all.found), slices.Clone(all.failed)
	offers = slices.DeleteFunc(offers, func(o offered) bool {
		return o.item.Name != ref.Name ||
			!ref.admits(o.item.Version)
	})
	slices.SortStableFunc(offers, func(a, b offered) int { return -compareVersions(a.item.Version, b.item.Version) })
	for _, o := range offers {
		registry := o.plugin.registry
		if preferred(all.silent, registry) {
			failed = append([]error{newError(NetworkError,
				"%s is not taken from the registry %q while another one, which is preferred to it, does not answer",
				ref.Name, registry.Name)}, failed...)
			break
		}
		content, err := r.checked(ctx, registry, o.item.Source, o.item.Checksum, fmt.Sprintf("the %s %s", kind, o.item.Name))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		definition, problems := v.Validate(kind, o.item.Source, content)
		if definition == nil {
			failed = append(failed, newError(ValidationError, "%s", problems[0]))
			continue
		}
		return &Found{Definition: definition, Source: Stockyard, Registry: registry.Name, Path: o.address(),
			Problems: problems}, nil
	}
	reasons := failures(failed)
	for _, why := range r.unused {
		reasons = append(reasons, Problem{Message: why, Severity: SeverityError})
	}
	return nil, reasons
}
