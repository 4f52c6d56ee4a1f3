package session

import (
	"encoding/json"
	"fmt"
	"time"

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
	result      *message // the CLI's last word
	meter       *meter
	retries     retries
}

// line takes one line of output.
func (o *outputReader) line(text []byte, cut bool) {
	if cut {
		o.record.CutLines++
		o.save(sessions.Event{Kind: "cut_line"})
		return
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil || m.Type == "" {
		o.record.BadLines++
		return
	}
	m.text = text
	o.count(m)
	o.save(m.events()...)
}

// count takes a message into the record, and ends the session where a limit is passed.
func (o *outputReader) count(m message) {
	switch {
	case m.Type == "system" && m.Subtype == "init":
		o.started(m)
	case m.Type == "system" && m.Subtype == "permission_denied":
		o.record.Denied++
		if len(o.record.Denials) < sessions.MaxDenials {
			o.record.Denials = append(o.record.Denials, o.clean.name(m.ToolName))
		}
	case m.Type == "system" && m.Subtype == "api_retry":
		r := m.retry()
		o.retries.add(o.clean.name(r.answer()))
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
		o.put(nil)
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
		o.stop(&outcome{sessions.StateLimit, fmt.Sprintf("it cost %s, more than the limit of %s", u.Cost(), o.limits.cost())})
	}
}

// maxName bounds names in a record, in bytes.
const maxName = 200

func (o *outputReader) started(m message) {
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
		o.clean.name(status) + "); run `claudeops doctor`, and `claudeops mcp-server </dev/null` to see it start"})
}

// save stores events, redacted, until there are too many.
func (o *outputReader) save(events ...sessions.Event) {
	var out []sessions.Event
	for _, e := range events {
		e.Kind, e.Tool = o.clean.name(e.Kind), o.clean.name(e.Tool)
		if e.Text != "" && o.kept.bytes < maxStored {
			e.Text = o.clean.text(e.Text, maxText)
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
		o.put(out)
	}
}

// put stores events, and what the record has so far.
func (o *outputReader) put(events []sessions.Event) {
	if err := o.store(events); err != nil {
		o.stop(&outcome{sessions.StateFailed, "what the agent does could not be recorded, so it was ended: " +
			o.clean.text(err.Error(), 500)})
	}
}
