//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// reply is one turn of the model: a tool call if tool is set, else text, which ends the conversation.
type reply struct {
	tool string
	args any
	text string
	used map[string]any // tokens, in the API's words; nil for one of input and output
}

func say(text string) reply { return reply{text: text} }

// use calls a tool of ours by the name that Claude Code gives it.
func use(tool string, args any) reply { return reply{tool: "mcp__claudeops__" + tool, args: args} }

// model stands in for the model: it sees the results of its calls so far, oldest first, and takes the next turn. The
// stub takes the first turn for it, which loads our tools' definitions: Claude Code 2.1.329 shows a model only the
// names of MCP tools until it asks for more.
type model func(results []seenResult) reply

// scripted plays the replies in order, whatever the results are, and then stops.
func scripted(replies ...reply) model {
	return func(results []seenResult) reply {
		if len(results) < len(replies) {
			return replies[len(results)]
		}
		return say("done")
	}
}

// seenResult is a tool's result as the model sees it.
type seenResult struct {
	text    string
	isError bool
}

// messagesStub is a Messages API on the loopback interface: it streams a model's replies and keeps what it was sent.
type messagesStub struct {
	*httptest.Server
	model model
	asked func(asked string, results []seenResult) reply // if not nil, plays the model that has our tools at once

	mu   sync.Mutex
	last messagesRequest
	all  []messagesRequest
	bad  []string // what the stub could not make sense of
}

// messagesRequest is the part of POST /v1/messages that the tests look at.
type messagesRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	System json.RawMessage `json:"system"`
	Tools  []offeredTool   `json:"tools"`
	key    string          // the header Authorization
}

// offeredTool is a tool as the model sees it.
type offeredTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func newMessagesStub(t *testing.T, m model) *messagesStub {
	s := &messagesStub{model: m}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// seen returns the last request, which holds the whole conversation.
func (s *messagesStub) seen(t *testing.T) messagesRequest {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bad {
		t.Errorf("messages stub: %s", b)
	}
	return s.last
}

// requests returns all requests in their order.
func (s *messagesStub) requests(t *testing.T) []messagesRequest {
	t.Helper()
	_ = s.seen(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *messagesStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodHead { // a client that looks whether the host is there
		return
	}
	var req messagesRequest
	err := json.NewDecoder(r.Body).Decode(&req)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/messages" || !req.Stream {
		s.bad = append(s.bad, fmt.Sprintf("unexpected request: %s %s, stream %v, %v", r.Method, r.URL, req.Stream, err))
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"stub"}}`, http.StatusBadRequest)
		return
	}
	req.key = r.Header.Get("Authorization")
	s.last, s.all = req, append(s.all, req)
	next := reply{tool: "ToolSearch", args: map[string]any{"query": selectOurs, "max_results": 3}}
	results := req.results()
	switch {
	case s.asked != nil:
		next = s.asked(req.everything(), results)
	case len(results) > 0:
		next = s.model(results[1:])
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream(w, req.Model, len(results), next)
}

// selectOurs asks ToolSearch for the definitions of our tools.
const selectOurs = "select:mcp__claudeops__create_pr,mcp__claudeops__get_pr_status,mcp__claudeops__list_prs"

// results returns the tool results of the conversation; the first is that of ToolSearch.
func (r messagesRequest) results() []seenResult {
	var out []seenResult
	for _, m := range r.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
			IsError bool            `json:"is_error"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a message may be a plain string, which holds no result
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, seenResult{plain(b.Content), b.IsError})
			}
		}
	}
	return out
}

// plain is the text of a result's content: a string, or blocks, of which it keeps the text and the names of tools.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text     string `json:"text"`
		ToolName string `json:"tool_name"`
	}
	_ = json.Unmarshal(content, &blocks) // what is neither is an empty text, which no test expects
	for _, b := range blocks {
		text += b.Text + b.ToolName
	}
	return text
}

// stream writes one reply as the Messages API streams it (docs.claude.com, "Streaming messages").
func stream(w http.ResponseWriter, model string, turn int, r reply) {
	type object = map[string]any
	event := func(name string, fields object) {
		fields["type"] = name
		data, err := json.Marshal(fields)
		if err != nil { // arguments that no test makes
			data = []byte(`{"type":"error"}`)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
	}
	block, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": r.text}, "end_turn"
	if r.tool != "" {
		args, err := json.Marshal(r.args)
		if err != nil {
			args = []byte("null")
		}
		block = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", turn), "name": r.tool, "input": object{}}
		delta, stop = object{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	used := object{"input_tokens": 1, "output_tokens": 1}
	if r.used != nil {
		used = r.used
	}
	event("message_start", object{"message": object{
		"id": fmt.Sprintf("msg_%d", turn), "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": used,
	}})
	event("content_block_start", object{"index": 0, "content_block": block})
	event("content_block_delta", object{"index": 0, "delta": delta})
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{
		"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": used["output_tokens"]},
	})
	event("message_stop", object{})
}

// everything is the text of the whole request's system prompt and messages.
func (r messagesRequest) everything() string {
	text := string(r.System)
	for _, m := range r.Messages {
		text += string(m.Content)
	}
	return text
}
