package packages

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setConfig changes one value in the user's file, which keeps what else it has, or only checks it. AAM_INVALID_ARGUMENT
// for a key that does not exist and for a value that the key cannot have.
func setConfig(home, key, text string, checkOnly bool) (any, error) {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil, unknownKey(key)
	}
	s := settings()[i]
	value, why := s.parse(text)
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
		return put(document, strings.Split(key, "."), value)
	})
}

// mayCallerSet returns AAM_PERMISSION_DENIED for a value of the user's file that only a person sets: one that makes
// installations less secure, and a platform that puts files outside of projects. An invalid value is left to setConfig.
func mayCallerSet(home, key, text string) error {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	value, why := settings()[i].parse(text)
	own, err := loadConfig(home, "")
	if err != nil || why != "" || settings()[i].check(value) != "" {
		return err
	}
	denied := newError(PermissionDenied, "%s becomes %s only if a person says so", key,
		text).Suggest("a person runs: claudeops packages config set")
	if settings()[i].loosens(own.values[key], value) {
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

// parse reads a value as it is typed.
func (s setting) parse(text string) (value any, why string) {
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
				return newError(ConfigInvalid, "%s: registries is no list", configFile(home)).Because(err)
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
		return put(document, []string{"registries"}, registries)
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
		return newError(PermissionDenied, "%s cannot be read: %s", configFile(home), reason(err)).Because(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return newError(ConfigInvalid, "%s is no YAML", configFile(home)).Because(err)
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
		return newError(PermissionDenied, "%s cannot be written: %s", configFile(home), reason(err)).Because(err)
	}
	return nil
}

// put sets a value in a mapping, and makes the sections on the way.
func put(mapping *yaml.Node, keys []string, value any) error {
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
		return put(node, keys[1:], value)
	}
	comment := node.LineComment
	if err := node.Encode(value); err != nil {
		return newError(InternalError, "the value cannot be written").Because(err)
	}
	node.LineComment = comment
	return nil
}
