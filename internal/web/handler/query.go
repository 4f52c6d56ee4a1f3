package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/operation"
)

// DecodeQuery reads the query of a request into dst, a pointer to a struct that strictjson decodes, within its limits.
func DecodeQuery(r *Request, dst any) error {
	raw, err := Arguments(r, r.URL.RawQuery, reflect.TypeOf(dst).Elem())
	if err != nil {
		return err
	}
	return Invalid(strictjson.DecodeWithinLimits(raw, dst, strictjson.Options{What: "query"}))
}

// Arguments writes path and query as the JSON object that a tool would be called with, repeated and unknown names
// included: the decoder refuses those, in the same words for every protocol. input is the struct type of the object; a
// field with the tag path is that part of the path. An empty value of a field that is not text counts as absent.
func Arguments(r *Request, rawQuery string, input reflect.Type) ([]byte, error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the query is malformed")
	}
	var members [][]byte
	member := func(name string, value any) {
		members = append(members, slices.Concat(EncodeJSON(name), []byte(":"), EncodeJSON(value)))
	}
	types := map[string]reflect.Type{}
	for _, f := range operation.Fields(input) {
		if part := f.Tag.Get("path"); part != "" {
			member(f.JSON, typed(f.Type, r.PathValue(part)))
		} else {
			types[f.JSON] = f.Type
		}
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t, known := types[name]
		if known && t.Kind() == reflect.Slice {
			member(name, query[name])
			continue
		}
		for _, value := range query[name] {
			if value != "" || !known || t.Kind() == reflect.String {
				member(name, typed(t, value))
			}
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

// typed returns a value of a path or a query as JSON has it for a field of the type. What is none stays text, and the
// decoder says what is wrong with it.
func typed(t reflect.Type, value string) any {
	if t == nil {
		return value
	}
	if n, err := strconv.Atoi(value); err == nil && t.Kind() == reflect.Int {
		return n
	}
	if t.Kind() == reflect.Bool && (value == "true" || value == "false") {
		return json.RawMessage(value)
	}
	return value
}

// BadParameter returns the violation of a parameter of the query.
func BadParameter(name, format string, args ...any) fault.Violation {
	message := "the parameter `" + name + "` " + fmt.Sprintf(format, args...)
	return fault.Violation{Code: fault.InvalidArgument, Path: name, Message: message}
}

// Quote returns a text of a request for an error message: harmless and short.
func Quote(s string) string {
	const most = 40
	q := strconv.QuoteToASCII(s[:min(len(s), most)])
	return q[1 : len(q)-1]
}
