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
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Options configure a Service. All are required but Live, Notifier, ProgressEvery and Step.
type Options struct {
	Registry *gitprovider.Registry
	Ledger   Ledger
	History  History
	Secrets  Secrets
	// Authority is what the operator lets this process do, for as long as it runs. Where the rules may change, Live says
	// what they are now.
	Authority Authority
	Live      func() Authority

	Log   *slog.Logger
	Clock Clock
	NewID func() string // request ids: unique, sortable by time
	Proof Proof
	// Notifier tells people; nil for nobody.
	Notifier record.Notifier
	// ProgressEvery is how often a caller hears that its call still runs; 0: every 10 s.
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

// Authority is what the operator lets this process do. It is configuration: no request type has a field for it.
type Authority struct {
	Policy policy.Policy
	Tier   gitprovider.Tier
	DryRun bool
	// ReadOnly refuses every proposal when not empty; it says why, for the caller.
	ReadOnly string
	// Unknown says why the operator's rules cannot be known, "" if they are: no file is read then, since the scope may be
	// another one.
	Unknown string
	// Session is the agent's session that this process serves, "" for none. It is how an attempt is found again, and gives
	// no rights.
	Session string
}

// mayWrite reports whether a proposal can come to a write at all.
func (a Authority) mayWrite() bool { return a.takesProposals() && !a.DryRun }

// takesProposals reports whether a proposal can pass the gates, be it in a dry run.
func (a Authority) takesProposals() bool { return a.ReadOnly == "" && a.mayPropose() }

// mayPropose reports whether the tier may propose anything.
func (a Authority) mayPropose() bool { return a.Policy.Tiers.MaxFiles(a.Tier) > 0 }

// Secrets finds credentials in texts. internal/base/content implements it.
type Secrets interface {
	// Secrets returns what looks like a credential in text. name is a label for the text.
	Secrets(ctx context.Context, name, text string) ([]content.Secret, error)
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
}

// New makes a Service.
func New(o Options) *Service {
	s := &Service{Options: o, resumed: new(sync.Map)}
	s.kernel = operation.NewKernel(operation.KernelOptions{
		Live: func() operation.Authority {
			a := s.CurrentAuthority()
			return operation.Authority{
				Tier: a.Tier, DryRun: a.DryRun, ReadOnly: a.ReadOnly, Session: a.Session,
				Rules: operation.Rules{Policy: a.Policy},
			}
		},
		Audit: o.Ledger, Redact: o.Secrets.Redact, Hide: o.Secrets.Hide, Log: o.Log, Now: o.Clock.Now, NewID: o.NewID,
		ProgressEvery: o.ProgressEvery,
	})
	return s
}

// CurrentAuthority is what the operator lets this process do now. The caller keeps it for one decision.
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

// AtMost is the same use case under a lower ceiling: its tier is the lower one of the Service's own and the given one,
// and a value that is no tier counts as tier 1. A door asks for it on behalf of a credential that the operator has
// limited, so authority still comes from configuration alone, and nothing can raise it. Both share everything else,
// what other processes left and was looked for included.
func (s *Service) AtMost(ceiling gitprovider.Tier) *Service {
	if ceiling >= s.CurrentAuthority().Tier {
		return s
	}
	return &Service{Options: s.Options, kernel: s.kernel, resumed: s.resumed,
		ceiling: max(ceiling, gitprovider.TierObserve)}
}

// step tells tests how far a creation got.
func (s *Service) step(name string) {
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

// log is the log of the process with the attributes.
func (s *Service) log(attributes ...any) redactedLog {
	return redactedLog{s.Log.With(attributes...), s.Secrets}
}

// rules are the operator's settings that gates apply.
type rules struct {
	Authority
	secrets  Secrets
	exported func(ctx context.Context) error // Proof.Exported
}

// redactedLog is a log in which errors have their causes, and no value of a token of ours.
type redactedLog struct {
	*slog.Logger
	secrets Secrets
}

func (l redactedLog) warn(message string, err error, attributes ...any) {
	l.Warn(message, append(attributes, "error", l.text(err))...)
}

func (l redactedLog) error(message string, err error, attributes ...any) {
	l.Error(message, append(attributes, "error", l.text(err))...)
}

// text is an error with its causes.
func (l redactedLog) text(err error) string {
	text := err.Error()
	for e := (*fault.Error)(nil); errors.As(err, &e) && e.Cause != nil; err = e.Cause {
		text += ": " + e.Cause.Error()
	}
	return l.secrets.Redact(text)
}

// shown is an error as an answer may have it.
func (l redactedLog) shown(err error) string { return l.secrets.Redact(fault.From(err).Message) }
