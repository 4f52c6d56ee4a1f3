package stdio

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxIDLength bounds a string id, in bytes, since ids go to logs and to the audit.
const maxIDLength = 1024

// requestID is a JSON-RPC id: a string or an integer of 64 bits (MCP allows neither null nor fractions). It is kept as
// text because mcp-go reads numbers as floats, in which large integers lose digits. The zero value means that there is
// no id.
type requestID struct {
	raw   string // JSON text
	scope uint64 // in which it is the id of one request; 0 for the connection
}

func newRequestID(kind jsontext.Kind, text string) requestID {
	if kind == '"' {
		if len(text) > maxIDLength {
			return requestID{}
		}
		raw, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return requestID{}
		}
		return requestID{raw: string(raw)}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return requestID{}
	}
	return requestID{raw: strconv.FormatInt(n, 10)}
}

// within returns the id as one of a scope.
func (id requestID) within(scope uint64) requestID {
	id.scope = scope
	return id
}

func (id requestID) known() bool { return id.raw != "" }

// json returns the id as it goes into an answer: null when unknown.
func (id requestID) json() json.RawMessage {
	if !id.known() {
		return jsonNull()
	}
	return json.RawMessage(id.raw)
}

// trailingID finds the id at the end of a message of which only the tail was kept: `,"id":7}`, where common clients
// write it. In valid JSON such a tail can only be the last member of the outermost object: an unescaped quote ends a
// string, so none of it can lie inside one, and the last brace closes the message.
func trailingID(tail []byte) requestID {
	rest, ok := cutLast(tail, "}")
	if !ok {
		return requestID{}
	}
	value := rest[lastColon(rest):]
	rest, ok = cutLast(rest[:len(rest)-len(value)], ":")
	if !ok {
		return requestID{}
	}
	rest, ok = cutLast(rest, `"id"`)
	if !ok {
		return requestID{}
	}
	if _, ok = cutLast(rest, ","); !ok {
		return requestID{}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	kind := dec.PeekKind()
	if kind != '"' && kind != '0' {
		return requestID{}
	}
	token, err := dec.ReadToken()
	if err != nil || len(bytes.TrimSpace(value[dec.InputOffset():])) > 0 {
		return requestID{}
	}
	return newRequestID(kind, token.String())
}

// lastColon returns the offset behind the colon that ends the text `"id":` closest to the end of b, or len(b).
func lastColon(b []byte) int {
	key := bytes.LastIndex(b, []byte(`"id"`))
	if key < 0 {
		return len(b)
	}
	colon := bytes.IndexByte(b[key:], ':')
	if colon < 0 {
		return len(b)
	}
	return key + colon + 1
}

// cutLast removes white space and then suffix from the end of b.
func cutLast(b []byte, suffix string) ([]byte, bool) {
	return bytes.CutSuffix(bytes.TrimRight(b, " \t\r\n"), []byte(suffix))
}
