package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// run runs a call. A call with a Remote runs below a process that ends all its descendants, also when this process is
// killed. Other calls, which are frequent, run in a process group of their own.
func (r *Runner) run(ctx context.Context, s *started) (code int, err error) {
	if s.call.Remote != nil && r.Reaped && runtime.GOOS == "linux" {
		code, err = s.reap(ctx)
	} else {
		code, err = s.start(ctx)
	}
	if err != nil {
		err = r.missing(err)
	}
	return code, err
}

// start runs git in a process group of its own.
func (s *started) start(ctx context.Context) (code int, err error) {
	cmd := s.command(ctx)
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
	return outcome(ctx, cmd, cmd.Run())
}

// command returns a process in a group of its own: a Ctrl-C at the terminal does not reach git in the middle of a
// write, and when its context ends, it is ended with its children. It is asked first, so that it removes its lock
// files.
func (s *started) command(ctx context.Context) *exec.Cmd {
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
		return 0, errors.Join(err, stdout.end())
	}
	tree, err := processtree.Start(processtree.Command{
		Path: s.program, Args: append([]string{"git"}, s.args...), Env: append(s.env, mark), Dir: s.dir, Stdout: stdout.in,
		Stderr: stderr.in, Extra: s.secret,
	}, processtree.Options{Grace: grace, Mark: mark})
	_, _ = stdout.in.Close(), stderr.in.Close()
	if err != nil {
		return 0, errors.Join(err, stdout.end(), stderr.end())
	}
	select {
	case <-tree.Exited():
	case <-ctx.Done():
	}
	end := tree.End()
	if err := errors.Join(stdout.end(), stderr.end()); err != nil && end.Exit.Code == 0 {
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

// end waits for the rest, but for what a process holds open that could not be ended.
func (s *stream) end() error {
	_ = s.in.Close()
	late := time.AfterFunc(grace, func() { _ = s.out.SetReadDeadline(time.Now()) })
	defer late.Stop()
	return <-s.done
}

// bounded keeps the first bytes. What is more is dropped, or is an error.
type bounded struct {
	kept  bytes.Buffer // no part of bounded: io.Copy would call its ReadFrom, which knows no bound
	most  int
	drops bool
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
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
