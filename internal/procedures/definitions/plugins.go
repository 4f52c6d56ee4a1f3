package definitions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Scope says where a plugin is installed.
type Scope string

// The scopes.
const (
	LocalScope  Scope = "local"
	GlobalScope Scope = "global"
)

// Installed is a plugin of this machine.
type Installed struct {
	Manifest Manifest
	Scope    Scope
	Path     string // of its folder
	Folder   string
}

// matchesName reports whether a name means the plugin: its own, or its folder's.
func (p Installed) matchesName(name string) bool { return p.Manifest.Name == name || p.Folder == name }

// Plugins lists the installed plugins by name, those of the project first, and those that cannot be read as problems.
func (c *Catalog) Plugins(scope Scope) ([]Installed, Problems, error) {
	var out []Installed
	var problems Problems
	for _, p := range c.places() {
		of := LocalScope
		if p.source == Global {
			of = GlobalScope
		}
		if scope != "" && scope != of {
			continue
		}
		found, unread, err := p.plugins(of)
		if err != nil {
			return nil, nil, err
		}
		out, problems = append(out, found...), append(problems, unread...)
	}
	slices.SortStableFunc(out, func(a, b Installed) int { return strings.Compare(a.Manifest.Name, b.Manifest.Name) })
	return out, problems, nil
}

func (p definitionRoot) plugins(scope Scope) ([]Installed, Problems, error) {
	root, err := p.open()
	if err != nil {
		return nil, Problems{unreachable(p.root, err)}, nil
	}
	if root == nil {
		return nil, nil, nil
	}
	defer func() { _ = root.Close() }()
	folder := path.Join(p.below, "plugins")
	entries, complete, err := root.Entries(folder, maxDefinitions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, Problems{unreachable(filepath.Join(p.root, folder), err)}, nil
	}
	if !complete {
		return nil, nil, &limitError{What: filepath.Join(p.root, folder), Most: maxDefinitions}
	}
	var out []Installed
	var problems Problems
	for _, e := range entries {
		name := path.Join(folder, e.Name(), "plugin.json")
		content, err := readBelow(root, name)
		if errors.Is(err, fs.ErrNotExist) || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		i := Installed{Scope: scope, Path: filepath.Join(p.root, filepath.FromSlash(path.Dir(name))), Folder: e.Name()}
		if err == nil {
			err = json.Unmarshal(content, &i.Manifest)
		}
		if err != nil {
			problems = append(problems, unreachable(filepath.Join(p.root, name), err))
			continue
		}
		i.Manifest.Name = cmp.Or(i.Manifest.Name, e.Name())
		out = append(out, i)
	}
	return out, problems, nil
}

// Newest is the highest version of a plugin that a registry has.
type Newest struct{ Version, Registry string }

// Latest maps plugins to the highest version of the first registry that has them. What only a registry has that another
// one is preferred to is left out while that one does not answer.
func (r *Registries) Latest(ctx context.Context) (latest map[string]Newest, failed []error) {
	all := r.indexes(ctx)
	latest = map[string]Newest{}
	var silent []Registry
	for _, one := range all {
		if one.err != nil {
			silent = append(silent, one.Registry)
			continue
		}
		for _, p := range one.index.Plugins {
			known, has := latest[p.Name]
			if !has && !preferred(silent, one.Registry) || has && known.Registry == one.Name &&
				compareVersions(p.Version, known.Version) > 0 {
				latest[p.Name] = Newest{p.Version, one.Name}
			}
		}
	}
	return latest, failuresOf(all)
}

// Offered is a plugin that a registry offers.
type Offered struct {
	IndexPlugin
	Registry string
}

// Search lists the plugins whose name, description or tags hold the query, letter case aside, and that have one of the
// tags, if any are given: exact names first, then those that begin with it, then the rest by name. A plugin is that of
// the first registry that has it, and of several versions the highest.
func (r *Registries) Search(ctx context.Context, query string, tags []string) (found []Offered, failed []error) {
	all := r.indexes(ctx)
	query = strings.ToLower(strings.TrimSpace(query))
	owners, byName := map[string]string{}, map[string]Offered{}
	for _, one := range all {
		if one.err != nil {
			continue
		}
		for _, p := range one.index.Plugins {
			owner := cmp.Or(owners[p.Name], one.Name)
			owners[p.Name] = owner
			if owner != one.Name || !p.matches(query) || len(tags) > 0 && !anyOf(p.Tags, tags) {
				continue
			}
			if known, has := byName[p.Name]; !has || compareVersions(p.Version, known.Version) > 0 {
				byName[p.Name] = Offered{p, one.Name}
			}
		}
	}
	for _, p := range byName {
		found = append(found, p)
	}
	slices.SortFunc(found, func(a, b Offered) int {
		return cmp.Or(rank(a.Name, query)-rank(b.Name, query), strings.Compare(a.Name, b.Name))
	})
	return found, failuresOf(all)
}

func (p IndexPlugin) matches(query string) bool {
	for _, text := range append([]string{p.Name, p.Description}, p.Tags...) {
		if strings.Contains(strings.ToLower(text), query) {
			return true
		}
	}
	return false
}

// rank orders names by how well they fit a query.
func rank(name, query string) int {
	name = strings.ToLower(name)
	_, bare, _ := strings.Cut(name, "/")
	switch {
	case name == query || bare == query:
		return 0
	case strings.HasPrefix(name, query) || strings.HasPrefix(bare, query):
		return 1
	case strings.Contains(name, query):
		return 2
	}
	return 3
}

func anyOf(have, wanted []string) bool {
	for _, tag := range wanted {
		if slices.Contains(have, tag) {
			return true
		}
	}
	return false
}

// Remote is a plugin as the registries have it: the manifest of the version that fits, and all versions.
type Remote struct {
	Manifest Manifest
	Index    IndexPlugin
	Versions []string // the highest first
}

// Plugin finds a plugin in the first registry that has it: the highest of its versions that satisfies the range.
// PLUGIN_NOT_FOUND names the registries that were asked, and those that failed. The failure of a registry that is
// preferred to the one that has the plugin is returned.
func (r *Registries) Plugin(ctx context.Context, ref Reference) (Remote, error) {
	all := r.indexes(ctx)
	at := slices.IndexFunc(all, func(one registryResult) bool {
		return one.err == nil && slices.ContainsFunc(one.index.Plugins,
			func(p IndexPlugin) bool { return p.Name == ref.Name })
	})
	if at < 0 {
		return Remote{}, r.pluginNotFound(ref, nil, all)
	}
	for _, one := range all[:at] {
		if one.err != nil && preferred([]Registry{one.Registry}, all[at].Registry) {
			return Remote{}, one.err
		}
	}
	var candidates []IndexPlugin
	var versions []string
	for _, p := range all[at].index.Plugins {
		if p.Name != ref.Name {
			continue
		}
		versions = append(versions, p.Version)
		if ref.admits(p.Version) {
			candidates = append(candidates, p)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return -compareVersions(a, b) })
	versions = slices.Compact(versions)
	if len(candidates) == 0 {
		return Remote{}, r.pluginNotFound(ref, versions, all)
	}
	best := slices.MaxFunc(candidates, func(a, b IndexPlugin) int { return compareVersions(a.Version, b.Version) })
	manifest, err := r.manifest(ctx, best)
	if err != nil {
		return Remote{}, err
	}
	return Remote{Manifest: *manifest, Index: best, Versions: versions}, nil
}

func (r *Registries) pluginNotFound(ref Reference, versions []string, all []registryResult) error {
	searched, failed := []string{}, failuresOf(all)
	for _, one := range all {
		if one.err == nil {
			searched = append(searched, one.Name)
		}
	}
	if len(searched) == 0 && len(failed) > 0 {
		return failed[0] // no registry could be asked
	}
	e := newError(PluginNotFound, "plugin %s was not found in any registry", ref).With("plugin",
		ref.Name).With("searchedRegistries", searched)
	if len(versions) > 0 {
		e.Message = "no version of the plugin " + ref.Name + " satisfies " + ref.Range
		e = e.With("availableVersions", versions)
	}
	if len(failed) > 0 {
		var texts []string
		for _, err := range failed {
			texts = append(texts, messageOf(err))
		}
		e = e.With("failedRegistries", texts)
	}
	if len(r.unused) > 0 {
		e = e.With("unusedRegistries", r.unused)
	}
	return e.Suggest("check the spelling of the name", "search with fractary_forge_plugin_search",
		"see which registries are configured with fractary_forge_config_registry_list")
}
