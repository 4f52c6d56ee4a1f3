// Package scripts finds an operator's scripts, reads from their text which parameters they take, and runs them.
//
// A script's parameters are read from its own text, which is parsed and never run: the comment help and the param()
// block of PowerShell, and lines of the form "# @param name type required description" of all others.
package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Records keep the runs. internal/records/store implements it.
type Records interface {
	BeginScriptRun(ctx context.Context, r record.ScriptRun) error
	EndScriptRun(ctx context.Context, r record.ScriptRun) error
	ScriptRun(ctx context.Context, id string) (record.ScriptRun, error)
	ScriptRuns(ctx context.Context, q record.ScriptRunQuery) ([]record.ScriptRun, error)
	SettleScriptRuns(ctx context.Context, row func(record.ScriptRun) record.Attempt) error
}

// Options configures a Service. All fields are required except Problem.
type Options struct {
	Settings Settings
	Problem  string // why the operator's settings cannot be used: nothing is offered then; "" if they can
	Machine  Machine
	Records  Records
	Log      *slog.Logger
	Now      func() time.Time
}

// Service lists scripts and runs them. Make it with NewService. It is safe for concurrent use.
type Service struct {
	options   Options
	catalogue *catalogue
	runner    *Runner
}

// NewService makes a service. It touches nothing.
func NewService(o Options) *Service {
	return &Service{options: o, catalogue: newCatalogue(o.Settings), runner: newRunner(o.Settings, o.Machine)}
}

// List returns the scripts that can be run now.
func (s *Service) List() Listing {
	if s.options.Problem != "" {
		return Listing{problem: s.options.Problem}
	}
	return s.catalogue.discoverScripts()
}

// Places returns the folder of the scripts, and the files of further ones.
func (s *Service) Places() []string {
	set := s.options.Settings
	places := []string{below(set.WorkingDir, set.Folder)}
	for _, path := range set.Extra {
		places = append(places, below(set.WorkingDir, path))
	}
	slices.Sort(places)
	return places
}

// findScript returns a script by its tool's name, read anew: the present content of the file runs, not the content at
// the time of listing.
func (s *Service) findScript(name string) (Script, *NotRun) {
	if s.options.Problem != "" {
		return Script{}, &NotRun{exitNotFound, notConfigured, s.options.Problem}
	}
	script, found := s.catalogue.fresh(name)
	if found {
		return script, nil
	}
	if path := s.catalogue.last(name); path != "" {
		return Script{}, gone(path)
	}
	listing := s.List()
	text := "There is no script " + name + "."
	if empty := listing.Empty(); empty != "" {
		text += " " + empty
	} else {
		text += " There are: " + listing.names() + "."
	}
	return Script{}, &NotRun{exitNotFound, notFound, text}
}

// begun returns the record of a run that is about to start.
func (s *Service) begun(script Script, arguments map[string]any, id string, by record.ScriptCaller) record.ScriptRun {
	now := s.options.Now().UTC()
	return record.ScriptRun{
		ID: id, Script: script.Name, Path: script.Path, Hash: script.Hash, Arguments: slices.Sorted(maps.Keys(arguments)),
		By:        by,
		StartedAt: now, EndsBy: now.Add(script.Timeout + endMargin), State: record.ScriptRunning,
	}
}

// endMargin limits the time for ending all that a script has started, and for recording the run.
const endMargin = 2 * time.Minute

// phases are called at the phases of a run; begun may be nil.
type phases struct {
	waiting func()
	begun   func(id string)
}

// runRecorded runs a script and keeps a record of it in run, of which id and caller are given.
func (s *Service) runRecorded(ctx context.Context, script Script, arguments map[string]any, run *record.ScriptRun,
	p phases) (Result, error) {
	result, err := s.runner.Run(ctx, script, arguments, Hooks{Waiting: p.waiting, Begin: func() error {
		s.settleInterrupted(ctx)
		begun := s.begun(script, arguments, run.ID, run.By)
		if err := s.options.Records.BeginScriptRun(ctx, begun); err != nil {
			return err
		}
		*run = begun
		if p.begun != nil {
			p.begun(run.ID)
		}
		return nil
	}})
	if run.StartedAt.IsZero() {
		return result, err
	}
	run.State, run.Ending = record.ScriptEnded, record.ScriptEnding{
		ExitCode: result.ExitCode, Duration: s.options.Now().Sub(run.StartedAt), Stdout: result.Stdout, Stderr: result.Stderr,
		Truncated: result.Truncated, TimedOut: result.TimedOut,
	}
	if err != nil {
		run.Ending.ExitCode, run.Ending.Stderr = notRunOf(err).ExitCode, notRunOf(err).Message
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if keepErr := s.options.Records.EndScriptRun(keeping, *run); keepErr != nil {
		s.options.Log.Error("how a script ended was not recorded; the audit has it", "script", script.Name, "request_id",
			run.ID, "error", keepErr)
	}
	return result, err
}

const recordTimeout = 15 * time.Second

// settleInterrupted sees to it that the audit has the runs of processes that were killed.
func (s *Service) settleInterrupted(ctx context.Context) {
	if err := s.options.Records.SettleScriptRuns(ctx, interruptedRow); err != nil {
		s.options.Log.Warn("runs of scripts that were interrupted could not be looked at", "error", err)
	}
}

// interruptedRow returns the row of the audit for a run whose process was killed before it could write one.
func interruptedRow(r record.ScriptRun) record.Attempt {
	return record.Attempt{
		RequestID: r.ID, Actor: r.By.Actor, Tier: r.By.Tier, Action: r.Script, Outcome: record.OutcomeFailed,
		Session: r.By.Session, Policy: r.By.Policy,
		Paths: []string{r.Path}, Digest: digestOf(r), Code: notSeen,
		Message: "the process that ran the script was killed; so was all that the script had started\n" +
			argumentsText(r.Arguments),
	}
}

func digestOf(r record.ScriptRun) string { return "sha256:" + r.Hash }

func argumentsText(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return "arguments: " + strings.Join(names, ", ")
}

// Bounds of the part of a run's output in the audit.
const (
	auditLines = 3
	auditBytes = 600
)

// summary returns the audit's text about a run, beside who, what and when.
func summary(r record.ScriptRun) string {
	e := r.Ending
	text := fmt.Sprintf("exit code %d after %s; %s", e.ExitCode, e.Duration.Round(time.Millisecond),
		argumentsText(r.Arguments))
	if e.TimedOut {
		text += "; timed out"
	}
	for _, stream := range []struct{ name, text string }{{"stdout", e.Stdout}, {"stderr", e.Stderr}} {
		lines := strings.SplitN(strings.TrimSpace(stream.text), "\n", auditLines+1)
		if first := strings.Join(lines[:min(len(lines), auditLines)], "\n"); first != "" {
			text += fmt.Sprintf("\n%s: %s", stream.name, strings.ToValidUTF8(first[:min(len(first), auditBytes)], ""))
		}
	}
	return text
}

// Runs returns a page of the runs that are recorded, newest first.
func (s *Service) Runs(ctx context.Context, q record.ScriptRunQuery) ([]record.ScriptRun, error) {
	s.settleInterrupted(ctx)
	return s.options.Records.ScriptRuns(ctx, q)
}

// Run returns a run by its id; not_found if there is none.
func (s *Service) Run(ctx context.Context, id string) (record.ScriptRun, error) {
	s.settleInterrupted(ctx)
	return s.options.Records.ScriptRun(ctx, id)
}

// ScriptPages serves scripts to people through pages. Every call goes through the operations.
type ScriptPages struct{ set toolDeps }

// NewScriptPages makes a Desk; see Toolset.
func NewScriptPages(kernel func() *operation.Kernel, service func() *Service) *ScriptPages {
	return &ScriptPages{toolDeps{kernel, service}}
}

// List returns the scripts that can be run.
func (d *ScriptPages) List(ctx context.Context, call operation.Call) (ScriptList, error) {
	return callOperation[ScriptList](ctx, d.set.listOperation(), call, ScriptListRequest{})
}

// Show returns all that is known of a script; not_found if there is none.
func (d *ScriptPages) Show(ctx context.Context, call operation.Call, name string) (ScriptDetail, error) {
	return callOperation[ScriptDetail](ctx, d.set.showOperation(), call, ScriptRequest{name})
}

// Runs returns a page of runs, newest first.
func (d *ScriptPages) Runs(ctx context.Context, call operation.Call, q ScriptRunsRequest) (ScriptRunList, error) {
	return callOperation[ScriptRunList](ctx, d.set.runsOperation(), call, q)
}

// Run returns a run with what it printed; not_found if there is none.
func (d *ScriptPages) Run(ctx context.Context, call operation.Call, id string) (ScriptRunDetail, error) {
	return callOperation[ScriptRunDetail](ctx, d.set.runOperation(), call, ScriptRunRequest{id})
}

// Start runs a script for the person who calls, with the call's arguments. begun is called with the run's id when it
// starts.
func (d *ScriptPages) Start(ctx context.Context, call operation.Call, name string,
	begun func(id string)) (StartedScript,
	error) {
	return d.set.startScript(ctx, call, name, begun)
}

// Refused records a run that was refused before Start was asked.
func (d *ScriptPages) Refused(ctx context.Context, call operation.Call, name string, why *fault.Error) {
	d.set.kernel().Reject(ctx, call, name, why)
}

// callOperation asks an operation with a request.
func callOperation[Out any](ctx context.Context, o operation.Operation, call operation.Call, request any) (out Out,
	err error) {
	if call.Arguments, err = json.Marshal(request); err != nil {
		return out, fault.From(err)
	}
	answer, err := o.Handle(ctx, call)
	out, _ = answer.(Out)
	return out, err
}
