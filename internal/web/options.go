package web

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/doctor"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/review"
	"github.com/claudeops/claudeops/internal/webhook"
)

// Flow is the use case that the handlers call; *prflow.Service is one.
type Flow interface {
	Create(ctx context.Context, caller operation.Caller, raw []byte) (prflow.CreateResult, error)
	Promote(ctx context.Context, caller operation.Caller, id string) (prflow.CreateResult, error)
	List(ctx context.Context, raw []byte) (prflow.ListResult, error)
	Status(ctx context.Context, raw []byte) (prflow.StatusResult, error)
	// Reject records a proposal that never became a call.
	Reject(ctx context.Context, caller operation.Caller, code fault.Code, message string)
}

// Records is what the handlers read of the record. Errors are faults.
type Records interface {
	Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error)
	AttemptsOf(ctx context.Context, requestID string) ([]record.RecordedAttempt, error)
	Proposal(ctx context.Context, id string) (record.Proposal, error)
	Ping(ctx context.Context) error
}

// Summaries is what the overview asks of the record. Errors are faults.
type Summaries interface {
	RefusalsByGate(ctx context.Context, since time.Time) ([]record.GateCount, error)
	ProposalCounts(ctx context.Context) (map[record.ProposalState]int, error)
	Repositories(ctx context.Context) ([]record.RepoName, error)
	WaitingDryRuns(ctx context.Context, since time.Time) ([]record.Proposal, error)
	Unfinished(ctx context.Context) ([]record.Proposal, error)
}

// Reader reads at providers for people; *prflow.Service is one.
type Reader interface {
	ListAt(ctx context.Context, provider, owner, name string) ([]gitprovider.PullRequest, error)
	StatusAt(ctx context.Context, provider, owner, name string, number int) (gitprovider.Status, error)
	ProviderOf(owner, name string) string
	Compare(ctx context.Context, p record.Proposal) (prflow.Comparison, error)
}

// Reviewer is what people do with pull requests that no forge has pages for; *review.Service is one. Errors are faults.
type Reviewer interface {
	// Reviews reports whether the pull requests of the provider are reviewed here.
	Reviews(provider string) bool
	Show(ctx context.Context, provider string, ref gitprovider.RepoRef, number int) (review.Detail, error)
	// Do does what a person decides, and records it.
	Do(ctx context.Context, r review.Request) (review.Outcome, error)
	// Refused records a decision that was refused before Do was asked. Its Verb may be empty.
	Refused(ctx context.Context, r review.Request, why error) error
}

// Audit is the record as evidence. Errors are faults.
type Audit interface {
	Page(ctx context.Context, q AuditQuery) ([]record.RecordedAttempt, error)
	Verify(ctx context.Context, expectHead string) (AuditReport, error)
	// VerifyAfter verifies what was added since a report that was OK.
	VerifyAfter(ctx context.Context, known AuditReport) (AuditReport, error)
	// Head is the number of the last row; 0 if there is none.
	Head(ctx context.Context) (int64, error)
}

// AuditQuery selects rows of the audit, newest first unless Ascending. Every field that is set narrows it.
type AuditQuery struct {
	After, Before int64
	Ascending     bool
	Limit         int

	Repo, Outcome, Code, Caller, RequestID string
	Pull                                   string // state of the pull request that the attempt opened, as last seen

	Since, Until time.Time
}

// Replies remembers what was answered under an Idempotency-Key. Errors are faults.
type Replies interface {
	// TakeKey takes a key of a caller for a body. It returns what was answered before, status 0 for nothing yet; conflict
	// if the key stands for another body.
	TakeKey(ctx context.Context, caller, key, bodyHash string, lifetime time.Duration) (Reply, error)
	// KeepReply notes what was answered. The first answer stays.
	KeepReply(ctx context.Context, caller, key string, reply Reply) error
}

// Reply is an answer that may have to be given again.
type Reply struct {
	Status int
	Body   []byte
}

// Finding is one line of what doctor says.
type Finding = doctor.Finding

// Pulls is what was last seen of the pull requests that we opened. Errors are faults.
type Pulls interface {
	// PullRecords returns the records of those that are ours.
	PullRecords(ctx context.Context, keys []record.PullKey) (map[record.PullKey]record.PullRecord, error)
}

// Hooks is what the webhooks of forges lead to; *follow.Follower is one.
type Hooks interface {
	// Accept lets the pull requests that a delivery is about be looked at; taken is false if none is ours. conflict if the
	// delivery was taken before. It asks no provider and does not wait for the look.
	Accept(ctx context.Context, provider string, d webhook.Delivery) (taken bool, err error)
}

// Options are what a Server is made of. All are required unless it says otherwise.
type Options struct {
	// Flow is the use case under a ceiling; see prflow.Service.AtMost.
	Flow     func(ceiling gitprovider.Tier) Flow
	Records  Records
	Audit    Audit
	Replies  Replies
	Summary  Summaries
	Reader   Reader
	Reviewer Reviewer
	Pulls    Pulls
	Hooks    Hooks
	// Webhooks are the senders that are listened to.
	Webhooks       []Webhook
	Sessions       Sessions
	SessionRecords SessionRecords
	Access         *access.Gatekeeper
	Registry       *gitprovider.Registry
	// Policy is the effective policy, or why the configured one cannot be read.
	Policy func() (policy.Policy, error)
	Doctor func(ctx context.Context) []Finding

	Tier     gitprovider.Tier
	DryRun   bool
	ReadOnly string // why no proposals are taken, or ""
	Version  string

	// Remaining is how many requests each provider last said are left, by name; nil where no provider says so.
	Remaining func() map[string]int
	Latency   *ProviderLatency // of requests to providers; nil where nobody measures them
	// Topics are what pages show beside the record, and what tells when it changes; may be empty.
	Topics []Topic
	Live   Live

	Network Network
	Redact  func(text string) string // keeps the values of our own tokens out of what a handler renders
	Log     *slog.Logger
	Now     func() time.Time
	NewID   func() string // request ids
}

// Network says how the server is reached.
type Network struct {
	// Loopback says that only this machine can connect, so that a caller without credentials may be let read, if the operator
	// wants it (access.Options.AnonymousRead). It must be false where a proxy is configured: strangers come from loopback then.
	Loopback bool
	// AnyIP accepts every IP address in Host, for a listener on all interfaces. A page that rebinds a name cannot send one.
	AnyIP bool
	// Hosts are the names and addresses, without port, that Host may have beside those of loopback.
	Hosts []string
	// BasePath is the path below which everything is served: "" or "/ops", without a slash at its end.
	BasePath string
	// TrustedProxies are the networks whose forwarded headers are believed. Those of all others are ignored.
	TrustedProxies []netip.Prefix
	// ProxyUserHeader carries the user that a trusted proxy has recognised; "" for none.
	ProxyUserHeader string
}
