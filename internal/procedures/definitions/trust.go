package definitions

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Registries, hosts, folders and credentials come from the operator: the file of FRACTARY_CONFIG or the user's, the
// list of sources (docs/guides/sources.md), variables. A project's file is data. It chooses among the operator's
// registries by name or by address, puts them in another order, switches off and shortens times. What else it says is
// listed as not used.

// addressProblem says why an address of a project's file is not used, and what admits it.
func addressProblem(address string) string {
	return strings.TrimPrefix(sources.Refusal(address), "not used: ")
}

// unfit says why a registry cannot be asked with the credential that it names; "" if it can.
func (r Registry) unfit() string {
	l, err := r.location()
	if err != nil {
		return "its url " + err.Error()
	}
	withSecret := r.TokenEnv != "" || l.url != nil && l.url.User != nil
	switch {
	case r.TokenEnv == defaultTokenVariable && r.Type != "stockyard":
		return defaultTokenVariable + " is for registries of type stockyard; name another variable as auth.token_env"
	case sources.Reserved(r.TokenEnv):
		return "auth.token_env is " + r.TokenEnv +
			", which holds a secret of Claude Ops or of the model; name a variable that is for the registry alone"
	case withSecret && l.url != nil && !transport.IsConfidential(l.url):
		return "its token would go over plain http; use https"
	}
	return ""
}

// merger makes the effective configuration of the operator's file and the project's.
type merger struct {
	options             ConfigOptions
	operators, projects configFile
	out                 Config
}

func (m *merger) mergeConfigs() Config {
	m.out = Config{TTL: defaultTTL, Resolution: m.operators.resolution, given: map[string]any{}}
	for _, f := range []configFile{m.operators, m.projects} {
		if f.name != "" {
			m.out.Sources = append(m.out.Sources, f.name)
			maps.Copy(m.out.given, f.given)
		}
	}
	if m.operators.ttl != unset {
		m.out.TTL = m.operators.ttl
	}
	if m.projects.ttl != unset {
		m.out.TTL = min(m.out.TTL, m.projects.ttl)
	}
	narrow := func(key string, into *bool, wanted bool) {
		_, given := sectionOf(m.projects.given, "resolution")[key]
		if !*into && wanted && given {
			m.ignore("resolution.%s of %s is not used: the operator's configuration switches it off", key, m.projects.name)
		}
		*into = *into && wanted
	}
	narrow("local", &m.out.Resolution.Local, m.projects.resolution.Local)
	narrow("global", &m.out.Resolution.Global, m.projects.resolution.Global)
	narrow("stockyard", &m.out.Resolution.Stockyard, m.projects.resolution.Stockyard)
	m.cacheDir()
	m.registries()
	return m.out
}

func sectionOf(given map[string]any, name string) map[string]any {
	section, _ := given[name].(map[string]any)
	return section
}

func (m *merger) ignore(format string, args ...any) {
	m.out.Ignored = append(m.out.Ignored, fmt.Sprintf(format, args...))
}

// cacheDir sets the operator's folder of the cache: its contents are trusted, and removed.
func (m *merger) cacheDir() {
	const where = "the operator names the cache's folder, in FRACTARY_CACHE_DIR or in cache.directory of " +
		"~/.fractary/config.json"
	dir, from := m.options.CacheDir, "FRACTARY_CACHE_DIR"
	if dir == "" && m.operators.cacheDir != "" {
		dir, from = m.operators.cacheDir, "cache.directory of "+m.operators.name
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(m.operators.name), dir)
		}
	}
	if dir == "" && m.options.Home != "" {
		dir, from = filepath.Join(m.options.Home, ".fractary", "cache"), "the cache of the user"
	}
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(m.options.Project, dir)
	}
	if m.projects.cacheDir != "" {
		m.ignore("cache.directory of %s is not used: %s", m.projects.name, where)
	}
	switch {
	case dir == "" || !filepath.IsAbs(dir):
		return
	case m.options.inProject(dir):
		m.ignore(
			"%s is not used, and nothing is cached: %s lies in the project, where others write; name a folder outside of it",
			from, dir)
	default:
		m.out.CacheDir = dir
	}
}

// registries sets the operator's registries, or those that the project's file chooses.
func (m *merger) registries() {
	own := slices.Clone(m.operators.registries)
	origins := map[string]bool{}
	for i, r := range own {
		if own[i].Unused = r.unfit(); own[i].Unused != "" {
			m.ignore("the registry %q of %s is not used: %s", short(r.Name), m.operators.name, own[i].Unused)
			continue
		}
		if l, err := r.location(); err == nil && l.url != nil {
			own[i].named = trust.Said(l.url)
			origins[transport.Origin(l.url)] = true
		}
	}
	ttl := defaultTTL
	if m.operators.ttl != unset {
		ttl = m.operators.ttl
	}
	for i := range own {
		own[i] = own[i].withDefaults(ttl)
		own[i].TTL = min(own[i].TTL, m.ttl(own[i].TTL))
	}
	m.out.Registries = own
	if m.projects.chooses {
		m.out.Registries = m.chosen(own)
	}
	slices.SortStableFunc(m.out.Registries, func(a, b Registry) int {
		return cmp.Or(rankUnused(a)-rankUnused(b), a.Priority-b.Priority)
	})
	m.out.known = func(u *url.URL) trust.Operator[transport.Host] {
		if origins[transport.Origin(u)] {
			return trust.Said(transport.Host{Private: true})
		}
		source, admitted := m.options.Sources.Find(u.String())
		if !admitted {
			return trust.Operator[transport.Host]{}
		}
		return trust.Said(transport.Host{Private: source.Private})
	}
}

// ttl returns the project's, or otherwise if it has none.
func (m *merger) ttl(otherwise int) int {
	if m.projects.ttl == unset {
		return otherwise
	}
	return m.projects.ttl
}

func rankUnused(r Registry) int {
	if r.Unused != "" {
		return 1
	}
	return 0
}

func (r Registry) withDefaults(ttl int) Registry {
	if r.Priority == unset {
		r.Priority = defaultPriority
	}
	if r.TTL == unset {
		r.TTL = ttl
	}
	return r
}

// chosen returns the operator's registries as the project's file selects them.
func (m *merger) chosen(own []Registry) (out []Registry) {
	taken := map[string]bool{}
	for _, wanted := range m.projects.registries {
		r, why := m.matchRegistry(own, wanted)
		if why != "" {
			wanted = wanted.withDefaults(m.out.TTL)
			wanted.Unused = why
			m.ignore("the registry %q of %s is not used: %s", short(wanted.Name), m.projects.name, why)
			out = append(out, wanted)
			continue
		}
		if taken[r.Name] {
			continue
		}
		taken[r.Name] = true
		if wanted.TokenEnv != "" && wanted.TokenEnv != r.TokenEnv {
			m.ignore("auth of the registry %q of %s is not used: the operator alone names credentials", short(wanted.Name),
				m.projects.name)
		}
		if wanted.Priority != unset {
			r.Priority = wanted.Priority
		}
		if wanted.TTL != unset {
			r.TTL = min(r.TTL, wanted.TTL)
		}
		r.Disabled = r.Disabled || wanted.Disabled
		out = append(out, r)
	}
	return out
}

// matchRegistry finds the registry of the operator that an entry of the project's file means, or says why there is
// none.
func (m *merger) matchRegistry(own []Registry, wanted Registry) (r Registry, why string) {
	for _, r := range own {
		if r.Name == wanted.Name {
			if !r.hasAddressOf(wanted) {
				return Registry{}, "the operator's registry of this name has another address"
			}
			return r, ""
		}
	}
	for _, r := range own {
		if r.hasAddressOf(wanted) {
			return r, ""
		}
	}
	l, err := parseLocation(wanted.URL)
	if err == nil && l.url == nil && !filepath.IsAbs(l.file) {
		wanted.URL = filepath.Join(wanted.dir, l.file)
	}
	_, source, admitted := m.options.Sources.Pick(trust.Project[string]{Data: wanted.URL})
	if err != nil || !admitted {
		return Registry{}, addressProblem(withoutPassword(wanted.URL))
	}
	r = wanted.withDefaults(m.out.TTL)
	if l.url != nil {
		r.named = trust.Said(l.url)
	}
	r.Type, r.TokenEnv, r.AuthType, r.TTL = "manifest", source.TokenEnv, "bearer", min(r.TTL, m.out.TTL)
	return r, r.unfit()
}

// hasAddressOf reports whether an entry of the project's file has the registry's address. It may leave out a password.
func (r Registry) hasAddressOf(wanted Registry) bool {
	mine, err := r.location()
	if err != nil {
		return false
	}
	theirs, err := parseLocation(wanted.URL)
	if err != nil || (mine.url == nil) != (theirs.url == nil) {
		return false
	}
	if mine.url == nil {
		return filepath.IsAbs(theirs.file) && filepath.Clean(theirs.file) == filepath.Clean(mine.file)
	}
	a, b := *mine.url, *theirs.url
	if b.User != nil && (a.User == nil || a.User.String() != b.User.String()) {
		return false
	}
	return transport.SameOrigin(&a, &b) && cmp.Or(a.EscapedPath(), "/") == cmp.Or(b.EscapedPath(), "/") &&
		a.RawQuery == b.RawQuery
}
