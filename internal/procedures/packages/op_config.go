package packages

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/files"
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

func (s toolDeps) configGet() operation.Operation {
	return defineRead(s, readOperation("config_get", "config get", "Read settings of packages",
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

func (s toolDeps) configSet() operation.Operation {
	o := readOperation("config_set", "config set", "Change a setting of packages", "Change one value of the user's configuration",
		"Change one setting in the user's configuration, ~/.aam/config.yaml. The value is checked; an unknown key is "+
			"refused with the keys that there are. "+
			"Agents cannot make it less secure.")
	o.Tool.Destructive, o.Tool.Repeatable = true, true
	return defineWrite(s, o, func(ConfigSetRequest) []string { return s.home() },
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

// AsList implements operation.Bare.
func (a RegistryListAnswer) AsList() (any, []string) { return a.Result, a.Notes }

func registryInfo(r RegistryState) RegistryInfo {
	out := RegistryInfo{Name: r.Name, URL: r.URL, Type: r.Type, IsDefault: r.Default, Accessible: r.Accessible}
	if r.Unused != "" {
		out.Notes = []string{r.Unused}
	}
	return out
}

func (s toolDeps) registryList() operation.Operation {
	return defineRead(s, readOperation("registry_list", "registry list", "List registries of packages",
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

func (s toolDeps) registryAdd() operation.Operation {
	o := readOperation("registry_add", "registry add", "Add a registry of packages", "Add a registry to the user's configuration",
		"Add a folder with packages as a registry to the user's configuration. The folder has to be there; it may be "+
			"empty, and the first publication fills it. "+
			"Agents can add those alone that the operator has allowed.")
	return defineWrite(s, o, func(RegistryAddRequest) []string { return s.home() },
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

// Acts are the operations on packages for people only. All fields are required.
type Acts struct {
	Kernel  func() *operation.Kernel
	Service func() *Service
	Audit   func() operation.Audit
}

// RegistryInitRequest says where a registry is made.
type RegistryInitRequest struct {
	Folder     string `json:"folder" path:"folder" required:"true" minLength:"1" maxLength:"4096" doc:"folder that is not there, or empty"`
	Name       string `json:"name,omitempty" maxLength:"64" doc:"name of the registry; the folder's if left out"`
	SetDefault bool   `json:"set_default,omitempty" doc:"packages are published there if nobody says otherwise"`
}

// MadeRegistry is a registry that was made.
type MadeRegistry struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Default bool   `json:"is_default"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// Operations make a registry.
func (a Acts) Operations() []operation.Operation {
	return []operation.Operation{operation.Define(a.Kernel, "", operation.Operation{
		Name: "init_registry", Action: "packages.registry_init",
		Summary: "Make an empty registry, and add it to your configuration", Effect: operation.Write,
		Command: "packages registry init", Needs: operation.Needs{For: operation.Person, Scope: access.Operate,
			Dry: operation.DryTried},
		Shown: operation.Shown{
			Fresh: true,
			Help: "init makes a folder with an empty registry, and adds it to your configuration (~/.aam/config.yaml). A " +
				"registry that is there\n" +
				"already is added with `claudeops packages registry add NAME FOLDER`.",
			Example: "  claudeops packages registry init ~/registry --name team",
			Said: func(out any, _ bool) string {
				made, verb := out.(MadeRegistry), "Made"
				if made.DryRun {
					verb = "This is a dry run. It would make"
				}
				text := verb + " the registry " + made.Name + " at " + made.URL
				if made.Default {
					return text + ", the default one."
				}
				return text + "."
			},
		},
	}, operation.CallSpec[RegistryInitRequest]{}, a.init)}
}

func (a Acts) init(ctx context.Context, call operation.Call, in RegistryInitRequest) (MadeRegistry, error) {
	out, err := a.Service().initRegistry(in.Folder, in.Name, in.SetDefault, call.DryRun)
	if err != nil {
		return MadeRegistry{}, faultOf(err)
	}
	if out.DryRun {
		return out, nil
	}
	return out, a.Audit().Record(context.WithoutCancel(ctx), call.Done("registry "+out.Name+" at "+out.URL), nil)
}

// initRegistry makes a folder with an empty registry and adds it to the user's configuration. AAM_INVALID_ARGUMENT for
// a name that is taken, and for a folder with something in it.
func (s *Service) initRegistry(folder, name string, makeDefault, dryRun bool) (MadeRegistry, error) {
	dir, why := s.settings.registryFolder(folder)
	if why != "" {
		return MadeRegistry{}, newError(InvalidArgument, "%s: %s", folder, why)
	}
	if name == "" {
		name = filepath.Base(dir)
	}
	if !validRegistryName(name) {
		return MadeRegistry{}, newError(InvalidArgument, "%q is not a valid registry name",
			name).Suggest("give one of letters, digits, hyphens and dots with --name")
	}
	known, err := s.Registries()
	if err != nil {
		return MadeRegistry{}, err
	}
	if at := slices.IndexFunc(known, func(r RegistryState) bool { return r.Name == name }); at >= 0 {
		return MadeRegistry{}, newError(InvalidArgument, "there is a registry %q already, at %s", name,
			known[at].URL).Suggest("choose another name with --name")
	}
	if err := s.makeRegistry(dir, name, dryRun); err != nil {
		return MadeRegistry{}, err
	}
	out := MadeRegistry{Name: name, URL: dir, Default: makeDefault || len(known) == 0, DryRun: dryRun}
	if dryRun {
		return out, nil
	}
	_, err = s.addRegistry(name, dir, makeDefault, false, false)
	return out, err
}

// makeRegistry makes the files of an empty registry. In a dry run it looks alone.
func (s *Service) makeRegistry(dir, name string, dryRun bool) error {
	unwritten := func(err error) error {
		return newError(PermissionDenied, "%s cannot be made: %s", dir,
			pathlessError(err)).Because(err).Suggest("name another folder")
	}
	there, err := files.OpenDir(dir)
	if err == nil {
		entries, _, listErr := there.Entries(".", 1)
		if err := errors.Join(listErr, there.Close()); err != nil {
			return unwritten(err)
		}
		if len(entries) > 0 {
			return newError(InvalidArgument, "%s is not empty", dir).
				Suggest("name a folder that is not there; a registry that is there is added with: claudeops packages registry " +
					"add NAME FOLDER")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return unwritten(err)
	}
	if dryRun {
		return nil
	}
	if err := files.MkdirAll(dir, 0o755); err != nil {
		return unwritten(err)
	}
	root, err := files.OpenWriting(dir)
	if err != nil {
		return unwritten(err)
	}
	defer func() { _ = root.Close() }()
	p := publishing{Registry: Registry{Name: name, Dir: dir}, root: root}
	if err := p.writeYAML("index.yaml", Index{Packages: []IndexEntry{}}); err != nil {
		return err
	}
	return p.writeYAML("registry.yaml", registryFile{Name: name, Type: "local", APIVersion: 1,
		CreatedAt: s.settings.Now().UTC().Format(time.RFC3339)})
}
