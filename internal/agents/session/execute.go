package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
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
	if spec.Alerts != nil {
		alerts := spec.Alerts.cleaned(cleaner{r.Secrets})
		spec.Alerts = &alerts
	}
	text, err := r.Settings.firstMessage(spec, f, known)
	if err != nil {
		return outcome{sessions.StateFailed, "the first message could not be written"}
	}
	mark := runMark + "=" + record.ID
	command := processtree.Command{
		Path: binary, Args: append([]string{binary}, r.Settings.arguments(spec, f)...), Dir: f.work(),
		Stdin: strings.NewReader(text),
		Env:   r.Settings.agentEnv(f, mark),
	}
	profile := r.Settings.profile(f, binary)
	if command, err = profile.Wrap(command); err != nil {
		return outcome{sessions.StateFailed, fmt.Sprintf("claude could not be confined: %s", err)}
	}
	c := r.newRun(ctx, f, record, r.Settings.limits(spec))
	if err := c.startCLI(command, profile.Options(spec.processes.options(mark, r.Settings.Limits.Grace))); err != nil {
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
			if profile.Boundary.Held() && end.Exit.Code == sandbox.ExitNotConfined && c.output.result == nil {
				ended = &outcome{sessions.StateFailed, "claude was not started: " +
					c.output.clean.cleanText(string(c.stderr.data), maxText)}
			}
		}
	}
	ended.addProblems(end)
	ended.addRetries(c.output.retries)
	record.ExitCode = end.Exit.Code
	if ended.state != sessions.StateSucceeded {
		record.Stderr = c.output.clean.cleanText(string(c.stderr.data), maxStderr)
	}
	if m := c.output.result; m != nil {
		record.Report = c.output.clean.cleanText(m.Result, maxReport)
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

// startCLI starts the CLI with pipes of our own.
func (c *cliRun) startCLI(command processtree.Command, o processtree.Options) error {
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
		_ = readLines(c.out, c.output.readLine) // a pipe that was closed under it has said all that we wait for
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

// outcome says how and why a session ended.
type outcome struct {
	state  sessions.State
	reason string
}

// addProblems adds what went wrong when the session's processes were ended.
func (v *outcome) addProblems(end processtree.End) {
	var problems []string
	if end.ReaperLost {
		problems = append(problems,
			"the process that keeps the session's processes together was killed, so some may have been missed")
	}
	if len(end.Remaining) > 0 {
		problems = append(problems,
			fmt.Sprintf("processes %v do not end, and no session can start until they have; the operator has to end them",
				end.Remaining))
	}
	if len(problems) == 0 {
		return
	}
	if v.state == sessions.StateSucceeded {
		v.state = sessions.StateFailed
	}
	if v.reason != "" {
		problems = append([]string{v.reason}, problems...)
	}
	v.reason = strings.Join(problems, "; ")
}

// addRetries adds how the model's API kept a session that did not succeed waiting.
func (v *outcome) addRetries(r retries) {
	text := r.summaryText()
	if v.state == sessions.StateSucceeded || text == "" {
		return
	}
	v.reason += "; " + text
}

// outcomeOf returns the outcome of a session whose CLI exited by itself.
func (c *cliRun) outcomeOf(exit processtree.Exit) *outcome {
	m, record := c.output.result, c.output.record
	code := exit.Code
	switch {
	case m == nil && code == -1:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude ended without a result: %s", exit.Text)}
	case m == nil:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude exited with code %d without a result", code)}
	case m.Subtype == "error_max_turns":
		return &outcome{sessions.StateLimit, fmt.Sprintf("it used all of its %d turns (CLAUDEOPS_MAX_TURNS)", c.limits.Turns)}
	case m.Subtype == "error_max_budget_usd":
		return &outcome{sessions.StateLimit, c.limits.spent(record.Usage)}
	case !record.Connected:
		return &outcome{sessions.StateFailed, "claude never connected to the claudeops MCP server"}
	case m.IsError:
		return &outcome{sessions.StateFailed, c.cliError(m)}
	case code != 0:
		return &outcome{sessions.StateFailed, fmt.Sprintf("claude exited with code %d", code)}
	}
	return &outcome{sessions.StateSucceeded, ""}
}

// cliError returns the CLI's own error, after what that means where it is known.
func (c *cliRun) cliError(m *outputMessage) string {
	text := m.Result
	if text == "" {
		text = strings.Join(append([]string{m.Subtype}, m.Errors...), ": ")
	}
	reported := "claude reported an error: " + c.output.clean.cleanText(text, 500)
	switch cause := c.output.retries.cause(); {
	case strings.Contains(text, "/login"):
		return "claude is not logged in: " + credentialAdvice + "; " + reported
	case cause != "":
		return cause + "; " + reported
	}
	return reported
}

// retry is the CLI's report of a failed request to its model that it repeats.
type retry struct {
	Attempt int    `json:"attempt"`
	Most    int    `json:"max_retries"`
	Status  int    `json:"error_status"` // 0: there was no answer
	Kind    string `json:"error"`
}

func (m outputMessage) retry() (r retry) {
	_ = json.Unmarshal(m.text, &r) // what cannot be read is left out
	return r
}

// apiAnswer describes the API's answer.
func (r retry) apiAnswer() string {
	text := "no answer"
	if r.Status > 0 {
		text = fmt.Sprintf("status %d", r.Status)
	}
	if r.Kind != "" && r.Kind != "unknown" {
		text += " (" + r.Kind + ")"
	}
	return text
}

// retries counts, for each answer of the API, how often it made the CLI ask again.
type retries map[string]int

// maxAnswers bounds how many different answers are distinguished.
const maxAnswers = 10

func (r retries) add(answer string) {
	if _, known := r[answer]; known || len(r) < maxAnswers {
		r[answer]++
	}
}

// answers returns the answers received, the most frequent first.
func (r retries) answers() []string {
	return slices.SortedFunc(maps.Keys(r),
		func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) })
}

// summaryText says what the model's API answered, the most frequent first; "" if it answered well.
func (r retries) summaryText() string {
	if len(r) == 0 {
		return ""
	}
	answers := r.answers()
	for i, a := range answers {
		answers[i] = fmt.Sprintf("%s, %d times", a, r[a])
		if r[a] == 1 {
			answers[i] = a + ", once"
		}
	}
	return "the model's API answered with " + strings.Join(answers, "; ")
}

// cause explains why the model's API did not answer, by the most frequent of its answers; "" if that does not tell.
func (r retries) cause() string {
	means := map[string]string{
		"no answer": "the model's API cannot be reached", "status 429": "the rate limit of the model's API is reached",
		"status 529": "the model's API is overloaded",
	}
	if len(r) == 0 {
		return ""
	}
	answer, _, _ := strings.Cut(r.answers()[0], " (")
	return means[answer]
}

// credentialAdvice says what an operator does about an agent that is not signed in.
const credentialAdvice = "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it"

// refusedCredential returns the end of a session whose credential the API does not take; nil for other failures. The
// CLI itself would ask for three minutes more.
func (r retry) refusedCredential() *outcome {
	if r.Status != http.StatusUnauthorized {
		return nil
	}
	return &outcome{sessions.StateFailed, "the model's API does not take the agent's credential (status 401); " +
		credentialAdvice}
}
