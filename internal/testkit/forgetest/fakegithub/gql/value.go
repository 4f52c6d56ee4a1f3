package gql

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Object is a value of an object type. Fields holds, by name, either a field's value or a Func that makes it when it is
// asked for. Values are nil, string, int, bool, []any, *Object and time.Time; a Func may return each of them.
type Object struct {
	Type   string
	Fields map[string]any
}

// Func makes the value of a field.
type Func func(args Args) (any, error)

// Args are the arguments of a field, or the fields of an input object; what was not given and has no default is absent.
type Args map[string]any

// Has reports whether an argument was given with a value other than null.
func (a Args) Has(name string) bool { return a[name] != nil }

// String returns a string argument, or "".
func (a Args) String(name string) string {
	s, _ := a[name].(string)
	return s
}

// Bool returns a boolean argument, or false.
func (a Args) Bool(name string) bool {
	b, _ := a[name].(bool)
	return b
}

// Int returns a number, or zero.
func (a Args) Int(name string) int {
	switch n := a[name].(type) {
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		return int(n)
	case json.Number:
		i, _ := strconv.Atoi(n.String())
		return i
	}
	return 0
}

// Strings returns a list of strings; a single one counts as a list, as the language has it.
func (a Args) Strings(name string) []string {
	var out []string
	for _, v := range list(a[name]) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Object returns an input object, or nil.
func (a Args) Object(name string) Args {
	m, _ := a[name].(map[string]any)
	return m
}

// Objects returns a list of input objects.
func (a Args) Objects(name string) []Args {
	var out []Args
	for _, v := range list(a[name]) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// Error is an error of one field. The executor adds path and location.
type Error struct {
	Type       string         // such as NOT_FOUND; "" for what the schema's owner gives no type
	Message    string         // one sentence
	Extensions map[string]any // nil for none
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Location is a place in a document, both counted from 1.
type Location struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Problem is an Error as a response shows it.
type Problem struct {
	Type       string         `json:"type,omitempty"`
	Path       []any          `json:"path,omitempty"`
	Extensions map[string]any `json:"extensions,omitempty"`
	Locations  []Location     `json:"locations,omitempty"`
	Message    string         `json:"message"`
}

// Response is the answer to a document. A document that is not valid has no data at all.
type Response struct {
	Executed bool
	Data     any // nil when a null reached the root
	Problems []Problem
	Defects  []string // errors of the objects themselves, for their authors
}

// MarshalJSON gives the wire form.
func (r *Response) MarshalJSON() ([]byte, error) {
	if !r.Executed {
		return json.Marshal(struct {
			Errors []Problem `json:"errors"`
		}{r.Problems})
	}
	return json.Marshal(struct {
		Data   any       `json:"data"`
		Errors []Problem `json:"errors,omitempty"`
	}{r.Data, r.Problems})
}

// record is an object of a response: its keys keep the order in which they were asked for.
type record struct {
	keys   []string
	values []any
}

func (r *record) add(key string, value any) {
	r.keys, r.values = append(r.keys, key), append(r.values, value)
}

// MarshalJSON gives the wire form.
func (r *record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range r.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(r.values[i])
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(key) + ":")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
