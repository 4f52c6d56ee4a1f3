package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// print answers with v as JSON, or with text for people.
func (a *app) print(v any, text func(w *strings.Builder)) error {
	if a.json {
		return a.printJSON(v)
	}
	var b strings.Builder
	text(&b)
	_, err := fmt.Fprint(a.streams.Out, surfaceOf(a, a.streams.Out).lay(b.String()))
	return err
}

func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.streams.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// renderError is the one place where an error meets the terminal. It returns the exit code.
func (a *app) renderError(err error) int {
	code := exitCode(err)
	if a.json {
		if err := a.printJSON(problemOf(err)); err != nil {
			return fault.ExitInternal
		}
		return code
	}
	var usage usageError
	var plain plainFailure
	if errors.As(err, &plain) {
		fmt.Fprintf(a.streams.Err, "claudeops: %s\n", err)
		return code
	}
	if errors.As(err, &usage) {
		help := "claudeops --help"
		if a.cmd != nil {
			help = a.cmd.CommandPath() + " --help"
		}
		fmt.Fprintf(a.streams.Err, "claudeops: %s\nSee %s.\n", err, help)
		return code
	}
	e := fault.From(err)
	wire := e.Wire(operation.RequestIDOf(err))
	fmt.Fprint(a.streams.Err, errorText(wire, e, operation.AttemptIDOf(err)))
	return code
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
