package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/git"
)

const (
	// maxOutput bounds what one git command may answer, in bytes.
	maxOutput = 64 << 20
	// maxStderr bounds what is kept of git's own words, in bytes. They go to logs only.
	maxStderr = 4 << 10
)

// runner runs git on repositories and workspaces. It is safe for concurrent use.
type runner struct {
	git       *git.Runner
	temp      string
	timeout   time.Duration
	committer identity
	tidied    sync.Once // what killed processes left has been removed
}

// newRunner makes a runner. program is the path of git; "" for the one in PATH.
func newRunner(program, temp string, timeout time.Duration, committer identity) *runner {
	return &runner{git: &git.Runner{Program: program}, temp: temp, timeout: timeout, committer: committer}
}

// command is one call of git.
type command struct {
	gitDir string
	config []string // key=value pairs that override the git directory's configuration
	env    []string
	args   []string
	stdin  io.Reader
	accept []int // exit codes beside 0 that are answers, not failures
	limit  int   // bytes of output; 0 means maxOutput
	// lock, if not nil, is the lock under which the command writes. The command inherits it and runs to its end, even if
	// this process is killed meanwhile: a git that is ended between making a lock file and noting that it did leaves the
	// file, and blocks the repository.
	lock *writeLock
}

// exitError says how git failed. Its text is for logs.
type exitError struct {
	name   string
	code   int
	stderr string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("git %s: exit code %d: %s", e.name, e.code, e.stderr)
}

// run gives the output and the exit code of a command.
func (g *runner) run(ctx context.Context, c command) (out []byte, code int, err error) {
	result, err := g.git.Run(ctx, g.callOf(c), g.limits(c))
	return result.Out, result.Code, g.outcome(ctx, c, result, err)
}

func (g *runner) callOf(c command) git.Call {
	call := git.Call{
		GitDir: c.gitDir, Config: c.config, Env: append(g.committer.environ("COMMITTER"), c.env...), Args: c.args,
		Stdin: c.stdin,
	}
	if c.lock != nil {
		call.Finish, call.Keep = true, c.lock.files()
	}
	return call
}

func (g *runner) limits(c command) git.Limits {
	return git.Limits{Time: g.timeout, Output: cmp.Or(c.limit, maxOutput), Said: maxStderr}
}

// outcome turns the end of a command into nil or a *fault.Error.
func (g *runner) outcome(ctx context.Context, c command, result git.Result, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return fault.From(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fault.From(err)
	case errors.Is(err, git.ErrTooMuch):
		return fault.Wrap(err, fault.UpstreamError,
			"git %s answered more than claudeops reads; the repository is too large for this call", c.args[0])
	case errors.Is(err, git.ErrNotFound):
		return fault.Wrap(err, fault.ProviderDisabled,
			"the git command was not found; install git %s or later, or put it in PATH", oldestGit())
	case err != nil:
		return fault.Wrap(err, fault.UpstreamError, "git could not be run; ask the operator to look at `claudeops doctor`")
	case result.Code == 0 || slices.Contains(c.accept, result.Code):
		return nil
	}
	const usageError = 129 // git's exit code for an option that it does not know
	if result.Code == usageError && c.args[0] != "version" {
		if _, err := g.version(ctx); err != nil {
			return err
		}
	}
	return failed(&exitError{c.args[0], result.Code, result.Said})
}

// failed returns the error of a git command that should not have failed.
func failed(e *exitError) error {
	if strings.Contains(e.stderr, "No space left on device") || strings.Contains(e.stderr, "Disk quota exceeded") {
		return fault.Wrap(e, fault.UpstreamError, "git %s found no room on the disk; ask the operator to make room", e.name)
	}
	return fault.Wrap(e, fault.UpstreamError, "git %s failed on the repository; ask the operator to check its "+
		"permissions and disk space, and to run git fsck", e.name)
}
