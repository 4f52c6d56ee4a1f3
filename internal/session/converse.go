package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/processtree"
)

// verdict is how a session ended, and why.
type verdict struct {
	state  State
	reason string
}

// complete adds to a verdict what the end of the session's processes was like, if not all went well.
func (v *verdict) complete(end processtree.End) {
	var problems []string
	if end.ReaperLost {
		problems = append(problems, "the process that keeps the session's processes together was killed, so some may have been missed")
	}
	if len(end.Remaining) > 0 {
		problems = append(problems, fmt.Sprintf("processes %v do not end, and no session can start until they have; the operator has to end them",
			end.Remaining))
	}
	if len(problems) == 0 {
		return
	}
	if v.state == StateSucceeded {
		v.state = StateFailed
	}
	if v.reason != "" {
		problems = append([]string{v.reason}, problems...)
	}
	v.reason = strings.Join(problems, "; ")
}

// runMark is the variable by which processes of a session are found whose reaper was killed.
const runMark = "CLAUDEOPS_RUN"

// conversation is one run of the CLI.
type conversation struct {
	*Runner
	tree     *processtree.Tree
	observer *observer
	stderr   tail
	out, err *os.File // our ends of the pipes
	begun    chan struct{}
	stops    chan *verdict
	read     chan struct{}
}

// converse runs the CLI to its end, or ends it, with everything that it started.
func (r *Runner) converse(ctx context.Context, binary string, spec Spec, f *folder, record *Record) verdict {
	text, err := r.Settings.firstMessage(spec, f)
	if err != nil {
		return verdict{StateFailed, "the first message could not be written"}
	}
	shown := 0
	c := &conversation{
		Runner: r, begun: make(chan struct{}), stops: make(chan *verdict, 1), read: make(chan struct{}),
	}
	c.observer = &observer{
		clean: cleaner{r.Secrets}, now: r.Now, record: record, limits: r.Settings.Limits, stop: c.stop,
		store: func(events []Event) error {
			ctx, cancel := detached(ctx)
			defer cancel()
			if err := r.Records.AppendEvents(ctx, record.ID, events); err != nil {
				return err
			}
			r.progress(ctx, record, &shown)
			return nil
		},
		connected: func() {
			if err := f.forget(); err != nil {
				r.Log.Warn("the MCP configuration of a session could not be removed early", "session", record.ID, "error", err)
			}
			close(c.begun)
		},
	}
	mark := runMark + "=" + record.ID
	command := processtree.Command{
		Path: binary, Args: append([]string{binary}, r.Settings.arguments(spec.Tier, f)...), Dir: f.work(), Stdin: strings.NewReader(text),
		// Of two variables with one name the last counts. The CLI keeps a folder for each working folder in its cache.
		Env: append(append([]string{}, r.Settings.Env...), mark, "TMPDIR="+f.temp(), "XDG_CACHE_HOME="+f.temp()),
	}
	if err := c.start(command, spec.hold.options(mark, r.Settings.Limits.Grace)); err != nil {
		return verdict{StateFailed, fmt.Sprintf("claude could not be started: %s", err)}
	}
	ended := c.wait(ctx)
	end := c.tree.End(ended != nil) // whom we end, the MCP server ends before; see docs/adr/0012
	c.finishReading()
	if ended == nil {
		select {
		case ended = <-c.stops: // said while the CLI ended by itself
		default:
		}
	}
	record.ExitCode = end.Exit.Code
	if ended == nil {
		v := c.judge(end.Exit)
		ended = &v
	}
	ended.complete(end)
	if ended.state != StateSucceeded {
		record.Stderr = c.observer.clean.text(string(c.stderr.data), maxStderr)
	}
	if m := c.observer.result; m != nil {
		record.Report = c.observer.clean.text(m.Result, maxReport)
	}
	return *ended
}

// progress saves what a session has done so far, for whoever watches, if it is more than what they were shown. What fails
// here is saved at the end.
func (r *Runner) progress(ctx context.Context, record *Record, shown *int) {
	done := record.Turns + record.ToolCalls + record.Denied
	if done == *shown {
		return
	}
	*shown = done
	if err := r.Records.SaveSession(ctx, *record); err != nil {
		r.Log.Warn("the progress of a session could not be saved", "session", record.ID, "error", err)
	}
}

// stop asks for the session's end. The first call counts.
func (c *conversation) stop(v *verdict) {
	select {
	case c.stops <- v:
	default:
	}
}

// start starts the CLI with pipes of our own.
func (c *conversation) start(command processtree.Command, o processtree.Options) error {
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
			_, _ = c.stderr.readFrom(c.err)
		}()
		_ = readLines(c.out, c.observer.line) // a pipe that was closed under it has said all that we wait for
		<-stderr
	}()
	return nil
}

// wait returns nil when the CLI has exited, and otherwise why it must end.
func (c *conversation) wait(ctx context.Context) *verdict {
	limits := c.Settings.Limits
	whole, start := time.NewTimer(limits.Time), time.NewTimer(limits.Start)
	defer whole.Stop()
	defer start.Stop()
	begun := c.begun
	for {
		select {
		case <-c.tree.Exited():
			return nil
		case v := <-c.stops:
			return v
		case <-begun:
			start.Stop()
			begun = nil
		case <-start.C:
			return &verdict{StateFailed, fmt.Sprintf("claude did not say within %s that it is connected to the claudeops MCP server", limits.Start)}
		case <-whole.C:
			return &verdict{StateTimeout, fmt.Sprintf("it took longer than %s (CLAUDEOPS_SESSION_TIMEOUT)", limits.Time)}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), stopped{}) {
				return &verdict{StateCancelled, "a person stopped it"}
			}
			return &verdict{StateCancelled, "the process that ran it was told to end by a signal"}
		}
	}
}

// finishReading waits for the readers. All writers are gone, so the pipes have ended; if one remains that cannot be ended,
// its end is cut off.
func (c *conversation) finishReading() {
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

// judge says how a session ended whose CLI exited by itself.
func (c *conversation) judge(exit processtree.Exit) verdict {
	m, record := c.observer.result, c.observer.record
	code := exit.Code
	switch {
	case m == nil && code == -1:
		return verdict{StateFailed, fmt.Sprintf("claude ended without a result: %s", exit.Text)}
	case m == nil:
		return verdict{StateFailed, fmt.Sprintf("claude exited with code %d without a result", code)}
	case m.Subtype == "error_max_turns":
		return verdict{StateLimit, fmt.Sprintf("it reached the limit of %d turns (CLAUDEOPS_MAX_TURNS)", c.Settings.Limits.Turns)}
	case m.Subtype == "error_max_budget_usd":
		return verdict{StateLimit, fmt.Sprintf("it reached the limit of %s USD (CLAUDEOPS_MAX_COST_USD)", ftoa(c.Settings.Limits.CostUSD))}
	case !record.Connected:
		return verdict{StateFailed, "claude never connected to the claudeops MCP server"}
	case m.IsError:
		return verdict{StateFailed, c.complaint(m)}
	case code != 0:
		return verdict{StateFailed, fmt.Sprintf("claude exited with code %d", code)}
	}
	return verdict{StateSucceeded, ""}
}

// complaint is the CLI's own error, and what to do about the one that every installation meets first.
func (c *conversation) complaint(m *message) string {
	text := m.Result
	if text == "" {
		text = strings.Join(append([]string{m.Subtype}, m.Errors...), ": ")
	}
	reason := "claude reported an error: " + c.observer.clean.text(text, 500)
	if strings.Contains(text, "/login") {
		reason += "; set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it"
	}
	return reason
}
