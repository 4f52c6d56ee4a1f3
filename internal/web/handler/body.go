package handler

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
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
