// Package cli is the command line: one file per command; wire.go constructs everything.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/claudeops/claudeops/internal/fault"
)

// Streams are the process's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command line of this process and returns its exit code: 0 done, 2 usage, 3 refused by a gate, 4 provider
// failure, 1 a fault of ours.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
}

// Run runs one command. lookup reads the environment.
func Run(ctx context.Context, args []string, streams Streams, lookup func(string) (string, bool)) int {
	a := &app{streams: streams, lookup: lookup}
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if closeErr := a.close(); err == nil {
		err = closeErr
	}
	var silent silentExit
	switch {
	case err == nil:
		return fault.ExitDone
	case errors.As(err, &silent):
		return int(silent)
	}
	return a.renderError(err)
}

// usageError is a command that was called wrongly.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return fault.ExitUsage
	}
	return fault.CodeOf(err).ExitCode()
}

// silentExit ends a command whose answer has been printed already with an exit code of its own.
type silentExit int

func (silentExit) Error() string { return "" }
