package strictjson

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Limits returns each value in v that is beyond the limits of its field, in the order of the fields. v is a pointer to
// a struct that Decode takes. The limits are tags, with the names that JSON Schema has for them: minLength and
// maxLength (in characters), pattern, enum (comma-separated; of a slice: of its elements), minItems; and maxBytes. The
// tag fix says what to do about a value beyond them. Decode keeps to maxItems, minimum and maximum by itself.
//
// An empty string and a missing pointer count as absent unless the field is required.
func Limits(v any) []fault.Violation {
	l := limiter{}
	l.limitObject("", reflect.ValueOf(v).Elem())
	return l.violations
}

// DecodeWithinLimits is Decode with what Limits finds in what could be read, all at once.
func DecodeWithinLimits(raw []byte, dst any, opts Options) []fault.Violation {
	fresh, violations, wellFormed := decodeStrict(raw, dst, opts)
	if wellFormed && len(violations) <= maxViolations {
		violations = besides(violations, Limits(fresh.Addr().Interface()))
	}
	if len(violations) == 0 {
		reflect.ValueOf(dst).Elem().Set(fresh)
	}
	return violations
}

// Limit returns the number that a field of a struct has as a limit, by its name in JSON and the name of the tag. It
// panics if there is none.
func Limit(of reflect.Type, name, tag string) int {
	for i := range of.NumField() {
		f := of.Field(i)
		if jsonName(f) == name {
			return tagNumber(f, tag)
		}
	}
	panic(fmt.Sprintf("strictjson: %s has no field %s", of, name))
}

// limiter collects what is beyond a limit.
type limiter struct{ violations []fault.Violation }

func (l *limiter) limitObject(at string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := jsonName(f)
		if !f.IsExported() || name == "-" {
			continue
		}
		if at != "" {
			name = at + "." + name
		}
		l.value(name, f, v.Field(i))
	}
}

func (l *limiter) value(at string, f reflect.StructField, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	} else if v.IsZero() && f.Tag.Get("required") != "true" && v.Kind() != reflect.Slice {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		l.checkLength(at, f, v.String())
	case reflect.Struct:
		l.limitObject(at, v)
	case reflect.Slice:
		l.checkList(at, f, v)
	}
}

func (l *limiter) checkList(at string, f reflect.StructField, v reflect.Value) {
	switch least := tagNumber(f, "minItems"); {
	case v.Len() >= least || v.IsNil() && f.Tag.Get("required") != "true":
	case v.Len() == 0:
		l.addLimitViolation(at, f, "is empty")
	default:
		l.addLimitViolation(at, f, "has %d entries; at least %d are needed", v.Len(), least)
	}
	for i := range v.Len() {
		element := fmt.Sprintf("%s[%d]", at, i)
		switch one := v.Index(i); one.Kind() {
		case reflect.Struct:
			l.limitObject(element, one)
		case reflect.String:
			l.oneOf(element, f, one.String())
		}
	}
}

func (l *limiter) checkLength(at string, f reflect.StructField, text string) {
	runes := utf8.RuneCountInString(text)
	least, most, bytes := tagNumber(f, "minLength"), tagNumber(f, "maxLength"), tagNumber(f, "maxBytes")
	pattern := f.Tag.Get("pattern")
	switch {
	case runes == 0 && least > 0:
		l.addLimitViolation(at, f, "is empty")
	case runes < least:
		l.addLimitViolation(at, f, "has %d characters; at least %d are needed", runes, least)
	case most > 0 && runes > most:
		l.addLimitViolation(at, f, "has %d characters; at most %d are accepted", runes, most)
	case bytes > 0 && len(text) > bytes:
		l.addLimitViolation(at, f, "has %d bytes; at most %d are accepted", len(text), bytes)
	case pattern != "" && !regexp.MustCompile(pattern).MatchString(text):
		l.addLimitViolation(at, f, "must match %s", pattern)
	default:
		l.oneOf(at, f, text)
	}
}

func (l *limiter) oneOf(at string, f reflect.StructField, text string) {
	if list, limited := f.Tag.Lookup("enum"); limited && !slices.Contains(strings.Split(list, ","), text) {
		l.addLimitViolation(at, f, "is not one of %s", strings.ReplaceAll(list, ",", ", "))
	}
}

func (l *limiter) addLimitViolation(at string, f reflect.StructField, format string, args ...any) {
	l.violations = append(l.violations, fault.Violation{
		Code: fault.InvalidArgument, Path: at, Message: "`" + at + "` " + fmt.Sprintf(format, args...),
		Suggestion: f.Tag.Get("fix"),
	})
}

// tagNumber returns a tag that holds a number, 0 if there is none.
func tagNumber(f reflect.StructField, tag string) int {
	text, given := f.Tag.Lookup(tag)
	if !given {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("strictjson: the tag %s of %s is not a number", tag, f.Name))
	}
	return n
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
