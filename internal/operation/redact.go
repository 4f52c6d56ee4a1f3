package operation

import (
	"reflect"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// redacted returns a value with every text in it redacted, names of maps included, but for fields with the tag
// redact:"never", such as a new token that is shown once. What others may share is copied, not changed.
func redacted(v reflect.Value, redact func(string) string) (out reflect.Value, changed bool) {
	switch v.Kind() {
	case reflect.String:
		text := redact(v.String())
		if text == v.String() {
			return v, false
		}
		out = reflect.New(v.Type()).Elem()
		out.SetString(text)
		return out, true
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		inner, changed := redacted(v.Elem(), redact)
		if !changed {
			return v, false
		}
		if v.Kind() == reflect.Interface {
			return inner, true
		}
		out = reflect.New(v.Type().Elem())
		out.Elem().Set(inner)
		return out, true
	case reflect.Struct, reflect.Slice:
		return redactedParts(v, redact)
	case reflect.Map:
		return redactedMap(v, redact)
	}
	return v, false
}

// redactedParts redacts the fields of a struct or the elements of a slice.
func redactedParts(v reflect.Value, redact func(string) string) (out reflect.Value, changed bool) {
	count, part := 0, reflect.Value.Field
	if v.Kind() == reflect.Slice {
		count, part = v.Len(), reflect.Value.Index
	} else {
		count = v.NumField()
	}
	for i := range count {
		if v.Kind() == reflect.Struct && (!v.Type().Field(i).IsExported() || v.Type().Field(i).Tag.Get("redact") == "never") {
			continue
		}
		inner, differs := redacted(part(v, i), redact)
		if !differs {
			continue
		}
		if !changed {
			out, changed = reflect.New(v.Type()).Elem(), true
			out.Set(v)
			if v.Kind() == reflect.Slice {
				out.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, count), v))
			}
		}
		part(out, i).Set(inner)
	}
	if !changed {
		return v, false
	}
	return out, true
}

func redactedMap(v reflect.Value, redact func(string) string) (reflect.Value, bool) {
	if v.IsNil() {
		return v, false
	}
	out, changed := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	for entries := v.MapRange(); entries.Next(); {
		name, one := redacted(entries.Key(), redact)
		value, other := redacted(entries.Value(), redact)
		changed = changed || one || other
		out.SetMapIndex(name, value)
	}
	if !changed {
		return v, false
	}
	return out, true
}

// redactFault returns a failure with every text in it redacted. Its cause stays, for the log, which redacts by itself.
func redactFault(f *Fault, redact func(string) string) *Fault {
	general := *f.General
	general.Message = redact(general.Message)
	if general.Existing != nil {
		existing := general.Existing.Map(redact)
		general.Existing = &existing
	}
	if violations, changed := redacted(reflect.ValueOf(general.Violations), redact); changed {
		general.Violations = violations.Interface().([]fault.Violation)
	}
	out := *f
	out.General = &general
	if details, changed := redacted(reflect.ValueOf(f.Details), redact); changed {
		out.Details = details.Interface().(map[string]any)
	}
	if suggestions, changed := redacted(reflect.ValueOf(f.Suggestions), redact); changed {
		out.Suggestions = suggestions.Interface().([]string)
	}
	return &out
}
