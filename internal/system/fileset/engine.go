// Package fileset puts files of several owners in place, all of them or none, and remembers in one ledger whose each
// file is. A process may be killed at any moment: the next call, of whatever process, ends what it began. It knows
// neither where the files come from nor what they are for.
//
//	e := change.NewEngine(home, time.Now)
//	d := change.NewDesired("packages", workspace, project, target) // owner, source, project, targets
//	d.AddRoot(target, project+"/.claude/skills", project, true)
//	err := d.Add(target, project+"/.claude/skills", "look/SKILL.md", change.TreeFile{Content: text}, "@team/look")
//	plan, err := e.Plan(ctx, d)                                      // what would change; changes nothing
//	plan, done, err := e.Apply(ctx, d, change.Approval{Adopt: true}) // all of it or nothing
//
// A Desired lists all files that its owner wants from its source in the project, for its targets: the owner's other
// files there are removed. To install one more package, list the files of all packages; to remove all, apply a Desired
// without files. A file that another owner has is E_DESIRED_STATE_CONFLICT, a file that was not deployed needs
// Approval.Adopt (E_ADOPT_CONFIRM_REQUIRED has the paths). Every Apply that changes something is a Snapshot, and
// Rollback goes back to one of the same owner. A caller need not lock: the engine does, and finishes or takes back what
// a killed process began before anything else; a sentence about it is in the plan's Warnings.
//
// What is desired may be read with ReadTree, Hashes and a StatCache: then a plan with nothing to change costs what
// asking about its files costs. PlanCache keeps such a plan from one process to the next. All three are caches: nothing
// that is about to be written believes them.
//
// Errors are *Error, with a Code and Details.
package fileset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Engine puts the files of owners in place and remembers them in one ledger, for all projects of a user. It is safe for
// concurrent use, by several processes too.
//
// Its invariant: at every moment each file is either the old or the new one, and the state holds enough to finish or to
// revert; nothing that a person had is lost. This order guarantees it: contents, old and new, into the state; the
// journal; the new files beside their places; the files into their places, one by one; manifests; the snapshot; the
// journal's end. The next call, of any kind, first finishes or reverts what a killed one began, and says so in its
// warnings.
type Engine struct {
	state     State
	Hashes    *Hashes                 // of files that have not changed; nil: every file is read
	unchanged lastUnchanged           // the last plan that had nothing to change
	NoWriting func() string           // why not even what was cut off may be finished now, "" if it may; nil: it may
	dies      func(step string) bool  // tests end the process here; nil does nothing
	fails     func(step string) error // tests let a write fail here
	memory    memoryOfDisk            // tests lose what is not on disk; nil does nothing
	steps     sync.Mutex              // dies and fails are called one after the other
}

// NewEngine makes an Engine. home is AGENTPACK_HOME, where the state is. It touches no disk.
func NewEngine(home string, now func() time.Time) *Engine {
	return &Engine{state: newState(home, now)}
}

// killed stands for the end of the process, in tests.
type killed struct{}

// Error implements error.
func (killed) Error() string { return "killed" }

func (e *Engine) reached(step string) error {
	if e.dies == nil && e.fails == nil {
		return nil
	}
	e.steps.Lock()
	defer e.steps.Unlock()
	if e.dies != nil && e.dies(step) {
		return killed{}
	}
	if e.fails != nil {
		return e.fails(step)
	}
	return nil
}

// KillAt has calls end at a step as if the process was killed there. It is for tests.
func (e *Engine) KillAt(dies func(step string) bool) { e.dies = dies }

// WasKilled reports whether an error comes from KillAt.
func WasKilled(err error) bool { return errors.As(err, &killed{}) }

func (e *Engine) died(err error) bool { return WasKilled(err) }

// Closed says why nothing may be written now; "" if it may.
func (e *Engine) Closed() string {
	if e.NoWriting == nil {
		return ""
	}
	return e.NoWriting()
}

// State returns the folder that holds snapshots and the log.
func (e *Engine) State() State { return e.state }

// Approval tells Apply which plan its caller agreed to.
type Approval struct {
	Adopt bool   // files that were not deployed may be replaced
	Plan  string // digest of the plan that a person saw; "" for any
}

// Look runs f while no other call changes anything, after finishing or reverting the work of a killed process. said
// describes that.
func (e *Engine) Look(ctx context.Context, f func() error) (said string, err error) {
	for {
		unlock, err := e.state.lockState(ctx, false)
		if err != nil {
			return said, err
		}
		j, err := e.state.pending()
		closed := e.Closed()
		if j != nil && closed != "" {
			said = fmt.Sprintf("a %s that was cut off (snapshot %s) is not finished: %s", j.Snapshot.Kind, j.Snapshot.ID,
				closed)
		}
		if err == nil && (j == nil || closed != "") {
			defer unlock()
			return said, f()
		}
		unlock()
		if said, err = e.mend(ctx); err != nil {
			return said, err
		}
	}
}

func (e *Engine) mend(ctx context.Context) (said string, err error) {
	return e.changing(ctx, func() error { return nil })
}

// changing runs f while no other call looks or changes anything.
func (e *Engine) changing(ctx context.Context, f func() error) (said string, err error) {
	unlock, err := e.state.lockState(ctx, true)
	if err != nil {
		return "", err
	}
	defer unlock()
	if said, err = e.recover(ctx); err != nil {
		return "", err
	}
	if said != "" {
		e.log(event{Kind: "recovery", Said: said})
	}
	return said, f()
}

// event is a line of the state's log.
type event struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"` // deploy, rollback or recovery
	Owner    Owner     `json:"owner,omitempty"`
	Project  string    `json:"project,omitempty"`
	Snapshot string    `json:"snapshot_id,omitempty"`
	Said     string    `json:"said,omitempty"`
}

// UnchangedStats returns the stat caches of a plan that was made of what is desired, and its warnings, if it had
// nothing to change; nil otherwise.
func (e *Engine) UnchangedStats(desired *Desired) (stats []*StatCache, warnings []string) {
	return e.unchanged.stats(desired)
}

// log appends to state/logs/events.jsonl. Snapshots are the record; a log that cannot be written stops nothing.
func (e *Engine) log(ev event) {
	ev.Time = e.state.now().UTC()
	name := filepath.Join(e.state.dir, "logs", "events.jsonl")
	_ = os.MkdirAll(filepath.Dir(name), 0o700)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	text, err := json.Marshal(ev)
	if err == nil {
		_, _ = f.Write(append(text, '\n'))
	}
	_ = f.Close()
}

// plan is Plan while the lock is held. known is nil for one that is carried out: every file is read.
func (e *Engine) plan(ctx context.Context, desired *Desired, known *Hashes) (p *Plan, last *Snapshot, err error) {
	if last, err = e.state.Last(); err != nil {
		return nil, nil, err
	}
	d := newDisk(bases(slices.Concat(desired.Roots, last.Roots))...)
	if known == nil {
		p, err = makePlan(&looker{ctx: ctx, disk: d}, desired, last, e.state)
		return p, last, err
	}
	if p := e.unchanged.lookup(desired, last); p != nil {
		return p, last, nil
	}
	stat, state := newStatCache(known.now()), newStatCache(known.now())
	state.Tree(filepath.Dir(e.state.dir), "state/snapshots")
	looks := &looker{ctx: ctx, disk: d, hashes: known, statCache: stat.identities(d, filesOf(desired))}
	if p, err = makePlan(looks, desired, last, e.state); err == nil {
		e.unchanged.store(p, last, stat, state)
	}
	return p, last, err
}

// Plan says what Apply would change. It changes nothing.
func (e *Engine) Plan(ctx context.Context, desired *Desired) (p *Plan, err error) {
	said, err := e.Look(ctx, func() error {
		p, _, err = e.plan(ctx, desired, e.Hashes)
		return err
	})
	if err == nil && said != "" {
		p.Warnings = append(p.Warnings, said)
	}
	e.Hashes.saveHashes()
	return p, err
}

// Apply puts files in place, and removes the owner's other files there. done is nil if nothing had to be changed. Apply
// changes all files or none. E_ADOPT_CONFIRM_REQUIRED if it would replace files that were not deployed, without
// approval; E_PLAN_CHANGED if the plan is no longer the one that was agreed to; E_LOCKED if another process deploys all
// the time.
func (e *Engine) Apply(ctx context.Context, desired *Desired, approval Approval) (p *Plan, done *Done, err error) {
	said, err := e.changing(ctx, func() error {
		var last *Snapshot
		if p, last, err = e.plan(ctx, desired, nil); err != nil {
			return err
		}
		if err := p.agreed(approval); err != nil {
			return err
		}
		if p.nothingToDo() {
			return nil
		}
		done, err = e.apply(ctx, p, last)
		return err
	})
	if p != nil && said != "" {
		p.Warnings = append(p.Warnings, said)
	}
	return p, done, err
}

// maxSample bounds the paths in a refusal.
const maxSample = 20

func (p *Plan) agreed(a Approval) error {
	if a.Plan != "" && a.Plan != p.Digest() {
		return NewError(PlanChanged, "plan_changed", []string{"run_plan", "retry_command"},
			"the files or the configuration have changed since the plan was shown; look at the new plan")
	}
	paths := p.Adopted()
	if a.Adopt || len(paths) == 0 {
		return nil
	}
	return NewError(AdoptConfirmRequired, "adopt_confirm_required", []string{"retry_with_adopt"},
		"files are there that were not deployed; adopt replaces them, after keeping them for a rollback: %s",
		strings.Join(paths[:min(len(paths), maxSample)], ", ")).
		With("flag", "--adopt").With("adopt_updates", len(paths)).With("sample_paths", paths[:min(len(paths), maxSample)])
}

// nothingToDo reports whether all files are as they should be, and known to be.
func (p *Plan) nothingToDo() bool {
	if len(p.Changes) > 0 || len(p.held.dropped) > 0 {
		return false
	}
	for key, f := range p.desired.Files {
		hash, known := p.held.managed[key]
		if !known || p.kept[key] == "" && hash != f.Content.SHA256() { // somebody else has made it what it should be
			return false
		}
	}
	for key := range p.held.managed {
		if _, wanted := p.desired.Files[key]; !wanted {
			return false
		}
	}
	return !slices.ContainsFunc(p.held.missing, func(r RootDir) bool {
		for key, f := range p.desired.Files {
			if key.Target == r.Target && f.root == r.Dir {
				return true
			}
		}
		return false
	})
}

// PlanRollback says what Rollback would change. It changes nothing.
func (e *Engine) PlanRollback(ctx context.Context, id string, reach Scope) (p *Plan, err error) {
	said, err := e.Look(ctx, func() error {
		r, err := e.rollbackTo(ctx, id, reach)
		if err == nil {
			p = r.Plan
		}
		return err
	})
	if err == nil && said != "" {
		p.Warnings = append(p.Warnings, said)
	}
	return p, err
}

func (e *Engine) rollbackTo(ctx context.Context, id string, reach Scope) (*restoring, error) {
	to, err := e.state.Snapshot(id)
	if err != nil {
		return nil, err
	}
	return e.planRollback(ctx, to, reach)
}

// Rollback restores the files of a snapshot, byte for byte: the owner's files of that time in the project and in the
// user's folders within reach, and the files that the owner has replaced since. Files of other projects stay, and
// nothing is written through a link that a project has become. What is on disk now is kept first; the rollback is a
// snapshot itself. plan is the digest of the plan that a person saw, "" for any. E_SNAPSHOT_NOT_FOUND for an unknown
// id; E_PLAN_CHANGED if the plan is no longer the one that was agreed to.
func (e *Engine) Rollback(ctx context.Context, id string, reach Scope, plan string) (done *Done, warnings []string,
	err error) {
	said, err := e.changing(ctx, func() error {
		r, err := e.rollbackTo(ctx, id, reach)
		if err != nil {
			return err
		}
		if err := r.agreed(Approval{Adopt: true, Plan: plan}); err != nil {
			return err
		}
		warnings = r.Warnings
		done, err = r.carryOut(ctx)
		return err
	})
	if said != "" {
		warnings = append(warnings, said)
	}
	return done, warnings, err
}

// Owned lists the files that an owner has in place, by target and path.
func (e *Engine) Owned(ctx context.Context, owner Owner) (out []FileState, warnings []string, err error) {
	said, err := e.Look(ctx, func() error {
		last, err := e.state.Last()
		if err != nil {
			return err
		}
		for _, f := range last.Managed {
			if f.Owner == owner {
				out = append(out, f)
			}
		}
		return nil
	})
	if said != "" {
		warnings = append(warnings, said)
	}
	return out, warnings, err
}

// Code classifies an error, in agentpack's published words. E_LOCKED, E_PLAN_CHANGED and E_SNAPSHOT_NOT_FOUND are ours.
type Code string

// The codes of this package.
const (
	AdoptConfirmRequired Code = "E_ADOPT_CONFIRM_REQUIRED"
	ConfigInvalid        Code = "E_CONFIG_INVALID"
	DesiredStateConflict Code = "E_DESIRED_STATE_CONFLICT"
	PermissionDenied     Code = "E_IO_PERMISSION_DENIED"
	Unexpected           Code = "E_UNEXPECTED"
	SnapshotNotFound     Code = "E_SNAPSHOT_NOT_FOUND"
	Locked               Code = "E_LOCKED"
	PlanChanged          Code = "E_PLAN_CHANGED"
)

// Error is a failure in agentpack's words. Its Details say what the caller can do: a reason_code, and next_actions.
type Error = fault.ContractError[Code]

// NewError makes an Error. reason is its reason_code; next are its next_actions.
func NewError(code Code, reason string, next []string, format string, args ...any) *Error {
	e := fault.NewContractError(code, format, args...)
	if reason != "" {
		e.Details = map[string]any{"reason_code": reason, "next_actions": next}
	}
	return e
}

// invalidConfig is the error for a configuration with an invalid value.
func invalidConfig(format string, args ...any) *Error {
	return NewError(ConfigInvalid, "config_invalid", []string{"fix_config", "retry_command"}, format, args...)
}

// cutOff is the error of a call whose time is over before it has changed anything.
func cutOff(err error) error {
	return NewError(Unexpected, "cut_off", []string{"retry_command"}, "the call was ended before it had looked at all files; "+
		"nothing was changed").Because(err)
}

// pathlessError returns an error without the name of its file.
func pathlessError(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
