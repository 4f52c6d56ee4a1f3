package scripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Check lists what is wrong with arguments, by name: unknown and missing ones, wrong types, values that the script does
// not take. Names are as in the script's schema; PowerShell compares them without case.
func (s Script) Check(arguments map[string]any) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		p, ok := s.parameter(name)
		if !ok {
			out = append(out, fmt.Sprintf("%s takes no argument %q; it takes %s", s.Name, name, s.argumentNames()))
			continue
		}
		if problem := p.check(arguments[name]); problem != "" {
			out = append(out, fmt.Sprintf("%q %s", name, problem))
		}
	}
	for _, p := range s.Parameters {
		if _, given := s.given(arguments, p.Name); p.Required && !given {
			out = append(out, fmt.Sprintf("%q is missing", p.Name))
		}
	}
	return out
}

// plainWords returns the argument of a script whose parameters are not known.
func plainWords() Parameter { return Parameter{Name: "args", Type: Array, Items: String} }

func (s Script) parameter(name string) (Parameter, bool) {
	if s.Note != "" && name == "args" {
		return plainWords(), true
	}
	i := slices.IndexFunc(s.Parameters, func(p Parameter) bool { return s.sameName(p.Name, name) })
	if i < 0 {
		return Parameter{}, false
	}
	return s.Parameters[i], true
}

func (s Script) sameName(a, b string) bool {
	return a == b || s.Interpreter == PowerShell && strings.EqualFold(a, b)
}

func (s Script) given(arguments map[string]any, name string) (any, bool) {
	for given, v := range arguments {
		if s.sameName(given, name) && v != nil {
			return v, true
		}
	}
	return nil, false
}

func (s Script) argumentNames() string {
	if s.Note != "" {
		return "args"
	}
	if len(s.Parameters) == 0 {
		return "none"
	}
	names := make([]string, len(s.Parameters))
	for i, p := range s.Parameters {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// check says what is wrong with a value; "" if nothing is. null stands for an argument that was not given.
func (p Parameter) check(v any) string {
	if v == nil {
		return ""
	}
	if p.Type == Array {
		items, ok := v.([]any)
		if !ok {
			return "must be a list"
		}
		one := p
		one.Type = p.Items
		for i, item := range items {
			if problem := one.check(item); problem != "" {
				return fmt.Sprintf("item %d: %s", i, problem)
			}
		}
		return ""
	}
	if problem := p.Type.check(v); problem != "" {
		return problem
	}
	text, isText := v.(string)
	n, isNumber := asNumber(v)
	switch {
	case isText && strings.ContainsRune(text, 0):
		return "holds a NUL"
	case isText && len(p.Values) > 0 && !slices.ContainsFunc(p.Values,
		func(known string) bool { return strings.EqualFold(known, text) }):
		return "must be one of " + strings.Join(p.Values, ", ")
	case isText && p.Pattern.refuses(text):
		return "does not match " + p.Pattern.Text
	case isNumber && p.Range.Min != nil && n < *p.Range.Min:
		return fmt.Sprintf("must be at least %g", *p.Range.Min)
	case isNumber && p.Range.Max != nil && n > *p.Range.Max:
		return fmt.Sprintf("must be at most %g", *p.Range.Max)
	}
	return ""
}

func (t Type) check(v any) string {
	_, isText := v.(string)
	_, isBool := v.(bool)
	_, isObject := v.(map[string]any)
	n, isNumber := asNumber(v)
	switch {
	case t == String && !isText:
		return "must be a text"
	case t == Boolean && !isBool:
		return "must be true or false"
	case t == Object && !isObject:
		return "must be an object"
	case t == Number && !isNumber, t == Integer && !isNumber:
		return "must be a number"
	case t == Integer && n != math.Trunc(n):
		return "must be a whole number"
	}
	return ""
}

func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, true
	case int64:
		return float64(n), true
	}
	return 0, false
}

// commandLine returns the arguments of a script that takes them on its command line: --name value, --name for true, a
// list's items one by one. A value that begins with a hyphen is joined to its name, so that nothing takes it for
// another name.
func (s Script) commandLine(arguments map[string]any) []string {
	var out []string
	for _, word := range textsOf(arguments["args"]) {
		if s.Note != "" {
			out = append(out, word)
		}
	}
	for _, p := range s.Parameters {
		v, ok := s.given(arguments, p.Name)
		if !ok {
			continue
		}
		flag := "--" + p.Name
		if on, isBool := v.(bool); isBool {
			if on {
				out = append(out, flag)
			}
			continue
		}
		for _, text := range textsOf(v) {
			if strings.HasPrefix(text, "-") {
				out = append(out, flag+"="+text)
			} else {
				out = append(out, flag, text)
			}
		}
	}
	return out
}

// textsOf returns a value's texts: the items of a list, or the value alone.
func textsOf(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		var out []string
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
		return out
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return []string{string(text)}
	}
	return []string{fmt.Sprint(v)}
}

// FromTexts makes arguments of texts, as a person types them: by the type that the script's schema has for a name. A
// list has one text for each item. What is wrong with them is said for all at once; unknown names are left to Check.
func FromTexts(schema map[string]any, given map[string][]string) (arguments map[string]any, problems []string) {
	properties, _ := schema["properties"].(map[string]any)
	arguments = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, _ := properties[schemaName(properties, name)].(map[string]any)
		texts := given[name]
		if property["type"] == string(Array) {
			items, _ := property["items"].(map[string]any)
			list := []any{}
			for _, text := range texts {
				v, problem := fromText(items["type"], text)
				if problem != "" {
					problems = append(problems, fmt.Sprintf("%q %s", name, problem))
				}
				list = append(list, v)
			}
			arguments[name] = list
			continue
		}
		if len(texts) != 1 {
			problems = append(problems, fmt.Sprintf("%q takes one value", name))
			continue
		}
		v, problem := fromText(property["type"], texts[0])
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%q %s", name, problem))
		}
		arguments[name] = v
	}
	return arguments, problems
}

// schemaName returns the name as the schema has it, letter case aside.
func schemaName(properties map[string]any, name string) string {
	if _, has := properties[name]; has {
		return name
	}
	for known := range properties {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return name
}

func fromText(of any, text string) (v any, problem string) {
	switch of {
	case string(Boolean):
		if text != "true" && text != "false" {
			return nil, "must be true or false"
		}
		return text == "true", ""
	case string(Integer), string(Number):
		number := json.Number(text)
		if _, err := number.Float64(); err != nil {
			return nil, "must be a number"
		}
		return number, ""
	case string(Object):
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return nil, "must be an object in JSON"
		}
		return object, ""
	}
	return text, ""
}
