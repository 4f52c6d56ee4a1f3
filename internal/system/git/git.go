// Package git runs the git command: the one place of the product that does.
//
// The environment of a call is built from scratch (environment.go): neither the user's configuration nor the system's
// takes part, the known settings by which a repository can start hooks and other programs are disabled, git never asks
// for a password, and it reaches no other machine unless the call names it (Remote). Every call has bounds (Limits).
// When its context ends, git and what it has started are ended.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Runner runs git. It is safe for concurrent use, and not to be copied.
type Runner struct {
	// Program is the path of git, or its name; "" for git. A name is looked for in PATH once, when it is first needed.
	Program string
	// Home is the user's folder, where git finds their rules of what is ignored, and .netrc; "" for none.
	Home string
	// Env are more variables, as NAME=value: PATH, which is otherwise that of the system with git's own folder,
	// SSH_AUTH_SOCK, those of proxies. They replace none of those that every call has.
	Env []string
	// Reaped says that this program answers processtree.ReaperCommand: what speaks to others then ends with it, even if it
	// is killed. Linux alone.
	Reaped bool
	// Lookup finds the addresses of a host; nil for the system's way. See Remote.Public.
	Lookup Lookup

	mu   sync.Mutex
	path string // of Program; "" if it was not looked for
}

// Call is one call of git.
type Call struct {
	Dir    string    // where git runs and looks for a repository; "" for a folder that is in none
	GitDir string    // the repository, in place of one that git looks for; git runs there if Dir is ""
	Config []string  // key=value, over what the repository has; they replace none of those that every call has
	Env    []string  // variables, over those of the Runner; as Runner.Env
	Args   []string  // the command and its arguments
	Stdin  io.Reader // nil for nothing; always nothing for a call with a Remote that is reaped
	Stdout io.Writer // nil: what git prints is in Result.Out. A writer that fails ends git
	Remote *Remote   // what the call speaks to; nil for nothing but this machine's files
	// Finish lets git finish even if this process ends: a git that is ended in the middle of a write can leave a lock
	// file. It is still killed when its context ends.
	Finish bool
	Keep   []*os.File // what git and its children hold open, such as a lock; for calls without a Remote. Unix alone
}

// Limits bound a call. 0 is the default.
type Limits struct {
	Time   time.Duration // 0: that of the context alone
	Output int           // bytes of Result.Out; more ends git with ErrTooMuch. It does not bound Call.Stdout
	Said   int           // bytes of Result.Said; more is dropped
}

// Bounds of a call that names none.
const (
	defaultOutput = 64 << 20
	defaultSaid   = 64 << 10
	// grace is how long an ended git and its children may take to remove lock files before they are killed.
	grace = 2 * time.Second
)

// within returns a context that ends after Time.
func (l Limits) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Time <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.Time)
}

// Result is the exit of a git command.
type Result struct {
	Out  []byte
	Code int    // not 0 is an answer, too
	Said string // on standard error, without space around it; for logs, and for people who can read the repository
}

// Errors of a call. Beside them there are the end of the context, with its cause, and why git could not be started or
// read.
var (
	ErrNotFound = errors.New("the git command was not found")
	ErrTooMuch  = errors.New("git answers more than is taken")
)

// Run runs git to its end. A nonzero exit code is not an error.
func (r *Runner) Run(ctx context.Context, c Call, l Limits) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	ctx, cancel := l.within(ctx)
	defer cancel()
	s, err := r.prepare(ctx, c)
	if err != nil {
		return Result{}, err
	}
	out := &bounded{most: cmp.Or(l.Output, defaultOutput)}
	if s.stdout = c.Stdout; s.stdout == nil {
		s.stdout = out
	}
	said := &bounded{most: cmp.Or(l.Said, defaultSaid), drops: true}
	s.stderr = said
	code, err := r.run(ctx, s)
	result := Result{Out: out.kept.Bytes(), Code: code, Said: strings.TrimSpace(said.kept.String())}
	switch {
	case ctx.Err() != nil && (err != nil || code != 0):
		return result, context.Cause(ctx)
	case out.over:
		return result, ErrTooMuch
	}
	return result, err
}

// ExitError is the error of Stream for an exit code beside 0.
type ExitError struct{ Result }

func (e *ExitError) Error() string {
	return cmp.Or(e.Said, fmt.Sprintf("git ended with code %d", e.Code))
}

// Stream runs git and has read what it prints, while it prints. An error of read ends git, and is returned. An exit
// code beside 0 is an *ExitError, which read sees at the end of what was printed.
func (r *Runner) Stream(ctx context.Context, c Call, l Limits, read func(io.Reader) error) error {
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := read(in)
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		_ = in.CloseWithError(cmp.Or(err, io.ErrClosedPipe))
		done <- err
	}()
	c.Stdout = out
	result, err := r.Run(ctx, c, l)
	if err == nil && result.Code != 0 {
		err = &ExitError{result}
	}
	_ = out.CloseWithError(cmp.Or(err, io.EOF))
	if readErr := <-done; readErr != nil && ctx.Err() == nil {
		return readErr
	}
	return err
}

// find returns the path of git. ErrNotFound if there is none.
func (r *Runner) find() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path != "" {
		return r.path, nil
	}
	path, err := exec.LookPath(cmp.Or(r.Program, "git"))
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	r.path = path
	return path, nil
}

// missing returns the error of a start that failed: ErrNotFound if git is gone since it was found.
func (r *Runner) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.mu.Lock()
	r.path = ""
	r.mu.Unlock()
	if _, gone := r.find(); gone != nil {
		return gone
	}
	return err
}
