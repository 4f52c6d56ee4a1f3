package packages

import (
	"maps"
	"slices"
	"strings"
)

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
	for _, s := range settings() {
		known = append(known, s.key)
	}
	return newError(InvalidArgument, "there is no setting %q; there are %s", key,
		strings.Join(known, ", ")).With("valid_keys", known)
}

func (c Config) text(key string) string {
	text, _ := c.values[key].(string)
	return text
}

// platforms returns the platforms into which packages are put when the caller names none.
func (c Config) platforms() []string {
	if c.sources["active_platforms"] == SourceDefault && c.sources["default_platform"] != SourceDefault {
		return []string{c.text("default_platform")}
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
