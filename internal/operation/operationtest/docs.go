package operationtest

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
)

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
