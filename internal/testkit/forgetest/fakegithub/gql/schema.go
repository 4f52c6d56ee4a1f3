// Package gql executes GraphQL documents against a schema and values that are made on the spot.
//
// It validates a document and its variables first, as the schema's owner would, then walks the selections over Objects:
// fields, aliases, arguments, variables, fragments, @include and @skip, __typename, connections, errors with partial
// data. It knows nothing of what the objects mean; package fakegithub does.
package gql

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// Schema is a schema that documents are validated and executed against. It is safe for concurrent use.
type Schema struct {
	ast   *ast.Schema
	valid sync.Map // *ast.QueryDocument by text: clients send few documents, with other variables each time
}

// Load reads a schema in the schema definition language.
func Load(sdl string) (*Schema, error) {
	loaded, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: sdl})
	if err != nil {
		return nil, fmt.Errorf("loading the schema: %w", err)
	}
	return &Schema{ast: loaded}, nil
}

// ObjectTypes gives the names of the fields of every object type that is not the language's own.
func (s *Schema) ObjectTypes() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.ast.Types)) {
		def := s.ast.Types[name]
		if def.Kind != ast.Object || def.BuiltIn {
			continue
		}
		for _, f := range def.Fields {
			if len(f.Name) < 2 || f.Name[:2] != "__" {
				out[name] = append(out[name], f.Name)
			}
		}
	}
	return out
}

// leaf gives the wire form of a scalar or an enum value, and an error if it is not one of the type.
func leaf(def *ast.Definition, value any) (any, error) {
	wrong := fmt.Errorf("%v (%T) is not a %s", value, value, def.Name)
	if def.Kind == ast.Enum {
		s, ok := value.(string)
		if !ok || def.EnumValues.ForName(s) == nil {
			return value, wrong
		}
		return s, nil
	}
	ok := false
	switch def.Name {
	case "Int":
		_, ok = value.(int)
	case "Boolean":
		_, ok = value.(bool)
	case "DateTime", "GitTimestamp":
		var at time.Time
		if at, ok = value.(time.Time); ok {
			return at.UTC().Format(time.RFC3339), nil
		}
	default:
		var s string
		if s, ok = value.(string); ok {
			ok = fits(def.Name, s)
		}
	}
	if !ok {
		return value, wrong
	}
	return value, nil
}

// fits checks a scalar whose wire form is a string.
func fits(scalar, s string) bool {
	switch scalar {
	case "URI":
		u, err := url.Parse(s)
		return err == nil && u.Path != "" && u.Path[0] == '/'
	case "GitObjectID":
		return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
	case "Base64String":
		_, err := base64.StdEncoding.DecodeString(s)
		return err == nil
	case "BigInt":
		return s != "" && strings.Trim(s, "0123456789") == ""
	case "ID":
		return s != ""
	default:
		return true
	}
}

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
	err := r.write(&b)
	return b.Bytes(), err
}

func (r *record) write(b *bytes.Buffer) error {
	b.WriteByte('{')
	for i, key := range r.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(key) + ":")
		if err := writeValue(b, r.values[i]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// writeValue writes what is in an object without a check at each depth, as json.Marshal makes them.
func writeValue(b *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case *record:
		return value.write(b)
	case []any:
		b.WriteByte('[')
		for i, item := range value {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeValue(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	text, err := json.Marshal(value)
	b.Write(text)
	return err
}

// MaxPage limits the records of one page of a connection.
const MaxPage = 100

// Items are the records of a connection, in order. Key tells one record from another: cursors name it, so that a page
// follows another one even when records in between have gone.
type Items struct {
	Len  int
	Key  func(i int) string
	Node func(i int) *Object
}

// Connection gives one page of records: an object of the type typ+"Connection". field is the name of the connection,
// for errors.
func Connection(typ, field string, items Items, args Args) (*Object, error) {
	from, to, err := page(field, items, args)
	if err != nil {
		return nil, err
	}
	var end any
	if from < to {
		end = cursor(items, to-1)
	}
	return &Object{typ + "Connection", map[string]any{
		"totalCount": items.Len,
		"pageInfo":   &Object{"PageInfo", map[string]any{"hasNextPage": to < items.Len, "endCursor": end}},
		"nodes": Func(func(Args) (any, error) {
			out := []any{}
			for i := from; i < to; i++ {
				out = append(out, items.Node(i))
			}
			return out, nil
		}),
	}}, nil
}

// page finds the records from (included) to (excluded) that the arguments ask for.
func page(field string, items Items, args Args) (from, to int, err error) {
	from, to = 0, items.Len
	if !args.Has("first") && !args.Has("last") {
		return 0, 0, &Error{Type: "MISSING_PAGINATION_BOUNDARIES", Message: fmt.Sprintf(
			"You must provide a `first` or `last` value to properly paginate the `%s` connection.", field)}
	}
	for _, name := range []string{"first", "last"} {
		switch n := args.Int(name); {
		case n > MaxPage:
			return 0, 0, &Error{Type: "EXCESSIVE_PAGINATION", Message: fmt.Sprintf(
				"Requesting %d records on the `%s` connection exceeds the `%s` limit of %d records.", n, field, name, MaxPage)}
		case n < 0:
			return 0, 0, &Error{Type: "INVALID_PAGINATION_BOUNDARIES", Message: fmt.Sprintf(
				"`%s` on the `%s` connection cannot be less than zero.", name, field)}
		}
	}
	if args.Has("after") {
		at, there, err := locate(items, args.String("after"))
		if err != nil {
			return 0, 0, err
		}
		if there {
			at++
		}
		from = min(at, items.Len)
	}
	if args.Has("before") {
		at, _, err := locate(items, args.String("before"))
		if err != nil {
			return 0, 0, err
		}
		to = max(from, min(at, items.Len))
	}
	if args.Has("first") {
		to = min(to, from+args.Int("first"))
	}
	if args.Has("last") {
		from = max(from, to-args.Int("last"))
	}
	return from, to, nil
}

func cursor(items Items, i int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "cursor:v2:%d:%s", i, items.Key(i)))
}

// locate finds the record of a cursor, or, if it has gone, the place where it was.
func locate(items Items, cursor string) (at int, there bool, err error) {
	invalid := &Error{Type: "INVALID_CURSOR_ARGUMENTS",
		Message: fmt.Sprintf("`%s` does not appear to be a valid cursor.", cursor)}
	raw, decodeErr := base64.StdEncoding.DecodeString(cursor)
	rest, marked := strings.CutPrefix(string(raw), "cursor:v2:")
	index, key, split := strings.Cut(rest, ":")
	at, numberErr := strconv.Atoi(index)
	if decodeErr != nil || numberErr != nil || !marked || !split {
		return 0, false, invalid
	}
	for i := range items.Len {
		if items.Key(i) == key {
			return i, true, nil
		}
	}
	return at, false, nil
}
