package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// surfaceOf returns what a stream can display. Colours are for terminals: NO_COLOR removes them (https://no-color.org),
// and CLICOLOR_FORCE forces them everywhere (https://bixense.com/clicolors).
func surfaceOf(a *commandLine, stream io.Writer) surface {
	set := func(name string) bool {
		value, _ := a.lookup(name)
		return value != "" && (name == "NO_COLOR" || value != "0")
	}
	s := surface{}
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
	bold   = 1
	red    = 31
	green  = 32
	yellow = 33
	cyan   = 36
)

func painted(colour int, text string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text) }

const (
	progressAfter = time.Second // work that takes less shows none
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
