package processtree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Spec is a command that is run to its end.
type Spec struct {
	Command // what it prints is kept where Stdout or Stderr is nil
	Options
	Time   time.Duration // that it may take; 0: as long as the context
	Output int           // bytes that are kept of each stream; 0: none
}

// Result is the end and the output of a command.
type Result struct {
	End
	Stdout, Stderr Output
	TimedOut       bool // it was ended after Spec.Time
	Canceled       bool // it was ended because the context had
}

// Output is a command's output on one stream.
type Output struct {
	Text []byte // its beginning
	Size int    // of all of it, in bytes
}

// Run runs a command and ends all its descendants. It returns when none is left, and at most 5 s later than Tree.End if
// one that is left holds the output open. The error says that the command could not be started; an exit code is not an
// error.
func Run(ctx context.Context, s Spec) (Result, error) {
	var streams [2]*stream
	for i, to := range []**os.File{&s.Stdout, &s.Stderr} {
		if *to != nil || s.Output == 0 {
			continue
		}
		opened, err := newStream(s.Output)
		if err != nil {
			return Result{}, errors.Join(err, streams[0].end())
		}
		streams[i], *to = opened, opened.write
	}
	tree, err := Start(s.Command, s.Options)
	if err != nil {
		_ = RemoveGroup(s.Group) // it is empty
		return Result{}, errors.Join(err, streams[0].end(), streams[1].end())
	}
	for _, one := range streams {
		one.handOver()
	}
	var late <-chan time.Time
	if s.Time > 0 {
		timer := time.NewTimer(s.Time)
		defer timer.Stop()
		late = timer.C
	}
	r := Result{}
	select {
	case <-tree.Exited():
	case <-late:
		r.TimedOut = true
	case <-ctx.Done():
		r.Canceled = true
	}
	r.End = tree.End()
	_ = errors.Join(streams[0].end(), streams[1].end()) // what was read is kept
	r.Stdout, r.Stderr = streams[0].output(), streams[1].output()
	return r, nil
}

// Find returns the absolute path of a program: of a name that is looked for in PATH, or of a path. *exec.Error for one
// that is not there or cannot be run.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Cmd returns a command for a library that starts and ends it itself. It sees the environment of c alone. When the
// context ends, it alone is killed.
func Cmd(ctx context.Context, c Command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path) // #nosec G204 -- the caller names the program
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin = c.Args, c.Env, c.Dir, c.Stdin
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	return cmd
}

// stream keeps the beginning of what is written to a pipe and reads the rest away, so that its writer is never held up.
// nil is one that is not there.
type stream struct {
	read, write *os.File
	kept        Output
	done        chan struct{}
}

func newStream(most int) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{read: read, write: write, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buffer := make([]byte, 64<<10)
		for {
			n, err := s.read.Read(buffer)
			s.kept.Text = append(s.kept.Text, buffer[:min(n, most-len(s.kept.Text))]...)
			s.kept.Size += n
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

// handOver gives up the writing end, which the command has.
func (s *stream) handOver() {
	if s != nil {
		_ = s.write.Close()
	}
}

// drainTime limits how long output is read after the processes have ended: a process that could not be ended may hold
// it open.
const drainTime = 5 * time.Second

// end waits for the end of the output.
func (s *stream) end() error {
	if s == nil {
		return nil
	}
	_ = s.write.Close() // handed over already, but for failures
	_ = s.read.SetReadDeadline(time.Now().Add(drainTime))
	<-s.done
	return s.read.Close()
}

func (s *stream) output() Output {
	if s == nil {
		return Output{}
	}
	return s.kept
}
