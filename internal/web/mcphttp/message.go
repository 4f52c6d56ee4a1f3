package mcphttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// stateless is the version since which each request stands for itself.
const stateless = "2026-07-28"

// Headers of MCP.
const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
	nameHeader     = "Mcp-Name"
	eventHeader    = "Last-Event-Id"
	maxVersionText = 40
)

// Codes of JSON-RPC and MCP that have a status of their own since 2026-07-28.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeMismatch   = -32020
	codeCapability = -32021
	codeVersion    = -32022
	codeServer     = -32000 // a condition of the server itself, such as too many requests
)

// head holds the fields of a message that a transport needs. The loop refuses ambiguous messages.
type head struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// isNotification reports whether a message is one that gets no answer.
func (h head) isNotification() bool { return len(h.ID) == 0 && h.Method != "" }

// headOf reads what it can. The receiver of the message reports its errors.
func headOf(message []byte) (h head) {
	_ = json.Unmarshal(message, &h)
	return h
}

// isStateless reports whether a request is one of those that stand for themselves: it says so in its body or in its
// header.
func isStateless(header http.Header, h head) bool {
	return isSince(header.Get(versionHeader)) || isSince(h.Params.Meta.Version)
}

func isSince(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil && version >= stateless
}

// checkVersion refuses a header with a version that sessions do not support. Clients of the first version send none.
func checkVersion(header http.Header) error {
	given := header.Values(versionHeader)
	known := []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	if len(given) == 0 || len(given) == 1 && slices.Contains(known, given[0]) {
		return nil
	}
	return badRequest("%s must be one of %s, and is %s", versionHeader, strings.Join(known, ", "),
		handler.Quote(fmt.Sprintf("%.*s", maxVersionText, given[0])))
}

// mismatch says which header contradicts the body of a request that stands for itself, and with which code; "" for
// none.
func mismatch(header http.Header, h head) (code int, problem string) {
	version := header.Get(versionHeader)
	switch {
	case header.Get(eventHeader) != "":
		return codeMismatch, "Last-Event-ID means nothing since " + stateless + ": make the request again, with another id"
	case version == "":
		return codeMismatch, versionHeader + " is missing"
	case h.Params.Meta.Version == "":
		return codeParams, "_meta lacks io.modelcontextprotocol/protocolVersion"
	case version != h.Params.Meta.Version:
		return codeMismatch, versionHeader + " is not the version in _meta"
	case header.Get(methodHeader) != h.Method:
		return codeMismatch, methodHeader + " is not the method of the body"
	}
	name, named := h.Params.Name, true
	switch h.Method {
	case "tools/call", "prompts/get":
	case "resources/read":
		name = h.Params.URI
	default:
		named = false
	}
	if given, ok := decoded(header.Get(nameHeader)); named && (!ok || given == "" || given != name) {
		return codeMismatch, nameHeader + " is not what the body names"
	}
	return 0, ""
}

// decoded returns the value of a header, which is encoded (=?base64?...?=) where headers cannot have it.
func decoded(value string) (string, bool) {
	inner, found := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if !found || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(inner)
	return string(text), err == nil
}

// failure returns an answer of JSON-RPC that is an error of this transport.
func failure(id json.RawMessage, code int, message string) handler.Response {
	return refusal(id, http.StatusBadRequest, code, message)
}

// refusal returns an error of JSON-RPC with a status of HTTP.
func refusal(id json.RawMessage, status, code int, message string) handler.Response {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return handler.Response{Status: status, Value: map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message},
	}}
}

// statusOf returns the status of an answer that comes alone. Before 2026-07-28 only what could not be read as a request
// has one of its own.
func statusOf(line []byte, alone bool) int {
	id, code := failureIn(line)
	switch code {
	case codeMethod:
		if alone {
			return http.StatusNotFound
		}
	case codeMismatch, codeCapability, codeVersion, codeRequest, codeParams, codeParse:
		if alone || id == "null" {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// failureIn returns the id of an answer that is an error, and its code; 0 for any other. A result is not read: it may
// be long.
func failureIn(line []byte) (id string, code int) {
	var value json.RawMessage
	var failure struct {
		Code int `json:"code"`
	}
	members := json.NewDecoder(bytes.NewReader(line))
	_, err := members.Token()
	for err == nil && members.More() {
		name, broken := members.Token()
		if broken != nil {
			break
		}
		switch name {
		case "result":
			return "", 0
		case "error":
			err = members.Decode(&failure)
		case "id":
			err = members.Decode(&value)
		default:
			err = members.Decode(new(json.RawMessage))
		}
	}
	return string(value), failure.Code
}

// accepts reports whether a client takes answers of a type. One that says nothing takes all.
func accepts(header http.Header, kind string) bool {
	given := strings.ToLower(strings.Join(header.Values("Accept"), ","))
	group, _, _ := strings.Cut(kind, "/")
	return given == "" || strings.Contains(given, kind) || strings.Contains(given, group+"/*") ||
		strings.Contains(given, "*/*")
}

func badRequest(format string, args ...any) error {
	return &handler.StatusError{Status: http.StatusBadRequest, Err: fault.New(fault.InvalidArgument, format, args...)}
}
