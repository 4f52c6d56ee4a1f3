package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Source says where a value of the configuration comes from.
type Source string

// The sources. Of values that come from several it is Merged.
const (
	SourceDefault Source = "default"
	SourceGlobal  Source = "global"  // ~/.aam/config.yaml
	SourceProject Source = "project" // .aam/config.yaml of the project
	SourceMerged  Source = "merged"
)

// setting is a key of the configuration.
type setting struct {
	key     string // with a dot for one in a section
	initial any
	allowed []string // values of a text; nil: any
}

// settings lists the keys.
func settings() []setting {
	return []setting{
		{"default_platform", "cursor", platformNames()},
		{"active_platforms", []any{"cursor"}, platformNames()},
		{"registries", []any{}, nil},
		{"security.require_checksum", true, nil},
		{"security.require_signature", false, nil},
		{"security.on_signature_failure", "warn", []string{"warn", "error", "ignore"}},
		{"author.name", nil, nil},
		{"author.email", nil, nil},
		{"publish.default_scope", "", nil},
	}
}

// RegistryConfig is a registry in the configuration.
type RegistryConfig struct {
	Name    string `yaml:"name"`
	URL     string `yaml:"url"`
	Type    string `yaml:"type"`
	Default bool   `yaml:"default"`
}

// Config is the configuration: defaults, below it the user's file, below that the project's. Lists are replaced,
// sections merged. A project's file makes nothing less secure than the user has it, and says nothing of what lies
// outside of the project; see Service.registries.
type Config struct {
	values  map[string]any
	sources map[string]Source
	own     []any    // the registries of the user's file
	unused  []string // what the project's file says and is not used, each with the reason
}

// maxConfigBytes bounds a file of the configuration.
const maxConfigBytes = 1 << 20

// loadConfig reads the configuration. Files that do not exist are left out, and none is made. AAM_CONFIG_INVALID names
// the file and what is wrong in it.
func loadConfig(home, project string) (Config, error) {
	c := Config{values: map[string]any{}, sources: map[string]Source{}}
	for _, s := range settings() {
		c.values[s.key], c.sources[s.key] = s.initial, SourceDefault
	}
	var errs []error
	for _, layer := range []struct {
		dir    string
		source Source
	}{{home, SourceGlobal}, {project, SourceProject}} {
		if layer.dir == "" || layer.source == SourceProject && layer.dir == home {
			continue
		}
		errs = append(errs, c.overlay(layer.dir, layer.source))
		if layer.source == SourceGlobal {
			c.own = c.values["registries"].([]any)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return c, newError(ConfigInvalid, "%s",
			strings.ReplaceAll(err.Error(), "\n", "; ")).Suggest("correct the file, or remove the value")
	}
	return c, nil
}

// configFile returns the file of the configuration in a home or a project.
func configFile(dir string) string { return filepath.Join(dir, workspaceName, "config.yaml") }

// overlay takes what a file says. Values that are wrong are left out and named in the error.
func (c *Config) overlay(dir string, source Source) error {
	document, err := readConfig(dir)
	if err != nil {
		return err
	}
	var wrong []string
	for _, s := range settings() {
		value, has := at(document, s.key)
		if !has || value == nil {
			continue
		}
		if why := s.check(value); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", s.key, why))
			continue
		}
		if source == SourceProject && s.loosens(c.values[s.key], value) {
			c.unused = append(c.unused,
				fmt.Sprintf("not used: %s of the project's configuration is %v, which is less secure than your own configuration",
					s.key, value))
			continue
		}
		if source == SourceProject && s.key == "registries" {
			value = resolvedURLs(dir, value)
		}
		c.values[s.key], c.sources[s.key] = value, source
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %s", configFile(dir), strings.Join(wrong, ", "))
	}
	return nil
}

// loosens reports whether a new value is less secure than another.
func (s setting) loosens(before, now any) bool {
	switch {
	case !strings.HasPrefix(s.key, "security."):
		return false
	case s.allowed == nil:
		return before == true && now != true
	}
	strictness := []any{"ignore", "warn", "error"}
	return slices.Index(strictness, now) < slices.Index(strictness, before)
}

// resolvedURLs resolves the relative paths of a project's registries.
func resolvedURLs(dir string, registries any) any {
	for _, entry := range registries.([]any) {
		r := entry.(map[string]any)
		if url, _ := r["url"].(string); !strings.Contains(url, "://") && !filepath.IsAbs(url) &&
			!strings.HasPrefix(url, "~") {
			r["url"] = filepath.Join(dir, filepath.FromSlash(url))
		}
	}
	return registries
}

func readConfig(dir string) (map[string]any, error) {
	root, err := files.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", dir, reason(err))
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(filepath.Join(workspaceName, "config.yaml"), maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", configFile(dir), reason(err))
	}
	var document map[string]any
	if _, err := strictyaml.Decode(text, &document, strictyaml.Options{}); err != nil {
		return nil, fmt.Errorf("%s is no mapping of YAML: %w", configFile(dir), err)
	}
	return document, nil
}

// at returns the value of a key with a dot or none.
func at(document map[string]any, key string) (any, bool) {
	section, rest, nested := strings.Cut(key, ".")
	value, has := document[section]
	if !nested || !has {
		return value, has
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return value, value != nil // of the wrong kind, which check says
	}
	value, has = inner[rest]
	return value, has
}

// check says what is wrong with a value; "" if nothing is.
func (s setting) check(value any) string {
	switch s.initial.(type) {
	case bool:
		if _, ok := value.(bool); !ok {
			return fmt.Sprintf("%v is not true or false", value)
		}
	case []any:
		list, ok := value.([]any)
		if !ok {
			return "it is no list"
		}
		if s.key == "registries" {
			return checkRegistries(list)
		}
		for _, entry := range list {
			if why := s.checkText(entry); why != "" {
				return why
			}
		}
	default:
		return s.checkText(value)
	}
	return ""
}

func (s setting) checkText(value any) string {
	text, ok := value.(string)
	switch {
	case !ok:
		return fmt.Sprintf("%v is no text", value)
	case s.allowed != nil && !slices.Contains(s.allowed, text):
		return fmt.Sprintf("%q is not one of %s", text, strings.Join(s.allowed, ", "))
	case s.key == "publish.default_scope" && text != "" &&
		!regexp.MustCompile(`\A@?[a-z0-9][a-z0-9_-]{0,63}\z`).MatchString(text):
		return fmt.Sprintf("%q is no scope", text)
	}
	return ""
}

func checkRegistries(list []any) string {
	names := map[string]bool{}
	for i, entry := range list {
		r, ok := entry.(map[string]any)
		if !ok {
			return fmt.Sprintf("entry %d is no mapping", i)
		}
		name, _ := r["name"].(string)
		url, _ := r["url"].(string)
		if _, isBool := r["default"].(bool); r["default"] != nil && !isBool {
			return fmt.Sprintf("default of entry %d is not true or false", i)
		}
		if kind, isText := r["type"].(string); r["type"] != nil && (!isText || kind != "local" && kind != "http") {
			return fmt.Sprintf("type of entry %d is not local or http", i)
		}
		if !validRegistryName(name) || url == "" {
			return fmt.Sprintf("entry %d needs a name of letters, digits, hyphens, dots and a url", i)
		}
		if names[name] {
			return fmt.Sprintf("the name %q is there twice", name)
		}
		names[name] = true
	}
	return ""
}

func validRegistryName(name string) bool {
	return regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\z`).MatchString(name)
}
