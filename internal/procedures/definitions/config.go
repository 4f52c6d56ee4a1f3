package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
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

// isQueried reports whether the registry may be asked and is switched on.
func (r Registry) isQueried() bool { return r.Unused == "" && !r.Disabled }

// loadConfig reads the configuration. *Error with CONFIG_ERROR for a file that cannot be read or is malformed.
func loadConfig(o ConfigOptions) (Config, error) {
	operators, projects, err := o.readConfigs()
	if err != nil {
		return Config{}, err
	}
	m := merger{options: o, operators: operators, projects: projects}
	return m.mergeConfigs(), nil
}

// TokenVariables returns the variables with tokens that the operator's file names for its registries. What a project's
// file names is not among them.
func TokenVariables(o ConfigOptions) (names []string, err error) {
	operators, _, err := o.readConfigs()
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
			"name": r.Name, "type": r.Type, "url": withoutPassword(r.URL), "enabled": r.isQueried(), "priority": r.Priority,
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

// configFile is a file of the configuration as it is written. The zero value is one that is not there.
type configFile struct {
	name       string // its path
	registries []Registry
	chooses    bool   // it has a list of registries
	cacheDir   string // as it is written
	ttl        int    // seconds; unset without one
	resolution Resolution
	given      map[string]any // secrets removed
}

// unset is a number that a file leaves out.
const unset = -1

func noFile() configFile { return configFile{ttl: unset, resolution: Resolution{true, true, true}} }

// configNames returns the places of the configuration in a project and in a home.
func configNames() []string {
	return []string{filepath.Join(".fractary", "config.json"), filepath.Join(".fractary", "config.yaml")}
}

// readConfigs reads the operator's file and the project's, as far as they are there. One that FRACTARY_CONFIG names
// must be there. If it lies outside of the project, it is the only one; inside, it is the project's. Of a project that
// is the user's home, the file is the operator's.
func (o ConfigOptions) readConfigs() (operators, projects configFile, err error) {
	projects = noFile()
	if o.File != "" {
		name := o.File
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Project, name)
		}
		if !o.inProject(name) {
			operators, err = readConfig(name, func() ([]byte, error) { return readOperators(name) })
			return operators, projects, err
		}
		if operators, err = o.readHome(); err == nil {
			projects, err = readConfig(name, func() ([]byte, error) { return readProjects(o.Project, name) })
		}
		return operators, projects, err
	}
	if operators, err = o.readHome(); err != nil || o.Project == "" || sameFile(o.Project, o.Home) {
		return operators, projects, err
	}
	projects, err = firstConfig(o.Project, func(name string) ([]byte, error) { return readProjects(o.Project, name) })
	return operators, projects, err
}

func (o ConfigOptions) readHome() (configFile, error) {
	if o.Home == "" {
		return noFile(), nil
	}
	return firstConfig(o.Home, readOperators)
}

// readOperators reads a file of the operator, whose links are the operator's as well.
func readOperators(name string) ([]byte, error) {
	text, _, err := files.ReadPath(name, maxFileBytes)
	return text, err
}

// readProjects reads a file of the project. A link that leaves the project is not followed.
func readProjects(project, name string) ([]byte, error) {
	root, err := files.OpenDir(project)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	rel, err := filepath.Rel(project, name)
	if err != nil || !filepath.IsLocal(rel) {
		rel, err = filepath.Rel(files.Resolve(project), files.Resolve(name))
	}
	if err != nil {
		return nil, err
	}
	text, _, err := root.Read(rel, maxFileBytes)
	return text, err
}

// firstConfig returns the first configuration in a folder.
func firstConfig(dir string, read func(name string) ([]byte, error)) (configFile, error) {
	for _, rel := range configNames() {
		name := filepath.Join(dir, rel)
		text, err := read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return readConfig(name, func() ([]byte, error) { return text, err })
	}
	return noFile(), nil
}

func configError(name string, err error) *Error {
	e := newError(ConfigError, "the configuration %s %s", name, pathlessError(err)).With("file", name)
	e.Cause = err
	return e.Suggest("correct the file, or point FRACTARY_CONFIG to another")
}

// pathlessError returns an error without the name of its file.
func pathlessError(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return "cannot be read: " + of.Err.Error()
	}
	return err.Error()
}

func readConfig(name string, read func() ([]byte, error)) (configFile, error) {
	content, err := read()
	if err != nil {
		return noFile(), configError(name, err)
	}
	d := parseDefinition(name+".yaml", content) // JSON is YAML
	if d.root == nil || len(d.problems) > 0 {
		first := d.problems[0]
		return noFile(), configError(name, fmt.Errorf("line %d: %s", first.Line, first.Message))
	}
	root := d.root
	if forge := root.get("forge"); forge != nil && forge.kind == kindMapping && root.get("registries") == nil {
		root = forge
	}
	checks := checker{}
	checks.checkValue(root, "", configSchema())
	if len(checks.problems) > 0 {
		first := checks.problems[0]
		return noFile(), configError(name, fmt.Errorf("line %d: %s %s", first.Line, first.Field, first.Message))
	}
	f := configFile{
		name: name, chooses: root.get("registries") != nil, cacheDir: root.get("cache").get("directory").string(),
		ttl: intOr(root.get("cache").get("ttl"), unset), resolution: readResolution(root.get("resolution")),
		given: map[string]any{},
	}
	if given, ok := hideSecrets(root.jsonValue()).(map[string]any); ok {
		f.given = given
	}
	entries := itemsOf(root.get("registries"))
	if len(entries) > maxRegistries {
		return noFile(), configError(name, fmt.Errorf("has %d registries; at most %d are read", len(entries), maxRegistries))
	}
	for i, entry := range entries {
		registry, err := readRegistry(entry, filepath.Dir(name))
		if err != nil {
			return noFile(), configError(name, fmt.Errorf("registries.%d %w", i, err))
		}
		f.registries = append(f.registries, registry)
	}
	return f, nil
}

func readResolution(v *value) Resolution {
	on := func(key string) bool {
		switched := v.get(key)
		return switched == nil || switched.text == "true"
	}
	return Resolution{on("local"), on("global"), on("stockyard")}
}

func configSchema() *shape {
	return &shape{kinds: []yamlKind{kindMapping}, fields: []mappingKey{
		{"registries", false, listOf(mappingOf(
			mappingKey{"name", true, nonEmptyText()},
			mappingKey{"type", false, oneOf("manifest", "stockyard")},
			mappingKey{"url", true, nonEmptyText()},
			mappingKey{"enabled", false, flag()},
			mappingKey{"priority", false, between(1, 1e9, kindInteger)},
			mappingKey{"cache_ttl", false, between(0, 1e9, kindInteger)},
			mappingKey{"auth", false, mappingOf(
				mappingKey{"type", false, oneOf("bearer", "apikey")},
				mappingKey{"token_env", false, nonEmptyText()},
			)},
		))},
		{"cache", false, mappingOf(mappingKey{"directory", false, nonEmptyText()},
			mappingKey{"ttl", false, between(0, 1e9, kindInteger)})},
		{"resolution", false, mappingOf(mappingKey{"local", false, flag()}, mappingKey{"global", false, flag()},
			mappingKey{"stockyard", false, flag()})},
	}}
}

// readRegistry reads an entry. Priority and TTL are unset where it leaves them out.
func readRegistry(v *value, dir string) (Registry, error) {
	r := Registry{
		Name: v.get("name").string(), Type: v.get("type").string(), URL: v.get("url").string(),
		Priority: intOr(v.get("priority"), unset), TTL: intOr(v.get("cache_ttl"), unset),
		TokenEnv: v.get("auth").get("token_env").string(), AuthType: v.get("auth").get("type").string(), dir: dir,
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
	if _, err := parseLocation(r.URL); err != nil {
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

func intOr(v *value, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return otherwise
	}
	return n
}

// inProject reports whether a path leads into the project, by its name or by links. A project that is the user's home,
// or holds it, does not count as a checkout: its contents belong to the operator.
func (o ConfigOptions) inProject(path string) bool {
	if o.Project == "" || o.Project == string(filepath.Separator) || o.Home != "" && lieBelow(o.Project, o.Home) {
		return false
	}
	return lieBelow(o.Project, path)
}

// lieBelow reports whether a path is a folder or leads below it, whatever links both have.
func lieBelow(folder, path string) bool {
	for _, at := range []string{filepath.Clean(path), files.Resolve(path)} {
		for {
			if at == filepath.Clean(folder) || sameFile(folder, at) {
				return true
			}
			parent := filepath.Dir(at)
			if parent == at {
				break
			}
			at = parent
		}
	}
	return false
}

func sameFile(a, b string) bool {
	first, err := files.Stat(a)
	if err != nil {
		return false
	}
	second, err := files.Stat(b)
	return err == nil && os.SameFile(first, second)
}
