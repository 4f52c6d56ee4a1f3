package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
)

// Talk is a git that is asked, and answers, again and again, such as cat-file --batch-command. It is not safe for
// concurrent use.
type Talk struct {
	In  io.Writer // what it is asked
	Out io.Reader // what it answers; Limits.Output does not bound it

	ctx    context.Context // of the call that opened it, and which it does not outlive
	cancel context.CancelFunc
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   *bounded
}

// Talk starts git for a call without Remote, Stdin and Stdout; Talk.Close must follow. Errors are those of Run.
func (r *Runner) Talk(ctx context.Context, c Call, l Limits) (*Talk, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.Remote != nil {
		return nil, errors.New("nobody talks to another repository")
	}
	ctx, cancel := l.within(ctx)
	t := &Talk{ctx: ctx, cancel: cancel, said: &bounded{most: cmp.Or(l.Said, defaultSaid), drops: true}}
	if err := t.start(r, c); err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

func (t *Talk) start(r *Runner, c Call) error {
	s, err := r.prepare(t.ctx, c)
	if err != nil {
		return err
	}
	t.cmd = s.command(t.ctx)
	t.cmd.Stderr = t.said
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	if t.Out, err = t.cmd.StdoutPipe(); err != nil {
		return err
	}
	t.In = t.in
	if err := t.cmd.Start(); err != nil {
		return r.missing(err)
	}
	return nil
}

// Close ends what is asked, drops what was not read of the answers, and waits for git's end. It may be called once.
func (t *Talk) Close() (Result, error) {
	defer t.cancel()
	_ = t.in.Close() // git sees the end of its input and exits
	_, _ = io.Copy(io.Discard, t.Out)
	code, err := outcome(t.ctx, t.cmd, t.cmd.Wait())
	result := Result{Code: code, Said: strings.TrimSpace(t.said.kept.String())}
	if t.ctx.Err() != nil && (err != nil || code != 0) {
		err = context.Cause(t.ctx)
	}
	return result, err
}
