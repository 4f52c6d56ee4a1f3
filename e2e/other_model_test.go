//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// otherModel is a Responses API of OpenAI and a generateContent API of Gemini on the loopback interface. It plays a
// model as messagesStub does for Claude, and keeps what it was sent.
type otherModel struct {
	*httptest.Server
	plays model

	mu      sync.Mutex
	sent    strings.Builder
	results []seenResult // of the last request
}

func newOtherModel(t *testing.T, m model) *otherModel {
	o := &otherModel{plays: m}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// told returns all that was sent, and the results that the last request had.
func (m *otherModel) told() (sent string, results []seenResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.String(), m.results
}

func (m *otherModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent.Write(body)
	var answer string
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.results = resultsOfResponses(body)
		answer = responsesEvents(m.plays(m.results))
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		m.results = resultsOfGemini(body)
		answer = geminiEvent(m.plays(m.results))
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
}

// resultsOfResponses reads what tools have answered from a request of the Responses API, oldest first.
func resultsOfResponses(body []byte) []seenResult {
	var request struct {
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
	}
	_ = json.Unmarshal(body, &request) // anything but a request has no results
	var out []seenResult
	for _, item := range request.Input {
		if item.Type == "function_call_output" {
			out = append(out, seenResult{text: plain(item.Output)})
		}
	}
	return out
}

// responsesEvents streams one reply. Codex puts the tools of an MCP server into a namespace of its own.
func responsesEvents(r reply) string {
	item := map[string]any{
		"type": "message", "role": "assistant", "id": "m",
		"content": []any{map[string]any{"type": "output_text", "text": r.text}},
	}
	if r.tool != "" {
		item = map[string]any{"type": "function_call", "id": "f", "call_id": fmt.Sprintf("c%p", r.args), "name": r.tool,
			"arguments": text(r.args)}
		if ours, found := strings.CutPrefix(r.tool, "mcp__claudeops__"); found {
			item["namespace"], item["name"] = "mcp__claudeops", ours
		}
		if r.tool == "ReadMcpResourceTool" {
			item["name"] = "read_mcp_resource"
		}
	}
	var b strings.Builder
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "r"}},
		{"type": "response.output_item.done", "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "r"}},
	} {
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", event["type"], text(event))
	}
	return b.String()
}

// resultsOfGemini reads what tools have answered from a request of generateContent, oldest first.
func resultsOfGemini(body []byte) []seenResult {
	var request struct {
		Contents []struct {
			Parts []struct {
				Answer *struct {
					Response struct {
						Output json.RawMessage `json:"output"`
						Error  json.RawMessage `json:"error"`
					} `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	_ = json.Unmarshal(body, &request) // anything but a request has no results
	var out []seenResult
	for _, content := range request.Contents {
		for _, part := range content.Parts {
			if a := part.Answer; a != nil {
				out = append(out, seenResult{text: plain(a.Response.Output) + plain(a.Response.Error),
					isError: a.Response.Error != nil})
			}
		}
	}
	return out
}

// geminiEvent streams one reply. The Gemini CLI names the tools of an MCP server in one way, and its resources by the
// server's name and their address.
func geminiEvent(r reply) string {
	part := map[string]any{"text": r.text}
	if r.tool != "" {
		name, args := r.tool, r.args
		if ours, found := strings.CutPrefix(r.tool, "mcp__claudeops__"); found {
			name = "mcp_claudeops_" + ours
		}
		if of, is := r.args.(map[string]any); is && r.tool == "ReadMcpResourceTool" {
			name, args = "read_mcp_resource", map[string]any{"uri": fmt.Sprintf("%s:%s", of["server"], of["uri"])}
		}
		part = map[string]any{"functionCall": map[string]any{"name": name, "args": args}}
	}
	return "data: " + text(map[string]any{"candidates": []any{map[string]any{
		"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP",
	}}}) + "\n\n"
}

// text is v as JSON; v is what a test has made.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(out)
}
