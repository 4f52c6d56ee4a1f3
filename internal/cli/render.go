package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
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
		at := strings.IndexAny(text, rowMark+cellMark)
		if at < 0 {
			at = len(text)
		}
		out.WriteString(content.CleanAll(text[:at]))
		if text = text[at:]; text != "" {
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String()
}

// warn tells a person something on standard error.
func (s Streams) warn(format string, args ...any) {
	fmt.Fprintf(s.Err, "claudeops: %s\n", content.CleanAll(fmt.Sprintf(format, args...)))
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
		a.streams.warn("%s", err)
		return code
	}
	if errors.As(err, &usage) {
		help := "claudeops --help"
		if a.cmd != nil {
			help = a.cmd.CommandPath() + " --help"
		}
		a.streams.warn("%s\nSee %s.", err, help)
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
	fmt.Fprint(a.streams.Err, content.CleanAll(text))
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
