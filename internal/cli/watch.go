package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/views"
)

// watchEvery is how often the records are asked how far a session is.
const watchEvery = time.Second

// sessionWatch follows the sessions of claudeops run on one line of a terminal.
type sessionWatch struct {
	out     io.Writer
	width   func() int
	records sessions.Records
	address string // of the dashboard, "" for none
	began   time.Time
	id      string // of the session that is shown
	seen    int    // number of its last event that was read
	act     string // its last one in words
}

// watchSessions shows a person at a terminal what the sessions do that run until done is called. It writes nothing
// where standard error is not a terminal, or the answer is JSON.
func watchSessions(ctx context.Context, a *commandLine, p *app.Parts) (done func()) {
	file, isFile := a.streams.Err.(*os.File)
	if a.json || !isFile || !term.IsTerminal(int(file.Fd())) {
		return func() {}
	}
	w := sessionWatch{out: file, records: p.Store.AgentSessions, address: p.Cfg.Web.PublicURL, began: time.Now(),
		width: func() int { return surfaceOf(a, file).width }}
	ctx, cancel := context.WithCancel(ctx)
	var stopped sync.WaitGroup
	stopped.Go(func() {
		for timer := time.NewTicker(watchEvery); ; {
			select {
			case <-ctx.Done():
				timer.Stop()
				fmt.Fprint(file, "\r\x1b[K")
				return
			case now := <-timer.C:
				w.show(ctx, now)
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		stopped.Wait()
	})
}

// show writes the line anew, and where to watch before that of a session that is new. Records that cannot be read leave
// the line as it is.
func (w *sessionWatch) show(ctx context.Context, now time.Time) {
	running, err := w.records.Sessions(ctx, sessions.Query{State: sessions.StateRunning, Limit: 1})
	if err != nil || len(running) == 0 || running[0].StartedAt.Before(w.began.Truncate(time.Second)) {
		return
	}
	r := running[0]
	if r.ID != w.id {
		w.id, w.seen, w.act = r.ID, 0, "it starts"
		fmt.Fprintf(w.out, "\r\x1b[KSession %s, tier %s. Watch it: %s\n", r.ID, r.Tier, w.place(r.ID))
	}
	events, err := w.records.SessionEvents(ctx, r.ID, w.seen)
	if err != nil {
		return
	}
	for _, e := range events {
		w.seen = e.Seq
		if act := actOf(e); act != "" {
			w.act = act
		}
	}
	line := fmt.Sprintf("%s %s, turn %d, %s: %s", views.Session(r.State), views.Length(now.Sub(r.StartedAt)), r.Turns,
		views.Cost(r.Usage), w.act)
	fmt.Fprint(w.out, "\r\x1b[K"+cutTo(line, w.width()-1))
}

// place says where the session can be watched.
func (w *sessionWatch) place(id string) string {
	if w.address != "" {
		return strings.TrimSuffix(w.address, "/") + "/sessions/" + id
	}
	return "claudeops session show " + id + " --events"
}

// actOf describes an event in a few words; "" for one that says nothing to a person.
func actOf(e sessions.Event) string {
	const longest = 200 // characters
	switch e.Kind {
	case "text":
		return cleanLine("says: "+e.Text, longest)
	case "tool_use":
		did, what := views.ToolCall(e)
		return cleanLine(did+" "+what, longest)
	case "denied":
		return cleanLine("may not use "+e.Tool, longest)
	}
	return ""
}
