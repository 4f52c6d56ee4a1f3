// Package operationtest makes the files that are derived from operations, and holds them against what is embedded. It
// is for tests: no program makes schemas when it starts.
package operationtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
)

// Schemas holds the schema files of a toolset, in the folder schema of the test's package, against the types of its
// operations; with UPDATE_GOLDEN it writes them.
func Schemas(t *testing.T, set operation.Toolset) {
	t.Helper()
	known := map[string]bool{}
	for _, o := range set.Operations {
		if o.Tool.Title == "" {
			continue
		}
		output := schemaOf(o.Output)
		output.orError(set.Form)
		for side, s := range map[string]*schema{"input": schemaOf(o.Input), "output": output} {
			name := filepath.Join("schema", o.Name+"."+side+".json")
			known[name] = true
			Golden(t, name, s.indented())
		}
	}
	files, err := filepath.Glob(filepath.Join("schema", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !known[name] {
			t.Errorf("%s belongs to no tool: remove it", name)
		}
	}
}

// Golden holds text against a file; with UPDATE_GOLDEN it writes the file.
func Golden(t *testing.T, name string, text []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, text, 0o644); err != nil { // #nosec G306: part of the sources
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s is out of date; look at the difference, then run `make golden`:\n%s", name, diff)
	}
}

// schema is a JSON Schema whose members keep their order.
type schema struct {
	names  []string
	values map[string]any
}

func (s *schema) set(name string, value any) {
	if s.values == nil {
		s.values = map[string]any{}
	}
	if _, has := s.values[name]; !has {
		s.names = append(s.names, name)
	}
	s.values[name] = value
}

// MarshalJSON implements json.Marshaler.
func (s *schema) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range s.names {
		value, err := json.Marshal(s.values[name])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (s *schema) indented() []byte {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// orError lets an answer be {"error": ...} instead, or what the form of the toolset has for failures.
func (s *schema) orError(form *operation.Form) {
	properties, required := s.values["properties"].(*schema), []string{"error"}
	if form == nil {
		failure := &schema{}
		failure.set("type", "object")
		properties.set("error", failure)
	} else {
		failure := schemaOf(form.FailureType)
		required = failure.values["required"].([]string)
		for _, name := range failure.values["properties"].(*schema).names {
			properties.set(name, failure.values["properties"].(*schema).values[name])
		}
	}
	either := []map[string]any{{"required": s.values["required"]}, {"required": required}}
	s.names[slices.Index(s.names, "required")] = "anyOf"
	delete(s.values, "required")
	s.values["anyOf"] = either
}

// schemaOf returns the schema of a type.
func schemaOf(t reflect.Type) *schema {
	s := &schema{}
	if t == reflect.TypeFor[time.Time]() {
		s.set("type", "string")
		s.set("format", "date-time")
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		s.set("type", "string")
	case reflect.Bool:
		s.set("type", "boolean")
	case reflect.Int, reflect.Int64:
		s.set("type", "integer")
	case reflect.Float64:
		s.set("type", "number")
	case reflect.Slice:
		s.set("type", "array")
		s.set("items", schemaOf(t.Elem()))
	case reflect.Struct:
		s.describeStruct(t)
	case reflect.Map:
		s.set("type", "object")
		if t.Elem().Kind() != reflect.Interface {
			s.set("additionalProperties", schemaOf(t.Elem()))
		}
	case reflect.Interface: // anything
	default:
		panic(fmt.Sprintf("operationtest: no schema for %s", t))
	}
	return s
}

func (s *schema) describeStruct(t reflect.Type) {
	properties, required := &schema{}, []string{}
	for _, f := range operation.Fields(t) {
		properties.set(f.JSON, fieldSchema(f))
		if f.Tag.Get("required") == "true" || !f.Optional {
			required = append(required, f.JSON)
		}
	}
	s.set("type", "object")
	s.set("properties", properties)
	if len(required) > 0 {
		s.set("required", required)
	}
	s.set("additionalProperties", false)
}

// fieldSchema returns the schema of a field with its limits. The tag brief leaves out what would only cost a model's
// attention: the doc of a field, what the elements of a list hold.
func fieldSchema(f operation.Field) *schema {
	s, of := &schema{}, schemaOf(f.Type)
	brief := f.Tag.Get("brief") == "true"
	if f.Type.Kind() == reflect.Pointer && !f.Optional {
		null := &schema{}
		null.set("type", "null")
		s.set("anyOf", []any{of, null})
	} else {
		if kind, has := of.values["type"]; has {
			s.set("type", kind)
		}
		s.limits(f.StructField)
		for _, name := range of.names {
			s.set(name, of.values[name])
		}
	}
	if items, isList := s.values["items"].(*schema); isList {
		if brief {
			items.names = []string{"type"}
		}
		if text, has := f.Tag.Lookup("enum"); has {
			items.set("enum", strings.Split(text, ","))
		}
	}
	if text, has := f.Tag.Lookup("const"); has {
		s.names = []string{"type"}
		s.set("const", typed(text, f.Type))
	}
	if s.values["type"] == "object" && brief {
		s.names = []string{"type"}
	}
	if text, has := f.Tag.Lookup("default"); has {
		s.set("default", typed(text, f.Type))
	}
	if text, has := f.Tag.Lookup("example"); has {
		s.set("examples", []any{typed(text, f.Type)})
	}
	if text, has := f.Tag.Lookup("doc"); has && !brief {
		s.set("description", text)
	}
	return s
}

// limits sets the limits that strictjson enforces. A text of at most n bytes has at most n characters.
func (s *schema) limits(f reflect.StructField) {
	for _, name := range []string{"minLength", "maxLength", "maxBytes", "minimum", "maximum", "minItems", "maxItems"} {
		if text, has := f.Tag.Lookup(name); has {
			s.set(strings.Replace(name, "maxBytes", "maxLength", 1), json.Number(text))
		}
	}
	if text, has := f.Tag.Lookup("pattern"); has {
		s.set("pattern", text)
	}
	if text, has := f.Tag.Lookup("enum"); has && f.Type.Kind() != reflect.Slice {
		s.set("enum", strings.Split(text, ","))
	}
}

// typed returns the value that a tag writes, as a field of the type has it in JSON.
func typed(text string, t reflect.Type) any {
	if t.Kind() == reflect.String {
		return text
	}
	return json.RawMessage(text)
}

// Docs returns the page of everything that can be asked, in markdown.
func Docs(toolsets []operation.Toolset) []byte {
	var b strings.Builder
	b.WriteString(
		"# What can be asked\n\n<!-- Written by `make golden` from the operations in the code; edit those. -->\n\n" +
			"An operation is one thing that agents, programs and people can ask of Claude Ops. Whatever way it comes in (MCP " +
			"tool, REST,\n" +
			"command line), the same code handles it, with the same limits and the same [codes](codes.md).\n\n" +
			"| operation | what it does | effect | from tier | dry run | MCP tool | REST | command " +
			"|\n|---|---|---|---|---|---|---|---|\n")
	for _, o := range operation.List(toolsets...) {
		rest, tool, command := "", "", ""
		if o.Route.Method != "" {
			rest = fmt.Sprintf("`%s /api/v1%s`", o.Route.Method, strings.ReplaceAll(o.Route.Path, "...}", "}"))
		}
		if o.Tool.Title != "" {
			tool = "yes"
		}
		if o.Command != "" {
			command = "`claudeops " + o.Command + "`"
		}
		tier := fmt.Sprint(int(o.Needs.Tier))
		if o.ForPeople() { // no tier limits them
			tier = ""
		}
		dryRun := ""
		if o.Needs.Dry == operation.DryTried {
			dryRun = "honoured"
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join([]string{
			"[`" + o.Name + "`](#" + o.Name + ")", o.Summary, string(o.Effect), tier, dryRun, tool, rest, command,
		}, " | "))
	}
	for _, set := range toolsets {
		heading := "Toolset `" + set.Name + "`"
		if set.Name == "" {
			heading = "What people do"
		}
		fmt.Fprintf(&b, "\n## %s\n", heading)
		for _, o := range set.Operations {
			fmt.Fprintf(&b, "\n### `%s`\n\n", o.Name)
			if o.Tool.Description != "" {
				b.WriteString(o.Tool.Description + "\n\n")
			}
			if o.Tool.Description == "" && o.Route.Notes != "" {
				b.WriteString(o.Route.Notes + "\n\n")
			}
			if o.Input.NumField() == 0 {
				b.WriteString("It takes no arguments.\n")
				continue
			}
			b.WriteString("| argument | type | meaning and limits |\n|---|---|---|\n")
			arguments(&b, "", o.Input)
		}
	}
	return []byte(b.String())
}

// arguments writes a line for each field, and for those of the elements of lists.
func arguments(b *strings.Builder, within string, t reflect.Type) {
	for _, f := range operation.Fields(t) {
		kind := fmt.Sprint(schemaOf(f.Type).values["type"])
		if f.Tag.Get("required") == "true" {
			kind += ", required"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", within, f.JSON, kind, strings.Join(facts(f.StructField), "; "))
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			arguments(b, within+f.JSON+"[].", f.Type.Elem())
		}
	}
}

// facts returns the doc of a field and its limits in words.
func facts(f reflect.StructField) (list []string) {
	tell := func(tag, words string) {
		if text, has := f.Tag.Lookup(tag); has {
			list = append(list, fmt.Sprintf(words, strings.ReplaceAll(text, "|", "\\|")))
		}
	}
	tell("doc", "%s")
	if enum, has := f.Tag.Lookup("enum"); has {
		list = append(list, "one of "+strings.ReplaceAll(enum, ",", ", "))
	}
	tell("default", "default %s")
	for _, bounds := range []struct{ least, most, unit string }{
		{"minLength", "maxLength", " characters"}, {"", "maxBytes", " bytes"}, {"minimum", "maximum", ""},
		{"minItems", "maxItems", " entries"},
	} {
		least, most := f.Tag.Get(bounds.least), f.Tag.Get(bounds.most)
		switch {
		case least != "" && most != "":
			list = append(list, least+" to "+most+bounds.unit)
		case most != "":
			list = append(list, "at most "+most+bounds.unit)
		case least == "1" && bounds.unit != "":
			list = append(list, "not empty")
		case least != "":
			list = append(list, "at least "+least+bounds.unit)
		}
	}
	tell("pattern", "matches `%s`")
	tell("example", "such as `%s`")
	return list
}
