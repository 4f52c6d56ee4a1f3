package strictjson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

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
		return d.unfit("leave it out or give "+want.words, "%s must not be null", d.quoted())
	case kind != want.kind && kind != want.or:
		return d.unfit("give "+want.words, "%s must be %s, not %s", d.subject(), want.words, describe(kind))
	}
	switch {
	case into.Type() == reflect.TypeFor[time.Time]():
		return d.scalar(into)
	case into.Kind() == reflect.Struct:
		return d.object(into)
	case into.Kind() == reflect.Slice:
		return d.array(into, most)
	default:
		return d.scalar(into)
	}
}

// unfit notes and skips a value.
func (d *decoder) unfit(suggestion, format string, args ...any) error {
	if err := d.note(suggestion, format, args...); err != nil {
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

// describe names a kind of value that was given.
func describe(kind jsontext.Kind) string {
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
	text, ok, err := d.text(d.quoted, raw)
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
		return d.note("", "%s is no time as in 2006-01-02T15:04:05Z", d.quoted())
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
		return d.note("give an integer that fits 64 bits", "%s is out of range: %s", d.quoted(), clip(digits, maxEcho))
	case err != nil:
		return d.note("write it with digits only",
			"%s must be an integer without fraction and exponent, not %s", d.quoted(), clip(digits, maxEcho))
	}
	return nil
}

// bounded notes a number beyond the limits of its field.
func (d *decoder) bounded(f reflect.StructField, n int) error {
	if _, limited := f.Tag.Lookup("minimum"); limited && n < number(f, "minimum") {
		return d.note(f.Tag.Get("fix"), "%s must be at least %d", d.quoted(), number(f, "minimum"))
	}
	if _, limited := f.Tag.Lookup("maximum"); limited && n > number(f, "maximum") {
		return d.note(f.Tag.Get("fix"), "%s must be at most %d", d.quoted(), number(f, "maximum"))
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
		d.enter(step{index: n, element: true})
		if err := d.value(into.Index(n), false, most); err != nil {
			return err
		}
		d.leave()
	}
	if _, err := d.in.ReadToken(); err != nil || most == 0 || n <= most {
		return err
	}
	return d.note("send fewer at once", "%s has %d entries; at most %d are accepted", d.quoted(), n, most)
}
