package definitions

import (
	"regexp"
	"slices"
)

// The schemas below are those of Fractary Forge's definitions: which fields there are, and what they hold.

func text() *shape         { return &shape{kinds: []kind{kindString}} }
func nonEmptyText() *shape { return &shape{kinds: []kind{kindString}, notEmpty: true} }
func flag() *shape         { return &shape{kinds: []kind{kindBoolean}} }
func anyMapping() *shape   { return &shape{kinds: []kind{kindMapping}} }

func oneOf(values ...string) *shape { return &shape{kinds: []kind{kindString}, oneOf: values} }

func listOf(item *shape) *shape { return &shape{kinds: []kind{kindList}, items: item} }

func mappingOf(fields ...field) *shape { return &shape{kinds: []kind{kindMapping}, fields: fields} }

func matching(pattern, want string) *shape {
	return &shape{kinds: []kind{kindString}, pattern: regexp.MustCompile(pattern), want: want}
}

func version() *shape {
	return matching(`^\d+\.\d+\.\d+$`, "a version of three numbers, such as 1.2.0")
}

func agentName() *shape {
	return matching(`^[a-zA-Z0-9\-_:]+$`, "a name of letters, digits, - , _ and :")
}

func toolName() *shape { return matching(`^[a-zA-Z0-9\-_]+$`, "a name of letters, digits, - and _") }

func between(low, high float64, kinds ...kind) *shape {
	return &shape{kinds: kinds, min: &low, max: &high}
}

// origin returns the keys by which a definition says what it was forked from; see fork.go.
func origin() []field {
	return []field{{"fork_of", false, anyMapping()}, {"fork", false, anyMapping()}}
}

// agentSchema returns the schema of an agent. In Markdown the body is the prompt.
func agentSchema() *shape {
	return mappingOf(append([]field{
		{"name", true, agentName()},
		{"type", true, oneOf(string(Agent))},
		{"description", true, text()},
		{"llm", true, mappingOf(
			field{"provider", true, oneOf("anthropic", "openai", "google")},
			field{"model", true, nonEmptyText()},
			field{"temperature", false, between(0, 1, kindNumber, kindInteger)},
			field{"max_tokens", false, between(1, 200_000, kindInteger)},
		)},
		{"tools", true, listOf(nonEmptyText())},
		{"version", true, version()},
		{"tags", true, listOf(text())},
		{"extends", false, nonEmptyText()},
		{"system_prompt", false, text()},
		{"custom_tools", false, listOf(toolSchema())},
		{"caching", false, cachingSchema()},
		{"config", false, anyMapping()},
		{"author", false, text()},
		{"license", false, text()},
	}, origin()...)...)
}

func cachingSchema() *shape {
	return mappingOf(
		field{"enabled", true, flag()},
		field{"cache_sources", false, listOf(mappingOf(
			field{"type", true, oneOf("file", "glob", "inline", "codex")},
			field{"label", true, text()},
			field{"path", false, text()},
			field{"pattern", false, text()},
			field{"content", false, text()},
			field{"uri", false, text()},
			field{"ttl", false, between(0, 1e9, kindInteger, kindNumber)},
		))},
	)
}

// toolSchema returns the schema of a tool. In Markdown the body is the extended description.
func toolSchema() *shape {
	return mappingOf(append([]field{
		{"name", true, toolName()},
		{"type", true, oneOf(string(Tool))},
		{"description", true, text()},
		{"parameters", true, &shape{kinds: []kind{kindMapping}, values: parameterSchema(maxParameterDepth)}},
		{"implementation", true, implementationSchema()},
		{"version", true, version()},
		{"tags", true, listOf(text())},
		{"extends", false, nonEmptyText()},
		{"extended_description", false, text()},
		{"depends_on", false, listOf(nonEmptyText())},
		{"output", false, anyMapping()},
		{"author", false, text()},
		{"license", false, text()},
	}, origin()...)...)
}

// maxParameterDepth bounds parameters of parameters.
const maxParameterDepth = 20

func parameterTypes() []string {
	return []string{"string", "integer", "number", "boolean", "object", "array"}
}

func parameterSchema(depth int) *shape {
	fields := []field{
		{"type", true, oneOf(parameterTypes()...)},
		{"required", true, flag()},
		{"description", false, text()},
		{"default", false, &shape{}},
		{"enum", false, listOf(&shape{})},
		{"items", false, anyMapping()},
	}
	properties := anyMapping()
	if depth > 0 {
		properties = &shape{kinds: []kind{kindMapping}, pick: func(*value) *shape {
			return &shape{kinds: []kind{kindMapping}, values: parameterSchema(depth - 1)}
		}}
	}
	return mappingOf(append(fields, field{"properties", false, properties})...)
}

// implementationSchema depends on the implementation's type. What belongs to a type stands beside it, or below a key of
// its name, as Forge's own programs write it: {type: bash, bash: {command: ls}}. The key alone says the type, too.
func implementationSchema() *shape {
	kinds := map[string][]field{
		"bash":   {{"command", true, nonEmptyText()}, {"sandbox", false, anyMapping()}},
		"python": {{"module", true, nonEmptyText()}, {"function", true, nonEmptyText()}},
		"http": {
			{"method", true, oneOf("GET", "POST", "PUT", "DELETE")}, {"url", true, nonEmptyText()},
			{"headers", false, &shape{kinds: []kind{kindMapping}, values: text()}}, {"body_template", false, text()},
		},
	}
	return &shape{pick: func(v *value) *shape {
		which := field{"type", true, oneOf("bash", "python", "http")}
		name := v.get("type").string()
		for own := range kinds {
			if v.get("type") == nil && v.get(own) != nil { // the key says the type
				name, which.required = own, false
			}
		}
		fields, known := kinds[name]
		if !known {
			return &shape{kinds: []kind{kindMapping}, fields: []field{which}}
		}
		if v.get(name) != nil {
			return mappingOf(which, field{name, true, mappingOf(fields...)})
		}
		return mappingOf(slices.Concat([]field{which}, fields)...)
	}}
}
