// Package prflow is the one use case: propose a change as a pull request, list and read pull requests. Every door (MCP,
// REST, dashboard, command line) calls it, and it holds the only code path that can change a repository.
//
// This is the walk of one create_pr. Service.Create makes a creation, which holds all that is known of the call. The
// arguments become a request: its files as a ChangeSet, its title and body as they may leave. What is read becomes
// evidence: the provider that serves the repository, a Snapshot of the base branch and of the pull requests, and where
// the record stood before that. The gates, one list in gates.go, judge request and evidence phase by phase, and their
// rulings are the verdicts of the answer and of the record. If an open pull request holds the very same change, that
// one is completed and is the answer (reuse.go). Otherwise a draft is made: the branch's name, the title, and the body
// with our signed mark. A dry run shows the draft as a Preview and ends. Else the writer reserves the files in the
// Ledger, whose transaction asks the gate of the caps, makes branch and commit, opens the pull request, has pullSetup
// label it, and records what came of it. After an unclear answer the writer looks; what stays unclear keeps its files,
// and a settler ends it later: in the next call, or in Resume. However a call ends, the audit has one row for it
// (audit.go).
package prflow

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Options configure a Service. All are required but Live, Notifier, Pauses, ProgressEvery and Step.
type Options struct {
	Registry *gitprovider.Registry
	Ledger   Ledger
	History  History
	Secrets  Secrets
	// Authority is what the operator permits this process to do, fixed at start. Where the rules can change, Live returns
	// the current ones.
	Authority Authority
	Live      func() Authority

	Log   *slog.Logger
	Clock Clock
	NewID func() string // request ids: unique, sortable by time
	Proof Proof
	// Checkers runs the checkers of the policy; nil: none is run.
	Checkers RunChecker
	// Notifier notifies people; nil disables notifications.
	Notifier record.Notifier
	// Pauses are what people have paused; nil: nothing ever is.
	Pauses operation.Pauses
	// ProgressEvery is the interval between progress reports to the caller; 0: every 10 s.
	ProgressEvery time.Duration
	// Step, if not nil, is called after each step of a creation has taken effect: tests kill the process there.
	Step func(step string)
}

// Proof lets others check what is recorded.
type Proof struct {
	// Key returns the secret key of the marks, at least 32 bytes. It is called when a proposal needs it. It is required.
	Key func() ([]byte, error)
	// Head returns the head of the audit, which goes into the mark of a pull request; nil: marks have none.
	Head func(ctx context.Context) (seq int64, hash string, err error)
	// Exported makes sure that every head of the audit was exported, for a policy that requires it; nil: nothing exports
	// it.
	Exported func(ctx context.Context) error
}

// Clock tells and passes time; tests have one of their own.
type Clock struct {
	Now func() time.Time
	// Sleep waits for d or until ctx is done.
	Sleep func(ctx context.Context, d time.Duration)
}

// Authority is what the operator permits this process to do. It is configuration: no request type has a field for it.
type Authority struct {
	Policy policy.Policy
	Tier   gitprovider.Tier
	DryRun bool
	// ReadOnly refuses every proposal when not empty; it says why, for the caller.
	ReadOnly string
	// Unknown says why the operator's rules cannot be known, "" if they are: no file is read then, since the scope may be
	// another one.
	Unknown string
	// Session is the agent's session that this process serves, "" for none. It identifies attempts in the record, and
	// grants no rights.
	Session string
}

// mayWrite reports whether a proposal can come to a write at all.
func (a Authority) mayWrite() bool { return a.takesProposals() && !a.DryRun }

// takesProposals reports whether a proposal can pass the gates, if only in a dry run.
func (a Authority) takesProposals() bool { return a.ReadOnly == "" && a.mayPropose() }

// mayPropose reports whether the tier may propose anything.
func (a Authority) mayPropose() bool { return a.Policy.Tiers.MaxFiles(a.Tier) > 0 }

// policyHash returns the hash of the policy for the records.
func (a Authority) policyHash() string {
	if a.Unknown != "" {
		return record.PolicyUnreadable
	}
	return a.Policy.Hash()
}

// Secrets finds credentials in texts. internal/base/textscan implements it.
type Secrets interface {
	// Secrets returns what looks like a credential in text. name is a label for the text.
	Secrets(ctx context.Context, name, text string) ([]textscan.Secret, error)
	// Spread returns the indices of texts that together hold one of our own credentials in parts, or nil; len(texts)
	// stands for parts that only show where the texts meet.
	Spread(texts []string) []int
	// Redact replaces the values of our own tokens.
	Redact(text string) string
	// Hide replaces words of a short text that look like a credential of anybody.
	Hide(text string) string
}

// Service is the use case. It is safe for concurrent use.
type Service struct {
	Options
	kernel  *operation.Kernel // takes the calls of all operations
	ceiling gitprovider.Tier  // see AtMost; 0 for none
	resumed *sync.Map         // repositories where what other processes left was looked for; shared with those of AtMost
	hosts   *blobHosts        // shared with those of AtMost
}

// New makes a Service.
func New(o Options) *Service {
	s := &Service{Options: o, resumed: new(sync.Map), hosts: new(blobHosts)}
	s.kernel = operation.NewKernel(operation.KernelOptions{
		Live: func() operation.Authority {
			a := s.CurrentAuthority()
			return operation.Authority{
				Tier: a.Tier, DryRun: a.DryRun, ReadOnly: a.ReadOnly, Session: a.Session,
				Rules: operation.Rules{Policy: a.Policy, Problem: a.Unknown},
			}
		},
		Audit: o.Ledger, Redact: o.Secrets.Redact, Hide: o.Secrets.Hide, Log: o.Log, Now: o.Clock.Now, NewID: o.NewID,
		ProgressEvery: o.ProgressEvery,
	})
	return s
}

// CurrentAuthority returns what the operator permits this process to do now. The caller keeps it for one decision.
func (s *Service) CurrentAuthority() Authority {
	a := s.Authority
	if s.Live != nil {
		a = s.Live()
	}
	if s.ceiling > 0 {
		a.Tier = min(a.Tier, s.ceiling)
	}
	return a
}

// AtMost returns the same Service with a lower ceiling: its tier is the lower one of the Service's own and the given
// one, and an invalid tier counts as tier 1. It serves credentials that the operator has limited, so authority still
// comes from configuration alone, and nothing can raise it. Both share everything else, including the note of which
// repositories were searched for unfinished proposals.
func (s *Service) AtMost(ceiling gitprovider.Tier) *Service {
	if ceiling >= s.CurrentAuthority().Tier {
		return s
	}
	return &Service{Options: s.Options, kernel: s.kernel, resumed: s.resumed, hosts: s.hosts,
		ceiling: max(ceiling, gitprovider.TierObserve)}
}

// reachStep tells tests how far a creation got.
func (s *Service) reachStep(name string) {
	if s.Step != nil {
		s.Step(name)
	}
}

// notices makes the notices for an event, if anybody wants them.
func (s *Service) notices(event record.Event, a record.Attempt) []record.Notice {
	if s.Notifier == nil || event == record.EventRefused && !s.CurrentAuthority().Policy.Server.NotifyRefused {
		return nil
	}
	return s.Notifier.Notices(event, a)
}

// notify has the notices of an attempt that is over delivered.
func (s *Service) notify(ctx context.Context) {
	if s.Notifier != nil {
		s.Notifier.Kick(ctx)
	}
}

// log returns the log of the process with the attributes.
func (s *Service) log(attributes ...any) redactedLog {
	return redactedLog{s.Log.With(attributes...), s.Secrets}
}

// rules are the operator's settings that gates apply.
type rules struct {
	Authority
	secrets  Secrets
	exported func(ctx context.Context) error // Proof.Exported
	pauses   operation.Pauses                // nil for none
	hosts    *blobHosts
}

// claimWrite notes that we are about to write to a repository without a reservation, until release is called; paused if
// it is paused.
func (r rules) claimWrite(ctx context.Context, repo gitprovider.RepoRef) (release func(), err error) {
	if r.pauses == nil {
		return func() {}, nil
	}
	return r.pauses.Claim(ctx, repo.Owner, repo.Name)
}

// redactedLog is a log in which errors have their causes, and no value of a token of ours.
type redactedLog struct {
	*slog.Logger
	secrets Secrets
}

func (l redactedLog) warn(message string, err error, attributes ...any) {
	l.Warn(message, append(attributes, "error", l.redactError(err))...)
}

func (l redactedLog) error(message string, err error, attributes ...any) {
	l.Error(message, append(attributes, "error", l.redactError(err))...)
}

// redactError returns an error with its causes.
func (l redactedLog) redactError(err error) string {
	text := err.Error()
	for e := (*fault.Error)(nil); errors.As(err, &e) && e.Cause != nil; err = e.Cause {
		text += ": " + e.Cause.Error()
	}
	return l.secrets.Redact(text)
}

// redactedMessage returns an error as an answer may have it.
func (l redactedLog) redactedMessage(err error) string {
	return l.secrets.Redact(fault.From(err).Message)
}

// Names of the tools. They are a contract: prompts, settings and clients name them.
const (
	ToolCreatePR    = "create_pr"
	ToolListPRs     = "list_prs"
	ToolGetPRStatus = "get_pr_status"
)

// OpPromote is the name of the operation that opens what a dry run has shown.
const OpPromote = "promote_proposal"

// Names of the operations by which files are read; those that are refused are in the audit by them.
const (
	ActionReadFile  = "read_file"
	ActionReadDiff  = "read_pr_diff"
	ActionListFiles = "list_files"
)

// PromoteRequest names the dry run to open.
type PromoteRequest struct {
	ID string `json:"id" required:"true" path:"id" maxLength:"64" doc:"Request id of the dry run"`

	Acknowledged []facts.Class `json:"acknowledged,omitempty" maxItems:"50" example:"destroy" doc:"Classes of facts that you have seen, where the policy has them confirmed"`
}

// The methods here run an operation for callers without an entry point of their own: prompts, resources, and programs
// that hold a Service.

// Create proposes a change. raw is the JSON object of a CreateRequest. Every call leaves one attempt in the audit; if
// it cannot be recorded, nothing is proposed. RequestID in the result names the attempt; for an error use
// operation.RequestIDOf. An error is a *fault.Error with any code of the contract.
func (s *Service) Create(ctx context.Context, caller operation.Caller, raw []byte) (CreateResult, error) {
	return callOperation[CreateResult](ctx, s, createPR, caller, raw)
}

// Promote opens the pull request that the dry run with this id has shown, for a person.
func (s *Service) Promote(ctx context.Context, caller operation.Caller, id string) (CreateResult, error) {
	raw, err := json.Marshal(PromoteRequest{ID: id})
	if err != nil {
		return CreateResult{}, err
	}
	return callOperation[CreateResult](ctx, s, promoteProposal, caller, raw)
}

// Status returns one pull request. raw is the JSON object of a StatusRequest.
func (s *Service) Status(ctx context.Context, caller operation.Caller, raw []byte) (StatusResult, error) {
	return callOperation[StatusResult](ctx, s, getPRStatus, caller, raw)
}

// List returns a page of the open pull requests of ours. raw is the JSON object of a ListRequest.
func (s *Service) List(ctx context.Context, caller operation.Caller, raw []byte) (ListResult, error) {
	return callOperation[ListResult](ctx, s, listPRs, caller, raw)
}

// ReadFile reads one file. raw is the JSON object of a ReadFileRequest.
func (s *Service) ReadFile(ctx context.Context, caller operation.Caller, raw []byte) (FileText, error) {
	return callOperation[FileText](ctx, s, readFile, caller, raw)
}

// ListFiles lists the files that may be proposed. raw is the JSON object of a ListFilesRequest.
func (s *Service) ListFiles(ctx context.Context, caller operation.Caller, raw []byte) (FileList, error) {
	return callOperation[FileList](ctx, s, listFiles, caller, raw)
}

// ReadDiff reads what one of our own pull requests changes. raw is the JSON object of a ReadDiffRequest.
func (s *Service) ReadDiff(ctx context.Context, caller operation.Caller, raw []byte) (PullDiff, error) {
	return callOperation[PullDiff](ctx, s, readDiff, caller, raw)
}

func callOperation[Out any](
	ctx context.Context, s *Service, define func(func() *Service) operation.Operation, caller operation.Caller, raw []byte,
) (Out, error) {
	o := define(func() *Service { return s })
	out, err := o.Handle(ctx, operation.Call{Caller: caller, Ceiling: s.CurrentAuthority().Tier, Arguments: raw})
	return out.(Out), err
}

// Ledger is the memory that all doors share. internal/records/store implements it. Methods return *fault.Error with the
// code internal when the store cannot be opened, read or written; the message says what the operator has to do.
type Ledger interface {
	// Reserve records the proposal, state StateReserved, before its first remote write, and takes the paths of its
	// repository, all of them or none; letter case does not tell paths apart. If a live reservation of another proposal
	// holds one of the paths, or a proposal on one of them was recorded as opened after the claim's position (so that the
	// caller's view of the provider may have missed it), nothing is recorded and that proposal is returned: the caller
	// lost a race, or found what a killed process left. Otherwise the claim's caps are asked, in the same transaction; if
	// they deny, nothing is recorded and theirs is the error.
	Reserve(ctx context.Context, p record.Proposal, claim record.Claim) (taken *record.Proposal, err error)

	// Advance records a step of a reserved proposal. conflict if it is not reserved any more: another process settled it.
	Advance(ctx context.Context, id string, to record.Progress) error

	// Finish ends a reserved proposal in to.State, releases its paths and appends the attempt to the audit, all or
	// nothing. conflict as with Advance; the attempt is then not recorded. The notices go to the outbox in the same
	// transaction.
	Finish(ctx context.Context, id string, to record.Progress, a record.Attempt, notices ...record.Notice) error

	// Adopt makes this process the holder of a proposal that another one has abandoned or left unsettled, so that only one
	// settles it. left is as the store handed it out; ok is false if anything about it has changed since: somebody else
	// has adopted or ended it. From then on the former holder's Advance and Finish are conflicts.
	Adopt(ctx context.Context, left record.Proposal) (ok bool, err error)

	// Supersede replaces a proposal that another process has abandoned or left unsettled by one of the same files: left
	// ends as failed with the attempt in the audit, and next is reserved with its paths, all or nothing. left and ok are
	// as with Adopt.
	Supersede(ctx context.Context, left, next record.Proposal, a record.Attempt) (ok bool, err error)

	// Record appends an attempt that never held a reservation to the audit: a refusal, a reused pull request, a dry run.
	// dryRun, if not nil, is recorded as a proposal in the same transaction, so that a person can look at it; the notices
	// go to the outbox.
	Record(ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice) error
}

// History answers questions about the past. internal/records/store implements it, with the errors of Ledger.
type History interface {
	// Position returns the present position of the record.
	Position(ctx context.Context) (record.Position, error)

	// ByDigest returns the proposals of the change with this digest that reached a pull request or may have, newest
	// first, at most 20: opened ones and those that still hold a reservation. Whether a pull request is still open only
	// the provider knows.
	ByDigest(ctx context.Context, digest string) ([]record.Proposal, error)

	// Usage counts as Reserve does, without reserving anything.
	Usage(ctx context.Context, provider, owner, repo string, claim record.Claim) (record.Usage, error)

	// Unfinished returns the proposals that still hold a reservation, oldest first, at most 1000.
	Unfinished(ctx context.Context) ([]record.Proposal, error)

	// Undone reports whether we have begun to remove what the proposal with this request id had written; see
	// Progress.Undone. false for one that the ledger does not know.
	Undone(ctx context.Context, id string) (bool, error)

	// UndoneBranches returns the branches of the repository's proposals that we have begun to remove at or after since.
	UndoneBranches(ctx context.Context, provider, owner, repo string, since time.Time) ([]string, error)

	// PathsOf returns the paths of the proposal that became the pull request with this number, sorted; none if the
	// ledger does not know it.
	PathsOf(ctx context.Context, provider, owner, repo string, number int) ([]string, error)

	// MadeOf returns the proposals that made the pull request with this number: the one that opened it and those that have
	// added to it, oldest first, at most 100.
	MadeOf(ctx context.Context, provider, owner, repo string, number int) ([]record.Proposal, error)

	// CooldownLifted returns who lifted the cooldown of a closed pull request, and when; zero values if it was not lifted.
	CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error)

	// FindPull returns the record of a pull request; found is false if it is none of ours.
	FindPull(ctx context.Context, key record.PullKey) (record record.PullRecord, found bool, err error)

	// Proposal returns the recorded proposal with the request id. not_found if there is none.
	Proposal(ctx context.Context, id string) (record.Proposal, error)
}

// kernelFault returns a failure as the kernel takes it. Reads that the operator's rules refuse have a row in the audit.
func kernelFault(err error) error {
	if err == nil {
		return nil
	}
	f := &operation.Fault{General: fault.From(err)}
	switch f.General.Code {
	case fault.ScopeDenied, fault.TierDenied, fault.RepoNotAllowed:
		f.Reason = operation.ReasonRules
	}
	return f
}

func invalid(argument, message, suggestion string) fault.Violation {
	return fault.Violation{Code: fault.InvalidArgument, Path: argument, Message: message, Suggestion: suggestion}
}
