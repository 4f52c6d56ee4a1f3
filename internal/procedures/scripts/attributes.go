package scripts

import (
	"slices"
	"strings"
)

// apply takes what an attribute says.
func (out *Parameter) apply(a attribute) {
	switch a.name {
	case "parameter":
		out.applyParameter(a)
	case "validateset":
		for _, arg := range a.arguments {
			if c := constantOf(arg.tokens); c.Known && arg.name == "" {
				if text, ok := c.Value.(string); ok {
					out.Values = append(out.Values, text)
				}
			}
		}
	case "validaterange":
		out.Range = Range{bound(a, 0), bound(a, 1)}
	case "validatepattern":
		for _, arg := range a.arguments {
			if text, ok := constantOf(arg.tokens).Value.(string); ok && arg.name == "" {
				out.Pattern.Text = text
			} else if arg.name == "options" {
				out.Pattern.applyOptions(arg.tokens)
			}
		}
	case "alias":
		for _, arg := range a.arguments {
			if text, ok := constantOf(arg.tokens).Value.(string); ok {
				out.Aliases = append(out.Aliases, text)
			}
		}
	default:
		if !a.called && out.Type == Any {
			out.Type, out.Items, out.Switch = typeOf(a.name)
		}
	}
}

func (out *Parameter) applyParameter(a attribute) {
	mandatory, set := false, ""
	for _, arg := range a.arguments {
		switch arg.name {
		case "mandatory":
			c := constantOf(arg.tokens)
			mandatory = arg.tokens == nil || c.Value == true || c.Value == int64(1)
		case "parametersetname":
			set, _ = constantOf(arg.tokens).Value.(string)
		case "helpmessage":
			if text, ok := constantOf(arg.tokens).Value.(string); ok {
				out.Description = text
			}
		}
	}
	switch {
	case mandatory && (set == "" || strings.EqualFold(set, "__AllParameterSets")):
		out.Required = true
	case mandatory && !slices.Contains(out.RequiredIn, set):
		out.RequiredIn = append(out.RequiredIn, set)
	}
}

func bound(a attribute, i int) *float64 {
	if i >= len(a.arguments) {
		return nil
	}
	switch n := constantOf(a.arguments[i].tokens).Value.(type) {
	case int64:
		f := float64(n)
		return &f
	case float64:
		return &n
	}
	return nil
}

// typeOf returns the type that a name in brackets means.
func typeOf(name string) (of, items Type, isSwitch bool) {
	name = strings.TrimPrefix(name, "system.")
	if inner, ok := strings.CutSuffix(name, "[]"); ok {
		items, _, _ = typeOf(inner)
		return Array, items, false
	}
	if inner, ok := strings.CutPrefix(name, "nullable["); ok {
		return typeOf(strings.TrimSuffix(inner, "]"))
	}
	switch name {
	case "string", "char", "datetime", "uri", "version", "guid", "timespan", "io.fileinfo", "io.directoryinfo",
		"securestring", "security.securestring", "regex":
		return String, Any, false
	case "int", "int16", "int32", "int64", "long", "byte", "uint16", "uint32", "uint64", "uint", "ulong", "short",
		"ushort", "bigint", "sbyte":
		return Integer, Any, false
	case "double", "single", "float", "decimal":
		return Number, Any, false
	case "bool", "boolean":
		return Boolean, Any, false
	case "switch", "management.automation.switchparameter", "switchparameter":
		return Boolean, Any, true
	case "hashtable", "collections.hashtable", "collections.idictionary", "ordered", "pscustomobject", "psobject":
		return Object, Any, false
	case "array", "collections.arraylist":
		return Array, Any, false
	}
	return Any, Any, false
}
