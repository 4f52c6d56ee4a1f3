package prflow

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// creation holds the state of one call that proposes.
type creation struct {
	service  *Service
	log      redactedLog
	call     operation.Call
	rules    rules
	request  createRequest
	evidence evidence
	verdicts verdicts
	draft    draft    // zero until the gates that need no draft have passed
	warnings []string // of what came after the gates

	reserved bool   // the record of this proposal still holds the files
	writing  bool   // there is a proposal, or was, which has the files
	commit   string // of the branch; "" until it is certain that both exist
	recorded bool   // the audit has the attempt
	admits   bool   // the door has let the caller in once more, so that it may write
}

// draft is a pull request as it leaves. Nothing else makes the texts of one.
type draft struct {
	branch, title, body string
	digest              string // of the change at its place
	head                string // of the audit, as the mark has it; see markHead
	answers             []record.ReviewAnswer
	posted              int // of the answers
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

// recordTimeout is the time for the record of an attempt whose caller has gone.
const recordTimeout = 15 * time.Second

// leaveUnsettled marks the proposal unsettled: its files stay reserved until its outcome is known.
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

// createPR takes a call of create_pr, and promote one of promote_proposal, through the gates.
func (s *Service) createPR(ctx context.Context, call operation.Call) (CreateResult, error) {
	c := s.newCreation(call)
	return c.attempt(ctx, func() (CreateResult, error) { return c.createProposal(ctx, call.Arguments) })
}

func (s *Service) newCreation(call operation.Call) *creation {
	r := createRequest{id: call.ID, started: s.Clock.Now()}
	log := s.log("request_id", r.id)
	c := &creation{
		service: s, log: log, call: call, request: r, verdicts: verdicts{},
		rules:    rules{s.CurrentAuthority(), s.Secrets, s.Proof.Exported, s.Pauses, s.hosts},
		evidence: evidence{registry: s.Registry, history: s.History, settler: s.settler(), log: log},
	}
	call.Records(c.fail)
	return c
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
	switch fault.CodeOf(err) {
	case "":
		c.service.notify(ctx)
	case fault.Paused:
		c.verdicts[record.GatePause] = deny(fault.From(err)) // a claim may have been refused
	}
	result.RequestID = c.request.id
	return result, kernelFault(err)
}

// rejected has a call recorded that never came to the gates: a door refused it before its arguments could be read.
func (s *Service) rejected(call operation.Call) {
	c := s.newCreation(call)
	call.Records(func(ctx context.Context, e *fault.Error) error {
		c.verdicts[record.GateArguments] = deny(e)
		return c.fail(ctx, e)
	})
}

func (c *creation) createProposal(ctx context.Context, raw []byte) (CreateResult, error) {
	c.call.Progress("checking the request")
	c.request.decodeArguments(raw, c.rules)
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
	same, err := c.runGates(ctx, phasePulls)
	switch {
	case err != nil:
		return CreateResult{}, err
	case same != nil:
		return c.reuse(ctx, *same)
	case c.rules.DryRun:
		return c.preview(ctx)
	}
	if err := c.judgedByRulesOfNow(); err != nil {
		return CreateResult{}, err
	}
	c.writing = true
	return newWriter(c).writeProposal(ctx)
}

// judgedByRulesOfNow refuses to write what was judged by rules that hold no more: reading a provider takes time.
func (c *creation) judgedByRulesOfNow() error {
	now, was := c.service.CurrentAuthority(), c.rules.Authority
	switch {
	case now.ReadOnly != "":
		return fault.New(fault.ReadOnly, "%s", now.ReadOnly)
	case now.DryRun != was.DryRun || now.Tier != was.Tier || now.Policy.Hash() != was.Policy.Hash():
		return fault.New(fault.Conflict,
			"the operator's rules changed while this was judged, and nothing was written; make the call again")
	}
	return nil
}

// checkRequest asks the gates of the first two phases together, and refuses with everything that they found. A provider
// that fails is an error only if nothing else refuses the request: the caller learns first what it can change.
func (c *creation) checkRequest(ctx context.Context) error {
	if _, err := c.runGates(ctx, phaseRequest); err != nil {
		return err
	}
	if c.rules.ReadOnly != "" {
		return fault.New(fault.ReadOnly, "%s", c.rules.ReadOnly)
	}
	unread := c.loadEvidence(ctx)
	// the edited files can change the verdict of the content gate
	if c.evidence.snapshot != nil && (c.request.edits() || c.request.asked.Revises > 0 ||
		c.verdicts.denied(record.GateContent)) { // as may what stood on the base branch before
		if _, err := c.runGates(ctx, phaseRequest); err != nil {
			return err
		}
	}
	if _, err := c.runGates(ctx, phaseRepository); err != nil {
		return err
	}
	if unread == nil && len(c.verdicts.violations()) == 0 {
		if err := c.askCheckers(ctx); err != nil {
			return err
		}
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

// loadEvidence finds the repository and reads it, if there is something to look at and it may be.
func (c *creation) loadEvidence(ctx context.Context) error {
	changes := c.request.inScope(c.rules.Policy.Scope.At(c.rules.Tier))
	c.evidence.resolve(&c.request)
	if c.request.secretName || !c.evidence.mayRead(c.rules) || !c.rules.mayPropose() ||
		len(changes) == 0 && !c.request.asked.repliesOnly() {
		return nil
	}
	c.resumeOnce(ctx)
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
	if err := c.evidence.loadSnapshot(ctx, query); err != nil {
		return err
	}
	if revises {
		if err := (revisionReader{c}).readRevision(ctx, query); err != nil {
			return err
		}
	}
	target := c.evidence.comparedSnapshot()
	if target == nil {
		return nil
	}
	if err := c.evidence.readAttributes(ctx, changes); err != nil {
		return err
	}
	c.request.edit(c.rules, target, c.evidence.snapshot.Tree)
	if revises && !c.request.asked.repliesOnly() {
		c.request.checkRevisedTree(c.rules, c.evidence.revision, c.evidence.snapshot.Tree)
	}
	c.evidence.lines = linesOf(c.request.inScope(c.rules.Policy.Scope.At(c.rules.Tier)), target)
	return nil
}

// promote opens the pull request that the dry run with an id has shown. It is for people: no door of an agent leads
// here. It is a new attempt with a request id of its own, at the Service's tier, and every gate is asked again, since
// the repository, the policy and the record may have moved since.
//
// Errors are those of create, and not_found for an unknown id, conflict if it was not a dry run, read_only if this
// process is in dry run itself: what the operator configured holds for people, too.
func (s *Service) promote(ctx context.Context, call operation.Call, in PromoteRequest) (CreateResult, error) {
	c := s.newCreation(call)
	c.request.acknowledged = in.Acknowledged
	return c.attempt(ctx, func() (CreateResult, error) { return c.promote(ctx, in.ID) })
}

func (c *creation) promote(ctx context.Context, id string) (CreateResult, error) {
	p, err := c.service.History.Proposal(ctx, id)
	if err != nil {
		return CreateResult{}, err
	}
	c.request.asked.RepoOwner, c.request.asked.RepoName = p.Owner, p.Repo // for the record of a refusal
	if p.State != record.StateDryRun {
		return CreateResult{}, fault.New(fault.Conflict,
			"the proposal is not a dry run (its state is %s), so there is nothing to open; look at it, and at the open pull requests",
			p.State)
	}
	if !p.PrunedAt.IsZero() {
		return CreateResult{}, fault.New(fault.Conflict, "the contents of this dry run were removed because of their age "+
			"(CLAUDEOPS_RETENTION); propose the change again")
	}
	if c.rules.DryRun {
		return CreateResult{}, fault.New(fault.ReadOnly, "this server is in dry run (CLAUDEOPS_DRY_RUN) and opens no pull "+
			"request; the operator may start it without, for people")
	}
	raw, err := json.Marshal(requestOf(p))
	if err != nil {
		return CreateResult{}, err
	}
	c.request.promoted = &p
	return c.createProposal(ctx, raw)
}

// requestOf returns the request that a proposal was made of. It holds the versions of the files that the proposal was
// compared with: a person opens what was shown, or learns that the base branch has moved on.
func requestOf(p record.Proposal) CreateRequest {
	r := CreateRequest{
		RepoOwner: p.Owner, RepoName: p.Repo, BaseBranch: p.Base, ChangeType: string(p.ChangeType),
		Title: p.Title, Body: AgentText(p.Body), Revises: p.Revises, Files: []FileRequest{},
	}
	r.takeAnswers(p)
	for _, f := range p.Files {
		file := FileRequest{Path: f.Path, Action: string(f.Action), BaseSHA: f.BaseSHA}
		if f.Action != gitprovider.ActionDelete {
			file.Content = &f.Content
		}
		r.Files = append(r.Files, file)
	}
	return r
}
