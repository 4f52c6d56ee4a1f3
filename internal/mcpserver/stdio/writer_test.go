package stdio

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/mcp"
)

// The writer is started late, when notifications and a line are waiting side by side.
func TestAWaitingLineComesAfterTheNotificationsThatWereSentBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 64
		notes := make(chan mcp.JSONRPCNotification, waiting)
		for range waiting {
			notes <- mcp.JSONRPCNotification{JSONRPC: "2.0", Notification: mcp.Notification{Method: "note"}}
		}
		var out bytes.Buffer
		w := newWriter(&out, notes, nil, slog.New(slog.DiscardHandler))
		sent := make(chan struct{})
		go func() { w.send([]byte("line\n")); close(sent) }()
		synctest.Wait() // until the line is offered
		go w.run()
		<-sent
		close(w.quit)
		<-w.done
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(got) != waiting+1 || got[waiting] != "line" {
			t.Errorf("want the line last of %d, got %q", waiting+1, got)
		}
	})
}

func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	out := &failingOnce{}
	w := newWriter(out, nil, nil, slog.New(slog.DiscardHandler))
	go w.run()
	for range 3 {
		w.send([]byte("line\n"))
	}
	<-w.done
	if out.writes != 1 || w.err == nil {
		t.Errorf("want one attempt and its error, got %d and %v", out.writes, w.err)
	}
}

type failingOnce struct{ writes int }

func (f *failingOnce) Write([]byte) (int, error) {
	f.writes++
	return 0, errors.New("broken")
}
