package strictjson

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// field is a field of a struct as JSON sees it.
type field struct {
	name     string
	index    int
	required bool
}

// fieldsOf lists the exported fields of a struct type. It panics on one without a name for JSON.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "" || f.Anonymous:
			panic(fmt.Sprintf("strictjson: %s.%s has no name for JSON", t, f.Name))
		}
		fields = append(fields, field{name: name, index: i, required: f.Tag.Get("required") == "true"})
	}
	return fields
}

// object decodes an object into a struct.
func (d *decoder) object(path string, into reflect.Value) error {
	if err := d.open(path); err != nil {
		return err
	}
	fields := fieldsOf(into.Type())
	seen := make(map[string]bool)
	for d.in.PeekKind() != jsontext.KindEndObject {
		raw, err := d.in.ReadValue()
		if err != nil {
			return err
		}
		name, ok := d.text(path, "a name in "+d.subject(path), raw)
		if !ok {
			if err := d.skip(path); err != nil {
				return err
			}
			continue
		}
		if err := d.member(path, name, fields, seen, into); err != nil {
			return err
		}
	}
	if _, err := d.in.ReadToken(); err != nil {
		return err
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			where := join(path, f.name)
			d.note(where, "add `"+where+"`", "`%s` is required but missing", where)
		}
	}
	return nil
}

// member decodes the value that follows the name of a member of an object.
func (d *decoder) member(path, name string, fields []field, seen map[string]bool, into reflect.Value) error {
	where := join(path, clip(name, maxEcho))
	if seen[name] {
		d.note(where, "give it once", "`%s` is given more than once", where)
		return d.skip(where)
	}
	seen[name] = true
	for _, f := range fields {
		if f.name == name {
			return d.value(where, into.Field(f.index), f.required)
		}
	}
	d.note(where, alternative(name, fields), "`%s` is not a known field", where)
	return d.skip(where)
}

// join is the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// alternative suggests what to do about an unknown name.
func alternative(name string, fields []field) string {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if similar(name, f.name) {
			return "did you mean `" + f.name + "`?"
		}
		names = append(names, "`"+f.name+"`")
	}
	if len(names) == 0 {
		return "leave it out; no field is known here"
	}
	return "leave it out; known fields are " + strings.Join(names, ", ")
}

// similar says whether two names differ only in case, in hyphens and underscores, or by one letter that is missing, too
// many, wrong, or swapped with its neighbour.
func similar(a, b string) bool {
	fold := func(s string) string {
		return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
	}
	a, b = fold(a), fold(b)
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 2 && len(b) == 2 {
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(a) <= 1 && len(b) <= 1
}
