package prflow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
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
	return c.recordRow(ctx, c.auditRow(record.OutcomeOf(e.Code), e), nil)
}

func (c *creation) logEnd(e *fault.Error) {
	if e.Code.Refusal() {
		c.log.Info("proposal refused", "code", e.Code, "message", e.Message)
		return
	}
	c.log.error("proposal failed", e, "code", e.Code)
}

// recordRow appends the row even if its caller has gone meanwhile.
func (c *creation) recordRow(ctx context.Context, row record.Attempt, dryRun *record.Proposal) (err error) {
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

// auditRow returns the audit's line for this creation as it stands now. e is nil unless it has failed.
func (c *creation) auditRow(outcome record.Outcome, e *fault.Error) record.Attempt {
	asked, redact := c.request.asked, c.rules.secrets.Redact
	a := c.call.Done("")
	a.Outcome, a.Tier, a.Session, a.Policy = outcome, c.rules.Tier, c.rules.Session, c.rules.policyHash()
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
		Facts: c.evidence.facts, Policy: c.rules.policyHash(), Answers: c.draft.answers, Digest: c.draft.digest,
		Progress: record.Progress{State: state, Branch: c.draft.branch},
	}
	for _, change := range c.request.changes.Changes() {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: change.Path.String(), Action: change.Action, Content: change.Content,
			BaseSHA: c.evidence.comparedSnapshot().Tree[change.Path.String()].ID,
		})
	}
	return p
}

// Bounds of what is kept of a refused request: an agent may be refused again and again.
const (
	maxKept      = 2 << 10 // bytes of all its texts together, as JSON has them
	maxKeptBody  = 1 << 10 // of the body
	maxKeptFiles = 8
	maxKeptPath  = 150 // bytes
)

// keptTexts are the texts of a request in which secrets were looked for, and why some of them are withheld all the
// same.
type keptTexts struct {
	searched map[string]bool   // by their keys
	withheld map[string]string // likewise
}

// keyOf names a text of a request. Files of one path share a key, so that what holds of one holds of both.
func keyOf(t requestText) string {
	if t.what == "body" || t.what == "title" {
		return t.what
	}
	return "file " + t.label
}

func newKeptTexts(searched []requestText) keptTexts {
	kept := keptTexts{map[string]bool{}, map[string]string{}}
	for _, t := range searched {
		if !t.isPath {
			kept.searched[keyOf(t)] = true
		}
	}
	return kept
}

// withhold says that a secret was found in a text.
func (k keptTexts) withhold(t requestText, secret textscan.Secret) {
	if k.withheld[keyOf(t)] == "" {
		k.withheld[keyOf(t)] = fmt.Sprintf("rule secret:%s, line %d", secret.Rule, secret.Line)
	}
}

// requestedChange returns the requested change for the record, cut to what may be kept.
func (k keptTexts) requestedChange(r *createRequest) *record.RefusedChange {
	left, ofBody := maxKept, maxKeptBody
	out := &record.RefusedChange{ChangeType: beginning(r.asked.ChangeType, maxKeptPath),
		Body: k.limitText("body", r.asked.Body, &ofBody), Files: []record.RefusedFile{}}
	left -= maxKeptBody - ofBody
	files := r.asked.Files[:min(len(r.asked.Files), maxKeptFiles)]
	out.FilesOmitted = len(r.asked.Files) - len(files)
	for _, f := range files {
		one := record.RefusedFile{Path: beginning(f.Path, maxKeptPath),
			Action: gitprovider.Action(beginning(f.Action, maxKeptPath))}
		switch {
		case f.Content != nil:
			one.RefusedText = k.limitText("file "+f.Path, *f.Content, &left)
		case len(f.Edits) > 0:
			one.RefusedText, one.Edits = k.limitText("file "+f.Path, newTexts(f.Edits), &left), true
		}
		out.Files = append(out.Files, one)
	}
	return out
}

// limitText returns a text or its beginning, or why it is withheld. left are the bytes for which there is room.
func (k keptTexts) limitText(key, value string, left *int) record.RefusedText {
	switch {
	case value == "":
		return record.RefusedText{}
	case !k.searched[key]:
		return record.RefusedText{Withheld: "it is too large to be searched for secrets"}
	case k.withheld[key] != "":
		return record.RefusedText{Withheld: k.withheld[key]}
	}
	kept := record.RefusedText{Text: beginning(value, *left)}
	for encodedSize(kept.Text) > *left {
		kept.Text = beginning(kept.Text, len(kept.Text)/2)
	}
	*left -= encodedSize(kept.Text)
	if kept.Text != value {
		kept.Rest = fmt.Sprintf("the first %d of %d bytes; SHA-256 of all: %x", len(kept.Text), len(value),
			sha256.Sum256([]byte(value)))
	}
	return kept
}

// beginning returns at most most bytes of a text, no character cut in two.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}

// encodedSize returns the number of bytes of a text in JSON, without the quotes.
func encodedSize(text string) int {
	encoded, err := json.Marshal(text)
	if err != nil {
		return len(text)
	}
	return len(encoded) - len(`""`)
}
