// Package git runs the git command: the one place of the product that does.
//
// The environment of a call is built from scratch (remote.go): neither the user's configuration nor the system's
// takes part, the known settings by which a repository can start hooks and other programs are disabled, git never asks
// for a password, and it reaches no other machine unless the call names it (Remote). Every call has bounds (Limits).
// When its context ends, git and what it has started are ended.
package git

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/processtree"
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

// withTimeout returns a context that ends after Time.
func (l Limits) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
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
	ctx, cancel := l.withTimeout(ctx)
	defer cancel()
	s, err := r.prepareCall(ctx, c)
	if err != nil {
		return Result{}, err
	}
	out := &limitedBuffer{most: cmp.Or(l.Output, defaultOutput)}
	if s.stdout = c.Stdout; s.stdout == nil {
		s.stdout = out
	}
	said := &limitedBuffer{most: cmp.Or(l.Said, defaultSaid), drops: true}
	s.stderr = said
	code, err := r.runCall(ctx, s)
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

// gitPath returns the path of git. ErrNotFound if there is none.
func (r *Runner) gitPath() (string, error) {
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

// startError returns the error of a start that failed: ErrNotFound if git is gone since it was found.
func (r *Runner) startError(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.mu.Lock()
	r.path = ""
	r.mu.Unlock()
	if _, gone := r.gitPath(); gone != nil {
		return gone
	}
	return err
}

// runCall runs a call. A call with a Remote runs below a process that ends all its descendants, also when this process
// is killed. Other calls, which are frequent, run in a process group of their own.
func (r *Runner) runCall(ctx context.Context, s *started) (code int, err error) {
	if s.call.Remote != nil && r.Reaped && runtime.GOOS == "linux" {
		code, err = s.reap(ctx)
	} else {
		code, err = s.start(ctx)
	}
	if err != nil {
		err = r.startError(err)
	}
	return code, err
}

// start runs git in a process group of its own.
func (s *started) start(ctx context.Context) (code int, err error) {
	cmd := s.newCmd(ctx)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.call.Stdin, s.stdout, s.stderr
	if s.secret != nil {
		out, in, err := os.Pipe() // holds far more bytes than a secret has, so writing never blocks
		if err != nil {
			return 0, err
		}
		defer func() { _ = out.Close() }()
		_, err = in.Write(s.secret)
		if err = errors.Join(err, in.Close()); err != nil {
			return 0, err
		}
		cmd.ExtraFiles = []*os.File{out}
	}
	if err := processtree.OnLastingThread(cmd.Start); err != nil {
		return outcome(ctx, cmd, err)
	}
	return outcome(ctx, cmd, cmd.Wait())
}

// newCmd returns a process in a group of its own: a Ctrl-C at the terminal does not reach git in the middle of a
// write, and when its context ends, it is ended with its children. It is asked first, so that it removes its lock
// files.
func (s *started) newCmd(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, s.args...) // #nosec G204: the operator's git
	cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.WaitDelay = s.dir, s.env, s.call.Keep, grace
	isolate(cmd, s.call.Finish)
	return cmd
}

// outcome reads the end of a process, and ends what is left of its group if the context has ended.
func outcome(ctx context.Context, cmd *exec.Cmd, err error) (code int, _ error) {
	if err != nil && ctx.Err() != nil {
		endGroup(cmd)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// reap runs git below the reaper.
func (s *started) reap(ctx context.Context) (code int, err error) {
	mark := "CLAUDEOPS_GIT_CALL=" + rand.Text()
	stdout, err := newStream(s.stdout)
	if err != nil {
		return 0, err
	}
	stderr, err := newStream(s.stderr)
	if err != nil {
		return 0, errors.Join(err, stdout.drain())
	}
	tree, err := processtree.Start(processtree.Command{
		Path: s.program, Args: append([]string{"git"}, s.args...), Env: append(s.env, mark), Dir: s.dir, Stdout: stdout.in,
		Stderr: stderr.in, Extra: s.secret,
	}, processtree.Options{Grace: grace, Mark: mark})
	_, _ = stdout.in.Close(), stderr.in.Close()
	if err != nil {
		return 0, errors.Join(err, stdout.drain(), stderr.drain())
	}
	select {
	case <-tree.Exited():
	case <-ctx.Done():
	}
	end := tree.End()
	if err := errors.Join(stdout.drain(), stderr.drain()); err != nil && end.Exit.Code == 0 {
		return 0, err
	}
	return end.Exit.Code, nil
}

// stream is a pipe whose contents go to a writer.
type stream struct {
	in, out *os.File
	done    chan error
}

func newStream(w io.Writer) (*stream, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{in: in, out: out, done: make(chan error, 1)}
	go func() {
		_, err := io.Copy(w, out)
		_ = out.Close() // a writer that fails ends who prints
		s.done <- err
	}()
	return s, nil
}

// drain waits for the rest, but for what a process holds open that could not be ended.
func (s *stream) drain() error {
	_ = s.in.Close()
	late := time.AfterFunc(grace, func() { _ = s.out.SetReadDeadline(time.Now()) })
	defer late.Stop()
	return <-s.done
}

// limitedBuffer keeps the first bytes. What is more is dropped, or is an error.
type limitedBuffer struct {
	kept  bytes.Buffer // no part of bounded: io.Copy would call its ReadFrom, which knows no bound
	most  int
	drops bool
	over  bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	fits := min(len(p), b.most-b.kept.Len())
	_, _ = b.kept.Write(p[:fits])
	if fits == len(p) {
		return fits, nil
	}
	b.over = true
	if b.drops {
		return len(p), nil
	}
	return fits, ErrTooMuch
}

// ObjectReader is a git that is asked, and answers, again and again, such as cat-file --batch-command. It is not safe
// for concurrent use.
type ObjectReader struct {
	In  io.Writer // what it is asked
	Out io.Reader // what it answers; Limits.Output does not bound it

	ctx       context.Context // of the call that opened it, and which it does not outlive
	cancel    context.CancelFunc
	cmd       *exec.Cmd
	in        io.WriteCloser
	errorText *limitedBuffer
}

// OpenObjectReader starts git for a call without Remote, Stdin and Stdout; Talk.Close must follow. Errors are those of
// Run.
func (r *Runner) OpenObjectReader(ctx context.Context, c Call, l Limits) (*ObjectReader, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.Remote != nil {
		return nil, errors.New("nobody talks to another repository")
	}
	ctx, cancel := l.withTimeout(ctx)
	t := &ObjectReader{ctx: ctx, cancel: cancel, errorText: &limitedBuffer{most: cmp.Or(l.Said, defaultSaid), drops: true}}
	if err := t.start(r, c); err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

func (t *ObjectReader) start(r *Runner, c Call) error {
	s, err := r.prepareCall(t.ctx, c)
	if err != nil {
		return err
	}
	t.cmd = s.newCmd(t.ctx)
	t.cmd.Stderr = t.errorText
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	if t.Out, err = t.cmd.StdoutPipe(); err != nil {
		return err
	}
	t.In = t.in
	if err := processtree.OnLastingThread(t.cmd.Start); err != nil {
		return r.startError(err)
	}
	return nil
}

// Close ends what is asked, drops what was not read of the answers, and waits for git's end. It may be called once.
func (t *ObjectReader) Close() (Result, error) {
	defer t.cancel()
	_ = t.in.Close() // git sees the end of its input and exits
	_, _ = io.Copy(io.Discard, t.Out)
	code, err := outcome(t.ctx, t.cmd, t.cmd.Wait())
	result := Result{Code: code, Said: strings.TrimSpace(t.errorText.kept.String())}
	if t.ctx.Err() != nil && (err != nil || code != 0) {
		err = context.Cause(t.ctx)
	}
	return result, err
}
