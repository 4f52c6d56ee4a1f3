package cli

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/logqueue"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/settings/config"
)

func (a *commandLine) logger(form app.LogForm, cfg config.Config) *slog.Logger {
	if form != app.LogWarnings {
		level := slog.LevelInfo
		if a.only == definitions.ToolsetName || slices.Contains(cfg.Permissions.Toolsets, definitions.ToolsetName) {
			level = cfg.Tools.Definitions.LogLevel
		}
		return slog.New(a.queueLog(form == app.LogQueuedJSON || cfg.Web.LogJSON, level))
	}
	return slog.New(slog.NewTextHandler(escaping{a.streams.Err}, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	}))
}

// escaping writes lines of a log so that nothing hides in them: they repeat what others wrote.
type escaping struct{ io.Writer }

// Write implements io.Writer. A line comes as a whole.
func (e escaping) Write(line []byte) (int, error) {
	if _, err := e.Writer.Write(content.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// flushBound limits how long an ending process waits for the last lines of its log to be read.
const flushBound = time.Second

// queueLog puts a queue before standard error, for commands that run for long: the program that started them may have
// stopped reading it. It returns the handler of the log.
func (a *commandLine) queueLog(json bool, level slog.Level) slog.Handler {
	handler := func(w io.Writer) slog.Handler {
		w, options := escaping{w}, &slog.HandlerOptions{Level: level}
		if json {
			return slog.NewJSONHandler(w, options)
		}
		return slog.NewTextHandler(w, options)
	}
	a.logs = logqueue.New(a.streams.Err, func(lines int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("lines of the log were dropped: nobody read them", "lines", lines)
		return line.Bytes()
	})
	a.streams.Err = a.logs
	return handler(a.logs)
}

// flush waits until the lines so far are written.
func (a *commandLine) flush() {
	if a.logs != nil {
		a.logs.Flush(flushBound)
	}
}

// flushLog writes what waits in the queue.
func (a *commandLine) flushLog() {
	if a.logs != nil {
		a.logs.Close(flushBound)
	}
}
