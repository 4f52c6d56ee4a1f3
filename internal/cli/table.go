package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation"
)

// surfaceOf returns what a stream can display. Colours are for terminals: NO_COLOR removes them (https://no-color.org),
// and CLICOLOR_FORCE forces them everywhere (https://bixense.com/clicolors).
func surfaceOf(a *commandLine, stream io.Writer) surface {
	set := func(name string) bool {
		value, _ := a.lookup(name)
		return value != "" && (name == "NO_COLOR" || value != "0")
	}
	s := surface{long: a.long, now: time.Now()}
	file, isFile := stream.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) {
		s.colour = true
		if kind, _ := a.lookup("TERM"); kind == "dumb" {
			s.colour = false
		}
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.width = width
		}
	}
	if set("CLICOLOR_FORCE") {
		s.colour = true
	}
	if set("NO_COLOR") {
		s.colour = false
	}
	return s
}

// painter colours a text, where surfaceOf says so.
func painter(a *commandLine) func(colour int, text string) string {
	if !surfaceOf(a, a.streams.Out).colour {
		return func(_ int, text string) string { return text }
	}
	return painted
}

// Colours of a terminal: codes of ECMA-48's select graphic rendition.
const (
	bold    = 1
	red     = 31
	green   = 32
	yellow  = 33
	magenta = 35
	cyan    = 36
)

func painted(colour int, text string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text) }

const (
	progressAfter = 2 * time.Second // work that takes less shows none
	progressEvery = 500 * time.Millisecond
)

// working tells a person at a terminal that something takes time, and since when, until done is called. It writes
// nothing where standard error is not a terminal, or the answer is JSON.
func working(a *commandLine, what string) (done func()) {
	file, isFile := a.streams.Err.(*os.File)
	if a.json || !isFile || !term.IsTerminal(int(file.Fd())) {
		return func() {}
	}
	ended := make(chan struct{})
	var stopped sync.WaitGroup
	stopped.Go(func() { showProgress(file, what, ended) })
	return sync.OnceFunc(func() {
		close(ended)
		stopped.Wait()
	})
}

// showProgress writes one line again and again, and takes it away at the end.
func showProgress(out io.Writer, what string, ended <-chan struct{}) {
	began := time.Now()
	wait := progressAfter
	shown := false
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ended:
			timer.Stop()
			if shown {
				fmt.Fprint(out, "\r\x1b[K")
			}
			return
		case <-timer.C:
			fmt.Fprintf(out, "\r\x1b[K%s: %s", what, time.Since(began).Round(time.Second))
			shown, wait = true, progressEvery
		}
	}
}

// maxCell bounds a value in an answer for people, in characters.
const maxCell = 20_000

// formOf returns the form of the toolset that an operation belongs to; nil for the program's own.
func (a *commandLine) formOf(o operation.Operation) *operation.Form {
	for _, set := range a.program().Toolsets() {
		for _, one := range set.Operations {
			if one.Name == o.Name {
				return set.Form
			}
		}
	}
	return nil
}

// printInForm answers with the contract's JSON, or with sentences or a table for people. What is beside the contract's
// tools has the JSON of all other commands.
func (a *commandLine) printInForm(form *operation.Form, o operation.Operation, result any, err error) error {
	ours := o.Tool.Title == ""
	switch {
	case err != nil && a.json && !ours:
		if printErr := a.printJSON(form.Failure(o, err, operation.RequestIDOf(err))); printErr != nil {
			return printErr
		}
		return silentExit(exitCode(err))
	case err != nil:
		return err
	}
	shown := result
	if bare, ok := result.(operation.ListAnswer); ok && a.json {
		shown, _ = bare.AsList()
	}
	if ours && strings.HasPrefix(o.Name, "list_") {
		shown = asList(shown)
	}
	err = a.print(shown, func(w *strings.Builder) {
		said := ""
		if o.Shown.Said != nil {
			said = o.Shown.Said(result, true)
		}
		switch {
		case said != "":
			w.WriteString(a.inCommands(said) + "\n")
		case !personal(a, w, result):
			writeStruct(w, "", reflect.ValueOf(result))
		}
	})
	if err != nil {
		return err
	}
	if partial, ok := result.(operation.Partial); ok && partial.Incomplete() {
		return silentExit(1)
	}
	return nil
}

// writeStruct shows a struct: a line for each field, and a table for each list of structs.
func writeStruct(w *strings.Builder, within string, v reflect.Value) {
	for _, f := range operation.Fields(v.Type()) {
		part := reflect.Indirect(v.FieldByIndex(f.Index))
		name := within + f.JSON
		switch {
		case !part.IsValid() || f.Optional && empty(part):
		case part.Kind() == reflect.Struct && f.JSON == "": // embedded: its fields are those of the whole
			writeStruct(w, within, part)
		case part.Kind() == reflect.Struct:
			writeStruct(w, name+".", part)
		case part.Kind() == reflect.Slice && part.Type().Elem().Kind() == reflect.Struct:
			table(w, name, part)
		case isSentences(part):
			fmt.Fprintf(w, "%s: %d\n", name, part.Len())
			for i := range part.Len() {
				fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(cell(part.Index(i)), "\n", "\n    "))
			}
		default:
			text := cell(part)
			if strings.Contains(text, "\n") {
				text = "\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
			}
			fmt.Fprintf(w, "%s: %s\n", name, text)
		}
	}
}

// isSentences reports whether a list has texts of several words, such as problems: each stands on a line of its own.
func isSentences(v reflect.Value) bool {
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.String {
		return false
	}
	for i := range v.Len() {
		if strings.Contains(v.Index(i).String(), " ") {
			return true
		}
	}
	return false
}

func empty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// table shows a list of structs, with the names of their fields at its head.
func table(w *strings.Builder, name string, list reflect.Value) {
	fields := operation.Fields(list.Type().Elem())
	switch {
	case name != "result": // which is all that the answer has
		fmt.Fprintf(w, "%s: %d\n", name, list.Len())
	case list.Len() == 0:
		w.WriteString("None.\n")
	}
	if list.Len() == 0 {
		return
	}
	rows := make([][]string, 1, list.Len()+1)
	for _, f := range fields {
		rows[0] = append(rows[0], strings.ToUpper(strings.ReplaceAll(f.JSON, "_", " ")))
	}
	for i := range list.Len() {
		var row []string
		for _, f := range fields {
			row = append(row, strings.Join(strings.Fields(cell(list.Index(i).FieldByIndex(f.Index))), " "))
		}
		rows = append(rows, row)
	}
	columns(w, rows)
}

// cell returns a value on a terminal. What other people wrote is cleaned.
func cell(v reflect.Value) string {
	v = reflect.Indirect(v)
	switch {
	case !v.IsValid():
		return ""
	case v.Type() == reflect.TypeFor[time.Time]():
		return operation.TimeCell(v.Interface().(time.Time))
	case v.Kind() == reflect.String:
		return textscan.Clean(v.String(), maxCell)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, textscan.Clean(v.Index(i).String(), maxCell))
		}
		return strings.Join(parts, ", ")
	}
	text, err := json.Marshal(v.Interface())
	if err != nil { // answers always marshal
		return ""
	}
	return textscan.Clean(string(text), maxCell)
}
