package connect

import (
	"encoding/json"
	"errors"
	"strings"
)

// Methods of MCP that this package has to know.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodCall        = "tools/call"
)

// envelope has the fields of a message that this package reads.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Cancels json.RawMessage `json:"requestId"`
		Tool    string          `json:"name"`
	} `json:"params"`
}

// look reads the envelope of a message; false if it is not a JSON object. Members of a wrong type are left empty: the
// door refuses the message.
func look(line []byte) (envelope, bool) {
	var e envelope
	err := json.Unmarshal(line, &e)
	var wrongType *json.UnmarshalTypeError
	return e, err == nil || errors.As(err, &wrongType)
}

// key returns an id in the form in which two are compared: a text and its escaped form are one.
func key(id json.RawMessage) string {
	var text string
	if len(id) > 0 && id[0] == '"' && json.Unmarshal(id, &text) == nil {
		return "text " + text
	}
	return string(id)
}

// isRequest reports whether a message of the client wants an answer.
func (e envelope) isRequest() bool {
	return e.Method != "" && len(e.ID) > 0 && string(e.ID) != "null"
}

// withID returns a request under another id.
func withID(line []byte, id string) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	fields["id"] = encoded
	out, err := json.Marshal(fields)
	return append(out, '\n'), err
}

// failure says why a request has no answer of the door's, in the form in which Claude Ops answers.
type failure struct {
	Code              string `json:"code"`
	Message           string `json:"message"`
	Retryable         bool   `json:"retryable"`
	RetryAfterSeconds int    `json:"retry_after_seconds,omitempty"`
	RequestID         string `json:"request_id"` // of no record: the door has written none under it
}

// answer returns the failure as the answer to a request: a tool's result with isError, and for other methods an error
// of JSON-RPC.
func (f failure) answer(to envelope) []byte {
	out := map[string]any{"jsonrpc": "2.0", "id": to.ID}
	if to.Method == methodCall {
		out["result"] = map[string]any{
			"content":           []any{map[string]string{"type": "text", "text": "[" + f.Code + "] " + f.Message}},
			"structuredContent": map[string]any{"error": f}, "isError": true,
		}
	} else {
		const serverError = -32000
		out["error"] = map[string]any{"code": serverError, "message": f.Message, "data": map[string]any{"reason": f.Code}}
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil // an id that was read as JSON can be written as such
	}
	return []byte(b.String())
}
