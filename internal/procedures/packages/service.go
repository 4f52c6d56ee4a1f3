package packages

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
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

// view is everything under the configuration as it is now.
type view struct {
	config     Config
	registries []Registry // all that are configured, in their order, also those that are not used
	workspace  workspace
	lock       *Lock
}

// configured reads the configuration.
func (s *Service) configured() (*view, error) {
	config, err := loadConfig(s.settings.Home, s.settings.Project)
	return &view{config: config, workspace: workspace{s.settings.Project}, registries: s.registries(config)}, err
}

// open reads configuration and lock file.
func (s *Service) open() (*view, error) {
	v, err := s.configured()
	if err != nil {
		return nil, err
	}
	v.lock, err = v.workspace.Lock()
	return v, err
}

// used returns the registries that are asked.
func (v *view) used() []Registry { return usedOf(v.registries) }

func usedOf(registries []Registry) []Registry {
	return slices.DeleteFunc(slices.Clone(registries), func(r Registry) bool { return r.unused != "" })
}

// unused says what the project's files name and is not used, each with the reason.
func (v *view) unused() (notes []string) {
	for _, r := range v.registries {
		if r.unused != "" {
			notes = append(notes, "registry "+r.Name+": "+r.unused)
		}
	}
	return append(notes, v.config.unused...)
}

// real returns a path without links; what does not exist is joined to what does.
func real(name string) string {
	if resolved, err := change.RealPath(name); err == nil {
		return resolved
	}
	if parent := filepath.Dir(name); parent != name {
		return filepath.Join(real(parent), filepath.Base(name))
	}
	return name
}

// registry returns the registry of a name; "" is the default one.
func (v *view) registry(name string) (Registry, error) {
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
