package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// readBody reads the whole body of a request that must have the content type, up to the bound of its route. What is wrong
// with it is invalid_argument, under the status that HTTP has for it.
func readBody(c *call, contentType string) ([]byte, error) {
	if encoding := c.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, unsupported("a compressed body is not accepted; send it as it is")
	}
	given, parameters, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	charset := parameters["charset"]
	isUTF8 := charset == "" || strings.EqualFold(charset, "utf-8")
	if err != nil || len(c.Header.Values("Content-Type")) != 1 || given != contentType || !isUTF8 {
		return nil, unsupported("Content-Type must be " + contentType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, c.Body, c.bound.bytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &statusError{status: http.StatusRequestEntityTooLarge,
			header: http.Header{"Connection": {"close"}},
			err:    fault.New(fault.InvalidArgument, "the body has more than %d bytes; %s", c.bound.bytes, c.bound.advice)}
	case err != nil:
		return nil, &statusError{status: http.StatusBadRequest,
			err: fault.Wrap(err, fault.InvalidArgument, "the body did not arrive as a whole")}
	}
	return body, nil
}

func unsupported(message string) error {
	return &statusError{status: http.StatusUnsupportedMediaType, err: fault.New(fault.InvalidArgument, "%s", message)}
}

// sizeOf is the size of a body that was refused, for the record.
func sizeOf(c *call) string {
	if c.ContentLength < 0 {
		return "of unknown size"
	}
	return fmt.Sprintf("%d bytes", c.ContentLength)
}
