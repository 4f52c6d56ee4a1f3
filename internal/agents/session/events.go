package session

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// message is a line of the CLI's stream-json output, as far as it is read (Claude Code 2.1.329). Fields that are
// missing or new do no harm.
type message struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Servers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
	Model    string   `json:"model"`
	Message  turn     `json:"message"`
	ToolName string   `json:"tool_name"`
	Result   string   `json:"result"`
	Errors   []string `json:"errors"`
	IsError  bool     `json:"is_error"`

	text []byte // the line; valid while it is counted
}

// turn is a message of the conversation. In other events the member is a sentence, which is not kept: in
// permission_denied the tool's result says the same.
type turn struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Usage   tokens          `json:"usage"` // as far as it was known when the part came
	Content json.RawMessage `json:"content"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *turn) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain turn
	return json.Unmarshal(text, (*plain)(t))
}

// block is a part of a message's content.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func (m message) blocks() []block {
	var text string
	if json.Unmarshal(m.Message.Content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var out []block
	_ = json.Unmarshal(m.Message.Content, &out) // other content is ignored
	return out
}

// resultText returns the text of a tool's result: a string, or blocks of text.
func (b block) resultText() string {
	var text string
	if json.Unmarshal(b.Content, &text) == nil {
		return text
	}
	var parts []block
	_ = json.Unmarshal(b.Content, &parts)
	var out []string
	for _, p := range parts {
		if p.Type == "text" {
			out = append(out, p.Text)
			continue
		}
		out = append(out, "["+p.Type+"]")
	}
	return strings.Join(out, "\n")
}

// piece is a part of a message of the model as the API streams it.
type piece struct {
	Event struct {
		Type    string `json:"type"`
		Message turn   `json:"message"` // of message_start
		Usage   tokens `json:"usage"`   // of message_delta
	} `json:"event"`
}

func (m message) piece() (p piece) {
	_ = json.Unmarshal(m.text, &p) // what cannot be read is left out
	return p
}

// serverName is our entry of the MCP configuration.
const serverName = "claudeops"

// serverStatus returns the CLI's status of our server; "" if it does not name it.
func (m message) serverStatus() string {
	for _, s := range m.Servers {
		if s.Name == serverName {
			return s.Status
		}
	}
	return ""
}

// events returns the events to keep of a message, before redaction.
func (m message) events() []sessions.Event {
	switch {
	case m.Type == "system" && m.Subtype == "init":
		return []sessions.Event{{Kind: "init", Text: fmt.Sprintf("model %s, claudeops %s", m.Model, m.serverStatus())}}
	case m.Type == "system" && m.Subtype == "permission_denied":
		return []sessions.Event{{Kind: "denied", Tool: m.ToolName}}
	case m.Type == "stream_event", m.Type == "system" && m.Subtype == "status":
		return nil // the whole message follows
	case m.Type == "system" && m.Subtype == "api_retry":
		r := m.retry()
		return []sessions.Event{{Kind: "api_retry", Text: fmt.Sprintf("%s; attempt %d of %d", r.answer(), r.Attempt, r.Most)}}
	case m.Type == "system":
		return []sessions.Event{{Kind: m.Type + "/" + m.Subtype}}
	case m.Type == "result":
		return []sessions.Event{{Kind: "result", Text: m.Subtype}}
	case m.Type != "assistant" && m.Type != "user":
		return []sessions.Event{{Kind: m.Type}}
	}
	var out []sessions.Event
	for _, b := range m.blocks() {
		switch b.Type {
		case "text":
			out = append(out, sessions.Event{Kind: "text", Text: b.Text})
		case "tool_use":
			out = append(out, sessions.Event{Kind: "tool_use", Tool: b.Name, Text: string(b.Input)})
		case "tool_result":
			text := b.resultText()
			if b.IsError {
				text = "error: " + text
			}
			out = append(out, sessions.Event{Kind: "tool_result", Text: text})
		default:
			out = append(out, sessions.Event{Kind: b.Type}) // thinking, images: that they were there
		}
	}
	return out
}
