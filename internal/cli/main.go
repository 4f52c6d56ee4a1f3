// Package cli is the command line: one file per command; wire.go constructs everything.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// Streams are the process's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Sleep passes the pauses between requests to a forge; nil waits for the time to pass. Tests of processes set it.
	Sleep func(context.Context, time.Duration)
}

// Main runs the command line of this process and returns its exit code: 0 done, 2 called wrongly or with unusable
// settings, 3 refused by a gate, 4 provider failure, 5 this machine lacks something that may come by itself, 1 a fault
// of ours, or a check with a negative result.
func Main() int {
	processtree.Conceal() // tokens may stand in the environment, and agents' commands run as the same user
	if len(os.Args) == 2 && os.Args[1] == processtree.ReaperCommand {
		return processtree.Reap()
	}
	if len(os.Args) == 2 && os.Args[1] == confine.HelperCommand {
		return confine.Enter()
	}
	if len(os.Args) == 3 && os.Args[1] == session.CheckCommand {
		return session.CheckHandoff(os.Args[2], os.Stdin, os.Stdout)
	}
	if name := config.RunAs(os.LookupEnv); name != "" && os.Geteuid() == 0 {
		err := confine.RunAs(name, os.Args, os.Environ()) // it starts this program again, and returns only if it cannot
		fmt.Fprintln(os.Stderr, err)
		return fault.ExitUsage
	}
	if exit, is := processtree.Init(os.Environ()); is { // in a container without an init of its own
		return exit
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
}

// Run runs one command. lookup reads the environment.
func Run(ctx context.Context, args []string, streams Streams, lookup func(string) (string, bool)) int {
	a := &commandLine{streams: streams, process: lookup, args: args, file: &environmentFile{}}
	a.lookup = a.withFile()
	defer a.flushLog()
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if a.cmd == nil { // its arguments could not be read
		a.cmd = cmd
	}
	if closeErr := a.program().Close(); err == nil {
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
