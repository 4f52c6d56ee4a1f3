package definitions

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/operation"
)

// PluginListRequest selects installed plugins.
type PluginListRequest struct {
	Scope    string `json:"scope,omitempty" enum:"global,local,all" default:"all" doc:"local: the project; global: the user's"`
	Outdated bool   `json:"outdated,omitempty" default:"false" doc:"Only those that a registry has in a higher version"`
}

// PluginEntry is an installed plugin in a list.
type PluginEntry struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	Scope         Scope  `json:"scope" enum:"global,local"`
	Path          string `json:"path"`
	HasUpdate     *bool  `json:"hasUpdate,omitempty"` // left out if no registry has the plugin
	LatestVersion string `json:"latestVersion,omitempty"`
	Registry      string `json:"registry,omitempty" doc:"The registry that has latestVersion"`
}

// PluginList is the installed plugins.
type PluginList struct {
	Plugins []PluginEntry `json:"plugins"`
	Total   int           `json:"total"`
	Notes   []string      `json:"notes,omitempty" doc:"What could not be read or was left out"`
}

func (s toolDeps) pluginList() operation.Operation {
	return defineRead(s, readOperation("plugin_list", "plugin list", "List plugins", "List installed plugins",
		"List the plugins that are installed in the project and for the user, with scope and path. hasUpdate and "+
			"latestVersion are there for those that a "+
			"configured registry has, the first one that has the name. notes names registries that did not answer."), nil,
		func(ctx context.Context, v *inventory, in PluginListRequest) (PluginList, error) {
			scope := Scope(in.Scope)
			if in.Scope == "all" {
				scope = ""
			}
			installed, problems, err := v.files.Plugins(scope)
			if err != nil {
				return PluginList{}, err
			}
			latest, failed := map[string]Newest{}, []error(nil)
			if len(installed) > 0 {
				limit := listTimeout
				if in.Outdated {
					limit = searchTimeout
				}
				asking, cancel := context.WithTimeout(ctx, limit)
				latest, failed = v.registries.Latest(asking)
				cancel()
			}
			out := PluginList{Plugins: []PluginEntry{}, Notes: v.notes(problems, failed)}
			for _, p := range installed {
				entry := PluginEntry{Name: p.Manifest.Name, Version: p.Manifest.Version, Scope: p.Scope, Path: p.Path}
				higher := false
				if newest, known := latest[entry.Name]; known {
					higher = compareVersions(newest.Version, entry.Version) > 0
					entry.HasUpdate, entry.LatestVersion, entry.Registry = &higher, newest.Version, newest.Registry
				}
				if higher || !in.Outdated {
					out.Plugins = append(out.Plugins, entry)
				}
			}
			out.Total = len(out.Plugins)
			return out, nil
		})
}

// PluginInfoRequest names a plugin.
type PluginInfoRequest struct {
	Plugin  string `json:"plugin" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Its name" example:"@fractary/faber"`
	Version string `json:"version,omitempty" maxLength:"256" doc:"A version or a range as npm has them"`
	Remote  bool   `json:"remote,omitempty" default:"false" doc:"Ask the registries instead of looking at what is installed"`
}

// Components are the names of what a plugin consists of.
type Components struct {
	Agents    []string `json:"agents"`
	Tools     []string `json:"tools"`
	Workflows []string `json:"workflows"`
	Hooks     []string `json:"hooks"`
	Commands  []string `json:"commands"`
}

// PluginPlace is the place where a plugin is installed.
type PluginPlace struct {
	Scope            Scope  `json:"scope" enum:"global,local"`
	Path             string `json:"path"`
	InstalledVersion string `json:"installedVersion"`
}

// PluginInfo is a plugin.
type PluginInfo struct {
	Name              string            `json:"name"`
	Version           string            `json:"version"`
	Description       string            `json:"description,omitempty"`
	Author            string            `json:"author,omitempty"`
	License           string            `json:"license,omitempty"`
	Homepage          string            `json:"homepage,omitempty"`
	Repository        string            `json:"repository,omitempty"`
	Keywords          []string          `json:"keywords,omitempty"`
	Components        Components        `json:"components"`
	Dependencies      map[string]string `json:"dependencies,omitempty"`
	Installed         *PluginPlace      `json:"installed,omitempty"`
	AvailableVersions []string          `json:"availableVersions,omitempty"`
	Registry          string            `json:"registry,omitempty" doc:"The registry that it comes from"`
}

func (s toolDeps) pluginInfo() operation.Operation {
	return defineRead(s, readOperation("plugin_info", "plugin info", "Read a plugin", "Show a plugin",
		"Read one plugin: what it is, the names of its agents, tools, workflows, hooks and commands, what it depends on, "+
			"and where it is installed. With remote, the "+
			"first of the configured registries that has the name is taken, and availableVersions lists what it has; the "+
			"content must match the checksum of the registry's "+
			"index, or it is INTEGRITY_ERROR."), nil,
		func(ctx context.Context, v *inventory, in PluginInfoRequest) (PluginInfo, error) {
			ref := ParseReference(in.Plugin)
			if in.Version != "" {
				ref = Reference{Name: ref.Name, Range: in.Version}
			}
			all, problems, err := v.files.Plugins("")
			if err != nil {
				return PluginInfo{}, err
			}
			place, local := installedAs(all, ref)
			if in.Remote {
				remote, err := v.registries.Plugin(ctx, ref)
				if err != nil {
					return PluginInfo{}, err
				}
				out := pluginInfo(remote.Manifest, remote.Index)
				out.Installed, out.AvailableVersions, out.Registry = place, remote.Versions, remote.Index.registry.Name
				return out, nil
			}
			if local == nil {
				return PluginInfo{}, notInstalled(ref, place, problems)
			}
			out := pluginInfo(local.Manifest, IndexPlugin{})
			out.Installed = place
			return out, nil
		})
}

// installedAs returns the place where a plugin is installed, the project's before the user's; fits is the plugin, if
// its version satisfies the range.
func installedAs(all []Installed, ref Reference) (place *PluginPlace, fits *Installed) {
	for _, scope := range []Scope{LocalScope, GlobalScope} {
		for _, p := range all {
			if p.Scope != scope || !p.matchesName(ref.Name) {
				continue
			}
			at := &PluginPlace{p.Scope, p.Path, p.Manifest.Version}
			if ref.admits(p.Manifest.Version) {
				return at, &p
			}
			if place == nil {
				place = at
			}
		}
	}
	return place, nil
}

func notInstalled(ref Reference, place *PluginPlace, problems Problems) error {
	e := newError(PluginNotFound, "plugin %s is not installed", ref).With("plugin", ref.Name)
	if place != nil {
		e.Message = "plugin " + ref.Name + " is installed in version " + place.InstalledVersion +
			", which does not satisfy " + ref.Range
		e = e.With("installedVersion", place.InstalledVersion)
	}
	if notes := notesOf(nil, problems, nil); len(notes) > 0 {
		e = e.With("unreadable", notes)
	}
	return e.Suggest("list what is installed with fractary_forge_plugin_list", "ask the registries with remote: true",
		"search with fractary_forge_plugin_search")
}

func pluginInfo(m Manifest, index IndexPlugin) PluginInfo {
	out := PluginInfo{
		Name: cmp.Or(m.Name, index.Name), Version: cmp.Or(m.Version, index.Version),
		Description: cmp.Or(m.Description, index.Description),
		Author:      cmp.Or(textIn(m.Author, "name"), index.Author), License: cmp.Or(m.License, index.License),
		Homepage: cmp.Or(m.Homepage, index.Homepage), Repository: cmp.Or(textIn(m.Repository, "url"), index.Repository),
		Keywords: m.Keywords,
		Components: Components{
			Agents: namesOf(m.Agents), Tools: namesOf(m.Tools), Workflows: namesOf(m.Workflows), Hooks: namesOf(m.Hooks),
			Commands: namesOf(m.Commands),
		},
		Dependencies: m.Dependencies,
	}
	if len(out.Keywords) == 0 {
		out.Keywords = m.Tags
	}
	return out
}

func namesOf(items []ManifestItem) []string {
	out := []string{}
	for _, item := range items {
		out = append(out, item.Name)
	}
	return out
}

// textIn returns a text, or the text under a key of a mapping.
func textIn(v any, key string) string {
	if fields, ok := v.(map[string]any); ok {
		v = fields[key]
	}
	text, _ := v.(string)
	return text
}

// defaultResults is the default number of results of a search.
const defaultResults = 20

// SearchRequest is a search for definitions.
type SearchRequest struct {
	Query  string   `json:"query" positional:"true" required:"true" maxLength:"256" doc:"Part of a name, a description or a tag, letter case aside"`
	Tags   []string `json:"tags,omitempty" maxItems:"50" doc:"Only those with one of these tags"`
	Limit  int      `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"20" doc:"Results at most"`
	Offset int      `json:"offset,omitempty" minimum:"0" default:"0" doc:"Results to skip"`
}

// SearchResult is a plugin of a registry.
type SearchResult struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Downloads   *int     `json:"downloads,omitempty"`
	Registry    string   `json:"registry"`
}

// SearchAnswer is a page of results.
type SearchAnswer struct {
	Results []SearchResult `json:"results"`
	Total   int            `json:"total"`
	Query   string         `json:"query"`
	Notes   []string       `json:"notes,omitempty" doc:"Registries that did not answer, and what was left out"`
}

func (s toolDeps) pluginSearch() operation.Operation {
	return defineRead(s, readOperation("plugin_search", "plugin search", "Search plugins",
		"Search the registries for plugins",
		"Search the configured registries for plugins whose name, description or tags hold the query: exact names first, "+
			"then those that begin with it. A name is that of the first registry that has it; of "+
			"several versions the highest. notes names registries that did not answer; if none did, the call fails with the "+
			"reason of the first."), nil,
		func(ctx context.Context, v *inventory, in SearchRequest) (SearchAnswer, error) {
			ctx, cancel := context.WithTimeout(ctx, searchTimeout)
			defer cancel()
			found, failed := v.registries.Search(ctx, in.Query, in.Tags)
			if len(failed) > 0 && len(failed) == len(v.registries.list) {
				return SearchAnswer{}, failed[0]
			}
			out := SearchAnswer{Results: []SearchResult{}, Total: len(found), Query: in.Query, Notes: v.notes(nil, failed)}
			switch {
			case len(v.config.Registries) == 0:
				out.Notes = append(out.Notes, "no registry is configured")
			case len(v.registries.list) == 0:
				out.Notes = append(out.Notes, "no registry is asked: none that is configured is used and switched on")
			}
			for _, p := range pageOf(found, in.Offset, cmp.Or(in.Limit, defaultResults)) {
				out.Results = append(out.Results, SearchResult{p.Name, p.Version, p.Description, p.Author, p.Tags, p.Downloads,
					p.Registry})
			}
			return out, nil
		})
}
