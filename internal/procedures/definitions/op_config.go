package definitions

import (
	"context"

	"go.yaml.in/yaml/v3"

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

func (s set) configGet() operation.Operation {
	return reading(s, named("config_get", "config get", "Read a setting", "Show one value of the configuration",
		"Read one value of the effective configuration, defaults included; exists is false for a key that is not there. "+
			"Values of secrets are hidden."), nil,
		func(_ context.Context, v *view, in ConfigGetRequest) (ConfigValue, error) {
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

func (s set) configShow() operation.Operation {
	return reading(s, named("config_show", "config show", "Show the configuration", "Show the whole configuration",
		"Show the effective configuration: registries, cache, and which sources names are resolved in; sources are the "+
			"files that it was read from. Without "+
			"includeDefaults, sections that the files do not have are left out."), nil,
		func(_ context.Context, v *view, in ConfigShowRequest) (ConfigShowAnswer, error) {
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

func (s set) configRegistryList() operation.Operation {
	return reading(s, named("config_registry_list", "config registry-list", "List registries",
		"List the configured registries",
		"List the configured registries in the order in which they are asked; authenticated says whether a token is set for one. "+
			"not_used says why one is never asked: a project's file may only choose among the operator's. None is contacted."),
		nil,
		func(_ context.Context, v *view, _ NoArguments) (RegistryList, error) {
			out := RegistryList{Registries: []RegistryEntry{}, Notes: v.notes(nil, nil)}
			for _, r := range v.config.Registries {
				out.Registries = append(out.Registries, RegistryEntry{
					r.Name, withoutPassword(r.URL), r.Priority, v.registries.fetcher.tokenOf(r) != "", !r.asked(), r.Unused,
				})
			}
			return out, nil
		})
}
