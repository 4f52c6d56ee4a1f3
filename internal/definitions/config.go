package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Defaults of the configuration.
const (
	DefaultTTL      = 3600 // seconds that a registry's index is believed
	defaultPriority = 100
)

// ConfigOptions say where the configuration is.
type ConfigOptions struct {
	File     string // FRACTARY_CONFIG; "" to look in project and home
	Project  string // absolute; "" for none
	Home     string // absolute; "" for none
	CacheDir string // FRACTARY_CACHE_DIR; "" for the configuration's or the default
}

// Config is the effective configuration: the first of FRACTARY_CONFIG, .fractary/config.json or config.yaml of the project and
// .fractary/config.json of the user that is there, whole, with defaults for what it leaves out.
type Config struct {
	Registries []Registry
	CacheDir   string
	TTL        int // seconds
	Resolution Resolution
	Sources    []string // the files that it was read from

	given map[string]any // what the file says, secrets removed
}

// Resolution says which sources are asked for a name.
type Resolution struct {
	Local     bool `json:"local"`
	Global    bool `json:"global"`
	Stockyard bool `json:"stockyard"`
}

// Registry is a configured registry.
type Registry struct {
	Name     string
	Type     string // manifest or stockyard
	URL      string // of its registry.json: https, http, file, or a path
	Priority int    // at least 1; lower ones are asked first
	TTL      int    // seconds
	TokenEnv string // the variable with its token; "" for none
	AuthType string // bearer or apikey
	Disabled bool
}

// LoadConfig reads the configuration. *Error with CONFIG_ERROR for a file that cannot be read or is malformed.
func LoadConfig(o ConfigOptions) (Config, error) {
	c := Config{CacheDir: o.CacheDir, TTL: DefaultTTL, Resolution: Resolution{true, true, true}}
	name, err := configFile(o)
	if err != nil {
		return Config{}, err
	}
	if name != "" {
		c.Sources = []string{name}
		if err := c.read(name); err != nil {
			return Config{}, err
		}
	}
	if c.CacheDir == "" && o.Home != "" {
		c.CacheDir = filepath.Join(o.Home, ".fractary", "cache")
	}
	slices.SortStableFunc(c.Registries, func(a, b Registry) int { return a.Priority - b.Priority })
	return c, nil
}

// configFile is the file to read; "" if there is none. One that FRACTARY_CONFIG names must exist.
func configFile(o ConfigOptions) (string, error) {
	if o.File != "" {
		name := o.File
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Project, name)
		}
		return name, nil
	}
	var names []string
	for _, dir := range []string{o.Project, o.Home} {
		if dir != "" {
			names = append(names, filepath.Join(dir, ".fractary", "config.json"), filepath.Join(dir, ".fractary", "config.yaml"))
		}
	}
	for _, name := range names {
		switch _, err := os.Stat(name); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", configError(name, err)
		}
	}
	return "", nil
}

func configError(name string, err error) *Error {
	e := newError(ConfigError, "the configuration %s %s", name, reason(err)).with("file", name)
	e.Cause = err
	return e.suggest("correct the file, or point FRACTARY_CONFIG to another")
}

// reason is an error without the name of its file.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return "cannot be read: " + of.Err.Error()
	}
	return err.Error()
}

func (c *Config) read(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return configError(name, err)
	}
	d := parse(name+".yaml", content) // JSON is YAML
	if d.root == nil || len(d.problems) > 0 {
		first := d.problems[0]
		return configError(name, fmt.Errorf("line %d: %s", first.Line, first.Message))
	}
	root := d.root
	if forge := root.get("forge"); forge != nil && forge.kind == kindMapping && root.get("registries") == nil {
		root = forge
	}
	checks := checker{}
	checks.check(root, "", configSchema())
	if len(checks.problems) > 0 {
		first := checks.problems[0]
		return configError(name, fmt.Errorf("line %d: %s %s", first.Line, first.Field, first.Message))
	}
	if given, ok := hideSecrets(root.plain()).(map[string]any); ok {
		c.given = given
	}
	for i, entry := range itemsOf(root.get("registries")) {
		registry, err := readRegistry(entry, c.TTL)
		if err != nil {
			return configError(name, fmt.Errorf("registries.%d %w", i, err))
		}
		c.Registries = append(c.Registries, registry)
	}
	c.readRest(root, filepath.Dir(name))
	return nil
}

func (c *Config) readRest(root *value, dir string) {
	cache, resolution := root.get("cache"), root.get("resolution")
	if folder := cache.get("directory").string(); folder != "" && c.CacheDir == "" {
		c.CacheDir = folder
		if !filepath.IsAbs(folder) {
			c.CacheDir = filepath.Join(dir, folder)
		}
	}
	if ttl := cache.get("ttl"); ttl != nil {
		c.TTL = number(ttl, c.TTL)
	}
	set := func(into *bool, key string) {
		if v := resolution.get(key); v != nil {
			*into = v.text == "true"
		}
	}
	set(&c.Resolution.Local, "local")
	set(&c.Resolution.Global, "global")
	set(&c.Resolution.Stockyard, "stockyard")
}

func configSchema() *shape {
	return &shape{kinds: []kind{kindMapping}, fields: []field{
		{"registries", false, listOf(mappingOf(
			field{"name", true, nonEmptyText()},
			field{"type", false, oneOf("manifest", "stockyard")},
			field{"url", true, nonEmptyText()},
			field{"enabled", false, flag()},
			field{"priority", false, between(1, 1e9, kindInteger)},
			field{"cache_ttl", false, between(0, 1e9, kindInteger)},
			field{"auth", false, mappingOf(
				field{"type", false, oneOf("bearer", "apikey")},
				field{"token_env", false, nonEmptyText()},
			)},
		))},
		{"cache", false, mappingOf(field{"directory", false, nonEmptyText()}, field{"ttl", false, between(0, 1e9, kindInteger)})},
		{"resolution", false, mappingOf(field{"local", false, flag()}, field{"global", false, flag()}, field{"stockyard", false, flag()})},
	}}
}

func readRegistry(v *value, ttl int) (Registry, error) {
	r := Registry{
		Name: v.get("name").string(), Type: v.get("type").string(), URL: v.get("url").string(),
		Priority: number(v.get("priority"), defaultPriority), TTL: number(v.get("cache_ttl"), ttl),
		TokenEnv: v.get("auth").get("token_env").string(), AuthType: v.get("auth").get("type").string(),
	}
	if r.Type == "" {
		r.Type = "manifest"
	}
	if r.AuthType == "" {
		r.AuthType = "bearer"
	}
	if enabled := v.get("enabled"); enabled != nil && enabled.text == "false" {
		r.Disabled = true
	}
	if _, err := parseLocation(r.URL, ""); err != nil {
		return Registry{}, fmt.Errorf("url %w", err)
	}
	return r, nil
}

func itemsOf(v *value) []*value {
	if v == nil {
		return nil
	}
	return v.items
}

func number(v *value, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return otherwise
	}
	return n
}

// hideSecrets replaces what keys name as a secret, at any depth.
func hideSecrets(v any) any {
	switch typed := v.(type) {
	case map[string]any:
		for key, inner := range typed {
			if _, isText := inner.(string); isText && namesSecret(key) {
				typed[key] = "[hidden]"
				continue
			}
			typed[key] = hideSecrets(inner)
		}
	case string:
		return withoutPassword(typed)
	case []any:
		for i := range typed {
			typed[i] = hideSecrets(typed[i])
		}
	}
	return v
}

// withoutPassword hides the password of a URL.
func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

func namesSecret(key string) bool {
	key = strings.ToLower(key)
	if key == "token_env" {
		return false
	}
	for _, word := range []string{"token", "password", "secret", "api_key", "apikey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// Values is the configuration as mappings and lists: what the file says and, if wanted, defaults for the rest.
func (c Config) Values(defaults bool) map[string]any {
	out := map[string]any{}
	for key, v := range c.given {
		out[key] = v
	}
	if !defaults {
		return out
	}
	registries := []any{}
	for _, r := range c.Registries {
		entry := map[string]any{"name": r.Name, "type": r.Type, "url": withoutPassword(r.URL), "enabled": !r.Disabled, "priority": r.Priority, "cache_ttl": r.TTL}
		if r.TokenEnv != "" {
			entry["auth"] = map[string]any{"type": r.AuthType, "token_env": r.TokenEnv}
		}
		registries = append(registries, entry)
	}
	out["registries"] = registries
	out["cache"] = map[string]any{"directory": c.CacheDir, "ttl": c.TTL}
	out["resolution"] = map[string]any{
		"local": c.Resolution.Local, "global": c.Resolution.Global, "stockyard": c.Resolution.Stockyard,
	}
	return out
}

// Get is the value at a path of keys and indexes joined with dots, such as registries.0.url.
func (c Config) Get(key string) (v any, exists bool) {
	text, err := json.Marshal(c.Values(true))
	if err != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, false
	}
	for _, part := range strings.Split(key, ".") {
		switch typed := v.(type) {
		case map[string]any:
			if v, exists = typed[part]; !exists {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(typed) {
				return nil, false
			}
			v = typed[i]
		default:
			return nil, false
		}
	}
	return v, true
}
