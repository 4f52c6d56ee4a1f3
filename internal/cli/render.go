package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// print answers with v as JSON, or with text for people.
func (a *commandLine) print(v any, text func(w *strings.Builder)) error {
	if a.json {
		return a.printJSON(v)
	}
	var b strings.Builder
	text(&b)
	_, err := fmt.Fprint(a.streams.Out, surfaceOf(a, a.streams.Out).lay(harmless(b.String())))
	return err
}

// harmless removes from a text for a terminal everything that acts or hides there. The marks of tables stay.
func harmless(text string) string {
	var out strings.Builder
	for text != "" {
		at := strings.IndexAny(text, rowMark+cellMark+columnMark)
		if at < 0 {
			at = len(text)
		}
		out.WriteString(textscan.CleanAll(text[:at]))
		if text = text[at:]; text != "" {
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String()
}

// printWarning tells a person something on standard error.
func (s Streams) printWarning(format string, args ...any) {
	fmt.Fprintf(s.Err, "claudeops: %s\n", textscan.CleanAll(fmt.Sprintf(format, args...)))
}

func (a *commandLine) printJSON(v any) error {
	text, err := indentedJSON(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.streams.Out, text)
	return err
}

// renderError prints every error at the terminal. It returns the exit code.
func (a *commandLine) renderError(err error) int {
	code := exitCode(err)
	if a.json {
		if err := a.printJSON(problemOf(err)); err != nil {
			return fault.ExitInternal
		}
		return code
	}
	var usage app.UsageError
	var plain plainFailure
	if errors.As(err, &plain) {
		a.streams.printWarning("%s", err)
		return code
	}
	if errors.As(err, &usage) {
		help := "claudeops --help"
		if a.cmd != nil {
			help = a.cmd.CommandPath() + " --help"
		}
		a.streams.printWarning("%s\nSee %s.", err, help)
		return code
	}
	e := fault.From(err)
	wire := e.Wire(operation.RequestIDOf(err))
	text := errorText(wire, e, operation.AttemptIDOf(err))
	var contract *operation.Fault
	if errors.As(err, &contract) && contract.Code != "" {
		if _, err := strconv.Atoi(contract.Code); err != nil { // exit codes of scripts say nothing here
			text = strings.Replace(text, "["+string(wire.Code)+"]", "["+contract.Code+"]", 1)
		}
		for _, problem := range problemsOf(contract.Details["problems"]) {
			if !strings.Contains(wire.Message, problem) {
				text += "  - " + problem + "\n"
			}
		}
		for _, hint := range contract.Suggestions {
			text += "  hint: " + a.inCommands(hint) + "\n"
		}
	}
	fmt.Fprint(a.streams.Err, textscan.CleanAll(text))
	return code
}

// inCommands returns a hint whose names of tools are commands, as a person at the terminal has them.
func (a *commandLine) inCommands(hint string) string {
	for _, set := range a.program().Toolsets() {
		for _, o := range set.Operations {
			if prefix, _, found := strings.Cut(o.Name, "_"); !found || o.Command == "" || prefix == "deploy" ||
				!strings.Contains(hint, o.Name) {
				continue
			}
			word := regexp.MustCompile(`\b` + regexp.QuoteMeta(o.Name) + `\b`)
			hint = word.ReplaceAllLiteralString(hint, "`claudeops "+o.Command+"`")
		}
	}
	return hint
}

// problemsOf returns the items of a list in the details of a failure, each as a text.
func problemsOf(list any) (out []string) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice {
		return nil
	}
	for i := range v.Len() {
		out = append(out, fmt.Sprint(v.Index(i).Interface()))
	}
	return out
}

// errorText shows an error to a person. attempt is the id under which the audit has it, "" if it has not.
func errorText(w fault.Wire, e *fault.Error, attempt string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "claudeops: [%s] %s\n", w.Code, w.Message)
	for _, v := range w.Violations {
		if !strings.Contains(w.Message, v.Message) {
			fmt.Fprintf(&b, "  - [%s] %s\n", v.Code, v.Message)
		}
		if v.Suggestion != "" {
			fmt.Fprintf(&b, "    %s\n", v.Suggestion)
		}
	}
	for _, fact := range w.Facts() {
		b.WriteString("  " + strings.ReplaceAll(fact, "\n", "\n  ") + "\n")
	}
	if attempt != "" {
		fmt.Fprintf(&b, "  request %s; see: claudeops audit show %s\n", attempt, attempt)
	}
	if w.Code == fault.Internal && e.Cause != nil {
		fmt.Fprintf(&b, "  cause: %s\n", e.Cause)
	}
	return b.String()
}

// listAnswer is the JSON of every command that lists: one shape, so that one program reads all of them.
type listAnswer[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"` // what asks for the next page; absent on the last one
}

func listOf[T any](items []T) listAnswer[T] { return listAnswer[T]{Items: append([]T{}, items...)} }

// asList gives an answer that lists something the shape of listed, and keeps what else it says. Its list is its first
// field that is a slice of structs. An answer without one is returned as it is.
func asList(answer any) any {
	v := reflect.Indirect(reflect.ValueOf(answer))
	if v.Kind() != reflect.Struct {
		return answer
	}
	for _, f := range operation.Fields(v.Type()) {
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		text, err := json.Marshal(answer)
		members := map[string]json.RawMessage{}
		if err != nil || json.Unmarshal(text, &members) != nil {
			return answer
		}
		members["items"] = members[f.JSON]
		delete(members, f.JSON)
		return members
	}
	return answer
}

// problemOf returns an error as REST has it: the same members, with the status that REST would answer.
func problemOf(err error) httpx.Problem {
	e := fault.From(err)
	var usage app.UsageError
	var plain plainFailure
	switch {
	case errors.As(err, &usage):
		e = fault.New(fault.InvalidArgument, "%s", err)
	case errors.As(err, &plain):
		e = fault.New(fault.Internal, "%s", err)
	}
	wire := e.Wire(operation.RequestIDOf(err))
	status := e.Code.HTTPStatus()
	return httpx.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: wire.Message, Code: wire.Code,
		Retryable: wire.Retryable, RetryAfterSeconds: wire.RetryAfterSeconds, Violations: wire.Violations,
		ExistingPR: wire.ExistingPR,
		Next:       wire.Next, RequestID: wire.RequestID,
	}
}

// plainFailure reports a check with a negative result. It is printed without a code, and ends with the exit code exit.
type plainFailure struct {
	error
	exit int
}

func (e plainFailure) Unwrap() error { return e.error }

// silentExit ends a command whose answer has been printed already with an exit code of its own.
type silentExit int

func (silentExit) Error() string { return "" }

func exitCode(err error) int {
	var usage app.UsageError
	var plain plainFailure
	switch {
	case errors.As(err, &usage) && usage.WaitsFor != "":
		return fault.ExitMachine
	case errors.As(err, &usage):
		return fault.ExitUsage
	case errors.As(err, &plain):
		return plain.exit
	}
	return fault.From(err).ExitCode()
}

// unreadable is the error for a file that the caller named and that cannot be read.
func unreadable(name string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return app.Usage(fmt.Errorf("%s cannot be read: %w", name, err))
}

// checkOutcome and checkCode refuse values that narrow a listing to nothing.
func checkOutcome(outcome string) error {
	if outcome == "" || slices.Contains(record.Outcomes(), record.Outcome(outcome)) {
		return nil
	}
	return app.Usage(errors.New("--outcome is opened, revised, reused, dry_run, refused, failed or done"))
}

func checkPull(state string) error {
	if state == "" || slices.Contains(record.PullStates(), record.PullState(state)) {
		return nil
	}
	return app.Usage(errors.New("--pull is open, merged, closed or gone"))
}

func checkCode(code string) error {
	if code == "" || fault.Code(code).Known() {
		return nil
	}
	return app.Usage(fmt.Errorf("--code %.50q is not a code; docs/reference/codes.md lists them", code))
}

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
	if _, err := e.Writer.Write(textscan.EscapeJSON(line)); err != nil {
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
	a.logs = newLogWriter(a.streams.Err, func(lines int) []byte {
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
