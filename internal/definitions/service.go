package definitions

import (
	"net/http"
	"path/filepath"
	"time"
)

// Settings say where a Service finds things.
type Settings struct {
	ConfigFile string // FRACTARY_CONFIG; "" to look in project and home
	CacheDir   string // FRACTARY_CACHE_DIR; "" for the configuration's or the default
	Project    string // absolute; the server's working folder
	Home       string // absolute; the user's; "" for none
	Transport  http.RoundTripper
	// Token is the value of a registry's token; "" for none. It is called for each before anything is answered, so that it can
	// see to it that no answer has the value.
	Token func(variable string) string
	Now   func() time.Time
}

// Service answers the tools. It keeps what it has read of definitions; the configuration is read anew for each call. It is safe
// for concurrent use.
type Service struct {
	settings Settings
	catalog  *Catalog // whose memory all calls share
}

// NewService makes a Service. It touches no disk.
func NewService(s Settings) *Service {
	return &Service{settings: s, catalog: NewCatalog(Options{Project: s.Project, Home: s.Home, Now: s.Now})}
}

// view is everything under the configuration as it is now.
type view struct {
	config     Config
	cache      *Cache
	registries *Registries
	catalog    *Catalog // of the sources that the configuration resolves names in
	files      *Catalog // of project and home, whatever the configuration says
}

// open reads the configuration. CONFIG_ERROR for one that cannot be read.
func (s *Service) open() (*view, error) {
	config, err := LoadConfig(ConfigOptions{
		File: s.settings.ConfigFile, CacheDir: s.settings.CacheDir, Project: s.settings.Project, Home: s.settings.Home,
	})
	if err != nil {
		return nil, err
	}
	older := ""
	if s.settings.Home != "" {
		older = filepath.Join(s.settings.Home, ".fractary", "registry", "cache")
	}
	v := &view{config: config, cache: NewCache(config.CacheDir, older, s.settings.Now)}
	v.registries = NewRegistries(config, v.cache, s.settings.Transport, s.settings.Token, s.settings.Project)
	for _, r := range config.Registries {
		v.registries.fetcher.tokenOf(r) // from now on Token keeps it out of answers
	}
	o := Options{Project: s.settings.Project, Home: s.settings.Home, Registries: v.registries, Now: s.settings.Now}
	v.files = s.catalog.With(o)
	if !config.Resolution.Local {
		o.Project = ""
	}
	if !config.Resolution.Global {
		o.Home = ""
	}
	v.catalog = s.catalog.With(o)
	return v, nil
}

// cacheDir is the folder of the cache; "" if the configuration cannot be read, which the call then says.
func (s *Service) cacheDir() string {
	v, err := s.open()
	if err != nil {
		return ""
	}
	return v.config.CacheDir
}
