package packages

import (
	"maps"
	"slices"
)

// Installed lists the installed packages by name; none without a workspace. Of one whose manifest cannot be read, the
// counts are empty.
func (s *Service) Installed() ([]InstalledPackage, error) {
	w := workspace{s.settings.Project}
	lock, err := w.Lock()
	if err != nil {
		return nil, err
	}
	out := []InstalledPackage{}
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		one := InstalledPackage{Name: name, Locked: lock.Packages[name], Counts: map[ArtifactType]int{}}
		n, err := parseName(name)
		if err != nil {
			return nil, err
		}
		if m, err := w.manifest(n); err == nil {
			one.Counts = m.Counts()
		}
		out = append(out, one)
	}
	return out, nil
}

// Detail describes a package.
type Detail struct {
	*Manifest
	InstalledVersion string // "" if it is not installed
	Registry         string // that it is in, or that it came from when it was installed
}

// Info reads a package. Without a version it is the installed one, else the latest; a version may be a constraint or a
// tag, too. AAM_PACKAGE_NOT_FOUND if neither workspace nor registries have it.
func (s *Service) Info(text, version string) (Detail, error) {
	spec, err := parseSpec(text)
	if err != nil {
		return Detail{}, err
	}
	if version != "" {
		spec.Want = version
	}
	v, err := s.open()
	if err != nil {
		return Detail{}, err
	}
	have, installed := v.lock.Packages[spec.Name.String()]
	out := Detail{InstalledVersion: have.Version}
	if installed && (spec.Want == "" || spec.Want == have.Version) {
		out.Registry = have.Source
		if out.Manifest, err = v.workspace.manifest(spec.Name); err == nil || spec.Want == "" {
			return out, err
		}
	}
	r := resolver{Registries: v.used(), Unused: v.unused()}
	if _, err := r.begin([]Spec{spec}); err != nil {
		return Detail{}, err
	}
	best, err := r.best(spec)
	if err != nil {
		return Detail{}, err
	}
	packed, err := best.registry.Archive(spec.Name, best.Published)
	if err != nil {
		return Detail{}, err
	}
	out.Manifest, out.Registry = packed.Manifest, best.registry.Name
	return out, nil
}

// RegistryState is a configured registry.
type RegistryState struct {
	RegistryConfig
	Accessible bool
	Unused     string // why it is not used; "" if it is
}

// Registries lists the configured registries.
func (s *Service) Registries() ([]RegistryState, error) {
	v, err := s.configured()
	if err != nil {
		return nil, err
	}
	out := []RegistryState{}
	for _, r := range v.registries {
		one := RegistryState{RegistryConfig: r.settings, Unused: r.unused}
		if one.Type == "local" {
			one.URL = r.Dir
		}
		one.Accessible = r.unused == "" && r.reachable() == nil
		out = append(out, one)
	}
	return out, nil
}

// addRegistry adds a registry to the user's configuration, which holds in all projects. confined says that the
// operator's list of sources has to admit it, and that it cannot become the default, as for callers that are not
// people. AAM_REGISTRY_UNREACHABLE if it is not there, AAM_INVALID_ARGUMENT for a name that is taken.
func (s *Service) addRegistry(name, url string, makeDefault, confined, dryRun bool) (RegistryState, error) {
	if !validRegistryName(name) {
		return RegistryState{}, newError(InvalidArgument, "%q is no name of a registry",
			name).Suggest("use letters, digits, hyphens and dots")
	}
	dir, why := s.settings.folderOf(url)
	switch {
	case confined && !s.settings.admitted(dir):
		return RegistryState{}, newError(PermissionDenied, "%s is no registry that the operator has allowed", dir).
			Suggest("a person adds it with: claudeops packages registry add; one in the project can be named in the project's " +
				workspaceName + "/config.yaml")
	case confined && makeDefault:
		return RegistryState{}, newError(PermissionDenied,
			"a person says which registry is the default").Suggest("add it without set_default")
	}
	r := Registry{Name: name, Dir: dir, unusable: why}
	if err := r.reachable(); err != nil {
		return RegistryState{}, err
	}
	before, err := s.Registries()
	if err != nil {
		return RegistryState{}, err
	}
	for _, known := range before {
		if known.Name == name {
			return RegistryState{}, newError(InvalidArgument, "there is a registry %q already, at %s", name,
				known.URL).Suggest("choose another name")
		}
	}
	one := RegistryState{RegistryConfig: RegistryConfig{Name: name, URL: dir, Type: "local", Default: makeDefault},
		Accessible: true}
	if !dryRun {
		if err := addRegistry(s.settings.Home, one.RegistryConfig); err != nil {
			return RegistryState{}, err
		}
	}
	one.Default = makeDefault || len(before) == 0
	return one, nil
}
