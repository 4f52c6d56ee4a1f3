package session

import (
	"encoding/json"
	"fmt"
	"time"
)

// outputReader turns the CLI's output into a record and its events. It is used by one goroutine at a time.
type outputReader struct {
	clean     cleaner
	now       func() time.Time
	record    *Record
	store     func([]Event) error
	limits    Limits
	connected func()             // the server is there: the configuration is not needed any more
	stop      func(end *outcome) // ends the session; the first call counts

	seq, stored int
	lastMessage string
	result      *message // the CLI's last word
}

// line takes one line of output.
func (o *outputReader) line(text []byte, cut bool) {
	if cut {
		o.record.CutLines++
		o.save(Event{Kind: "cut_line"})
		return
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil || m.Type == "" {
		o.record.BadLines++
		return
	}
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
		if len(o.record.Denials) < MaxDenials {
			o.record.Denials = append(o.record.Denials, o.clean.name(m.ToolName))
		}
	case m.Type == "assistant":
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
			o.stop(&outcome{StateLimit, fmt.Sprintf("it took more than %d turns", o.limits.Turns)})
		}
	case m.Type == "result":
		o.result = &m
		o.record.CostUSD = m.Cost
		if o.limits.CostUSD > 0 && m.Cost > o.limits.CostUSD && m.Subtype == "success" {
			o.stop(&outcome{StateLimit, fmt.Sprintf("it cost %.4f USD, more than %.4f", m.Cost, o.limits.CostUSD)})
		}
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
	o.stop(&outcome{StateFailed, "claude could not connect to the claudeops MCP server (its status: " +
		o.clean.name(status) + "); run `claudeops doctor`, and `claudeops mcp-server </dev/null` to see it start"})
}

// save stores events, redacted, until there are too many.
func (o *outputReader) save(events ...Event) {
	var out []Event
	for _, e := range events {
		e.Kind, e.Tool = o.clean.name(e.Kind), o.clean.name(e.Tool)
		if e.Text != "" && o.stored < maxStored {
			e.Text = o.clean.text(e.Text, maxText)
		}
		size := len(e.Kind) + len(e.Tool) + len(e.Text) + 64 // and what a row needs
		if o.stored+size > maxStored {
			o.stored = maxStored
			o.record.Unstored++
			continue
		}
		o.stored += size
		o.seq++
		e.Seq, e.Time = o.seq, o.now()
		out = append(out, e)
	}
	if len(out) == 0 {
		return
	}
	if err := o.store(out); err != nil {
		o.stop(&outcome{StateFailed, "what the agent does could not be recorded, so it was ended: " + o.clean.text(err.Error(), 500)})
	}
}
