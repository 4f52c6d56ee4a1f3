package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

const (
	// maxOutput bounds what one git command may answer, in bytes.
	maxOutput = 64 << 20
	// maxStderr bounds what is kept of git's own words, in bytes. They go to logs only.
	maxStderr = 4 << 10
	// grace is how long a cancelled command may take to remove its lock files before it is killed.
	grace = 2 * time.Second
)

// git runs the git command in an environment built from nothing. It is safe for concurrent use.
type git struct {
	binary    string // "" looks in PATH
	temp      string
	timeout   time.Duration
	committer identity
	tidied    sync.Once // what killed processes left has been removed
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

// exitError is how git failed. Its text is for logs.
type exitError struct {
	name   string
	code   int
	stderr string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("git %s: exit code %d: %s", e.name, e.code, e.stderr)
}

var errTooMuch = errors.New("the output is larger than allowed")

// run gives the output and the exit code of a command.
func (g *git) run(ctx context.Context, c command) (out []byte, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	cmd, err := g.prepare(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	stdout := &boundedBuffer{limit: maxOutput}
	if c.limit > 0 {
		stdout.limit = c.limit
	}
	stderr := &boundedBuffer{limit: maxStderr, cut: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, stdout, stderr
	err = cmd.Run()
	return stdout.data.Bytes(), cmd.ProcessState.ExitCode(), g.outcome(ctx, cmd, c, err, stdout, stderr)
}

// outcome turns the end of a command into nil or a *fault.Error.
func (g *git) outcome(ctx context.Context, cmd *exec.Cmd, c command, err error, stdout, stderr *boundedBuffer) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		endGroup(cmd)
		return fault.From(ctx.Err())
	}
	if stdout.full {
		return fault.Wrap(errTooMuch, fault.UpstreamError,
			"git %s answered more than claudeops reads; the repository is too large for this call", c.args[0])
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && slices.Contains(c.accept, exit.ExitCode()) {
		return nil
	}
	if exit == nil {
		return fault.Wrap(err, fault.UpstreamError, "git could not be run; ask the operator to look at `claudeops doctor`")
	}
	const usageError = 129 // git's exit code for an option that it does not know
	if exit.ExitCode() == usageError && c.args[0] != "version" {
		if _, err := g.version(ctx); err != nil {
			return err
		}
	}
	return failed(&exitError{c.args[0], exit.ExitCode(), strings.TrimSpace(stderr.data.String())})
}

// failed is the error of a git command that should not have failed.
func failed(e *exitError) error {
	return fault.Wrap(e, fault.UpstreamError, "git %s failed on the repository; ask the operator to check its "+
		"permissions and disk space, and to run git fsck", e.name)
}

// prepare makes the process, without input and output.
func (g *git) prepare(ctx context.Context, c command) (*exec.Cmd, error) {
	if ctx.Err() != nil {
		return nil, fault.From(ctx.Err())
	}
	binary, err := g.find()
	if err != nil {
		return nil, err
	}
	var args []string
	if c.gitDir != "" {
		args = append(args, "--git-dir="+c.gitDir)
	}
	for _, pair := range c.config {
		args = append(args, "-c", pair)
	}
	cmd := exec.CommandContext(ctx, binary, append(args, c.args...)...)
	cmd.Dir = c.gitDir
	if cmd.Dir == "" {
		cmd.Dir = "/" // not the folder of this process, which may be a repository
	}
	cmd.Env = append(append(environment(binary), g.committer.environ("COMMITTER")...), c.env...)
	cmd.WaitDelay = grace
	isolate(cmd, c.lock)
	return cmd, nil
}

func (g *git) find() (string, error) {
	name := g.binary
	if name == "" {
		name = "git"
	}
	binary, err := exec.LookPath(name)
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.ProviderDisabled,
			"the git command was not found; install git %s or later, or put it in PATH", oldestGit())
	}
	return binary, nil
}

// environment is all that git sees of the outside: nothing of ours, so that no variable of the parent's redirects it.
// GIT_ALLOW_PROTOCOL wins over every protocol.*.allow, and an empty list allows none.
func environment(binary string) []string {
	return []string{
		"PATH=" + filepath.Dir(binary) + ":/usr/bin:/bin",
		"HOME=/nonexistent",
		"XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CEILING_DIRECTORIES=/",
	}
}

// boundedBuffer keeps the first limit bytes. Further ones are dropped if cut, else the write fails.
type boundedBuffer struct {
	data  bytes.Buffer
	limit int
	cut   bool
	full  bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.data.Len()
	if len(p) <= room {
		return b.data.Write(p)
	}
	b.data.Write(p[:room])
	b.full = true
	if b.cut {
		return len(p), nil
	}
	return room, errTooMuch
}
