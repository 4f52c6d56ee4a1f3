package store

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// Lazy is a Store that is opened by the first call that needs it. A failure to open is the error of that call; the next
// one tries again. It is safe for concurrent use.
type Lazy struct {
	dir    string
	opts   Options
	turn   chan struct{} // holds a token while someone looks at the fields below
	store  *Store        // nil until opened
	closed bool
}

// NewLazy returns a store that touches neither disk nor network yet; see Open for dir and opts.
func NewLazy(dir string, opts Options) *Lazy {
	return &Lazy{dir: dir, opts: opts, turn: make(chan struct{}, 1)}
}

// Path is Store.Path, whether the database exists or not.
func (l *Lazy) Path() string {
	if l.opts.DatabaseURL == "" {
		return filepath.Join(l.dir, databaseName)
	}
	config, err := parseURL(l.opts.DatabaseURL, l.opts.BusyTimeout)
	if err != nil {
		return "PostgreSQL"
	}
	return nameOf(config)
}

// Close closes the store if it was opened. Calls of other methods fail from then on; further calls of Close do nothing.
func (l *Lazy) Close() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// Store returns the opened store.
func (l *Lazy) Store(ctx context.Context) (*Store, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, fault.From(ctx.Err())
	}
	if l.closed {
		return nil, fault.Wrap(errors.New("the store is closed"), fault.Internal,
			"claudeops is shutting down; try again later")
	}
	if l.store != nil {
		return l.store, nil
	}
	var err error
	l.store, err = Open(ctx, l.dir, l.opts)
	return l.store, err
}

// do opens the store if need be and calls fn with it.
func (l *Lazy) do(ctx context.Context, fn func(*Store) error) error {
	s, err := l.Store(ctx)
	if err != nil {
		return err
	}
	return fn(s)
}

// get is do for a method with a result.
func get[T any](ctx context.Context, l *Lazy, fn func(*Store) (T, error)) (out T, err error) {
	err = l.do(ctx, func(s *Store) error {
		out, err = fn(s)
		return err
	})
	return out, err
}

// Reserve implements prflow.Ledger.
func (l *Lazy) Reserve(ctx context.Context, p record.Proposal, claim record.Claim) (*record.Proposal, error) {
	return get(ctx, l, func(s *Store) (*record.Proposal, error) { return s.Reserve(ctx, p, claim) })
}

// Advance implements prflow.Ledger; see Store.Advance.
func (l *Lazy) Advance(ctx context.Context, id string, to record.Progress) error {
	return l.do(ctx, func(s *Store) error { return s.Advance(ctx, id, to) })
}

// Finish implements prflow.Ledger; see Store.Finish.
func (l *Lazy) Finish(
	ctx context.Context, id string, to record.Progress, a record.Attempt, notices ...record.Notice,
) error {
	return l.do(ctx, func(s *Store) error { return s.Finish(ctx, id, to, a, notices...) })
}

// Record implements prflow.Ledger.
func (l *Lazy) Record(
	ctx context.Context, a record.Attempt, dryRun *record.Proposal, notices ...record.Notice,
) error {
	return l.do(ctx, func(s *Store) error { return s.Record(ctx, a, dryRun, notices...) })
}

// Adopt implements prflow.Ledger; see Store.Adopt.
func (l *Lazy) Adopt(ctx context.Context, left record.Proposal) (bool, error) {
	return get(ctx, l, func(s *Store) (bool, error) { return s.Adopt(ctx, left) })
}

// Proposal is Store.Proposal.
func (l *Lazy) Proposal(ctx context.Context, id string) (record.Proposal, error) {
	return get(ctx, l, func(s *Store) (record.Proposal, error) { return s.Proposal(ctx, id) })
}

// InsertPR is Store.InsertPR.
func (l *Lazy) InsertPR(
	ctx context.Context, repo string, pr gitprovider.PullRequest,
) (gitprovider.PullRequest, error) {
	return get(ctx, l, func(s *Store) (gitprovider.PullRequest, error) { return s.InsertPR(ctx, repo, pr) })
}

// PR is Store.PR.
func (l *Lazy) PR(
	ctx context.Context, repo string, number int,
) (pr gitprovider.PullRequest, reviews []gitprovider.Review, err error) {
	err = l.do(ctx, func(s *Store) error {
		pr, reviews, err = s.PR(ctx, repo, number)
		return err
	})
	return pr, reviews, err
}

// PRs is Store.PRs.
func (l *Lazy) PRs(ctx context.Context, repo string, state gitprovider.State) ([]gitprovider.PullRequest, error) {
	return get(ctx, l, func(s *Store) ([]gitprovider.PullRequest, error) { return s.PRs(ctx, repo, state) })
}

// UpdatePR is Store.UpdatePR.
func (l *Lazy) UpdatePR(
	ctx context.Context, repo string, number int, change func(*gitprovider.PullRequest) error,
) error {
	return l.do(ctx, func(s *Store) error { return s.UpdatePR(ctx, repo, number, change) })
}

// AddReview is Store.AddReview.
func (l *Lazy) AddReview(ctx context.Context, repo string, number int, review gitprovider.Review) error {
	return l.do(ctx, func(s *Store) error { return s.AddReview(ctx, repo, number, review) })
}

// Audit is Store.Audit.
func (l *Lazy) Audit(ctx context.Context, q record.AuditQuery) ([]AuditRow, error) {
	return get(ctx, l, func(s *Store) ([]AuditRow, error) { return s.Audit(ctx, q) })
}

// AuditEntry is Store.AuditEntry.
func (l *Lazy) AuditEntry(ctx context.Context, ref string) (AuditRow, error) {
	return get(ctx, l, func(s *Store) (AuditRow, error) { return s.AuditEntry(ctx, ref) })
}

// VerifyAudit is Store.VerifyAudit.
func (l *Lazy) VerifyAudit(ctx context.Context, expectHead string) (record.AuditReport, error) {
	return get(ctx, l, func(s *Store) (record.AuditReport, error) { return s.VerifyAudit(ctx, expectHead) })
}

// Head is Store.Head.
func (l *Lazy) Head(ctx context.Context) (seq int64, hash string, err error) {
	err = l.do(ctx, func(s *Store) error {
		seq, hash, err = s.Head(ctx)
		return err
	})
	return seq, hash, err
}

// Ping is Store.Ping.
func (l *Lazy) Ping(ctx context.Context) error {
	return l.do(ctx, func(s *Store) error { return s.Ping(ctx) })
}

// Check is Store.Check.
func (l *Lazy) Check(ctx context.Context) error {
	return l.do(ctx, func(s *Store) error { return s.Check(ctx) })
}
