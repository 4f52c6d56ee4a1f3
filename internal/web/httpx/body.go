package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/operation"
)

// ReadBody reads the whole body of a request that must have the content type, up to the bound of its route. What is
// wrong with it is invalid_argument, under the status that HTTP has for it.
func ReadBody(r *Request, contentType string) ([]byte, error) {
	body, whole, err := ReadSome(r, contentType)
	if err == nil && !whole {
		return nil, &StatusError{Status: http.StatusRequestEntityTooLarge,
			Header: http.Header{"Connection": {"close"}},
			Err:    fault.New(fault.InvalidArgument, "the body has more than %d bytes; %s", r.Limit.Bytes, r.Limit.Advice)}
	}
	return body, err
}

// ReadSome is ReadBody for callers that answer a body above the bound in their own way: it reads the beginning then,
// and whole is false.
func ReadSome(r *Request, contentType string) (body []byte, whole bool, err error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, false, Unsupported("a compressed body is not accepted; send it as it is")
	}
	given, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := parameters["charset"]
	isUTF8 := charset == "" || strings.EqualFold(charset, "utf-8")
	if err != nil || len(r.Header.Values("Content-Type")) != 1 || given != contentType || !isUTF8 {
		return nil, false, Unsupported("Content-Type must be " + contentType)
	}
	body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, r.Limit.Bytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return body, false, nil
	case err != nil:
		return nil, false, &StatusError{Status: http.StatusBadRequest,
			Err: fault.Wrap(err, fault.InvalidArgument, "the body did not arrive as a whole")}
	}
	return body, true, nil
}

// Unsupported returns an error about a body of a kind that is not read here.
func Unsupported(message string) error {
	return &StatusError{Status: http.StatusUnsupportedMediaType, Err: fault.New(fault.InvalidArgument, "%s", message)}
}

// BodySize returns the size of a body that was refused, for the record.
func BodySize(r *Request) string {
	if r.ContentLength < 0 {
		return "of unknown size"
	}
	return fmt.Sprintf("%d bytes", r.ContentLength)
}

// ReadForm reads the fields of a form.
func ReadForm(r *Request) (url.Values, error) {
	body, err := ReadBody(r, "application/x-www-form-urlencoded")
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidArgument, "the form is malformed")
	}
	return form, nil
}

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

// PrefersHTML reports whether the client would rather have a page than JSON: it names text/html and values it no less
// than any form of JSON. Programs that accept anything get JSON.
func PrefersHTML(r *http.Request) bool {
	page, data := -1.0, -1.0
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		q := quality(parameters)
		switch kind = strings.ToLower(strings.TrimSpace(kind)); {
		case kind == "text/html":
			page = max(page, q)
		case strings.HasSuffix(kind, "json"):
			data = max(data, q)
		}
	}
	return page > 0 && page >= data
}

// quality returns the weight among the parameters of an entry of Accept (RFC 9110, 12.4.2).
func quality(parameters string) float64 {
	for _, p := range strings.Split(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
