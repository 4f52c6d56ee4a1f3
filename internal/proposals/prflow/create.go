package prflow

import (
	"context"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// CreateResult is the answer to a proposal (design §4). In a dry run Number is 0 and URL empty.
type CreateResult struct {
	Number   int         `json:"number,omitempty"`
	URL      string      `json:"url,omitempty"`
	Branch   string      `json:"branch"`
	Commit   string      `json:"commit,omitempty"`
	Files    []string    `json:"files"`
	Lines    []FileLines `json:"lines,omitempty" brief:"true" doc:"Added and removed, by file"`
	Reused   bool        `json:"reused,omitempty" brief:"true" doc:"The same change was open already"`
	Revised  bool        `json:"revised,omitempty" brief:"true" doc:"The pull request that revises names has the commit, or, without files, the replies"`
	Replies  int         `json:"replies,omitempty" brief:"true" doc:"How many answers to the review were posted"`
	DryRun   bool        `json:"dry_run,omitempty" doc:"Nothing was written"`
	Warnings []string    `json:"warnings,omitempty"`
	Preview  *Preview    `json:"preview,omitempty" brief:"true"`

	RequestID string `json:"-"`
}

// Created reports whether a pull request was opened: by none of a dry run, of one that was open already, and of a
// revision.
func (r CreateResult) Created() bool { return !r.DryRun && !r.Reused && !r.Revised }

// creation is one call that proposes, and all that is known of it.
type creation struct {
	service  *Service
	log      redactedLog
	call     operation.Call
	rules    rules
	request  request
	evidence evidence
	verdicts verdicts
	draft    draft    // zero until the gates that need no draft have passed
	warnings []string // of what came after the gates

	reserved bool   // the files are held by the record of this proposal, which nobody has ended yet
	writing  bool   // there is a proposal, or was, which has the files
	commit   string // of the branch; "" until it is certain that both exist
	recorded bool   // the audit has the attempt
	admits   bool   // the door has let the caller in once more, so that it may write
}

func (s *Service) newCreation(call operation.Call) *creation {
	r := request{id: call.ID, started: s.Clock.Now()}
	log := s.log("request_id", r.id)
	c := &creation{
		service: s, log: log, call: call, request: r, verdicts: verdicts{},
		rules:    rules{s.Authority, s.Secrets, s.Proof.Exported},
		evidence: evidence{registry: s.Registry, history: s.History, settler: s.settler(), log: log},
	}
	call.Records(c.fail)
	return c
}

// create takes a call of create_pr, and promote one of promote_proposal, through the gates.
func (s *Service) create(ctx context.Context, call operation.Call) (CreateResult, error) {
	c := s.newCreation(call)
	return c.attempt(ctx, func() (CreateResult, error) { return c.run(ctx, call.Arguments) })
}

// rejected has a call recorded that never came to the gates: a door refused it before its arguments could be read.
func (s *Service) rejected(call operation.Call) {
	c := s.newCreation(call)
	call.Records(func(ctx context.Context, e *fault.Error) error {
		c.verdicts[record.GateArguments] = deny(e)
		return c.fail(ctx, e)
	})
}

// attempt runs the pipeline. Of a proposal that may have written something when it panics, it is found out later what.
func (c *creation) attempt(ctx context.Context, run func() (CreateResult, error)) (CreateResult, error) {
	ended := false
	defer func() {
		if !ended && c.reserved {
			c.leaveUnsettled(ctx)
		}
	}()
	result, err := run()
	ended = true
	if err == nil {
		c.service.notify(ctx)
	}
	result.RequestID = c.request.id
	return result, asked(err)
}

// writes tells the caller of a phase in which the provider is waited for.
func (c *creation) writes(phase string, at gitprovider.Provider) {
	c.call.Progress(phase + " at " + at.Name())
}

// admitted asks the door, once, whether the caller may still propose: after all waiting, and before the first write.
// See operation.Caller.
func (c *creation) admitted(ctx context.Context) error {
	if c.admits {
		return nil
	}
	err := c.call.Caller.Admitted(ctx)
	c.admits = err == nil
	return err
}

// leaveUnsettled keeps the files of a proposal of which nobody knows how far it got, until it is settled.
func (c *creation) leaveUnsettled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // the time for writing may be over
	defer cancel()
	c.reserved = false
	if err := c.advance(ctx, record.Progress{State: record.StateUnsettled, Commit: c.commit}); err != nil {
		c.log.error("unsettled proposal not marked", err)
	}
}

// advance records a step of this proposal.
func (c *creation) advance(ctx context.Context, to record.Progress) error {
	return c.service.Ledger.Advance(ctx, c.request.id, to)
}

func (c *creation) run(ctx context.Context, raw []byte) (CreateResult, error) {
	c.service.resumeOnce(ctx)
	c.call.Progress("checking the request")
	c.request.decode(raw, c.rules)
	if err := c.checkRequest(ctx); err != nil {
		return CreateResult{}, err
	}
	if err := c.service.Proof.readHead(ctx, &c.draft); err != nil {
		return CreateResult{}, err
	}
	if err := c.draftOn(c.freeBranch()); err != nil {
		return CreateResult{}, err
	}
	c.call.Progress("checking for duplicates")
	same, err := c.judge(ctx, phasePulls)
	switch {
	case err != nil:
		return CreateResult{}, err
	case same != nil:
		return c.reuse(ctx, *same)
	case c.rules.DryRun:
		return c.preview(ctx)
	}
	c.writing = true
	return newWriter(c).write(ctx)
}

// checkRequest asks the gates of the first two phases together, and refuses with everything that they found. A provider
// that fails is an error only if nothing else refuses the request: the caller learns first what it can change.
func (c *creation) checkRequest(ctx context.Context) error {
	if _, err := c.judge(ctx, phaseRequest); err != nil {
		return err
	}
	if c.rules.ReadOnly != "" {
		return fault.New(fault.ReadOnly, "%s", c.rules.ReadOnly)
	}
	unread := c.read(ctx)
	// what counts is what they make of the files
	if c.evidence.snapshot != nil && (c.request.edits() || c.request.asked.Revises > 0) {
		if _, err := c.judge(ctx, phaseRequest); err != nil {
			return err
		}
	}
	if _, err := c.judge(ctx, phaseRepository); err != nil {
		return err
	}
	violations := c.verdicts.violations()
	switch {
	case unread != nil && (len(violations) == 0 || ctx.Err() != nil):
		return unread
	case len(violations) > 0:
		return fault.Refusal(violations)
	}
	return nil
}

// read finds the repository and reads it, if there is something to look at and it may be.
func (c *creation) read(ctx context.Context) error {
	changes := c.request.inScope(c.rules.Policy.Scope.At(c.rules.Tier))
	c.evidence.resolve(&c.request)
	if !c.evidence.mayRead(c.rules) || len(changes) == 0 && !c.request.asked.repliesOnly() || !c.rules.mayPropose() {
		return nil
	}
	c.call.Progress("reading the repository")
	query := gitprovider.SnapshotQuery{
		Repo: c.request.repo, Base: c.request.asked.BaseBranch, ClosedSince: c.closedSince(), Foreign: true,
	}
	if query.Base == "" {
		query.Base = c.evidence.resolution.BaseBranch
	}
	if c.rules.DryRun { // a preview shows which is free; a creation learns that from Commit
		query.Branches = branchNames(&c.request)
	}
	query.Contents = true
	for _, change := range changes {
		query.Paths = append(query.Paths, change.Path)
	}
	revises := c.request.asked.Revises > 0
	if revises { // the texts that count are those of its branch
		query.Branches, query.Contents = nil, slices.ContainsFunc(query.Paths, isManifest)
	}
	if err := c.evidence.read(ctx, query); err != nil {
		return err
	}
	if revises {
		if err := (revisionReader{c}).read(ctx, query); err != nil {
			return err
		}
	}
	target := c.evidence.target()
	if target == nil {
		return nil
	}
	c.request.edit(c.rules, target, c.evidence.snapshot.Tree)
	if revises && !c.request.asked.repliesOnly() {
		c.request.judgeWhole(c.rules, c.evidence.revision, c.evidence.snapshot.Tree)
	}
	c.evidence.lines = linesOf(c.request.inScope(c.rules.Policy.Scope.At(c.rules.Tier)), target)
	return nil
}

// judge asks the gates of a phase in their order. In the first two phases it asks all of them; after that the first
// that denies ends it, and its denial is the error. same is the answer if this change is proposed already.
func (c *creation) judge(ctx context.Context, p phase) (same *sameChange, err error) {
	for _, g := range gates() {
		if g.Phase == p {
			delete(c.verdicts, g.Name)
		}
	}
	for _, g := range gates() {
		if g.Phase != p {
			continue
		}
		r, err := g.Judge(ctx, c.rules, &c.request, &c.evidence)
		if err != nil {
			return nil, err
		}
		if r.skipped {
			continue
		}
		if c.verdicts.denied(record.GateContent) { // a warning may repeat what the content is refused for
			r.warnings = nil
		}
		c.verdicts[g.Name] = r
		switch {
		case r.denial != nil:
			return nil, r.denial
		case r.same != nil:
			return r.same, nil
		}
	}
	return nil, nil
}

// judgePullsAgain reads the pull requests of the repository once more and asks the gates that are about them. What a
// revision is judged by (its branch, what people have said, who has made it) is not read again, so that it keeps the
// position that it was read at: a revision that was made since is found when the files are reserved.
func (c *creation) judgePullsAgain(ctx context.Context) (*sameChange, error) {
	seen := c.evidence.seen
	if err := c.evidence.readPullsAgain(ctx, c.closedSince()); err != nil {
		return nil, err
	}
	if c.evidence.revision != nil {
		c.evidence.seen = seen
	}
	return c.judge(ctx, phasePulls)
}

func (c *creation) closedSince() time.Time {
	return c.request.started.Add(-c.rules.Policy.Limits.Cooldown)
}
