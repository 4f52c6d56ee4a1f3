package definitions

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// shape is a schema's constraint on a value. The zero value accepts anything.
type shape struct {
	kinds    []kind // one of them; none: any
	pattern  *regexp.Regexp
	want     string   // the pattern in words, with an example
	oneOf    []string // a string's values
	min, max *float64 // of a number
	notEmpty bool

	items  *shape              // of a list
	fields []field             // of a mapping; nil: any keys
	values *shape              // of a mapping whose keys are names
	pick   func(*value) *shape // a shape that depends on the value, such as on its key `type`
}

// field is one key of a mapping.
type field struct {
	name     string
	required bool
	shape    *shape
}

// unknownField is the message about a key that no schema has.
const unknownField = "is not a known field"

// checker holds values against shapes.
type checker struct {
	problems Problems
	unknown  Problems // keys that no shape knows: warnings of the strict validation
}

func (c *checker) fail(v *value, field, suggestion, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Line: v.line, Column: v.column, Field: field, Message: fmt.Sprintf(format, args...), Severity: SeverityError,
		Suggestion: suggestion,
	})
}

// check holds a value against a shape and lists every difference.
func (c *checker) check(v *value, at string, s *shape) {
	if s == nil {
		return
	}
	if s.pick != nil {
		s = s.pick(v)
	}
	if len(s.kinds) > 0 && !slices.Contains(s.kinds, v.kind) {
		suggestion := ""
		if s.kinds[0] == kindString && v.text != "" {
			suggestion = fmt.Sprintf("put it in quotes: %q", v.text)
		}
		c.fail(v, at, suggestion, "is %s; it must be %s", v.kind, kindNames(s.kinds))
		return
	}
	switch v.kind {
	case kindString:
		c.checkString(v, at, s)
	case kindInteger, kindNumber:
		c.checkNumber(v, at, s)
	case kindList:
		for i, item := range v.items {
			c.check(item, join(at, strconv.Itoa(i)), s.items)
		}
	case kindMapping:
		c.checkMapping(v, at, s)
	}
}

func (c *checker) checkString(v *value, at string, s *shape) {
	switch {
	case s.notEmpty && strings.TrimSpace(v.text) == "":
		c.fail(v, at, "", "is empty")
	case s.pattern != nil && !s.pattern.MatchString(v.text):
		c.fail(v, at, "", "%q is not %s", short(v.text), s.want)
	case len(s.oneOf) > 0 && !slices.Contains(s.oneOf, v.text):
		c.fail(v, at, "", "%q is not one of %s", short(v.text), strings.Join(s.oneOf, ", "))
	}
}

func (c *checker) checkNumber(v *value, at string, s *shape) {
	n, err := strconv.ParseFloat(v.text, 64)
	switch {
	case err != nil:
	case s.min != nil && n < *s.min:
		c.fail(v, at, "", "is %s; at least %g", v.text, *s.min)
	case s.max != nil && n > *s.max:
		c.fail(v, at, "", "is %s; at most %g", v.text, *s.max)
	}
}

func (c *checker) checkMapping(v *value, at string, s *shape) {
	if s.values != nil {
		for _, e := range v.entries {
			c.check(e.value, join(at, e.key), s.values)
		}
		return
	}
	if s.fields == nil {
		return
	}
	for _, f := range s.fields {
		given := v.get(f.name)
		switch {
		case given == nil && f.required:
			c.fail(v, join(at, f.name), "add `"+f.name+": ...`", "is missing")
		case given == nil || given.kind == kindNull && !f.required:
		default:
			c.check(given, join(at, f.name), f.shape)
		}
	}
	for _, e := range v.entries {
		if !slices.ContainsFunc(s.fields, func(f field) bool { return f.name == e.key }) {
			c.unknown = append(c.unknown, Problem{
				Line: e.line, Column: e.column, Field: join(at, e.key), Message: unknownField, Severity: SeverityWarning,
				Suggestion: nearest(e.key, s.fields),
			})
		}
	}
}

func kindNames(kinds []kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, " or ")
}

// short returns the text as a message quotes it.
func short(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "..."
	}
	return text
}

// nearest suggests the known field that differs least from a key.
func nearest(key string, fields []field) string {
	best, least := "", 3
	for _, f := range fields {
		if d := levenshtein.ComputeDistance(strings.ToLower(key), f.name); d < least {
			best, least = f.name, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean `" + best + "`?"
}
