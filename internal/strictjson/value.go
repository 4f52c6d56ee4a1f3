package strictjson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// value decodes the next value. One that does not fit is noted and skipped. The error is of jsontext, or errTooDeep.
func (d *decoder) value(path string, into reflect.Value, required bool) error {
	kind := d.in.PeekKind()
	switch kind {
	case jsontext.KindInvalid, jsontext.KindEndObject, jsontext.KindEndArray:
		_, err := d.in.ReadToken() // no value begins here; this says why
		return err
	}
	if kind == jsontext.KindNull && into.Kind() == reflect.Pointer && !required {
		return d.in.SkipValue()
	}
	want, fits := expectation(into.Type())
	switch {
	case kind == jsontext.KindNull && path != "":
		d.note(path, "leave it out or give "+want, "`%s` must not be null", path)
		return d.in.SkipValue()
	case !fits(kind):
		d.note(path, "give "+want, "%s must be %s, not %s", d.subject(path), want, describe(kind))
		return d.skip(path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return d.object(path, into)
	case reflect.Slice:
		return d.array(path, into)
	default:
		return d.scalar(path, into)
	}
}

// expectation says in words what a type takes, and tells whether a kind of value may be that.
func expectation(t reflect.Type) (want string, fits func(jsontext.Kind) bool) {
	is := func(want jsontext.Kind) func(jsontext.Kind) bool {
		return func(kind jsontext.Kind) bool { return kind == want }
	}
	switch {
	case t.Kind() == reflect.Struct:
		return "an object", is(jsontext.KindBeginObject)
	case t.Kind() == reflect.Slice:
		return "an array", is(jsontext.KindBeginArray)
	case t.Kind() == reflect.Int:
		return "an integer", is(jsontext.KindNumber)
	case t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String:
		return "a string", is(jsontext.KindString)
	case t.Kind() == reflect.Bool:
		return "true or false", func(kind jsontext.Kind) bool {
			return kind == jsontext.KindTrue || kind == jsontext.KindFalse
		}
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

// subject names what is at path in a message.
func (d *decoder) subject(path string) string {
	if path == "" {
		return "the " + d.opts.What
	}
	return "`" + path + "`"
}

// scalar decodes a string, boolean or integer of the right kind.
func (d *decoder) scalar(path string, into reflect.Value) error {
	raw, err := d.in.ReadValue()
	if err != nil {
		return err
	}
	switch into.Kind() {
	case reflect.Bool:
		into.SetBool(raw.Kind() == jsontext.KindTrue)
	case reflect.Int:
		n, err := strconv.ParseInt(string(raw), 10, strconv.IntSize)
		switch {
		case errors.Is(err, strconv.ErrRange):
			d.note(path, "give an integer that fits 64 bits", "`%s` is out of range: %s", path, clip(string(raw), maxEcho))
		case err != nil:
			d.note(path, "write it with digits only",
				"`%s` must be an integer without fraction and exponent, not %s", path, clip(string(raw), maxEcho))
		}
		into.SetInt(n)
	default:
		text, ok := d.text(path, "`"+path+"`", raw)
		switch {
		case ok && into.Kind() == reflect.Pointer:
			into.Set(reflect.New(into.Type().Elem()))
			into.Elem().SetString(text)
		case ok:
			into.SetString(text)
		}
	}
	return nil
}

// array decodes an array into a slice; an empty one gives an empty slice, not nil.
func (d *decoder) array(path string, into reflect.Value) error {
	if err := d.open(path); err != nil {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	for i := 0; d.in.PeekKind() != jsontext.KindEndArray; i++ {
		element := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(path+"["+strconv.Itoa(i)+"]", element, false); err != nil {
			return err
		}
		into.Set(reflect.Append(into, element))
	}
	_, err := d.in.ReadToken()
	return err
}

// open reads the start of an array or object and refuses one too many.
func (d *decoder) open(path string) error {
	if _, err := d.in.ReadToken(); err != nil {
		return err
	}
	if d.in.StackDepth() > MaxDepth {
		d.note(path, "flatten it", "%s must not be nested more than %d levels deep", d.subject(path), MaxDepth)
		return errTooDeep
	}
	return nil
}

// skip passes over the next value.
func (d *decoder) skip(path string) error {
	for depth := d.in.StackDepth(); ; {
		var err error
		switch d.in.PeekKind() {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			err = d.open(path)
		case jsontext.KindEndObject, jsontext.KindEndArray:
			_, err = d.in.ReadToken()
		default:
			err = d.in.SkipValue()
		}
		if err != nil || d.in.StackDepth() <= depth {
			return err
		}
	}
}
