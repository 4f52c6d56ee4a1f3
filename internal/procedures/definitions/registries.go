package definitions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/system/transport"
)

// registriesAtOnce limits the registries, and the plugins of each, that are asked concurrently.
const registriesAtOnce = 8

// Registries are the configured registries with their cache. They are asked side by side, and one that fails is named
// while the others answer. It is safe for concurrent use.
type Registries struct {
	list    []Registry // that are asked, by priority
	unused  []string   // why others are not
	fetcher *fetcher
	cache   *Cache

	offering sync.Mutex
	offered  map[Kind]registryOffers // what was offered when it was first asked
}

// newRegistries takes what the configuration lists. transport carries requests; token reads an environment variable.
func newRegistries(c Config, cache *Cache, transport http.RoundTripper, token func(string) string) *Registries {
	list := slices.DeleteFunc(slices.Clone(c.Registries), func(r Registry) bool { return !r.isQueried() })
	if !c.Resolution.Stockyard {
		list = nil
	}
	var unused []string
	for _, r := range c.Registries {
		if r.Unused != "" {
			unused = append(unused, fmt.Sprintf("the registry %q is not used: %s", short(r.Name), r.Unused))
		}
	}
	return &Registries{list: list, unused: unused, fetcher: &fetcher{over: transport, token: token, known: c.known},
		cache: cache, offered: map[Kind]registryOffers{}}
}

// Index is a registry.json.
type Index struct {
	Name        string        `json:"name"`
	Version     string        `json:"version"`
	Description string        `json:"description"`
	Updated     string        `json:"updated"`
	Plugins     []IndexPlugin `json:"plugins"`
}

// IndexPlugin is a plugin as an index lists it.
type IndexPlugin struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Author      string   `json:"author"`
	ManifestURL string   `json:"manifest_url"`
	Repository  string   `json:"repository"`
	Homepage    string   `json:"homepage"`
	License     string   `json:"license"`
	Tags        []string `json:"tags"`
	Checksum    string   `json:"checksum"` // sha256:HEX of plugin.json's bytes
	Downloads   *int     `json:"downloads"`

	registry Registry
}

// registryResult is a registry with its index, or why it has none.
type registryResult struct {
	Registry
	index *Index
	err   error
}

// indexes reads the index of every registry. They are in the order of preference.
func (r *Registries) indexes(ctx context.Context) []registryResult {
	out := make([]registryResult, len(r.list))
	var group errgroup.Group
	group.SetLimit(registriesAtOnce)
	for i, registry := range r.list {
		group.Go(func() error {
			out[i].Registry = registry
			out[i].index, out[i].err = r.index(ctx, registry)
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	return out
}

// failuresOf lists why registries did not answer.
func failuresOf(all []registryResult) (failed []error) {
	for _, one := range all {
		if one.err != nil {
			failed = append(failed, one.err)
		}
	}
	return failed
}

// preferred reports whether the operator prefers one of the registries to another: then its silence says nothing about
// what it has, and a name that it may have is not taken from the other.
func preferred(registries []Registry, other Registry) bool {
	return slices.ContainsFunc(registries, func(r Registry) bool { return r.Priority < other.Priority })
}

// index reads a registry's index, from the cache while it is fresh.
func (r *Registries) index(ctx context.Context, registry Registry) (*Index, error) {
	at, err := registry.location()
	if err != nil {
		return nil, newError(ConfigError, "the registry %q has a url that %s", registry.Name, err)
	}
	kept, fresh, known := r.cache.index(registry)
	if known && fresh && at.url != nil {
		if index, err := readIndex(registry, kept.Manifest); err == nil {
			return index, nil
		}
	}
	got, err := r.fetcher.get(ctx, registry, at, kept.ETag)
	if err != nil {
		return nil, err
	}
	if got.same {
		got.content = kept.Manifest
	}
	index, err := readIndex(registry, got.content)
	if err != nil {
		return nil, err
	}
	if at.url != nil {
		_ = r.cache.storeIndex(registry, got.content, got.etag) // else it is asked for again next time
	}
	return index, nil
}

func readIndex(registry Registry, content []byte) (*Index, error) {
	var index Index
	if err := json.Unmarshal(content, &index); err != nil {
		e := newError(NetworkError, "the registry %q sent no registry.json: %s", registry.Name, err).With("registry",
			registry.Name)
		return nil, e.Suggest("check the registry's url in the configuration")
	}
	if index.Plugins == nil { // some other JSON, such as a page that says that there is nothing
		e := newError(NetworkError, "the registry %q sent JSON without a list `plugins`, which is not a registry.json",
			registry.Name).With("registry", registry.Name)
		return nil, e.Suggest("check the registry's url in the configuration")
	}
	index.Plugins = slices.DeleteFunc(index.Plugins, func(p IndexPlugin) bool { return p.Name == "" })
	for i := range index.Plugins {
		index.Plugins[i].registry = registry
	}
	return &index, nil
}

// Manifest is a plugin.json.
type Manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	Author       any               `json:"author"` // text, or a mapping with a name
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	Repository   any               `json:"repository"` // text, or a mapping with a url
	Keywords     []string          `json:"keywords"`
	Tags         []string          `json:"tags"`
	Agents       manifestItems     `json:"agents"`
	Tools        manifestItems     `json:"tools"`
	Workflows    manifestItems     `json:"workflows"`
	Hooks        manifestItems     `json:"hooks"`
	Commands     manifestItems     `json:"commands"`
	Dependencies map[string]string `json:"dependencies"`
}

// manifestItems are the components of one kind: a list, or a text alone, which names their folder.
type manifestItems []ManifestItem

// UnmarshalJSON takes both.
func (m *manifestItems) UnmarshalJSON(text []byte) error {
	var folder string
	if json.Unmarshal(text, &folder) == nil {
		*m = nil
		if folder != "" {
			*m = manifestItems{{Name: folder}}
		}
		return nil
	}
	return json.Unmarshal(text, (*[]ManifestItem)(m))
}

// ManifestItem is a component of a plugin.
type ManifestItem struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Source      string `json:"source"`
	Checksum    string `json:"checksum"`
}

// UnmarshalJSON takes a component as an object, or as its name alone.
func (m *ManifestItem) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &m.Name) == nil {
		return nil
	}
	type plain ManifestItem
	return json.Unmarshal(text, (*plain)(m))
}

// items returns a plugin's definitions of a kind.
func (m *Manifest) items(kind Kind) []ManifestItem {
	if kind == Tool {
		return m.Tools
	}
	return m.Agents
}

// manifest fetches a plugin's plugin.json. One whose checksum is another than the index says is INTEGRITY_ERROR, and is
// not kept.
func (r *Registries) manifest(ctx context.Context, p IndexPlugin) (*Manifest, error) {
	content, err := r.checked(ctx, p.registry, p.ManifestURL, p.Checksum, "the plugin "+p.Name)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, newError(NetworkError, "the registry %q sent no plugin.json for %s: %s", p.registry.Name, p.Name,
			err).With("plugin", p.Name)
	}
	return &m, nil
}

// checked fetches something whose checksum is known, from the cache if it is there.
func (r *Registries) checked(ctx context.Context, registry Registry, at, checksum, what string) ([]byte, error) {
	sum := strings.ToLower(checksum)
	if checksum != "" && !isChecksum(sum) {
		return nil, newError(IntegrityError, "%s: the registry %q gives a checksum that is not a sha256:<64 hexadecimal digits>",
			what, registry.Name).
			With("registry", registry.Name)
	}
	l, err := r.refer(registry, at, what)
	if err != nil {
		return nil, err
	}
	if content, ok := r.cache.download(sum); ok && l.url != nil {
		return content, nil
	}
	got, err := r.fetcher.get(ctx, registry, l, "")
	if err != nil {
		return nil, err
	}
	if sum == "" {
		return got.content, nil
	}
	if found := checksumOf(got.content); found != sum {
		return nil, newError(IntegrityError,
			"%s from the registry %q has another checksum than its index says; it was not kept", what, registry.Name).
			With("registry", registry.Name).With("expected", sum).With("actual", found).
			Suggest("do not use it; ask the registry's owner what happened")
	}
	if l.url != nil {
		_ = r.cache.keepDownload(sum, got.content) // else it is fetched again next time
	}
	return got.content, nil
}

// refer returns the location of what an index names. Data chooses among what the operator named: PERMISSION_DENIED for
// a host that the operator has not named, and for a file of this machine that a registry elsewhere names.
func (r *Registries) refer(registry Registry, at, what string) (location, error) {
	l, err := registry.refer(at)
	if err != nil {
		return l, newError(NetworkError, "%s: the registry %q names an address that %s", what, registry.Name,
			err).With("registry", registry.Name)
	}
	index, err := registry.location()
	switch {
	case err != nil:
		return l, newError(ConfigError, "the registry %q has a url that %s", registry.Name, err)
	case l.url == nil && index.url != nil:
		return l, newError(PermissionDenied, "%s: the registry %q names a file of this machine", what,
			registry.Name).With("registry", registry.Name)
	case l.url == nil || index.url != nil && transport.SameOrigin(index.url, l.url) && sameUser(index.url, l.url):
		return l, nil
	case !r.fetcher.admits(l.url):
		return l, newError(PermissionDenied, "%s: the registry %q names %s, %s", what, registry.Name, l,
			notNamed).With("registry", registry.Name).
			Suggest("a person who trusts the address runs: claudeops sources allow ADDRESS")
	}
	return l, nil
}

// sameUser reports whether an address has no other credential than that of the registry.
func sameUser(index, at *url.URL) bool {
	return at.User == nil || index.User != nil && index.User.String() == at.User.String()
}

// isChecksum reports whether a text is sha256: and 64 hexadecimal digits. There is one for each of thousands of
// plugins, for which a regular expression would be compiled each time.
func isChecksum(text string) bool {
	digits, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}

func checksumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// messageOf returns an error for people.
func messageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

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
			Source: Stockyard, Path: o.sourceAddress(), Registry: o.plugin.registry.Name,
		})
	}
	return out, failures(offers.failed)
}

func (o offered) sourceAddress() string {
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
		return &Found{Definition: definition, Source: Stockyard, Registry: registry.Name, Path: o.sourceAddress(),
			Problems: problems}, nil
	}
	reasons := failures(failed)
	for _, why := range r.unused {
		reasons = append(reasons, Problem{Message: why, Severity: SeverityError})
	}
	return nil, reasons
}
