// Package prflow is the one use case: propose a change as a pull request, list and read pull requests. Every door (MCP,
// REST, dashboard, command line) calls it, and it holds the only code path that can change a repository.
package prflow

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/record"
)

// Options are what a Service is made of. Authority (tier, dry run, read-only, policy) is configuration: no request type
// has a field for it.
type Options struct {
	Registry *gitprovider.Registry
	Ledger   Ledger
	History  History
	Secrets  Secrets
	// Proposals gives Promote what it is to open; nil where no door promotes.
	Proposals Proposals

	Policy Policy
	Tier   gitprovider.Tier
	DryRun bool
	// Session is the agent's session that this process serves, "" for none. It too is configuration: it is how an attempt
	// is found again, and gives no rights.
	Session string
	// ReadOnly refuses every proposal when not empty; it says why, for the caller.
	ReadOnly string

	Log   *slog.Logger
	Now   func() time.Time
	NewID func() string // request ids: unique, sortable by time
	// Sleep waits for d or until ctx is done. Tests replace it.
	Sleep func(ctx context.Context, d time.Duration)
	// Key returns the secret key of the marks, at least 32 bytes. It is called when a proposal needs it.
	Key func() ([]byte, error)
	// Notifier tells people; nil for nobody.
	Notifier record.Notifier
	// ProgressEvery is how often a caller hears that a write still takes; 0: every 10 s.
	ProgressEvery time.Duration
	// Step, if not nil, is called after each step of a creation has taken effect: tests kill the process there.
	Step func(step string)
}

// Policy is the operator's rules; see package policy.
type Policy = policy.Policy

// Secrets finds credentials in texts. internal/content implements it.
type Secrets interface {
	// Secrets returns what looks like a credential in text. name is a label for the text.
	Secrets(ctx context.Context, name, text string) ([]content.Secret, error)
	// Spread returns the indices of texts that together hold one of our own credentials in parts, or nil; len(texts) stands
	// for parts that only show where the texts meet.
	Spread(texts []string) []int
	// Redact replaces the values of our own tokens.
	Redact(text string) string
}

// Service is the use case. It is safe for concurrent use.
type Service struct {
	Options
	resumed *atomic.Bool // whether what other processes left was looked for; shared with those of AtMost
}

// New makes a Service. All options are required but Proposals, ReadOnly, Notifier and Step.
func New(o Options) *Service { return &Service{Options: o, resumed: new(atomic.Bool)} }

// step tells tests how far a creation got.
func (s *Service) step(name string) {
	if s.Step != nil {
		s.Step(name)
	}
}

// notices makes the notices for an event, if anybody wants them.
func (s *Service) notices(event record.Event, a record.Attempt) []record.Notice {
	if s.Notifier == nil || event == record.EventRefused && !s.Policy.NotifyRefused {
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

// Bounds of time. They are generous: every provider has tighter limits of its own.
const (
	// contentTimeout bounds the search for secrets: text made to be slow takes some 20 s a MiB, ordinary text under 1 s.
	contentTimeout = 60 * time.Second

	writeTimeout  = 4 * time.Minute  // from the reservation to the last remote write
	recordTimeout = 15 * time.Second // for the record of an attempt whose caller has gone
)

// resolve finds the provider of a repository that a reader asks for, and keeps to the operator's allowlist.
func (s *Service) resolve(repo gitprovider.RepoRef) (gitprovider.Resolution, error) {
	res, err := s.Registry.Resolve(repo)
	if err != nil {
		return res, err
	}
	if v := s.repoViolation(res); v != nil {
		return res, &fault.Error{Code: v.Code, Message: v.Message, Violations: []fault.Violation{*v}}
	}
	return res, nil
}
