package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// value decodes the next value. One that does not fit is noted and skipped. most bounds the elements of an array,
// unless it is 0. The error is of jsontext, or errEnough.
func (d *decoder) value(into reflect.Value, required bool, most int) error {
	kind := d.in.PeekKind()
	switch kind {
	case jsontext.KindInvalid, jsontext.KindEndObject, jsontext.KindEndArray:
		_, err := d.in.ReadToken() // no value begins here; this says why
		return err
	}
	if kind == jsontext.KindNull && into.Kind() == reflect.Pointer && !required {
		return d.in.SkipValue()
	}
	want := expectation(into.Type())
	switch {
	case kind == jsontext.KindNull && len(d.at) > 0:
		return d.unfit("leave it out or give "+want.words, "%s must not be null", d.quotedPath())
	case kind != want.kind && kind != want.or:
		return d.unfit("give "+want.words, "%s must be %s, not %s", d.subject(), want.words, kindName(kind))
	}
	switch {
	case into.Type() == reflect.TypeFor[time.Time]():
		return d.scalar(into)
	case into.Kind() == reflect.Struct:
		return d.decodeObject(into)
	case into.Kind() == reflect.Slice:
		return d.array(into, most)
	default:
		return d.scalar(into)
	}
}

// unfit notes and skips a value.
func (d *decoder) unfit(suggestion, format string, args ...any) error {
	if err := d.addViolation(suggestion, format, args...); err != nil {
		return err
	}
	return d.in.SkipValue()
}

// expected describes the values that a type accepts: in words, and by their kinds.
type expected struct {
	words    string
	kind, or jsontext.Kind
}

func expectation(t reflect.Type) expected {
	one := func(words string, kind jsontext.Kind) expected { return expected{words, kind, kind} }
	switch {
	case t == reflect.TypeFor[time.Time]():
		return one("a time", jsontext.KindString)
	case t.Kind() == reflect.Struct:
		return one("an object", jsontext.KindBeginObject)
	case t.Kind() == reflect.Slice:
		return one("an array", jsontext.KindBeginArray)
	case t.Kind() == reflect.Int:
		return one("an integer", jsontext.KindNumber)
	case t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String:
		return one("a string", jsontext.KindString)
	case t.Kind() == reflect.Bool || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Bool:
		return expected{"true or false", jsontext.KindTrue, jsontext.KindFalse}
	}
	panic(fmt.Sprintf("strictjson: cannot decode into %s", t))
}

// kindName names a kind of value that was given.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	default:
		return "an array"
	}
}

// scalar decodes a string, boolean or integer of the right kind.
func (d *decoder) scalar(into reflect.Value) error {
	raw, err := d.in.ReadValue()
	if err != nil {
		return err
	}
	if into.Kind() == reflect.Pointer && into.Type().Elem().Kind() == reflect.Bool {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	switch into.Kind() {
	case reflect.Bool:
		into.SetBool(raw.Kind() == jsontext.KindTrue)
		return nil
	case reflect.Int:
		return d.integer(into, string(raw))
	}
	text, ok, err := d.decodeString(d.quotedPath, raw)
	switch {
	case ok && into.Kind() == reflect.Struct:
		return d.time(into, text)
	case ok && into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		into.Elem().SetString(text)
	case ok:
		into.SetString(text)
	}
	return err
}

func (d *decoder) time(into reflect.Value, text string) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return d.addViolation("", "%s is not a time such as 2006-01-02T15:04:05Z", d.quotedPath())
	}
	into.Set(reflect.ValueOf(t))
	return nil
}

// integer takes a whole number that is written with a fraction of zeros, too: JSON Schema takes it for an integer, and
// some clients have floating-point numbers alone.
func (d *decoder) integer(into reflect.Value, digits string) error {
	if whole, fraction, has := strings.Cut(digits, "."); has && strings.Trim(fraction, "0") == "" {
		digits = whole
	}
	n, err := strconv.ParseInt(digits, 10, strconv.IntSize)
	into.SetInt(n)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return d.addViolation("give an integer that fits 64 bits", "%s is out of range: %s", d.quotedPath(), clip(digits,
			maxEcho))
	case err != nil:
		return d.addViolation("write it with digits only",
			"%s must be an integer without fraction and exponent, not %s", d.quotedPath(), clip(digits, maxEcho))
	}
	return nil
}

// checkNumberRange notes a number beyond the limits of its field.
func (d *decoder) checkNumberRange(f reflect.StructField, n int) error {
	if _, limited := f.Tag.Lookup("minimum"); limited && n < tagNumber(f, "minimum") {
		return d.addViolation(f.Tag.Get("fix"), "%s must be at least %d", d.quotedPath(), tagNumber(f, "minimum"))
	}
	if _, limited := f.Tag.Lookup("maximum"); limited && n > tagNumber(f, "maximum") {
		return d.addViolation(f.Tag.Get("fix"), "%s must be at most %d", d.quotedPath(), tagNumber(f, "maximum"))
	}
	return nil
}

// array decodes an array into a slice; an empty one gives an empty slice, not nil.
func (d *decoder) array(into reflect.Value, most int) error {
	if _, err := d.in.ReadToken(); err != nil {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	n := 0
	for ; d.in.PeekKind() != jsontext.KindEndArray; n++ {
		if most > 0 && n >= most {
			if err := d.in.SkipValue(); err != nil {
				return err
			}
			continue
		}
		into.Grow(1)
		into.SetLen(n + 1)
		d.enter(pathStep{index: n, element: true})
		if err := d.value(into.Index(n), false, most); err != nil {
			return err
		}
		d.popPath()
	}
	if _, err := d.in.ReadToken(); err != nil || most == 0 || n <= most {
		return err
	}
	return d.addViolation("send fewer at once", "%s has %d entries; at most %d are accepted", d.quotedPath(), n, most)
}

// structField is a field of a struct as JSON sees it.
type structField struct {
	name     string
	index    int
	required bool
	nullable bool                 // a slice that may be null
	most     int                  // elements of a slice; 0 for any number
	integer  *reflect.StructField // whose tags bound a number; nil for none
}

// fieldsOf lists the exported fields of a struct type. It panics on one without a name for JSON.
func (d *decoder) fieldsOf(t reflect.Type) []structField {
	if fields, known := d.known[t]; known {
		return fields
	}
	var fields []structField
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
		one := structField{name: name, index: i, required: f.Tag.Get("required") == "true", most: mostOf(t, f)}
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
	unknown map[string]bool // at most maxViolations: each one is a violation
}

// decodeObject decodes an object into a struct.
func (d *decoder) decodeObject(into reflect.Value) error {
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
		name, ok, err := d.decodeString(d.aName, raw)
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
	return d.noteMissing(fields, had)
}

func (d *decoder) aName() string { return "a name in " + d.subject() }

// noteMissing notes the names that an object lacks.
func (d *decoder) noteMissing(fields []structField, had seen) error {
	for i, f := range fields {
		if !f.required || had.known&(1<<i) != 0 {
			continue
		}
		d.enter(pathStep{name: f.name})
		if err := d.addViolation("add "+d.quotedPath(), "%s is required but missing", d.quotedPath()); err != nil {
			return err
		}
		d.popPath()
	}
	return nil
}

// member decodes the value that follows the name of a member of an object.
func (d *decoder) member(name string, fields []structField, had *seen, into reflect.Value) error {
	d.enter(pathStep{name: name})
	if err := d.memberValue(name, fields, had, into); err != nil {
		return err
	}
	d.popPath()
	return nil
}

func (d *decoder) memberValue(name string, fields []structField, had *seen, into reflect.Value) error {
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
			err = d.checkNumberRange(*f.integer, int(into.Field(f.index).Int()))
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
	if err := d.addViolation(alternative(name, fields), "%s is not a known field", d.quotedPath()); err != nil {
		return err
	}
	return d.in.SkipValue()
}

// repeated notes and passes over a member whose name was there before.
func (d *decoder) repeated() error {
	if err := d.addViolation("give it once", "%s is given more than once", d.quotedPath()); err != nil {
		return err
	}
	return d.in.SkipValue()
}

// maxLikely limits the length of a name for which a similar known name is searched, in bytes; no known name is nearly
// as long.
const maxLikely = 64

// alternative suggests what to do about an unknown name.
func alternative(name string, fields []structField) string {
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

const (
	maxEcho   = 60  // how many characters of submitted text a message repeats
	maxReason = 120 // how many characters of the library's reason, which quotes a few of the text
)

// decodeString returns the value of the JSON string raw, which was read last. A flaw in it is noted about subject, or
// about where the decoder is, and ok is false. The error is errEnough.
func (d *decoder) decodeString(subject func() string, raw jsontext.Value) (value string, ok bool, err error) {
	at, flaw, fix := flawIn(raw, d.opts.RefuseNUL)
	if flaw != "" {
		start := d.in.InputOffset() - int64(len(raw))
		return "", false, d.addViolation(fix, "%s holds %s at byte offset %d", subject(), flaw, start+int64(at))
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true, nil
	}
	unquoted, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
	if err != nil { // flawIn and the library disagree; the stricter of the two decides
		return "", false, d.addViolation("send it as UTF-8", "%s is not a valid string", subject())
	}
	return string(unquoted), true, nil
}

// flawIn finds the first thing in a JSON string, which is well-formed otherwise, that does not stand for a character:
// its offset, what it is, and what to do about it.
func flawIn(raw []byte, refuseNUL bool) (at int, flaw, fix string) {
	for at < len(raw) {
		r, size := utf8.DecodeRune(raw[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "invalid UTF-8", "send it as UTF-8"
		case r != '\\':
			at += size
			continue
		}
		unit, escape := escaped(raw[at:])
		switch {
		case unit == 0 && refuseNUL:
			return at, "a NUL character", "remove it"
		case !utf16.IsSurrogate(unit):
			at += escape
			continue
		}
		second, more := escaped(raw[at+escape:])
		if utf16.DecodeRune(unit, second) == unicode.ReplacementChar {
			return at, "half of a surrogate pair", "write the whole pair, or the character itself"
		}
		at += escape + more
	}
	return 0, "", ""
}

// escaped returns the UTF-16 code unit that an escape at the start of text stands for, if it is a \u escape, and the
// length of the escape. Anything else gives an ordinary character.
func escaped(text []byte) (unit rune, size int) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return ' ', min(len(text), 2)
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return ' ', 2
	}
	return rune(n), 6
}

// clip makes submitted text fit to be repeated: at most limit characters, none of them invisible, no backtick.
func clip(s string, limit int) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if count == limit {
			return b.String() + "…"
		}
		switch {
		case r == '`':
			r = '\''
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
