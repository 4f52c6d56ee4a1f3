package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

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

// settingKeys lists the keys.
func settingKeys() []setting {
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
	for _, s := range settingKeys() {
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
	for _, s := range settingKeys() {
		value, has := lookupKey(document, s.key)
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
		if s.key == "registries" {
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

// resolvedURLs resolves the relative paths of registries, which begin in the folder that holds the configuration.
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
		return nil, fmt.Errorf("%s cannot be read: %s", dir, pathlessError(err))
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(filepath.Join(workspaceName, "config.yaml"), maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", configFile(dir), pathlessError(err))
	}
	var document map[string]any
	if _, err := strictyaml.Decode(text, &document, strictyaml.Options{}); err != nil {
		return nil, fmt.Errorf("%s is not a YAML mapping: %w", configFile(dir), err)
	}
	return document, nil
}

// lookupKey returns the value of a key with a dot or none.
func lookupKey(document map[string]any, key string) (any, bool) {
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
			return "it is not a list"
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
		return fmt.Sprintf("%v is not text", value)
	case s.allowed != nil && !slices.Contains(s.allowed, text):
		return fmt.Sprintf("%q is not one of %s", text, strings.Join(s.allowed, ", "))
	case s.key == "publish.default_scope" && text != "" &&
		!regexp.MustCompile(`\A@?[a-z0-9][a-z0-9_-]{0,63}\z`).MatchString(text):
		return fmt.Sprintf("%q is not a scope", text)
	}
	return ""
}

func checkRegistries(list []any) string {
	names := map[string]bool{}
	for i, entry := range list {
		r, ok := entry.(map[string]any)
		if !ok {
			return fmt.Sprintf("entry %d is not a mapping", i)
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

// Get returns the value of a key, of a section, or with "" of everything, and where it comes from. AAM_INVALID_ARGUMENT
// for a key that does not exist lists those that do.
func (c Config) Get(key string) (any, Source, error) {
	if key == "" {
		return c.section(""), SourceMerged, nil
	}
	if value, has := c.values[key]; has {
		return value, c.sources[key], nil
	}
	sources := map[Source]bool{}
	for known := range c.values {
		if strings.HasPrefix(known, key+".") {
			sources[c.sources[known]] = true
		}
	}
	switch len(sources) {
	case 0:
		return nil, "", unknownKey(key)
	case 1:
		return c.section(key + "."), slices.Collect(maps.Keys(sources))[0], nil
	}
	return c.section(key + "."), SourceMerged, nil
}

// section returns the values below a prefix as a tree.
func (c Config) section(prefix string) map[string]any {
	out := map[string]any{}
	for key, value := range c.values {
		rest, within := strings.CutPrefix(key, prefix)
		if !within {
			continue
		}
		section, name, nested := strings.Cut(rest, ".")
		if !nested {
			out[section] = value
			continue
		}
		if out[section] == nil {
			out[section] = map[string]any{}
		}
		out[section].(map[string]any)[name] = value
	}
	return out
}

func unknownKey(key string) error {
	var known []string
	for _, s := range settingKeys() {
		known = append(known, s.key)
	}
	return newError(InvalidArgument, "there is no setting %q; there are %s", key,
		strings.Join(known, ", ")).With("valid_keys", known)
}

func (c Config) stringValue(key string) string {
	text, _ := c.values[key].(string)
	return text
}

// platforms returns the platforms into which packages are put when the caller names none.
func (c Config) platforms() []string {
	if c.sources["active_platforms"] == SourceDefault && c.sources["default_platform"] != SourceDefault {
		return []string{c.stringValue("default_platform")}
	}
	var out []string
	for _, entry := range c.values["active_platforms"].([]any) {
		if name := entry.(string); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// registriesOf returns the registries of a list of the configuration.
func registriesOf(list []any) []RegistryConfig {
	var out []RegistryConfig
	for _, entry := range list {
		r := entry.(map[string]any)
		one := RegistryConfig{Name: r["name"].(string), URL: r["url"].(string), Type: "local"}
		if kind, _ := r["type"].(string); kind == "http" && strings.Contains(one.URL, "://") {
			one.Type = "http"
		}
		one.Default, _ = r["default"].(bool)
		out = append(out, one)
	}
	return out
}

// setConfig changes one value in the user's file, which keeps what else it has, or only checks it. AAM_INVALID_ARGUMENT
// for a key that does not exist and for a value that the key cannot have.
func setConfig(home, key, text string, checkOnly bool) (any, error) {
	i := slices.IndexFunc(settingKeys(), func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil, unknownKey(key)
	}
	s := settingKeys()[i]
	value, why := s.parseValue(text)
	if why == "" {
		why = s.check(value)
	}
	if why != "" {
		return nil, newError(InvalidArgument, "%s: %s", key, why).With("key", key)
	}
	if checkOnly {
		return value, nil
	}
	return value, editConfig(home, func(document *yaml.Node) error {
		return setValue(document, strings.Split(key, "."), value)
	})
}

// mayCallerSet returns AAM_PERMISSION_DENIED for a value of the user's file that only a person sets: one that makes
// installations less secure, and a platform that puts files outside of projects. An invalid value is left to setConfig.
func mayCallerSet(home, key, text string) error {
	i := slices.IndexFunc(settingKeys(), func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	value, why := settingKeys()[i].parseValue(text)
	own, err := loadConfig(home, "")
	if err != nil || why != "" || settingKeys()[i].check(value) != "" {
		return err
	}
	denied := newError(PermissionDenied, "%s becomes %s only if a person says so", key,
		text).Suggest("a person runs: claudeops packages config set")
	if settingKeys()[i].loosens(own.values[key], value) {
		return denied
	}
	names, isList := value.([]any)
	if !isList {
		names = []any{value}
	}
	isPlatform := key == "default_platform" || key == "active_platforms"
	if isPlatform && slices.ContainsFunc(names, func(n any) bool { return leavesProject(fmt.Sprint(n)) }) &&
		!slices.ContainsFunc(own.platforms(), leavesProject) {
		return denied
	}
	return nil
}

// parseValue reads a value as it is typed.
func (s setting) parseValue(text string) (value any, why string) {
	switch {
	case s.key == "registries":
		return nil, "registries are added with aam_registry_add"
	case s.initial == true || s.initial == false:
		switch strings.ToLower(text) {
		case "true", "yes", "1", "on":
			return true, ""
		case "false", "no", "0", "off":
			return false, ""
		}
		return nil, fmt.Sprintf("%q is not true or false", text)
	}
	if _, isList := s.initial.([]any); isList {
		var list []any
		for part := range strings.SplitSeq(strings.Trim(text, "[] "), ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		if list == nil {
			return nil, "it names none"
		}
		return list, ""
	}
	return text, ""
}

// addRegistry writes a registry into the user's file. AAM_INVALID_ARGUMENT for a name that is there.
func addRegistry(home string, r RegistryConfig) error {
	return editConfig(home, func(document *yaml.Node) error {
		var registries []map[string]any
		for i := 0; i+1 < len(document.Content); i += 2 {
			if document.Content[i].Value != "registries" {
				continue
			}
			if err := document.Content[i+1].Decode(&registries); err != nil {
				return newError(ConfigInvalid, "%s: registries is not a list", configFile(home)).Because(err)
			}
		}
		for _, known := range registries {
			if known["name"] == r.Name {
				return newError(InvalidArgument, "there is a registry %q already, at %v", r.Name,
					known["url"]).Suggest("choose another name")
			}
			if r.Default {
				known["default"] = false
			}
		}
		registries = append(registries, map[string]any{"name": r.Name, "url": r.URL, "type": r.Type, "default": r.Default})
		return setValue(document, []string{"registries"}, registries)
	})
}

// editConfig changes the user's file at once, comments and unknown keys kept.
func editConfig(home string, change func(document *yaml.Node) error) error {
	if home == "" {
		return newError(PermissionDenied, "there is no home folder for the configuration").Suggest("set HOME")
	}
	if _, err := readConfig(home); err != nil {
		return newError(ConfigInvalid, "%s", err).Suggest("correct the file first")
	}
	text, err := readBelow(home, configFile(home), maxConfigBytes)
	if err != nil {
		return newError(PermissionDenied, "%s cannot be read: %s", configFile(home), pathlessError(err)).Because(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return newError(ConfigInvalid, "%s is not YAML", configFile(home)).Because(err)
	}
	if file.Kind == 0 {
		file = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	if file.Content[0].Kind != yaml.MappingNode {
		file.Content[0] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if err := change(file.Content[0]); err != nil {
		return err
	}
	out, err := marshal(&file)
	if err != nil {
		return newError(InternalError, "the configuration cannot be written").Because(err)
	}
	if err := writeBelow(home, configFile(home), out); err != nil {
		return newError(PermissionDenied, "%s cannot be written: %s", configFile(home), pathlessError(err)).Because(err)
	}
	return nil
}

// setValue sets a value in a mapping, and makes the sections on the way.
func setValue(mapping *yaml.Node, keys []string, value any) error {
	var node *yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == keys[0] {
			node = mapping.Content[i+1]
		}
	}
	if node == nil {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys[0]}, node)
	}
	if len(keys) > 1 {
		if node.Kind != yaml.MappingNode {
			*node = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		return setValue(node, keys[1:], value)
	}
	comment := node.LineComment
	if err := node.Encode(value); err != nil {
		return newError(InternalError, "the value cannot be written").Because(err)
	}
	node.LineComment = comment
	return nil
}
