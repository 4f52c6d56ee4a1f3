package packages

import (
	"context"

	"github.com/claudeops/claudeops/internal/operation"
)

// ConfigGetRequest names a setting.
type ConfigGetRequest struct {
	Key *string `json:"key,omitempty" positional:"true" maxLength:"256" doc:"Such as security.require_checksum; unset means everything"`
}

// ConfigData is a value of the configuration.
type ConfigData struct {
	Key    *string  `json:"key"`
	Value  any      `json:"value"`
	Source Source   `json:"source" enum:"default,global,project,merged" doc:"global: the user's file; project: the project's; merged: several"`
	DryRun bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes  []string `json:"notes,omitempty"`
}

func (s set) configGet() operation.Operation {
	return reading(s, named("config_get", "config get", "Read settings of packages",
		"Show the configuration of packages, or one value",
		"Read one setting of packages, or with no key all of them. source says whether it is a default, the user's or the project's."),
		func(_ context.Context, _ operation.Call, in ConfigGetRequest) (ConfigData, error) {
			v, err := s.service().configured()
			if err != nil {
				return ConfigData{}, err
			}
			key := ""
			if in.Key != nil {
				key = *in.Key
			}
			value, source, err := v.config.Get(key)
			return ConfigData{Key: orNull(key), Value: value, Source: source}, err
		})
}

// ConfigSetRequest is a setting and its new value.
type ConfigSetRequest struct {
	Key   string `json:"key" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Such as default_platform"`
	Value string `json:"value" positional:"true" required:"true" maxLength:"4096" doc:"Lists are joined with commas"`
}

func (s set) configSet() operation.Operation {
	o := named("config_set", "config set", "Change a setting of packages", "Change one value of the user's configuration",
		"Change one setting in the user's configuration, ~/.aam/config.yaml. The value is checked; an unknown key is "+
			"refused with the keys that there are. "+
			"Agents cannot make it less secure.")
	o.Tool.Destructive, o.Tool.Repeatable = true, true
	return writing(s, o, func(ConfigSetRequest) []string { return s.home() },
		func(_ context.Context, call operation.Call, in ConfigSetRequest) (ConfigData, error) {
			service := s.service()
			if !isPerson(call) {
				if err := mayCallerSet(service.settings.Home, in.Key, in.Value); err != nil {
					return ConfigData{}, err
				}
			}
			value, err := setConfig(service.settings.Home, in.Key, in.Value, call.DryRun)
			if err != nil {
				return ConfigData{}, err
			}
			out := ConfigData{Key: &in.Key, Value: value, Source: SourceGlobal, DryRun: call.DryRun}
			if v, err := service.configured(); err == nil && v.config.sources[in.Key] == SourceProject {
				out.Notes = []string{"the project's configuration has another value, which counts here: " +
					configFile(service.settings.Project)}
			}
			return out, nil
		})
}

// RegistryInfo is a configured registry.
type RegistryInfo struct {
	Name       string   `json:"name"`
	URL        string   `json:"url"`
	Type       string   `json:"type" enum:"local,http"`
	IsDefault  bool     `json:"is_default" doc:"Packages are published there unless another one is named"`
	Accessible bool     `json:"accessible"`
	DryRun     bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes      []string `json:"notes,omitempty"`
}

// RegistryListAnswer is the configured registries, in the order in which they are asked.
type RegistryListAnswer struct {
	Result []RegistryInfo `json:"result"`
	Notes  []string       `json:"notes,omitempty" doc:"What was left out"`
}

// Bare implements operation.Bare.
func (a RegistryListAnswer) Bare() (any, []string) { return a.Result, a.Notes }

func registryInfo(r RegistryState) RegistryInfo {
	out := RegistryInfo{Name: r.Name, URL: r.URL, Type: r.Type, IsDefault: r.Default, Accessible: r.Accessible}
	if r.Unused != "" {
		out.Notes = []string{r.Unused}
	}
	return out
}

func (s set) registryList() operation.Operation {
	return reading(s, named("registry_list", "registry list", "List registries of packages",
		"List the configured registries",
		"List the configured registries in the order in which they are asked."),
		func(context.Context, operation.Call, NoArguments) (RegistryListAnswer, error) {
			registries, err := s.service().Registries()
			out := RegistryListAnswer{Result: []RegistryInfo{}}
			for _, r := range registries {
				out.Result = append(out.Result, registryInfo(r))
			}
			return out, err
		})
}

// RegistryAddRequest is a registry to add.
type RegistryAddRequest struct {
	Name       string `json:"name" positional:"true" required:"true" minLength:"1" maxLength:"64" doc:"Letters, digits, hyphens and dots"`
	URL        string `json:"url" positional:"true" required:"true" minLength:"1" maxLength:"4096" doc:"Folder, as a path or as file:///path"`
	SetDefault bool   `json:"set_default,omitempty" default:"false" doc:"Publish there unless another one is named"`
}

func (s set) registryAdd() operation.Operation {
	o := named("registry_add", "registry add", "Add a registry of packages", "Add a registry to the user's configuration",
		"Add a folder with packages as a registry to the user's configuration. The folder has to be there; it may be "+
			"empty, and the first publication fills it. "+
			"Agents can add those alone that the operator has allowed.")
	return writing(s, o, func(RegistryAddRequest) []string { return s.home() },
		func(_ context.Context, call operation.Call, in RegistryAddRequest) (RegistryInfo, error) {
			service := s.service()
			r, err := service.addRegistry(in.Name, in.URL, in.SetDefault, !isPerson(call), call.DryRun)
			if err != nil {
				return RegistryInfo{}, err
			}
			out := registryInfo(r)
			out.DryRun = call.DryRun
			if v, err := service.configured(); err == nil && v.config.sources["registries"] == SourceProject {
				out.Notes = []string{"the project's configuration has registries of its own, which count here: " +
					configFile(service.settings.Project)}
			}
			return out, nil
		})
}
