// Package processtree runs a command and makes sure that none of its descendants outlives it: not even a process that
// left its process group or session, cleared its environment, lost its parent or ignores signals.
//
// Run runs a command to its end and keeps what it printed. Start is for what is followed while it runs. Cmd is for
// commands that start nothing which could be left.
//
// On Linux a process of its own, the reaper, stands between the caller and the command. It is a child subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER): whatever loses its parent below it becomes its child, and since it starts nothing
// but the command, everything below it is of the tree. The tree has ended when the kernel says that it has no child
// left. Where the caller may make a control group (cgroups(7), version 2), the tree gets one, too, and ends with it.
// When the caller is killed, its pipe to the reaper closes, and the reaper ends the tree. See docs/adr/0011.
//
// On other systems with process groups, the command's group is ended, and what left it is not found. Elsewhere the
// command alone is ended.
//
// A process that another one starts on request does not belong to the tree: by a service manager, a container daemon,
// at(1).
package processtree

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ReaperCommand is the argument by which a program that uses Start is called again to be the reaper: its main function
// must then call Reap before anything else and exit with what that returns.
const ReaperCommand = "session-reaper"

// Command is the command to run.
type Command struct {
	Path           string    // of the executable file
	Args           []string  // with the name as the first
	Env            []string  // all of the environment, the Mark included
	Dir            string    // working folder
	Stdin          io.Reader // nil for none
	Stdout, Stderr *os.File  // not closed by Start; nil for none
	// Extra is the content of the command's file 3, to be read to its end; nil for no such file. On Linux alone.
	Extra []byte
}

// Options say how a tree is kept and ended.
type Options struct {
	// Grace is the time from SIGTERM to SIGKILL.
	Grace time.Duration
	// Mark is an entry of the environment, NAME=value, by which what is left is looked for if the reaper was killed.
	Mark string
	// Group is a control group for the tree, as MakeGroup has made it; "" for none. It is removed at the tree's end.
	Group string
	// MostProcesses limits the processes of the tree at the same time; 0 means no limit. A tree that has more is ended.
	// The number is checked some ten times a second; on Linux alone.
	MostProcesses int
	// MostThreads limits the threads of the tree; 0 means no limit. The kernel enforces it where the tree has a control
	// group with that controller, and otherwise counts the threads of all users when the command starts. More cannot be
	// started. On Linux alone.
	MostThreads int
	// UID is the user that the command becomes, where that is not ours: its processes are then ended by that, too, all of
	// its user that are left after the grace. 0 for ours. On Linux alone.
	UID int
	// Keep are files that stay open until the tree has ended, even if this process is killed: a lock, for instance.
	Keep []*os.File
}

// Exit says how a command ended.
type Exit struct {
	Code int    // -1 if it was ended by a signal, or is not known
	Text string // such as "signal: killed"; "" for code 0
}

// End says how a tree ended.
type End struct {
	Exit Exit
	// Remaining are processes that could not be ended: they belong to another user, or the kernel does not let them go.
	// On Linux they are tried again, and Options.Keep is kept, until they have ended.
	Remaining []int
	// ReaperLost says that the reaper was killed or did not answer. What could be found by group and mark was killed.
	ReaperLost bool
	// TooMany says that the tree was ended because it had more than Options.MostProcesses.
	TooMany bool
}

// startOrder is the first line that the reaper gets: what to run, as JSON.
type startOrder struct {
	Path  string        `json:"path"`
	Args  []string      `json:"args"`
	Env   []string      `json:"env"`
	Dir   string        `json:"dir"`
	Group string        `json:"group"`
	Grace time.Duration `json:"grace"`
	Most  int           `json:"most"` // processes; 0 for any number
	Extra []byte        `json:"extra,omitempty"`
	UID   int           `json:"uid,omitempty"`
	Bound int           `json:"bound,omitempty"` // threads; 0 for any number
}

// order is the second line, the last one: the tree is to end.
type order struct{}

// report is a line that the reaper answers. One of the fields is set.
type report struct {
	Started int         `json:"started,omitempty"` // the command's process id
	Problem string      `json:"problem,omitempty"` // the command could not be started
	Status  *uint32     `json:"status,omitempty"`  // the command's wait status
	Ended   *treeResult `json:"ended,omitempty"`   // the tree has ended, but for what remains
}

type treeResult struct {
	Status    *uint32 `json:"status,omitempty"` // the command's; nil if it runs still
	Remaining []int   `json:"remaining,omitempty"`
	TooMany   bool    `json:"too_many,omitempty"`
}

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
			return Result{}, errors.Join(err, streams[0].drain())
		}
		streams[i], *to = opened, opened.write
	}
	tree, err := Start(s.Command, s.Options)
	if err != nil {
		_ = RemoveGroup(s.Group) // it is empty
		return Result{}, errors.Join(err, streams[0].drain(), streams[1].drain())
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
	_ = errors.Join(streams[0].drain(), streams[1].drain()) // what was read is kept
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

// drain waits for the end of the output.
func (s *stream) drain() error {
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
