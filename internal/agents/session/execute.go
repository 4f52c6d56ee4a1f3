package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// runMark is the variable by which processes of a session are found whose reaper was killed.
const runMark = "CLAUDEOPS_RUN"

// cliRun is one run of the CLI.
type cliRun struct {
	limits   Limits
	timer    Timer
	tree     *processtree.Tree
	output   *outputReader
	stderr   tail
	out, err *os.File // our ends of the pipes
	begun    chan struct{}
	stops    chan *outcome
	read     chan struct{}
}

// execute runs the CLI to its end, or ends it, with everything that it started.
func (r *Runner) execute(ctx context.Context, binary string, spec Spec, f *folder, known history,
	record *sessions.Record) outcome {
	text, err := r.Settings.firstMessage(spec, f, known)
	if err != nil {
		return outcome{sessions.StateFailed, "the first message could not be written"}
	}
	mark := runMark + "=" + record.ID
	command := processtree.Command{
		Path: binary, Args: append([]string{binary}, r.Settings.arguments(spec, f)...), Dir: f.work(),
		Stdin: strings.NewReader(text),
		Env:   r.Settings.environment(f, mark),
	}
	profile := r.Settings.profile(f, binary)
	if command, err = profile.Wrap(command); err != nil {
		return outcome{sessions.StateFailed, fmt.Sprintf("claude could not be confined: %s", err)}
	}
	c := r.newRun(ctx, f, record, r.Settings.limits(spec))
	if err := c.start(command, profile.Options(spec.processes.options(mark, r.Settings.Limits.Grace))); err != nil {
		return outcome{sessions.StateFailed, fmt.Sprintf("claude could not be started: %s", err)}
	}
	if f.door != nil {
		f.door.Admit(c.tree.Contains)
	}
	ended := c.wait(ctx)
	end := c.tree.End()
	c.finishReading()
	if ended == nil {
		select {
		case ended = <-c.stops: // asked for while the CLI ended by itself
		default:
			ended = c.outcomeOf(end.Exit)
			if profile.Boundary.Held() && end.Exit.Code == confine.ExitNotConfined && c.output.result == nil {
				ended = &outcome{sessions.StateFailed, "claude was not started: " +
					c.output.clean.text(string(c.stderr.data), maxText)}
			}
		}
	}
	ended.addProblems(end)
	ended.addRetries(c.output.retries)
	record.ExitCode = end.Exit.Code
	if ended.state != sessions.StateSucceeded {
		record.Stderr = c.output.clean.text(string(c.stderr.data), maxStderr)
	}
	if m := c.output.result; m != nil {
		record.Report = c.output.clean.text(m.Result, maxReport)
	}
	return *ended
}

// newRun makes a run whose output goes into the record and its events.
func (r *Runner) newRun(ctx context.Context, f *folder, record *sessions.Record, limits Limits) *cliRun {
	c := &cliRun{
		limits: limits, timer: r.Timer, begun: make(chan struct{}), stops: make(chan *outcome, 1), read: make(chan struct{}),
	}
	if c.timer == nil {
		c.timer = realTimer
	}
	saved := int64(0)
	c.output = &outputReader{
		clean: cleaner{r.Secrets}, now: r.Now, record: record, limits: limits, stop: c.stop,
		meter: newMeter(), retries: retries{},
		store: func(events []sessions.Event) error {
			ctx, cancel := detached(ctx)
			defer cancel()
			if len(events) > 0 {
				if err := r.Records.AppendEvents(ctx, record.ID, events); err != nil {
					return err
				}
			}
			r.saveProgress(ctx, record, &saved)
			return nil
		},
		connected: func() {
			if err := f.removeConfig(); err != nil {
				r.Log.Warn("the MCP configuration of a session could not be removed early", "session", record.ID, "error", err)
			}
			close(c.begun)
		},
	}
	return c
}

// saveProgress saves a session's progress for observers, if it grew since the last save. A failed save is made up for
// at the end.
func (r *Runner) saveProgress(ctx context.Context, record *sessions.Record, saved *int64) {
	done := int64(record.Turns+record.ToolCalls+record.Denied) + record.Tokens()
	if done == *saved {
		return
	}
	*saved = done
	if err := r.Records.SaveSession(ctx, *record); err != nil {
		r.Log.Warn("the progress of a session could not be saved", "session", record.ID, "error", err)
	}
}

// stop asks for the session's end. The first call counts.
func (c *cliRun) stop(v *outcome) {
	select {
	case c.stops <- v:
	default:
	}
}

// start starts the CLI with pipes of our own.
func (c *cliRun) start(command processtree.Command, o processtree.Options) error {
	out, outEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	errOut, errEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, out.Close(), outEnd.Close())
	}
	c.out, c.err = out, errOut
	command.Stdout, command.Stderr = outEnd, errEnd
	c.tree, err = processtree.Start(command, o)
	closeErr := errors.Join(outEnd.Close(), errEnd.Close())
	if err != nil {
		return errors.Join(err, closeErr, out.Close(), errOut.Close())
	}
	go func() {
		defer close(c.read)
		stderr := make(chan struct{})
		go func() {
			defer close(stderr)
			_, _ = io.Copy(&c.stderr, c.err)
		}()
		_ = readLines(c.out, c.output.line) // a pipe that was closed under it has said all that we wait for
		<-stderr
	}()
	return nil
}

// wait returns nil when the CLI has exited, and otherwise why it must end.
func (c *cliRun) wait(ctx context.Context) *outcome {
	whole, endWhole := c.timer(c.limits.Time)
	start, endStart := c.timer(c.limits.Start)
	defer endWhole()
	defer endStart()
	begun := c.begun
	for {
		select {
		case <-c.tree.Exited():
			return nil
		case v := <-c.stops:
			return v
		case <-begun:
			endStart()
			begun = nil
		case <-start:
			return &outcome{sessions.StateFailed,
				fmt.Sprintf("claude did not say within %s that it is connected to the claudeops MCP server", c.limits.Start)}
		case <-whole:
			return &outcome{sessions.StateTimeout, fmt.Sprintf("it took longer than %s (CLAUDEOPS_SESSION_TIMEOUT)",
				c.limits.Time)}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), stopped{}) {
				return &outcome{sessions.StateCancelled, "a person stopped it"}
			}
			return &outcome{sessions.StateCancelled, "the process that ran it was told to end by a signal"}
		}
	}
}

// finishReading waits for the readers. All writers are gone, so the pipes have ended; if one remains that cannot be
// ended, its end is cut off.
func (c *cliRun) finishReading() {
	const readTime = 5 * time.Second
	timer := time.NewTimer(readTime)
	defer timer.Stop()
	select {
	case <-c.read:
	case <-timer.C:
		past := time.Unix(1, 0)
		_ = c.out.SetReadDeadline(past)
		_ = c.err.SetReadDeadline(past)
		<-c.read
	}
	_ = c.out.Close()
	_ = c.err.Close()
}
