package stdioproxy

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
)

// keptRequest is the size in bytes up to which a request that calls no tool is kept, to be sent again on the next
// connection.
const keptRequest = 64 << 10

// replayID is the id of an initialize that is sent again; its answer is discarded.
const replayID = "claudeops-connect:initialize"

// pendingRequest is one that the client waits for.
type pendingRequest struct {
	envelope
	line []byte // "" for calls of tools, which are never sent twice, and for what is too long
}

// pending are the requests under way, and what the client said first. It is safe for concurrent use.
type pending struct {
	mu          sync.Mutex
	requests    []pendingRequest // in the order in which they came
	initialize  []byte           // the client's, once it was answered
	initialized bool             // the client has said so
}

// sent takes note of a message on its way to the door.
func (p *pending) sent(line []byte) {
	e, ok := parseEnvelope(line)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Method == methodInitialized:
		p.initialized = true
	case e.Method == methodCancelled && !e.isRequest():
		p.popRequest(idKey(e.Params.Cancels)) // the door does not answer what was cancelled
	case e.isRequest():
		r := pendingRequest{envelope: e}
		if e.Method != methodCall && len(line) <= keptRequest {
			r.line = line
		}
		p.requests = append(p.requests, r)
	}
}

// answered takes note of a message on its way to the client, and reports whether the client is to see it.
func (p *pending) answered(line []byte) bool {
	e, ok := parseEnvelope(line)
	if !ok || e.Method != "" {
		return true
	}
	id := idKey(e.ID)
	if id == "text "+replayID {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, found := p.popRequest(id); found && r.Method == methodInitialize {
		p.initialize = r.line
	}
	return true
}

func (p *pending) popRequest(id string) (pendingRequest, bool) {
	at := slices.IndexFunc(p.requests, func(r pendingRequest) bool { return idKey(r.ID) == id })
	if at < 0 {
		return pendingRequest{}, false
	}
	r := p.requests[at]
	p.requests = slices.Delete(p.requests, at, at+1)
	return r, true
}

// empty reports whether the client waits for nothing.
func (p *pending) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests) == 0
}

// lost returns the answers to the requests that cannot be sent again, after the connection broke. The others stay; none
// does when the connection was the last one.
func (p *pending) lost(last bool) (answers [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = slices.DeleteFunc(p.requests, func(r pendingRequest) bool {
		if r.line != nil && !last {
			return false
		}
		answers = append(answers, lostCall(r.envelope).errorReply(r.envelope))
		return true
	})
	return answers
}

// replayLines returns the first messages for a new connection: the client's initialize, and the requests that still
// wait.
func (p *pending) replayLines() (lines [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if replay, err := withID(p.initialize, replayID); p.initialize != nil && err == nil {
		lines = append(lines, replay)
		if p.initialized {
			lines = append(lines, []byte(`{"jsonrpc":"2.0","method":"`+methodInitialized+`"}`+"\n"))
		}
	}
	for _, r := range p.requests {
		lines = append(lines, r.line)
	}
	return lines
}

// lostCall returns the failure of a request whose connection broke before its answer came.
func lostCall(e envelope) unansweredError {
	f := unansweredError{Code: "upstream_error", RequestID: rand.Text(),
		Message: "The connection to Claude Ops broke before the answer came, so it is " +
			"not known whether this call was carried out. If it only reads, make it again; if it changes something, look first " +
			"whether it has."}
	if e.Params.Tool == "create_pr" {
		f.Retryable = true
		f.Message = "The connection to Claude Ops broke before the answer came, so it is not known whether the pull " +
			"request was made. " +
			"Make the identical call again: what was begun is found and completed, and no second pull request is made."
	}
	return f
}

// unsent returns the failure of a request that was never sent.
func unsent() unansweredError {
	const soon = 5
	return unansweredError{
		Code: "timeout", Retryable: true, RetryAfterSeconds: soon, RequestID: rand.Text(),
		Message: "Claude Ops cannot be reached, so the call was not sent and nothing was done. Make it again in a few seconds.",
	}
}

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

// parseEnvelope reads the envelope of a message; false if it is not a JSON object. Members of a wrong type are left
// empty: the door refuses the message.
func parseEnvelope(line []byte) (envelope, bool) {
	var e envelope
	err := json.Unmarshal(line, &e)
	var wrongType *json.UnmarshalTypeError
	return e, err == nil || errors.As(err, &wrongType)
}

// idKey returns an id in the form in which two are compared: a text and its escaped form are one.
func idKey(id json.RawMessage) string {
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

// unansweredError says why a request has no answer of the door's, in the form in which Claude Ops answers.
type unansweredError struct {
	Code              string `json:"code"`
	Message           string `json:"message"`
	Retryable         bool   `json:"retryable"`
	RetryAfterSeconds int    `json:"retry_after_seconds,omitempty"`
	RequestID         string `json:"request_id"` // of no record: the door has written none under it
}

// errorReply returns the failure as the answer to a request: a tool's result with isError, and for other methods an
// error of JSON-RPC.
func (f unansweredError) errorReply(to envelope) []byte {
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
