package prflow

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// Withheld stands in records for a title or a path that looked like it held a secret.
const Withheld = "[withheld: looks like a secret]"

// fail records a refused or failed attempt, unless that was done already, and dresses the error for the caller. If the
// attempt cannot be recorded, that is what the caller learns.
func (c *creation) fail(ctx context.Context, err error) error {
	e := c.redacted(fault.From(err))
	c.log(e)
	if !c.recorded {
		if recordErr := c.record(ctx, c.attempt(record.OutcomeOf(e.Code), e), nil); recordErr != nil {
			c.Log.Error("attempt not recorded", "request_id", c.requestID, "error", logText(c.Service, recordErr))
			return operation.Logged(c.redacted(fault.From(recordErr)), c.requestID)
		}
	}
	return operation.Recorded(e, c.requestID)
}

func (c *creation) log(e *fault.Error) {
	if record.OutcomeOf(e.Code) == record.OutcomeRefused {
		c.Log.Info("proposal refused", "request_id", c.requestID, "code", e.Code, "message", e.Message)
		return
	}
	c.Log.Error("proposal failed", "request_id", c.requestID, "code", e.Code, "error", logText(c.Service, e))
}

// record appends an attempt even if its caller has gone meanwhile.
func (c *creation) record(ctx context.Context, a record.Attempt, dryRun *record.Proposal) (err error) {
	defer func() { c.recorded = c.recorded || err == nil }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var notices []record.Notice
	if a.Outcome == record.OutcomeRefused {
		notices = c.notices(record.EventRefused, a)
	}
	if c.reserved { // it ends without a pull request of its own
		c.reserved = false
		err = c.Ledger.Finish(ctx, c.requestID, record.Progress{State: record.StateFailed}, a, notices...)
		if fault.CodeOf(err) != fault.Conflict { // else another process has settled it, which took this one for dead
			return err
		}
	}
	return c.Ledger.Record(ctx, a, dryRun, notices...)
}

// attempt is the audit's line for this creation as it stands now.
func (c *creation) attempt(outcome record.Outcome, e *fault.Error) record.Attempt {
	now := c.Now()
	a := record.Attempt{
		Time: now, RequestID: c.requestID, Door: c.caller.Door, Caller: c.caller.Name, Tier: c.Tier, Action: c.action,
		Owner: c.req.RepoOwner, Repo: c.req.RepoName, Base: c.req.BaseBranch, Branch: c.branch, Title: c.req.Title,
		Digest: c.digest, Verdicts: c.allVerdicts(), Outcome: outcome, Duration: now.Sub(c.started), Session: c.Session,
	}
	if c.resolution.Provider != nil {
		a.Provider = c.resolution.Provider.Name()
	}
	if c.snapshot != nil {
		a.Owner, a.Repo, a.Base = c.snapshot.Repo.Owner, c.snapshot.Repo.Name, c.snapshot.Base
	}
	for _, f := range c.req.Files {
		a.Paths = append(a.Paths, c.Secrets.Redact(f.Path))
	}
	if e != nil {
		a.Code, a.Message = e.Code, c.Secrets.Redact(e.Message)
		if e.Existing != nil {
			a.PRNumber, a.PRURL = e.Existing.Number, e.Existing.URL
		}
	}
	a.Title = c.Secrets.Redact(a.Title)
	if c.req.withheld || !c.ruled(record.GateContent) {
		c.withhold(&a)
	}
	return a
}

// withhold keeps a title and paths in which a secret was found, or was not looked for, out of the record.
func (c *creation) withhold(a *record.Attempt) {
	if a.Title == "" && len(a.Paths) == 0 {
		return
	}
	a.Title, a.Branch = Withheld, ""
	for i := range a.Paths {
		a.Paths[i] = Withheld
	}
	a.Message = string(a.Code) + ": " + Withheld
	verdicts := make([]record.Verdict, len(a.Verdicts))
	for i, v := range a.Verdicts {
		verdicts[i] = v
		verdicts[i].Violations, verdicts[i].Warnings = nil, nil
		for _, violation := range v.Violations {
			verdicts[i].Violations = append(verdicts[i].Violations,
				fault.Violation{Code: violation.Code, Rule: violation.Rule, Message: Withheld})
		}
	}
	a.Verdicts = verdicts
}

// allVerdicts lists every gate once, those that could not be asked as skipped.
func (c *creation) allVerdicts() []record.Verdict {
	var out []record.Verdict
	for _, gate := range Gates() {
		if !c.ruled(gate) {
			out = append(out, record.Verdict{Gate: gate, Ruling: record.Skipped})
			continue
		}
		for _, v := range c.verdicts {
			if v.Gate == gate {
				out = append(out, v)
			}
		}
	}
	return out
}

// redacted is the error without the values of our own tokens, whatever text they may have come in by.
func (c *creation) redacted(e *fault.Error) *fault.Error {
	out := *e
	out.Message = c.Secrets.Redact(e.Message)
	out.Violations = nil
	for _, v := range e.Violations {
		v.Message, v.Path = c.Secrets.Redact(v.Message), c.Secrets.Redact(v.Path)
		out.Violations = append(out.Violations, v)
	}
	return &out
}

// logText is an error with its causes, for the log: redacted.
func logText(s *Service, err error) string {
	text := err.Error()
	for e := (*fault.Error)(nil); errors.As(err, &e) && e.Cause != nil; err = e.Cause {
		text += ": " + e.Cause.Error()
	}
	return s.Secrets.Redact(text)
}

// proposal is the ledger's record of this creation.
func (c *creation) proposal(state record.ProposalState) record.Proposal {
	p := record.Proposal{
		ID: c.requestID, CreatedAt: c.started, Door: c.caller.Door, Caller: c.caller.Name, Tier: c.Tier, Session: c.Session,
		Provider: c.resolution.Provider.Name(), Owner: c.snapshot.Repo.Owner, Repo: c.snapshot.Repo.Name,
		Base: c.snapshot.Base, BaseCommit: c.snapshot.BaseCommit, ChangeType: gitprovider.ChangeType(c.req.ChangeType),
		Title: c.title, Body: c.body, Digest: c.digest, Progress: record.Progress{State: state, Branch: c.branch},
	}
	for _, change := range c.changes.Changes() {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: change.Path.String(), Action: change.Action, Content: change.Content,
		})
	}
	return p
}

// Bounds, in runes, of text that other people wrote, as it is handed to a model.
const (
	maxTitle  = 200
	maxReview = 2000
	maxName   = 100
)

// clean removes what a reader cannot see from text that other people wrote, and caps it.
func clean(text string, runes int) string {
	return content.Clean(text, runes)
}

// Reject records a proposal that never became a call: a message that a door refused before its arguments could be read.
func (s *Service) Reject(ctx context.Context, caller operation.Caller, code fault.Code, message string) {
	c := s.newCreation(caller, record.ActionCreate)
	e := fault.New(code, "%s", message)
	c.rule(record.GateArguments, []fault.Violation{{Code: code, Message: message}}, "")
	c.log(e)
	if err := c.record(ctx, c.attempt(record.OutcomeRefused, e), nil); err != nil {
		c.Log.Error("rejected message not recorded", "request_id", c.requestID, "error", logText(s, err))
	}
}
