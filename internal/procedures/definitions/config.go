package definitions

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Defaults and bounds of the configuration.
const (
	defaultTTL      = 3600 // seconds that a registry's index is believed
	defaultPriority = 100
	maxRegistries   = 100 // of one file
)

// ConfigOptions say where the configuration is, and what the operator admits beside it.
type ConfigOptions struct {
	File     string       // FRACTARY_CONFIG; "" to look in project and home
	Project  string       // absolute; "" for none
	Home     string       // absolute; "" for none
	CacheDir string       // FRACTARY_CACHE_DIR; "" for the configuration's or the default
	Sources  sources.List // that a project's file may choose from
}

// Config is the effective configuration: what the operator's file says (the one of FRACTARY_CONFIG, or else the
// user's), as far as the project's file does not narrow it, with defaults for what both leave out.
type Config struct {
	// Registries are the registries in use, those of lower priority numbers first, and then the unused ones.
	Registries []Registry
	CacheDir   string // absolute; "" for no cache
	TTL        int    // seconds
	Resolution Resolution
	Sources    []string // the files that it was read from
	Ignored    []string // what the files say and is not used, and why: a sentence each

	given map[string]any // what the files say, secrets removed
	// known returns the operator's configuration for an address, without credentials.
	known func(address *url.URL) trust.Operator[transport.Host]
}

// Resolution says which sources are asked for a name.
type Resolution struct {
	Local     bool `json:"local"`
	Global    bool `json:"global"`
	Stockyard bool `json:"stockyard"`
}

// Registry is a registry that a file of the configuration names.
type Registry struct {
	Name     string
	Type     string // manifest or stockyard
	URL      string // of its registry.json: https, http, file, or a path
	Priority int    // at least 1; lower ones are asked first
	TTL      int    // seconds
	TokenEnv string // the variable with its token; "" for none
	AuthType string // bearer or apikey
	Disabled bool
	Unused   string // why it is never asked; "" if it may be

	dir   string                   // paths are relative to it
	named trust.Operator[*url.URL] // its address, if it is one of the web and the operator has named it
}

// asked reports whether the registry may be asked and is switched on.
func (r Registry) asked() bool { return r.Unused == "" && !r.Disabled }

// loadConfig reads the configuration. *Error with CONFIG_ERROR for a file that cannot be read or is malformed.
func loadConfig(o ConfigOptions) (Config, error) {
	operators, projects, err := o.read()
	if err != nil {
		return Config{}, err
	}
	m := merger{options: o, operators: operators, projects: projects}
	return m.merge(), nil
}

// TokenVariables returns the variables with tokens that the operator's file names for its registries. What a project's
// file names is not among them.
func TokenVariables(o ConfigOptions) (names []string, err error) {
	operators, _, err := o.read()
	for _, r := range operators.registries {
		if r.TokenEnv != "" && r.withDefaults(defaultTTL).unfit() == "" {
			names = append(names, r.TokenEnv)
		}
	}
	return names, err
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

// Values returns the configuration as mappings and lists: what the files say and, if wanted, defaults for the rest.
func (c Config) Values(defaults bool) map[string]any {
	out := map[string]any{}
	maps.Copy(out, c.given)
	registries := []any{}
	for _, r := range c.Registries {
		entry := map[string]any{
			"name": r.Name, "type": r.Type, "url": withoutPassword(r.URL), "enabled": r.asked(), "priority": r.Priority,
			"cache_ttl": r.TTL,
		}
		if r.TokenEnv != "" {
			entry["auth"] = map[string]any{"type": r.AuthType, "token_env": r.TokenEnv}
		}
		if r.Unused != "" {
			entry["not_used"] = r.Unused
		}
		registries = append(registries, entry)
	}
	for section, value := range map[string]any{
		"registries": registries,
		"cache":      map[string]any{"directory": c.CacheDir, "ttl": c.TTL},
		"resolution": map[string]any{"local": c.Resolution.Local, "global": c.Resolution.Global,
			"stockyard": c.Resolution.Stockyard},
	} {
		if _, given := out[section]; given || defaults {
			out[section] = value
		}
	}
	return out
}

// Get returns the value at a path of keys and indexes joined with dots, such as registries.0.url.
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
