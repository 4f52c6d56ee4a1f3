package cli

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/logqueue"
)

// flushBound is how long a process that ends waits for somebody to read the last lines of its log.
const flushBound = time.Second

// queueLog puts a queue before standard error, for commands that run for long: whoever started them may have stopped to
// read it. It returns where the log goes.
func (a *app) queueLog(json bool) slog.Handler {
	handler := func(w io.Writer) slog.Handler {
		if json {
			return slog.NewJSONHandler(w, nil)
		}
		return slog.NewTextHandler(w, nil)
	}
	a.logs = logqueue.New(a.streams.Err, func(lines int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("lines of the log were dropped: nobody read them", "lines", lines)
		return line.Bytes()
	})
	a.streams.Err = a.logs
	return handler(a.logs)
}

// flushLog writes what waits in the queue.
func (a *app) flushLog() {
	if a.logs != nil {
		a.logs.Close(flushBound)
	}
}
