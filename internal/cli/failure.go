package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
	return app.Usage(fmt.Errorf("--code %.50q is no code; docs/reference/codes.md lists them", code))
}
