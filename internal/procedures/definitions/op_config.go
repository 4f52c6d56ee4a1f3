package definitions

import (
	"context"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// ConfigGetRequest names a value.
type ConfigGetRequest struct {
	Key string `json:"key" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Keys and indexes joined with dots" example:"registries.0.url"`
}

// ConfigValue is a value of the configuration.
type ConfigValue struct {
	Key    string   `json:"key"`
	Value  any      `json:"value"` // null if it does not exist
	Exists bool     `json:"exists"`
	Notes  []string `json:"notes,omitempty" doc:"What files say that is not used, and why"`
}

func (s toolDeps) configGet() operation.Operation {
	return defineRead(s, readOperation("config_get", "config get", "Read a setting", "Show one value of the configuration",
		"Read one value of the effective configuration, defaults included; exists is false for a key that is not there. "+
			"Values of secrets are hidden."), nil,
		func(_ context.Context, v *inventory, in ConfigGetRequest) (ConfigValue, error) {
			value, exists := v.config.Get(in.Key)
			return ConfigValue{in.Key, value, exists, v.notes(nil, nil)}, nil
		})
}

// ConfigShowRequest says how the configuration is shown.
type ConfigShowRequest struct {
	IncludeDefaults *bool  `json:"includeDefaults,omitempty" default:"true" doc:"Also what the configuration leaves to defaults"`
	Format          string `json:"format,omitempty" enum:"json,yaml" default:"json" doc:"yaml adds the configuration as YAML text"`
}

// ShownRegistry is a registry in the configuration.
type ShownRegistry struct {
	Name     string `json:"name" yaml:"name"`
	URL      string `json:"url" yaml:"url"`
	Priority int    `json:"priority" yaml:"priority"`
	NotUsed  string `json:"not_used,omitempty" yaml:"not_used,omitempty" doc:"Why it is never asked"`
}

// ShownCache is the cache in the configuration.
type ShownCache struct {
	Directory string `json:"directory" yaml:"directory"`
	TTL       int    `json:"ttl" yaml:"ttl" doc:"Seconds"`
}

// ShownConfig is the configuration.
type ShownConfig struct {
	Registries []ShownRegistry `json:"registries" yaml:"registries"`
	Cache      *ShownCache     `json:"cache,omitempty" yaml:"cache,omitempty"`
	Resolution *Resolution     `json:"resolution,omitempty" yaml:"resolution,omitempty"`
}

// ConfigShowAnswer is the configuration with its files.
type ConfigShowAnswer struct {
	Config  ShownConfig `json:"config"`
	Sources []string    `json:"sources"`
	YAML    string      `json:"yaml,omitempty"`
	Notes   []string    `json:"notes,omitempty" doc:"What files say that is not used, and why"`
}

func (s toolDeps) configShow() operation.Operation {
	return defineRead(s, readOperation("config_show", "config show", "Show the configuration",
		"Show the whole configuration",
		"Show the effective configuration: registries, cache, and which sources names are resolved in; sources are the "+
			"files that it was read from. Without "+
			"includeDefaults, sections that the files do not have are left out."), nil,
		func(_ context.Context, v *inventory, in ConfigShowRequest) (ConfigShowAnswer, error) {
			shown := func(section string) bool {
				_, given := v.config.given[section]
				return given || in.IncludeDefaults == nil || *in.IncludeDefaults
			}
			out := ConfigShowAnswer{Sources: append([]string{}, v.config.Sources...), Notes: v.notes(nil, nil),
				Config: ShownConfig{Registries: []ShownRegistry{}}}
			for _, r := range v.config.Registries {
				out.Config.Registries = append(out.Config.Registries,
					ShownRegistry{r.Name, withoutPassword(r.URL), r.Priority, r.Unused})
			}
			if shown("cache") {
				out.Config.Cache = &ShownCache{v.config.CacheDir, v.config.TTL}
			}
			if shown("resolution") {
				resolution := v.config.Resolution
				out.Config.Resolution = &resolution
			}
			if in.Format == "yaml" {
				text, err := yaml.Marshal(out.Config)
				if err != nil {
					return ConfigShowAnswer{}, err
				}
				out.YAML = string(text)
			}
			return out, nil
		})
}

// NoArguments is the input of tools that take none.
type NoArguments struct{}

// RegistryEntry is a configured registry.
type RegistryEntry struct {
	Name          string `json:"name"`
	URL           string `json:"url"`
	Priority      int    `json:"priority"`
	Authenticated bool   `json:"authenticated" doc:"Its token is set"`
	Disabled      bool   `json:"disabled,omitempty" doc:"It is not asked"`
	NotUsed       string `json:"not_used,omitempty" doc:"Why it is never asked"`
}

// RegistryList is the configured registries.
type RegistryList struct {
	Registries []RegistryEntry `json:"registries"`
	Notes      []string        `json:"notes,omitempty" doc:"What files say that is not used, and why"`
}

func (s toolDeps) configRegistryList() operation.Operation {
	return defineRead(s, readOperation("config_registry_list", "config registry-list", "List registries",
		"List the configured registries",
		"List the configured registries in the order in which they are asked; authenticated says whether a token is set for one. "+
			"not_used says why one is never asked: a project's file may only choose among the operator's. None is contacted."),
		nil,
		func(_ context.Context, v *inventory, _ NoArguments) (RegistryList, error) {
			out := RegistryList{Registries: []RegistryEntry{}, Notes: v.notes(nil, nil)}
			for _, r := range v.config.Registries {
				out.Registries = append(out.Registries, RegistryEntry{
					r.Name, withoutPassword(r.URL), r.Priority, v.registries.fetcher.tokenOf(r) != "", !r.isQueried(), r.Unused,
				})
			}
			return out, nil
		})
}

// CachedIndexes says what is kept of registries' indexes.
type CachedIndexes struct {
	Count       int    `json:"count"`
	Size        string `json:"size"`
	OldestEntry string `json:"oldestEntry" doc:"RFC 3339; empty without entries"`
	NewestEntry string `json:"newestEntry"`
}

// CachedDownloads says what is kept of registries' contents.
type CachedDownloads struct {
	Count int    `json:"count"`
	Size  string `json:"size"`
}

// CacheStatsAnswer says what the cache holds.
type CacheStatsAnswer struct {
	Manifests CachedIndexes   `json:"manifests"`
	Downloads CachedDownloads `json:"downloads"`
	TotalSize string          `json:"totalSize"`
	Location  string          `json:"location"`
	Notes     []string        `json:"notes,omitempty" doc:"What files say that is not used, and why"`
}

func (s toolDeps) cacheStats() operation.Operation {
	return defineRead(s, readOperation("cache_stats", "cache stats", "Look at the cache", "Show what the cache holds",
		"Say how much is cached from registries: manifests are their indexes, downloads what was fetched by checksum; and where."), nil,
		func(_ context.Context, v *inventory, _ NoArguments) (CacheStatsAnswer, error) {
			stats, err := v.cache.stats()
			if err != nil {
				return CacheStatsAnswer{}, cacheError(v.config.CacheDir, err)
			}
			return CacheStatsAnswer{
				Manifests: CachedIndexes{stats.Indexes, sizeText(stats.IndexBytes), moment(stats.OldestIndex),
					moment(stats.NewestIndex)},
				Downloads: CachedDownloads{stats.Downloads, sizeText(stats.DownloadBytes)},
				TotalSize: sizeText(stats.IndexBytes + stats.DownloadBytes), Location: stats.Location,
				Notes: v.notes(nil, nil),
			}, nil
		})
}

// CacheClearRequest says what to remove from the cache.
type CacheClearRequest struct {
	Type      string `json:"type,omitempty" enum:"manifests,downloads,all" default:"all" doc:"manifests: indexes of registries; downloads: what was fetched by checksum"`
	OlderThan int    `json:"olderThan,omitempty" minimum:"0" maximum:"36500" doc:"Only what is older than so many days"`
}

// ClearedEntries says what was removed.
type ClearedEntries struct {
	Manifests int    `json:"manifests"`
	Downloads int    `json:"downloads"`
	TotalSize string `json:"totalSize"`
}

// CacheClearAnswer says what was removed, or would have been.
type CacheClearAnswer struct {
	Success bool           `json:"success"`
	Cleared ClearedEntries `json:"cleared"`
	DryRun  bool           `json:"dry_run,omitempty" doc:"Nothing was removed"`
}

func (s toolDeps) cacheClear() operation.Operation {
	o := readOperation("cache_clear", "cache clear", "Clear the cache", "Remove what is cached from registries",
		"Remove what is cached from registries; it is fetched again when it is needed. Needs tier 2. With dry_run in the "+
			"answer nothing was removed.")
	o.Effect, o.Needs = operation.Write, operation.Needs{Tier: gitprovider.TierInvestigate, CacheOnly: true,
		Dry: operation.DryTried}
	o.Tool.Destructive, o.Tool.Repeatable = true, true
	way := operation.CallSpec[CacheClearRequest]{
		Roots: func(CacheClearRequest) []string { return s.service().cacheDirs() },
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(_ context.Context, call operation.Call, in CacheClearRequest) (CacheClearAnswer, error) {
			v, err := s.service().loadView()
			if err != nil {
				return CacheClearAnswer{}, faultOf(err)
			}
			cleared, err := v.cache.clear(CacheClearing{
				Indexes: in.Type != "downloads", Downloads: in.Type != "manifests",
				OlderThan: time.Duration(in.OlderThan) * 24 * time.Hour,
			}, call.DryRun)
			if err != nil {
				return CacheClearAnswer{}, faultOf(cacheError(v.config.CacheDir, err))
			}
			return CacheClearAnswer{
				Success: true, DryRun: call.DryRun,
				Cleared: ClearedEntries{cleared.Indexes, cleared.Downloads, sizeText(cleared.Bytes)},
			}, nil
		})
}

func cacheError(dir string, err error) *Error {
	e := newError(PermissionDenied, "the cache %s %s", dir, pathlessError(err)).With("path", dir)
	e.Cause = err
	return e.Suggest("correct the rights of the folder, or point FRACTARY_CACHE_DIR to another")
}

// sizeText returns a size for people, such as 1.5 KB, which is 1536 bytes.
func sizeText(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, units := float64(bytes)/(1<<10), []string{"KB", "MB", "GB"}
	for size >= 1<<10 && len(units) > 1 {
		size, units = size/(1<<10), units[1:]
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
