package scripts

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/processtree"
)

//go:embed run.ps1
var powerShellWrapper []byte

// Exit codes of a run that did not happen, as shells have them.
const (
	exitInvalid    = 2   // the arguments are no good
	exitNotRunable = 126 // the script cannot be started
	exitNotFound   = 127 // script or interpreter is missing
	exitUnknown    = -1  // ended by a signal, or at the time limit
)

// grace is how long processes may take from SIGTERM to SIGKILL.
const grace = 2 * time.Second

// Result is the answer of a run, in the words of the published contract.
type Result struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exitCode"`
	Truncated bool   `json:"truncated"`
	TimedOut  bool   `json:"timedOut"`
}

// Runner runs scripts, so many at once. Make it with NewRunner. It is safe for concurrent use.
type Runner struct {
	settings Settings
	slots    chan struct{}
	look     func(program string) (string, error) // the path of a program
	lookup   func(variable string) (string, bool) // of the environment
	newID    func() string
}

// NewRunner makes a runner. look finds programs, as exec.LookPath does; lookup reads the environment.
func NewRunner(s Settings, look func(string) (string, error), lookup func(string) (string, bool), newID func() string) *Runner {
	return &Runner{settings: s, slots: make(chan struct{}, s.AtOnce), look: look, lookup: lookup, newID: newID}
}

// Run runs a script and waits for its end. Whatever it does is told in the result; nothing of it runs on afterwards. waiting, if
// not nil, is called when others have to end first.
func (r *Runner) Run(ctx context.Context, s Script, arguments map[string]any, waiting func()) Result {
	if problems := s.Check(arguments); len(problems) > 0 {
		return Result{ExitCode: exitInvalid, Stderr: "The arguments are no good, so nothing was run: " + strings.Join(problems, "; ")}
	}
	program, problem := r.interpreter(s.Interpreter)
	if problem != "" {
		return Result{ExitCode: exitNotFound, Stderr: problem}
	}
	if _, err := os.Stat(s.Path); err != nil {
		return Result{ExitCode: exitNotFound, Stderr: "The script " + s.Path + " does not exist any more; list the tools again."}
	}
	if !r.take(ctx, waiting) {
		return Result{ExitCode: exitUnknown, Stderr: "The call was cancelled while other scripts were running; nothing was run."}
	}
	defer func() { <-r.slots }()
	result, err := r.run(ctx, s, program, arguments)
	if err != nil {
		return Result{ExitCode: exitNotRunable, Stderr: "The script could not be started: " + err.Error()}
	}
	return result
}

// take waits for its turn; false if the call was cancelled before.
func (r *Runner) take(ctx context.Context, waiting func()) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	default:
	}
	if waiting != nil {
		waiting()
	}
	select {
	case r.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// interpreter is the program for a kind of script.
func (r *Runner) interpreter(i Interpreter) (program, problem string) {
	candidates := []string{string(i)}
	switch i {
	case PowerShell:
		candidates = []string{"pwsh", "powershell"}
	case Python:
		candidates = []string{"python3", "python"}
	}
	for _, name := range candidates {
		if found, err := r.look(name); err == nil {
			if abs, err := filepath.Abs(found); err == nil {
				return abs, ""
			}
		}
	}
	return "", fmt.Sprintf("No %s was found on this machine; install it, or put it into PATH.", strings.Join(candidates, " and no "))
}

func (r *Runner) run(ctx context.Context, s Script, program string, arguments map[string]any) (Result, error) {
	command := processtree.Command{Path: program, Args: []string{filepath.Base(program)}, Dir: r.settings.WorkingDir}
	if s.Interpreter == PowerShell {
		call, err := s.powerShellCall(arguments)
		if err != nil {
			return Result{}, err
		}
		wrapper, err := writeWrapper()
		if err != nil {
			return Result{}, err
		}
		defer func() { _ = os.RemoveAll(filepath.Dir(wrapper)) }()
		command.Args = append(command.Args, "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File", wrapper)
		command.Stdin = bytes.NewReader(call)
	} else {
		command.Args = append(append(command.Args, s.Path), s.words(arguments)...)
	}
	mark := "CLAUDEOPS_SCRIPT_RUN=" + r.newID()
	command.Env = r.environment(mark)
	return r.follow(ctx, command, processtree.Options{Grace: grace, Mark: mark}, s.Limits)
}

// writeWrapper writes run.ps1 into a folder of its own.
func writeWrapper() (string, error) {
	dir, err := os.MkdirTemp("", "claudeops-script-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "run.ps1")
	return name, os.WriteFile(name, powerShellWrapper, 0o600)
}

// environment is what scripts see: the basics, and what the operator names. Our own variables never are.
func (r *Runner) environment(mark string) []string {
	env := []string{mark}
	for _, name := range append([]string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT", "TEMP"}, r.settings.Env...) {
		if v, ok := r.lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// follow starts a command, reads what it prints and ends all that it started.
func (r *Runner) follow(ctx context.Context, c processtree.Command, o processtree.Options, limits Limits) (Result, error) {
	out, err := newStream(limits.OutputCap)
	if err != nil {
		return Result{}, err
	}
	errs, err := newStream(limits.OutputCap)
	if err != nil {
		out.close()
		return Result{}, err
	}
	c.Stdout, c.Stderr = out.write, errs.write
	tree, err := processtree.Start(c, o)
	_, _ = out.write.Close(), errs.write.Close()
	if err != nil {
		out.close()
		errs.close()
		return Result{}, err
	}
	timer := time.NewTimer(limits.Timeout)
	defer timer.Stop()
	result := Result{}
	why := ""
	select {
	case <-tree.Exited():
	case <-timer.C:
		result.TimedOut = true
		why = fmt.Sprintf("Timed out after %s", limits.Timeout)
	case <-ctx.Done():
		why = "The call was cancelled"
	}
	end := tree.End(false)
	out.close()
	errs.close()
	result.Stdout, result.Stderr, result.ExitCode = out.captured.text(), errs.captured.text(), end.Exit.Code
	result.Truncated = out.captured.over || errs.captured.over
	if why != "" {
		result.ExitCode = exitUnknown
		result.Stderr = strings.TrimPrefix(result.Stderr+"\n"+why+"; what the script had started was ended.", "\n")
	}
	if len(end.Remaining) > 0 {
		result.Stderr = strings.TrimPrefix(fmt.Sprintf("%s\nThe processes %v could not be ended.", result.Stderr, end.Remaining), "\n")
	}
	return result, nil
}

// stream is a pipe whose reader is captured.
type stream struct {
	read, write *os.File
	captured    *capture
}

func newStream(most int) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stream{read: read, write: write, captured: captureFrom(io.Reader(read), most)}, nil
}

// drainTime is how long output is waited for after the processes have ended: a process that could not be ended may hold it open.
const drainTime = 5 * time.Second

// close waits for the end of the output.
func (s *stream) close() {
	_ = s.write.Close() // by the caller already, but for failures
	_ = s.read.SetReadDeadline(time.Now().Add(drainTime))
	<-s.captured.done
	_ = s.read.Close()
}
