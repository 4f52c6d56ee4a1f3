package prflow

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Withheld stands in records for a title or a path that looked like it held a secret.
const Withheld = operation.Withheld

// fail records a refused or failed attempt, unless that was done already. e is as the caller learns it.
func (c *creation) fail(ctx context.Context, e *fault.Error) error {
	c.logEnd(e)
	defer c.service.notify(ctx)
	if c.recorded {
		return nil
	}
	return c.record(ctx, c.row(record.OutcomeOf(e.Code), e), nil)
}

func (c *creation) logEnd(e *fault.Error) {
	if e.Code.Refusal() {
		c.log.Info("proposal refused", "code", e.Code, "message", e.Message)
		return
	}
	c.log.error("proposal failed", e, "code", e.Code)
}

// record appends the row even if its caller has gone meanwhile.
func (c *creation) record(ctx context.Context, row record.Attempt, dryRun *record.Proposal) (err error) {
	defer func() { c.recorded = c.recorded || err == nil }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var notices []record.Notice
	if row.Outcome == record.OutcomeRefused {
		notices = c.service.notices(record.EventRefused, row)
	}
	if c.reserved { // it ends without a pull request of its own
		c.reserved = false
		err = c.service.Ledger.Finish(ctx, c.request.id, record.Progress{State: record.StateFailed}, row, notices...)
		if fault.CodeOf(err) != fault.Conflict { // else another process has settled it, which took this one for dead
			return err
		}
	}
	return c.service.Ledger.Record(ctx, row, dryRun, notices...)
}

// row returns the audit's line for this creation as it stands now. e is nil unless it has failed.
func (c *creation) row(outcome record.Outcome, e *fault.Error) record.Attempt {
	asked, redact := c.request.asked, c.rules.secrets.Redact
	a := c.call.Done("")
	a.Outcome, a.Tier, a.Session, a.Policy = outcome, c.rules.Tier, c.rules.Session, ""
	if c.rules.Unknown == "" {
		a.Policy = c.rules.Policy.Hash()
	}
	a.Owner, a.Repo, a.Base, a.Branch = asked.RepoOwner, asked.RepoName, asked.BaseBranch, c.draft.branch
	a.Title, a.Digest = redact(cmp.Or(asked.Title, clean(c.draft.title, maxTitle))), c.draft.digest
	a.Verdicts = c.verdicts.all()
	if p := c.evidence.resolution.Provider; p != nil {
		a.Provider = p.Name()
	}
	if s := c.evidence.snapshot; s != nil {
		a.Owner, a.Repo, a.Base = s.Repo.Owner, s.Repo.Name, s.Base
	}
	for _, f := range asked.Files {
		a.Paths = append(a.Paths, redact(f.Path))
	}
	if e != nil {
		a.Code, a.Message = e.Code, redact(e.Message)
		if e.Existing != nil {
			a.PRNumber, a.PRURL = e.Existing.Number, e.Existing.URL
		}
	}
	if c.request.secretName {
		a.Owner, a.Repo, a.Base = Withheld, Withheld, Withheld
	}
	content, judged := c.verdicts[record.GateContent]
	if content.withhold || !judged {
		withhold(&a)
	} else if e != nil && !c.writing { // else there is a proposal, which has it
		a.Wanted = content.wanted
	}
	return a
}

// withhold keeps a title and paths in which a secret was found, or was not looked for, out of the record.
func withhold(a *record.Attempt) {
	if a.Title == "" && len(a.Paths) == 0 {
		return
	}
	a.Title, a.Branch = Withheld, ""
	for i := range a.Paths {
		a.Paths[i] = Withheld
	}
	a.Message = string(a.Code) + ": " + Withheld
	for i, v := range a.Verdicts {
		a.Verdicts[i].Warnings, a.Verdicts[i].Violations = nil, slices.Clone(v.Violations)
		for j, violation := range v.Violations {
			a.Verdicts[i].Violations[j] = fault.Violation{Code: violation.Code, Rule: violation.Rule, Message: Withheld}
		}
	}
}

// proposal returns the ledger's record of this creation.
func (c *creation) proposal(state record.ProposalState) record.Proposal {
	snapshot := c.evidence.snapshot
	p := record.Proposal{
		ID: c.request.id, CreatedAt: c.request.started, Actor: c.call.Caller.Actor,
		Tier: c.rules.Tier, Session: c.rules.Session, Provider: c.evidence.resolution.Provider.Name(),
		Owner: snapshot.Repo.Owner, Repo: snapshot.Repo.Name, Base: snapshot.Base, BaseCommit: c.evidence.parent(),
		Revises:    c.request.asked.Revises,
		ChangeType: gitprovider.ChangeType(c.request.asked.ChangeType), Title: c.draft.title, Body: c.draft.body,
		Answers: c.draft.answers, Digest: c.draft.digest, Progress: record.Progress{State: state, Branch: c.draft.branch},
	}
	for _, change := range c.request.changes.Changes() {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: change.Path.String(), Action: change.Action, Content: change.Content,
			BaseSHA: c.evidence.target().Tree[change.Path.String()].ID,
		})
	}
	return p
}
