package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// heldSessions are records that hold one session.
type heldSessions struct {
	sessions.Records
	running []sessions.Record
	events  []sessions.Event
	err     error
}

func (h heldSessions) Sessions(context.Context, sessions.Query) ([]sessions.Record, error) {
	return h.running, h.err
}

func (h heldSessions) SessionEvents(_ context.Context, _ string, after int) ([]sessions.Event, error) {
	return h.events[min(after, len(h.events)):], nil
}

func TestTheLineOfASessionSaysHowFarItIsAndWhereToWatch(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 26, 12, 0, 0, 500, time.UTC)
	r := sessions.Record{ID: listedID, StartedAt: began.Truncate(time.Second)}
	r.Tier, r.State, r.Turns, r.CostUSD, r.CostSource = 2, sessions.StateRunning, 5, 0.4321, sessions.CostClient
	records := heldSessions{running: []sessions.Record{r}, events: []sessions.Event{{Seq: 1, Kind: "init"},
		{Seq: 2, Kind: "tool_use", Tool: "Read",
			Text: `{"file_path":"checks/\u001b[31mdisk.md\n` + strings.Repeat("x", 300) + `"}`},
		{Seq: 3, Kind: "tool_result", Text: "nothing"}}}
	var out strings.Builder
	w := sessionWatch{out: &out, width: func() int { return 80 }, records: records, began: began}
	w.show(t.Context(), began.Add(12*time.Second))
	first, line, _ := strings.Cut(out.String(), "\n")
	if first != "\r\x1b[KSession "+listedID+", tier 2. Watch it: claudeops session show "+listedID+" --events" ||
		!strings.HasPrefix(line, "\r\x1b[KRunning 12 s, turn 5, $0.43: Read checks/[31mdisk.md xxx") ||
		displayWidth(strings.TrimPrefix(line, "\r\x1b[K")) != 79 {
		t.Errorf("%q, %q", first, line)
	}
	out.Reset()
	w.address = "https://ops.example.org/base"
	w.show(t.Context(), began.Add(90*time.Second))
	if !strings.HasPrefix(out.String(), "\r\x1b[KRunning 1 min, turn 5") || strings.Contains(out.String(), "\n") ||
		w.place("a") != "https://ops.example.org/base/sessions/a" {
		t.Errorf("%q", out.String())
	}
	for name, held := range map[string]heldSessions{"none": {}, "unreadable": {err: errors.New("busy")}, "older": {
		running: []sessions.Record{{ID: "a", StartedAt: began.Add(-time.Hour)}}}} {
		out.Reset()
		w.records = held
		if w.show(t.Context(), began); out.Len() > 0 {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}
