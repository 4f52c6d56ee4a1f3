package packages

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Settings say where a Service finds things.
type Settings struct {
	Project   string // absolute; the server's working folder; "" for none
	Home      string // absolute; the user's; "" for none
	CodexHome string // absolute; Codex's folder of the user; "" for none
	State     string // absolute; where it is remembered who has put which file in place: AGENTPACK_HOME
	Now       func() time.Time
}

// Service answers the tools. Everything but the indexes of registries is read anew for each call. It is safe for concurrent use;
// calls that write one workspace wait for each other, also those of other processes.
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

// get is the index of a registry; read is called if its file has changed.
func (c *indexCache) get(r Registry, read func() (Index, error)) (Index, error) {
	info, err := os.Stat(filepath.Join(r.Dir, "index.yaml"))
	if c == nil || err != nil {
		return read()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[r.Dir]; ok && known.size == info.Size() && known.changed.Equal(info.ModTime()) {
		return known.index, nil
	}
	index, err := read()
	if err == nil && time.Since(info.ModTime()) > time.Second { // a file that was just written may be written again in the same instant
		c.known[r.Dir] = cachedIndex{info.ModTime(), info.Size(), index}
	}
	return index, err
}

// view is everything under the configuration as it is now.
type view struct {
	config     Config
	registries []Registry // in their order
	workspace  Workspace
	lock       *Lock
}

// configured reads the configuration.
func (s *Service) configured() (*view, error) {
	config, err := LoadConfig(s.settings.Home, s.settings.Project)
	return &view{config: config, workspace: Workspace{s.settings.Project}, registries: s.registries(config)}, err
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

// registries are the configured ones. What a project's configuration names has to lie in the project or in the user's folder: a project
// may come from others.
func (s *Service) registries(c Config) []Registry {
	var out []Registry
	for _, r := range c.registries() {
		one := Registry{Name: r.Name, cache: s.indexes}
		one.Dir, one.unusable = s.folderOf(r.URL)
		if one.unusable == "" && c.sources["registries"] == SourceProject && !s.within(one.Dir) {
			one.unusable = "the project's configuration names a folder outside of the project and of the user's home; add it with aam_registry_add"
		}
		out = append(out, one)
	}
	return out
}

// folderOf is the folder of a registry's URL; why is set if there is none.
func (s *Service) folderOf(text string) (dir, why string) {
	switch {
	case strings.HasPrefix(text, "file:"):
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
			return text, "the URL is no file:///path"
		}
		text = u.Path
	case strings.Contains(text, "://"):
		return text, "only registries in folders are supported, given as a path or as file:///path"
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = s.settings.Home + text[1:]
	}
	text = filepath.FromSlash(text)
	if !filepath.IsAbs(text) {
		text = filepath.Join(s.settings.Project, text)
	}
	return filepath.Clean(text), ""
}

// within reports whether a folder lies in the project or in the user's home, links followed.
func (s *Service) within(dir string) bool {
	return slices.ContainsFunc([]string{s.settings.Project, s.settings.Home}, func(root string) bool {
		return root != "" && below(real(root), real(dir))
	})
}

// real is a path without links; what does not exist is joined to what does.
func real(name string) string {
	if resolved, err := filepath.EvalSymlinks(name); err == nil {
		return resolved
	}
	if parent := filepath.Dir(name); parent != name {
		return filepath.Join(real(parent), filepath.Base(name))
	}
	return name
}

// below reports whether a path is a folder or lies in it.
func below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// registry is the registry of a name; "" is the default one.
func (v *view) registry(name string) (Registry, error) {
	var names []string
	for i, r := range v.config.registries() {
		if name == r.Name || name == "" && r.Default {
			return v.registries[i], nil
		}
		names = append(names, r.Name)
	}
	if name == "" {
		return Registry{}, newError(RegistryNotConfigured, "no registry is configured").hint("add one with aam_registry_add")
	}
	return Registry{}, newError(RegistryNotFound, "there is no registry %q", name).with("registries", names).
		hint("name one of these, or add it with aam_registry_add")
}

// reached lets tests end a call.
func (s *Service) reached(step string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(step)
}
