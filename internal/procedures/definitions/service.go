package definitions

import (
	"net/http"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/settings/sources"
)

// Settings say where a Service finds things.
type Settings struct {
	ConfigFile string // FRACTARY_CONFIG; "" to look in project and home
	CacheDir   string // FRACTARY_CACHE_DIR; "" for the configuration's or the default
	Project    string // absolute; the server's working folder
	Home       string // absolute; the user's; "" for none
	// Sources returns the sources that a project's file may choose from beside the operator's registries; nil for none.
	Sources   func() sources.List
	Frozen    func() bool // nothing is written now, the cache neither; nil: never
	Transport http.RoundTripper
	// Token is the value of a registry's token; "" for none. It is called for each before anything is answered, so that it
	// can see to it that no answer has the value.
	Token func(variable string) string
	Now   func() time.Time
}

// Service answers the tools. It keeps what it has read of definitions; the configuration is read anew for each call. It
// is safe for concurrent use.
type Service struct {
	settings Settings
	catalog  *Catalog // whose memory all calls share
}

// NewService makes a Service. It touches no disk.
func NewService(s Settings) *Service {
	return &Service{settings: s, catalog: newCatalog(options{Project: s.Project, Home: s.Home, Now: s.Now})}
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
	var admitted sources.List
	if s.settings.Sources != nil {
		admitted = s.settings.Sources()
	}
	config, err := loadConfig(ConfigOptions{
		File: s.settings.ConfigFile, CacheDir: s.settings.CacheDir, Project: s.settings.Project, Home: s.settings.Home,
		Sources: admitted,
	})
	if err != nil {
		return nil, err
	}
	older := ""
	if s.settings.Home != "" {
		older = filepath.Join(s.settings.Home, ".fractary", "registry", "cache")
	}
	frozen := s.settings.Frozen != nil && s.settings.Frozen()
	v := &view{config: config, cache: newCache(config.CacheDir, older, frozen, s.settings.Now)}
	v.registries = newRegistries(config, v.cache, s.settings.Transport, s.settings.Token)
	for _, r := range config.Registries {
		v.registries.fetcher.tokenOf(r) // from now on Token keeps it out of answers
	}
	o := options{Project: s.settings.Project, Home: s.settings.Home, Registries: v.registries, Now: s.settings.Now}
	v.files = s.catalog.with(o)
	if !config.Resolution.Local {
		o.Project = ""
	}
	if !config.Resolution.Global {
		o.Home = ""
	}
	v.catalog = s.catalog.with(o)
	return v, nil
}

// cacheDirs returns the folder of the cache; none if the configuration cannot be read, which the call then says.
func (s *Service) cacheDirs() []string {
	v, err := s.open()
	if err != nil || v.config.CacheDir == "" {
		return nil
	}
	return []string{v.config.CacheDir}
}

// notes lists the settings of the configuration that are not used, and what could not be read.
func (v *view) notes(problems Problems, failed []error) []string {
	return notesOf(v.config.Ignored, problems, failed)
}
