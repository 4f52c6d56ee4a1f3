// Package packages makes, shares and resolves packages of agents' procedures, in the formats of AAM: aam.yaml, archives
// *.aam, registries in folders (docs/guides/packages.md).
package packages

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Settings say where a Service finds things.
type Settings struct {
	Project   string // absolute; the server's working folder; "" for none
	Home      string // absolute; the user's; "" for none
	CodexHome string // absolute; Codex's folder of the user; "" for none
	State     string // absolute; where it is remembered who has put which file in place: AGENTPACK_HOME
	// Sources are the places that a project's file may choose from beside those of the user's configuration; nil for none.
	Sources func() sources.List
	Now     func() time.Time
}

// Service answers the tools. Everything but the indexes of registries is read anew for each call. It is safe for
// concurrent use; calls that write one workspace wait for each other, also those of other processes.
type Service struct {
	settings Settings
	indexes  *indexCache
	fault    func(step string) error // tests end a call here; nil does nothing
}

// NewService makes a Service. It touches no disk.
func NewService(s Settings) *Service {
	return &Service{settings: s, indexes: &indexCache{known: map[string]cachedIndex{}}}
}

// indexCache keeps indexes as long as their files do not change.
type indexCache struct {
	mu    sync.Mutex
	known map[string]cachedIndex // by the registry's folder
}

type cachedIndex struct {
	changed time.Time
	size    int64
	index   Index
}

// get returns the index of a registry; read is called if its file has changed.
func (c *indexCache) get(r Registry, read func() (Index, error)) (Index, error) {
	f, info, err := files.OpenPath(filepath.Join(r.Dir, "index.yaml"))
	if err != nil {
		return read()
	}
	_ = f.Close()
	if c == nil {
		return read()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[r.Dir]; ok && known.size == info.Size() && known.changed.Equal(info.ModTime()) {
		return known.index, nil
	}
	index, err := read()
	// a file that was just written may be written again in the same instant
	if err == nil && time.Since(info.ModTime()) > time.Second {
		c.known[r.Dir] = cachedIndex{info.ModTime(), info.Size(), index}
	}
	return index, err
}

// inventory is everything under the configuration as it is now.
type inventory struct {
	config     Config
	registries []Registry // all that are configured, in their order, also those that are not used
	workspace  workspace
	lock       *Lock
}

// configured reads the configuration.
func (s *Service) configured() (*inventory, error) {
	config, err := loadConfig(s.settings.Home, s.settings.Project)
	return &inventory{config: config, workspace: workspace{s.settings.Project}, registries: s.registries(config)}, err
}

// loadView reads configuration and lock file.
func (s *Service) loadView() (*inventory, error) {
	v, err := s.configured()
	if err != nil {
		return nil, err
	}
	v.lock, err = v.workspace.Lock()
	return v, err
}

// used returns the registries that are asked.
func (v *inventory) used() []Registry { return usedOf(v.registries) }

func usedOf(registries []Registry) []Registry {
	return slices.DeleteFunc(slices.Clone(registries), func(r Registry) bool { return r.unused != "" })
}

// unused says what the project's files name and is not used, each with the reason.
func (v *inventory) unused() (notes []string) {
	for _, r := range v.registries {
		if r.unused != "" {
			notes = append(notes, "registry "+r.Name+": "+r.unused)
		}
	}
	return append(notes, v.config.unused...)
}

// real returns a path without links; what does not exist is joined to what does.
func real(name string) string {
	if resolved, err := fileset.RealPath(name); err == nil {
		return resolved
	}
	if parent := filepath.Dir(name); parent != name {
		return filepath.Join(real(parent), filepath.Base(name))
	}
	return name
}

// registry returns the registry of a name; "" is the default one.
func (v *inventory) registry(name string) (Registry, error) {
	var names []string
	for _, r := range v.registries {
		if name == r.Name || name == "" && r.settings.Default && r.unused == "" {
			return r, nil
		}
		names = append(names, r.Name)
	}
	if name == "" {
		return Registry{}, newError(RegistryNotConfigured,
			"no registry is configured").Suggest(strings.Join(append([]string{"add one with aam_registry_add"}, v.unused()...),
			"; "))
	}
	return Registry{}, newError(RegistryNotFound, "there is no registry %q", name).With("registries", names).
		Suggest("name one of these, or add it with aam_registry_add")
}

// reached lets tests end a call.
func (s *Service) reached(step string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(step)
}

// Code classifies an error, in the words of AAM's published contract. Those from IntegrityError on are ours: the
// contract has none for these failures.
type Code string

// The codes.
const (
	InvalidArgument       Code = "AAM_INVALID_ARGUMENT"
	NotInitialized        Code = "AAM_NOT_INITIALIZED"
	ManifestNotFound      Code = "AAM_MANIFEST_NOT_FOUND"
	ManifestInvalid       Code = "AAM_MANIFEST_INVALID"
	RegistryNotConfigured Code = "AAM_REGISTRY_NOT_CONFIGURED"
	RegistryNotFound      Code = "AAM_REGISTRY_NOT_FOUND"
	RegistryUnreachable   Code = "AAM_REGISTRY_UNREACHABLE"
	PackageNotFound       Code = "AAM_PACKAGE_NOT_FOUND"
	PackageNotInstalled   Code = "AAM_PACKAGE_NOT_INSTALLED"
	DependencyConflict    Code = "AAM_DEPENDENCY_CONFLICT"
	PermissionDenied      Code = "AAM_PERMISSION_DENIED"
	InternalError         Code = "AAM_INTERNAL_ERROR"

	IntegrityError Code = "AAM_INTEGRITY_ERROR" // a checksum that differs, or an archive that breaks the rules
	VersionExists  Code = "AAM_VERSION_EXISTS"  // a version is published once
	NameConflict   Code = "AAM_NAME_CONFLICT"   // two packages want one name or one file, or a person has it
	ConfigInvalid  Code = "AAM_CONFIG_INVALID"  // a file of the configuration, or the lock file, cannot be used
	Busy           Code = "AAM_BUSY"            // another process writes the same workspace or registry
	LimitReached   Code = "AAM_LIMIT_REACHED"   // the answer would be too large, or the call took too long
)

// Error is a failure in the words of AAM's contract.
type Error = fault.ContractError[Code]

func newError(code Code, format string, args ...any) *Error {
	return fault.NewContractError(code, format, args...)
}

// asError is errors.As for an Error.
func asError(err error, into **Error) bool { return errors.As(err, into) }

// codeOfError returns the code of an error; "" for nil and for errors of others.
func codeOfError(err error) Code {
	if e := fault.ContractErrorOf[Code](err); e != nil {
		return e.Code
	}
	return ""
}

// culpritError is a failure because of which one package cannot be installed.
type culpritError struct {
	error
	pkg string
}

// Unwrap gives the failure.
func (e *culpritError) Unwrap() error { return e.error }

// blame says which package cannot be installed because of a failure.
func blame(err error, pkg string) error { return &culpritError{err, pkg} }

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
	v, err := s.loadView()
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
	if _, err := r.startResolution([]Spec{spec}); err != nil {
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
		return RegistryState{}, newError(InvalidArgument, "%q is not a valid registry name",
			name).Suggest("use letters, digits, hyphens and dots")
	}
	dir, why := s.settings.registryFolder(url)
	switch {
	case confined && !s.settings.admitted(dir):
		return RegistryState{}, newError(PermissionDenied, "%s is not a registry that the operator has allowed", dir).
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
