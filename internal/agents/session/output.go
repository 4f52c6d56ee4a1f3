package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// outputReader turns the CLI's output into a record and its events. It is used by one goroutine at a time.
type outputReader struct {
	clean     cleaner
	now       func() time.Time
	record    *sessions.Record
	store     func([]sessions.Event) error // and what the record has so far
	limits    Limits                       // of this session
	connected func()                       // the server is there: the configuration is not needed any more
	stop      func(end *outcome)           // ends the session; the first call counts

	kept        struct{ events, bytes int }
	lastMessage string
	result      *outputMessage // the CLI's last word
	meter       *meter
	retries     retries
}

// readLine takes one line of output.
func (o *outputReader) readLine(text []byte, cut bool) {
	if cut {
		o.record.CutLines++
		o.save(sessions.Event{Kind: "cut_line"})
		return
	}
	var m outputMessage
	if err := json.Unmarshal(text, &m); err != nil || m.Type == "" {
		o.record.BadLines++
		return
	}
	m.text = text
	o.countMessage(m)
	o.save(m.events()...)
}

// countMessage takes a message into the record, and ends the session where a limit is passed.
func (o *outputReader) countMessage(m outputMessage) {
	switch {
	case m.Type == "system" && m.Subtype == "init":
		o.started(m)
	case m.Type == "system" && m.Subtype == "permission_denied":
		o.record.Denied++
		if len(o.record.Denials) < sessions.MaxDenials {
			o.record.Denials = append(o.record.Denials, o.clean.cleanName(m.ToolName))
		}
	case m.Type == "system" && m.Subtype == "api_retry":
		r := m.retry()
		o.retries.add(o.clean.cleanName(r.apiAnswer()))
		if end := r.refusedCredential(); end != nil {
			o.stop(end)
		}
	case m.Type == "stream_event":
		o.countPiece(m.piece())
	case m.Type == "assistant":
		o.used(m.Message)
		if m.Message.ID == "" || m.Message.ID != o.lastMessage {
			o.lastMessage = m.Message.ID
			o.record.Turns++
		}
		for _, b := range m.blocks() {
			if b.Type == "tool_use" {
				o.record.ToolCalls++
			}
		}
		// The CLI stops by itself at the limit; one turn more is its last word.
		if o.limits.Turns > 0 && o.record.Turns > o.limits.Turns+1 {
			o.stop(&outcome{sessions.StateLimit, fmt.Sprintf("it took more than %d turns", o.limits.Turns)})
		}
	case m.Type == "result":
		if usage, said := m.final().usage(); said {
			o.record.Usage = usage
		}
		m.text = nil
		o.result = &m
		if m.Subtype == "success" {
			o.holdCost()
		}
	}
}

// countPiece counts what a message of the model used as soon as it is known: its first piece says what was read, the
// last one how much was written.
func (o *outputReader) countPiece(p piece) {
	switch p.Event.Type {
	case "message_start":
		o.used(p.Event.Message)
	case "message_delta":
		o.meter.more(p.Event.Usage)
		o.used(turn{ID: o.meter.message, Model: o.meter.model})
		o.storeEvents(nil)
	}
}

// used takes what a message used into the record, and ends the session where that costs more than it may.
func (o *outputReader) used(t turn) {
	if o.result != nil {
		return // the CLI has said all of it
	}
	o.meter.see(t.ID, t.Model, t.Usage)
	o.record.Usage = o.meter.total()
	o.holdCost()
}

// holdCost ends a session that has cost more than it may. The CLI does so by itself, by its own sum, when a turn is
// over.
func (o *outputReader) holdCost() {
	u := o.record.Usage
	if o.limits.CostUSD > 0 && u.CostUSD > o.limits.CostUSD {
		o.stop(&outcome{sessions.StateLimit, o.limits.spent(u)})
	}
}

// maxName bounds names in a record, in bytes.
const maxName = 200

func (o *outputReader) started(m outputMessage) {
	status := m.serverStatus()
	if o.record.Connected {
		return // said again
	}
	if status == "connected" {
		o.record.Connected = true
		o.connected()
		return
	}
	if status == "" {
		status = "not listed"
	}
	o.stop(&outcome{sessions.StateFailed, "claude could not connect to the claudeops MCP server (its status: " +
		o.clean.cleanName(status) + "); run `claudeops doctor`, and `claudeops mcp-server </dev/null` to see it start"})
}

// save stores events, redacted, until there are too many.
func (o *outputReader) save(events ...sessions.Event) {
	var out []sessions.Event
	for _, e := range events {
		e.Kind, e.Tool = o.clean.cleanName(e.Kind), o.clean.cleanName(e.Tool)
		if e.Text != "" && o.kept.bytes < maxStored {
			e.Text = o.clean.cleanText(e.Text, maxText)
		}
		size := len(e.Kind) + len(e.Tool) + len(e.Text) + 64 // and what a row needs
		if o.kept.bytes+size > maxStored {
			o.kept.bytes = maxStored
			o.record.Unstored++
			continue
		}
		o.kept.bytes += size
		o.kept.events++
		e.Seq, e.Time = o.kept.events, o.now()
		out = append(out, e)
	}
	if len(out) > 0 {
		o.storeEvents(out)
	}
}

// storeEvents stores events, and what the record has so far.
func (o *outputReader) storeEvents(events []sessions.Event) {
	if err := o.store(events); err != nil {
		o.stop(&outcome{sessions.StateFailed, "what the agent does could not be recorded, so it was ended: " +
			o.clean.cleanText(err.Error(), 500)})
	}
}

// outputMessage is a line of the CLI's stream-json output, as far as it is read (Claude Code 2.1.329). Fields that are
// missing or new do no harm.
type outputMessage struct {
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

// contentBlock is a part of a message's content.
type contentBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func (m outputMessage) blocks() []contentBlock {
	var text string
	if json.Unmarshal(m.Message.Content, &text) == nil {
		return []contentBlock{{Type: "text", Text: text}}
	}
	var out []contentBlock
	_ = json.Unmarshal(m.Message.Content, &out) // other content is ignored
	return out
}

// resultText returns the text of a tool's result: a string, or blocks of text.
func (b contentBlock) resultText() string {
	var text string
	if json.Unmarshal(b.Content, &text) == nil {
		return text
	}
	var parts []contentBlock
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

func (m outputMessage) piece() (p piece) {
	_ = json.Unmarshal(m.text, &p) // what cannot be read is left out
	return p
}

// serverName is our entry of the MCP configuration.
const serverName = "claudeops"

// serverStatus returns the CLI's status of our server; "" if it does not name it.
func (m outputMessage) serverStatus() string {
	for _, s := range m.Servers {
		if s.Name == serverName {
			return s.Status
		}
	}
	return ""
}

// began says with what a session began, as far as the CLI has said it.
func (m outputMessage) began() string {
	var parts []string
	if m.Model != "" {
		parts = append(parts, "model "+m.Model)
	}
	if status := m.serverStatus(); status != "" {
		parts = append(parts, "claudeops "+status)
	}
	return strings.Join(parts, ", ")
}

// events returns the events to keep of a message, before redaction.
func (m outputMessage) events() []sessions.Event {
	switch {
	case m.Type == "system" && m.Subtype == "init":
		return []sessions.Event{{Kind: "init", Text: m.began()}}
	case m.Type == "system" && m.Subtype == "permission_denied":
		return []sessions.Event{{Kind: "denied", Tool: m.ToolName}}
	case m.Type == "stream_event", m.Type == "system" && m.Subtype == "status":
		return nil // the whole message follows
	case m.Type == "system" && m.Subtype == "api_retry":
		r := m.retry()
		return []sessions.Event{{Kind: "api_retry",
			Text: fmt.Sprintf("%s; attempt %d of %d", r.apiAnswer(), r.Attempt, r.Most)}}
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

// Bounds of what is read and kept of an agent's output, in bytes.
const (
	maxLine   = 1 << 20 // of one line; the rest of a longer one is skipped
	maxStored = 4 << 20 // of all events of a session
	maxText   = 8 << 10 // of one event's text
	maxReport = 32 << 10
	maxStderr = 4 << 10
)

// readLines calls line for each line of r, without its end, until r ends. Of a line longer than maxLine only the
// beginning is handed on, with cut set. The slice is valid during the call.
func readLines(r io.Reader, line func(text []byte, cut bool)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var held []byte
	cut := false
	for {
		piece, err := in.ReadSlice('\n')
		room := maxLine - len(held)
		if len(bytes.TrimRight(piece, "\r\n")) > room {
			cut = true
			piece = piece[:room]
		}
		held = append(held, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimSpace(held); len(text) > 0 {
			line(text, cut)
		}
		held, cut = held[:0], false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

// Write implements io.Writer. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - maxStderr; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// firstRunes returns at most limit bytes of text, cut between runes.
func firstRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// Secrets finds credentials in texts. internal/base/textscan implements it.
type Secrets interface {
	// Secrets returns what looks like a credential in text. name is a label for the text.
	Secrets(ctx context.Context, name, text string) ([]textscan.Secret, error)
	// Redact replaces the values of our own tokens.
	Redact(text string) string
}

// searchTime bounds the search for credentials in one text.
const searchTime = 10 * time.Second

const withheldLine = "[withheld: looks like a secret]"

// cleaner makes text of agents fit to be kept.
type cleaner struct{ secrets Secrets }

// cleanText returns at most limit bytes of what the agent wrote: without our tokens, without lines that look like they
// hold a credential (a private key takes everything after it along), and without hidden characters. What cannot be
// searched is withheld.
func (c cleaner) cleanText(raw string, limit int) string {
	text := c.secrets.Redact(raw) // before it is cut: half a token is not found any more
	text = textscan.Clean(firstRunes(text, limit), limit)
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	defer cancel()
	found, err := c.secrets.Secrets(ctx, "output", text)
	if err != nil {
		return "[withheld: could not be searched for secrets]"
	}
	lines := strings.Split(text, "\n")
	for _, s := range found {
		for line := min(max(s.Line, 1), len(lines)); line <= min(max(s.Line, s.LastLine), len(lines)); line++ {
			lines[line-1] = withheldLine
		}
		if len(found) >= textscan.MaxSecrets {
			return withheldLine // there may be more
		}
	}
	for i, line := range lines {
		if strings.Contains(line, "PRIVATE KEY-----") {
			lines = append(lines[:i], withheldLine) // its end may have been cut off
			break
		}
	}
	return strings.Join(lines, "\n")
}

// maxReason bounds why a session ended, in bytes.
const maxReason = 2000

// cleanReason returns the reason for a session's end, on one line and without our tokens. What an agent wrote has been
// cleaned before.
func (c cleaner) cleanReason(raw string) string {
	text := firstRunes(c.secrets.Redact(strings.Join(strings.Fields(raw), " ")), maxReason)
	return textscan.Clean(text, maxReason)
}

// cleanName returns a name, such as a tool's: short, on one line, and without our tokens.
func (c cleaner) cleanName(raw string) string {
	text := textscan.Clean(firstRunes(c.secrets.Redact(strings.Join(strings.Fields(raw), " ")), maxName), maxName)
	return text
}
