// This file deploys what was merged: after a merge recorded in the audit, it updates the configuration's checkout and
// deploys, if the plan replaces nothing that a person has. Otherwise it waits for a person, and notifies.
//
// Merges are found only in the audit, whatever observed them: a webhook, the poll, or a person at a local repository.
// The contents of the checkout's remote branch are deployed. A server that is killed at any moment continues at its
// next start.

package deploy

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// How often the audit is asked, and how often a deployment that waits is tried again.
const (
	tick       = 2 * time.Second
	retryEvery = 5 * time.Minute
)

// page bounds the rows of the audit that are read at a time.
const page = record.MaxAuditLimit

// MergeAudit reads recorded merges. internal/records/store implements it.
type MergeAudit interface {
	Head(ctx context.Context) (seq int64, hash string, err error)
	Page(ctx context.Context, q record.AuditQuery) ([]record.RecordedAttempt, error)
}

// MergeLedger records what came of it. internal/records/store implements it.
type MergeLedger interface {
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// MergedDeployments deploys; *deploy.Service is one.
type MergedDeployments interface {
	Concerns(ctx context.Context, provider, owner, name string) (bool, error)
	Update(ctx context.Context) (Checkout, error)
	Apply(ctx context.Context, r Request, approval fileset.Approval, dryRun bool) (*fileset.Plan, *fileset.Done, error)
	Snapshots(most int) ([]*fileset.Snapshot, error)
}

// DeployerOptions configures a Deployer. All fields are required.
type DeployerOptions struct {
	Service  MergedDeployments
	State    fileset.State
	Audit    MergeAudit
	Ledger   MergeLedger
	Notifier record.Notifier
	// Claim notes that a deployment begins, until release is called; paused while people have paused everything.
	Claim  func(ctx context.Context) (release func(), err error)
	Redact func(text string) string
	Log    *slog.Logger
	Now    func() time.Time
	NewID  func() string
}

// Deployer deploys merges.
type Deployer struct{ DeployerOptions }

// NewDeployer makes a Deployer.
func NewDeployer(o DeployerOptions) *Deployer { return &Deployer{o} }

// Keep deploys merges until ctx is done. ticks is the time between two looks at the audit: time.Tick.
func (d *Deployer) Keep(ctx context.Context, ticks func(time.Duration) <-chan time.Time) {
	next := ticks(tick)
	said := ""
	for {
		err := d.Round(ctx)
		if text := ""; err != nil && ctx.Err() == nil {
			if text = d.Redact(fault.From(err).Message); text != said {
				d.Log.Warn("merges are not deployed", "error", text)
			}
			said = text
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// Round looks for merges once, and deploys what is due. Another process of this machine that is at it is left alone.
func (d *Deployer) Round(ctx context.Context) error {
	unlock, ok, err := LockMerges(d.State)
	if err != nil || !ok {
		return err
	}
	defer unlock()
	m, err := ReadMerges(d.State)
	if err != nil {
		return err
	}
	if err := d.collectMerges(ctx, &m); err != nil {
		return err
	}
	if m.Due == nil || !d.shouldRetry(m.Due) {
		return nil
	}
	return d.deploy(ctx, m)
}

// collectMerges reads the audit's new rows. Merges from before this was switched on are none of its business.
func (d *Deployer) collectMerges(ctx context.Context, m *Merges) error {
	head, _, err := d.Audit.Head(ctx)
	if err != nil {
		return err
	}
	if m.Position < 0 || m.Position > head { // the first look, or the records were replaced by others
		m.Position = head
		return WriteMerges(d.State, *m)
	}
	for m.Position < head {
		rows, err := d.Audit.Page(ctx, record.AuditQuery{After: m.Position, Ascending: true, Limit: page})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			if err := d.recordMerge(ctx, m, r); err != nil {
				return err
			}
		}
		m.Position = rows[len(rows)-1].Seq
		if err := WriteMerges(d.State, *m); err != nil {
			return err
		}
	}
	return nil
}

// recordMerge records a row as a due merge, if it is one. A merge here has two rows where the poll sees it, too.
func (d *Deployer) recordMerge(ctx context.Context, m *Merges, r record.RecordedAttempt) error {
	merged := r.Action == record.ActionPullMerged || r.Action == record.ActionReviewMerge
	if !merged || r.Outcome != record.OutcomeDone {
		return nil
	}
	for _, known := range []*DueMerge{m.Last, m.Due} {
		if known != nil && known.Provider == r.Provider && known.Owner == r.Owner && known.Name == r.Repo &&
			known.Number == r.PRNumber {
			return nil
		}
	}
	concerned, err := d.Service.Concerns(ctx, r.Provider, r.Owner, r.Repo)
	if ctx.Err() != nil {
		return ctx.Err() // the next start reads the row again
	}
	if err != nil { // an unreadable configuration is reported once a merge may have corrected it
		concerned = true
	}
	if concerned {
		m.Due = &DueMerge{Provider: r.Provider, Owner: r.Owner, Name: r.Repo, Number: r.PRNumber, Title: r.Title,
			Seen: d.Now().UTC()}
	}
	return nil
}

// shouldRetry reports whether a deployment is to be tried: it is new, a person has deployed meanwhile, or it is a while
// ago.
func (d *Deployer) shouldRetry(due *DueMerge) bool {
	if due.Why == "" || d.newestSnapshot() != due.Snapshot {
		return true
	}
	now := d.Now()
	return now.Sub(due.Tried) >= retryEvery || due.Tried.After(now)
}

func (d *Deployer) newestSnapshot() string {
	if list, err := d.Service.Snapshots(1); err == nil && len(list) > 0 {
		return list[0].ID
	}
	return ""
}

// deploy brings the checkout forward and deploys, and records what came of it.
func (d *Deployer) deploy(ctx context.Context, m Merges) error {
	started, due := d.Now(), *m.Due
	release, err := d.Claim(ctx)
	if err != nil {
		return err
	}
	defer release()
	checkout, err := d.Service.Update(ctx)
	var done *fileset.Done
	if err == nil {
		_, done, err = d.Service.Apply(ctx, Request{}, fileset.Approval{}, false)
		err = Failure(err)
	}
	if ctx.Err() != nil {
		return nil // the next start goes on
	}
	row := record.Attempt{
		Time: started, RequestID: d.NewID(), Actor: record.Actor{Door: record.DoorPoll, System: record.SystemServe},
		Action: record.ActionDeployMerge, Provider: due.Provider,
		Owner: due.Owner, Repo: due.Name,
		Base: checkout.Branch, Title: due.Title, PRNumber: due.Number, Outcome: record.OutcomeDone,
		Duration: d.Now().Sub(started),
	}
	if err != nil {
		return d.noteDelay(ctx, m, row, err)
	}
	row.Message = d.Redact(deployMessage(checkout, done))
	if done != nil {
		for _, s := range done.Steps[:min(len(done.Steps), maxPaths)] {
			row.Paths = append(row.Paths, s.Path)
		}
	}
	if err := d.recordDeployment(ctx, row, record.EventDeployed); err != nil {
		return err
	}
	d.Log.Info("a merge was deployed", "repo", due.Owner+"/"+due.Name, "number", due.Number, "result", row.Message)
	due.Why, due.Code, due.Adopt = "", "", nil
	m.Due, m.Last = nil, &due
	return WriteMerges(d.State, m)
}

// maxPaths bounds the files that a row of the audit names.
const maxPaths = 100

func deployMessage(checkout Checkout, done *fileset.Done) string {
	var b strings.Builder
	b.WriteString("the checkout is at " + short(checkout.To))
	if done == nil {
		b.WriteString(": everything is in place already")
		return b.String()
	}
	b.WriteString(", snapshot " + done.ID)
	if len(done.Changed) > 0 {
		b.WriteString("; left as they are, since somebody changed them meanwhile: " + strings.Join(done.Changed, ", "))
	}
	return b.String()
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

// noteDelay remembers why a merge is not in place, and tells people once of each reason.
func (d *Deployer) noteDelay(ctx context.Context, m Merges, row record.Attempt, why error) error {
	f, due := operation.FaultOf(why), *m.Due
	text := d.Redact(f.General.Message)
	news := due.Why != text
	due.Why, due.Code, due.Adopt, due.Tried, due.Snapshot = text, Code(f.Code), nil, d.Now().UTC(), d.newestSnapshot()
	if paths, ok := f.Details["sample_paths"].([]string); ok {
		due.Adopt, row.Paths = paths, paths
	}
	if news {
		row.Outcome, row.Code, row.Message = record.OutcomeOf(f.General.Code), f.General.Code, text
		if err := d.recordDeployment(ctx, row, record.EventDeployWaits); err != nil {
			return err
		}
		d.Log.Warn("a merge waits for a person before it is deployed", "repo", due.Owner+"/"+due.Name, "number", due.Number,
			"reason", text)
	}
	m.Due = &due
	return WriteMerges(d.State, m)
}

func (d *Deployer) recordDeployment(ctx context.Context, row record.Attempt, event record.Event) error {
	if err := d.Ledger.Record(context.WithoutCancel(ctx), row, nil, d.Notifier.Notices(event, row)...); err != nil {
		return err
	}
	d.Notifier.Kick(ctx)
	return nil
}
