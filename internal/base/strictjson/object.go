package strictjson

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// field is a field of a struct as JSON sees it.
type field struct {
	name     string
	index    int
	required bool
	nullable bool                 // a slice that may be null
	most     int                  // elements of a slice; 0 for any number
	integer  *reflect.StructField // whose tags bound a number; nil for none
}

// fieldsOf lists the exported fields of a struct type. It panics on one without a name for JSON.
func (d *decoder) fieldsOf(t reflect.Type) []field {
	if fields, known := d.known[t]; known {
		return fields
	}
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
		one := field{name: name, index: i, required: f.Tag.Get("required") == "true", most: mostOf(t, f)}
		one.nullable = f.Tag.Get("nullable") == "true" && f.Type.Kind() == reflect.Slice
		if f.Type.Kind() == reflect.Int {
			one.integer = &f
		}
		fields = append(fields, one)
	}
	if len(fields) > maxFields {
		panic(fmt.Sprintf("strictjson: %s has more than %d fields", t, maxFields))
	}
	d.known[t] = fields
	return fields
}

// mostOf returns the bound of a slice. It panics if the bound is not a number of at least 1.
func mostOf(t reflect.Type, f reflect.StructField) int {
	tag, given := f.Tag.Lookup("maxItems")
	if !given {
		return 0
	}
	most, err := strconv.Atoi(tag)
	if err != nil || most < 1 || f.Type.Kind() != reflect.Slice {
		panic(fmt.Sprintf("strictjson: %s.%s has a bound that is none", t, f.Name))
	}
	return most
}

// maxFields limits the fields of a struct: seen has a bit for each.
const maxFields = 64

// seen records which names an object has had so far.
type seen struct {
	known   uint64          // a bit for each field
	unknown map[string]bool // at most MaxViolations: each one is a violation
}

// object decodes an object into a struct.
func (d *decoder) object(into reflect.Value) error {
	if _, err := d.in.ReadToken(); err != nil {
		return err
	}
	fields := d.fieldsOf(into.Type())
	var had seen
	for d.in.PeekKind() != jsontext.KindEndObject {
		raw, err := d.in.ReadValue()
		if err != nil {
			return err
		}
		name, ok, err := d.text(d.aName, raw)
		switch {
		case err != nil:
			return err
		case ok:
			err = d.member(name, fields, &had, into)
		default:
			err = d.in.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.in.ReadToken(); err != nil {
		return err
	}
	return d.missing(fields, had)
}

func (d *decoder) aName() string { return "a name in " + d.subject() }

// missing notes the names that an object lacks.
func (d *decoder) missing(fields []field, had seen) error {
	for i, f := range fields {
		if !f.required || had.known&(1<<i) != 0 {
			continue
		}
		d.enter(step{name: f.name})
		if err := d.note("add "+d.quoted(), "%s is required but missing", d.quoted()); err != nil {
			return err
		}
		d.leave()
	}
	return nil
}

// member decodes the value that follows the name of a member of an object.
func (d *decoder) member(name string, fields []field, had *seen, into reflect.Value) error {
	d.enter(step{name: name})
	if err := d.memberValue(name, fields, had, into); err != nil {
		return err
	}
	d.leave()
	return nil
}

func (d *decoder) memberValue(name string, fields []field, had *seen, into reflect.Value) error {
	for i, f := range fields {
		switch {
		case f.name != name:
			continue
		case had.known&(1<<i) != 0:
			return d.repeated()
		}
		had.known |= 1 << i
		if f.nullable && d.in.PeekKind() == jsontext.KindNull {
			return d.in.SkipValue()
		}
		sound := len(d.violations)
		err := d.value(into.Field(f.index), f.required, f.most)
		if err == nil && f.integer != nil && len(d.violations) == sound {
			err = d.bounded(*f.integer, int(into.Field(f.index).Int()))
		}
		return err
	}
	if had.unknown[name] {
		return d.repeated()
	}
	if had.unknown == nil {
		had.unknown = map[string]bool{}
	}
	had.unknown[name] = true
	if err := d.note(alternative(name, fields), "%s is not a known field", d.quoted()); err != nil {
		return err
	}
	return d.in.SkipValue()
}

// repeated notes and passes over a member whose name was there before.
func (d *decoder) repeated() error {
	if err := d.note("give it once", "%s is given more than once", d.quoted()); err != nil {
		return err
	}
	return d.in.SkipValue()
}

// maxLikely limits the length of a name for which a similar known name is searched, in bytes; no known name is nearly
// as long.
const maxLikely = 64

// alternative suggests what to do about an unknown name.
func alternative(name string, fields []field) string {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if len(name) <= maxLikely && similar(name, f.name) {
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
		return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(s), "_", ""), "-", "")
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
