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

// Scope is where a plugin is installed.
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

// named reports whether a name means the plugin: its own, or its folder's.
func (p Installed) named(name string) bool { return p.Manifest.Name == name || p.Folder == name }

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

func (p place) plugins(scope Scope) ([]Installed, Problems, error) {
	root, err := p.open()
	if root == nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	folder := path.Join(p.below, "plugins")
	dir, err := root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, Problems{unreachable(filepath.Join(p.root, folder), err)}, nil
	}
	defer func() { _ = dir.Close() }()
	entries, _ := dir.ReadDir(maxDefinitions)
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

// Latest maps plugins of the registries to the highest version that one of them has.
func (r *Registries) Latest(ctx context.Context) (latest map[string]string, failed []error) {
	indexes, _, failed := r.indexes(ctx)
	latest = map[string]string{}
	for _, index := range indexes {
		for _, p := range index.Plugins {
			if known, ok := latest[p.Name]; !ok || compareVersions(p.Version, known) > 0 {
				latest[p.Name] = p.Version
			}
		}
	}
	return latest, failed
}

// Offered is a plugin that a registry offers.
type Offered struct {
	IndexPlugin
	Registry string
}

// Search lists the plugins of all registries whose name, description or tags hold the query, letter case aside, and that have one
// of the tags, if any are given: exact names first, then those that begin with it, then the rest by name. Of several versions
// the highest.
func (r *Registries) Search(ctx context.Context, query string, tags []string) (found []Offered, failed []error) {
	indexes, from, failed := r.indexes(ctx)
	query = strings.ToLower(strings.TrimSpace(query))
	byName := map[string]Offered{}
	for i, index := range indexes {
		for _, p := range index.Plugins {
			if !p.matches(query) || len(tags) > 0 && !anyOf(p.Tags, tags) {
				continue
			}
			known, ok := byName[p.Name]
			if !ok || known.Registry == from[i].Name && compareVersions(p.Version, known.Version) > 0 {
				byName[p.Name] = Offered{p, from[i].Name}
			}
		}
	}
	for _, p := range byName {
		found = append(found, p)
	}
	slices.SortFunc(found, func(a, b Offered) int {
		return cmp.Or(rank(a.Name, query)-rank(b.Name, query), strings.Compare(a.Name, b.Name))
	})
	return found, failed
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

// Plugin finds a plugin in the registries. PLUGIN_NOT_FOUND names the registries that were asked, and those that failed.
func (r *Registries) Plugin(ctx context.Context, ref Reference) (Remote, error) {
	indexes, from, failed := r.indexes(ctx)
	var candidates []IndexPlugin
	var versions, asked []string
	for i, index := range indexes {
		asked = append(asked, from[i].Name)
		for _, p := range index.Plugins {
			if p.Name != ref.Name {
				continue
			}
			versions = append(versions, p.Version)
			if ref.admits(p.Version) {
				candidates = append(candidates, p)
			}
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return -compareVersions(a, b) })
	versions = slices.Compact(versions)
	if len(candidates) == 0 {
		return Remote{}, pluginNotFound(ref, versions, asked, failed)
	}
	best := slices.MaxFunc(candidates, func(a, b IndexPlugin) int { return compareVersions(a.Version, b.Version) })
	manifest, err := r.manifest(ctx, best)
	if err != nil {
		return Remote{}, err
	}
	return Remote{Manifest: *manifest, Index: best, Versions: versions}, nil
}

func pluginNotFound(ref Reference, versions, asked []string, failed []error) error {
	if len(versions) == 0 && len(asked) == 0 && len(failed) > 0 {
		return failed[0] // nobody could be asked
	}
	if asked == nil {
		asked = []string{}
	}
	e := newError(PluginNotFound, "plugin %s was not found in any registry", ref).with("plugin", ref.Name).with("searchedRegistries", asked)
	if len(versions) > 0 {
		e.Message = "no version of the plugin " + ref.Name + " satisfies " + ref.Range
		e = e.with("availableVersions", versions)
	}
	if len(failed) > 0 {
		var texts []string
		for _, err := range failed {
			texts = append(texts, messageOf(err))
		}
		e = e.with("failedRegistries", texts)
	}
	return e.suggest("check the spelling of the name", "search with fractary_forge_plugin_search",
		"see which registries are configured with fractary_forge_config_registry_list")
}
