package operation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// reserved is the room for the notes on what was left out.
const reserved = 1 << 10

// finishAnswer does steps 9 and 10. most is 0 for an answer of any size.
func (a *attempt) finishAnswer(out any, most int) (any, error) {
	clean, changed := redacted(reflect.ValueOf(out), a.kernel.Redact)
	if changed {
		out = clean.Interface()
	}
	if most <= 0 || sizeOf(clean) <= most {
		return out, nil
	}
	answer := reflect.New(clean.Type()).Elem()
	answer.Set(clean)
	err := fit(answer, most)
	return answer.Interface(), err
}

// fit cuts an answer, a struct, to at most most bytes: it removes the end of its longest list, or of its longest text.
// A note in the text says so; for a list, in the field notes or warnings, a list of texts. An answer without one that
// is too large is TooLarge.
func fit(answer reflect.Value, most int) error {
	for range 8 {
		size := sizeOf(answer)
		if size <= most {
			return nil
		}
		name, longest := longestPart(answer)
		if !longest.IsValid() {
			break
		}
		room := sizeOf(longest) - (size - most) - reserved
		if longest.Kind() == reflect.String {
			shorten(longest, room)
			continue
		}
		notes := notesOf(answer)
		if !notes.IsValid() {
			break
		}
		kept, had := fitting(longest, room), longest.Len()
		longest.Set(longest.Slice(0, kept))
		notes.Set(reflect.Append(notes, reflect.ValueOf(fmt.Sprintf(
			"%d of %d entries of %s were left out, since an answer has at most %d KiB; ask for less at once", had-kept, had,
			name, most>>10))))
	}
	if size := sizeOf(answer); size > most {
		return newFault(ReasonSize, fault.LimitReached, "the answer would have %d KiB; at most %d KiB are given", size>>10,
			most>>10)
	}
	return nil
}

func sizeOf(v reflect.Value) int {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v.Interface()); err != nil { // answers always marshal
		return 0
	}
	return b.Len()
}

// longestPart returns the list or text in a struct, or in a struct in it, that takes most room.
func longestPart(v reflect.Value) (name string, longest reflect.Value) {
	most := reserved
	for _, f := range Fields(v.Type()) {
		part, partName := v.FieldByIndex(f.Index), f.JSON
		if part.Kind() == reflect.Struct {
			var inner string
			if inner, part = longestPart(part); !part.IsValid() {
				continue
			}
			partName += "." + inner
		}
		if part.Kind() != reflect.Slice && part.Kind() != reflect.String || f.Type == reflect.TypeFor[[]string]() &&
			(f.JSON == "notes" || f.JSON == "warnings") {
			continue
		}
		if size := sizeOf(part); size > most {
			name, longest, most = partName, part, size
		}
	}
	return name, longest
}

// notesOf returns the field of an answer that says what was left out.
func notesOf(answer reflect.Value) reflect.Value {
	if notes := textListField(answer, "notes"); notes.IsValid() {
		return notes
	}
	return textListField(answer, "warnings")
}

// textListField returns the list of texts of a struct with a name in JSON; the zero Value if it has none.
func textListField(v reflect.Value, name string) reflect.Value {
	for _, f := range Fields(v.Type()) {
		if f.JSON == name && f.Type == reflect.TypeFor[[]string]() {
			return v.FieldByIndex(f.Index)
		}
	}
	return reflect.Value{}
}

// fitting returns how many leading elements of a list fit in room bytes.
func fitting(list reflect.Value, room int) int {
	for i := range list.Len() {
		if room -= sizeOf(list.Index(i)); room < 0 {
			return i
		}
	}
	return list.Len()
}

// shorten cuts a text, between characters, so that its JSON has at most room bytes, and says so in it.
func shorten(text reflect.Value, room int) {
	full := text.String()
	length := max(0, min(len(full), room))
	for length > 0 && sizeOf(reflect.ValueOf(full[:length])) > room { // escapes take more than one byte
		length = length * 9 / 10
	}
	for length > 0 && !utf8.RuneStart(full[length]) {
		length--
	}
	text.SetString(fmt.Sprintf("%s\n[%d more bytes were left out]", full[:length], len(full)-length))
}

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
