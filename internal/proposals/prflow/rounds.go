package prflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// The rounds in which a server settles what was left, and how often each is due.
const (
	resumeRound = "settle"
	resumeEvery = time.Minute
	sweepRound  = "sweep"
	sweepEvery  = time.Hour
)

// RoundsTick is the interval at which Rounds checks whether a round is due.
const RoundsTick = resumeEvery / 2

// RoundRecords is the state shared by the processes on one store. internal/records/store implements it; errors are
// faults.
type RoundRecords interface {
	// ClaimRound reports whether the caller should do the named work now: no process has begun it within the interval.
	ClaimRound(ctx context.Context, name string, every time.Duration) (mine bool, next time.Time, err error)
	// Repositories returns the repositories that the records name.
	Repositories(ctx context.Context) ([]record.RepoName, error)
}

// PeriodicJob settle what killed processes and unclear answers have left, as long as a server runs. Of several servers
// on one store one does each round. They are not safe for concurrent use.
type PeriodicJob struct {
	service *Service
	records RoundRecords
	sweeper *Sweeper
}

// NewPeriodicJob makes them.
func NewPeriodicJob(s *Service, records RoundRecords) *PeriodicJob {
	return &PeriodicJob{service: s, records: records, sweeper: s.NewSweeper()}
}

// Run settles what is there, and then in rounds, until ctx ends. It looks whether one is due at each tick; see
// RoundsTick. Where this process may not write it returns at once.
func (r *PeriodicJob) Run(ctx context.Context, ticks <-chan time.Time) {
	if !r.service.CurrentAuthority().mayWrite() {
		return
	}
	r.resume(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if r.due(ctx, resumeRound, resumeEvery) {
			r.resume(ctx)
		}
		if r.due(ctx, sweepRound, sweepEvery) {
			r.sweep(ctx)
		}
	}
}

// Sweep is Sweeper.Sweep in every repository that the records or the allowlists name.
func (r *PeriodicJob) Sweep(ctx context.Context) ([]Swept, error) {
	repos, err := r.records.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	policy := r.service.CurrentAuthority().Policy
	return r.sweeper.Sweep(ctx, KnownRepositories(repos, policy, r.service.Reader().ProviderOf))
}

func (r *PeriodicJob) due(ctx context.Context, round string, every time.Duration) bool {
	mine, _, err := r.records.ClaimRound(ctx, round, every)
	r.warn(ctx, "a round was not begun: "+round, err)
	return mine
}

func (r *PeriodicJob) resume(ctx context.Context) {
	settled, err := r.service.Resume(ctx)
	r.warn(ctx, "unfinished proposals not looked for", err)
	for _, p := range settled {
		r.service.Log.Info("unfinished proposal", "request_id", p.RequestID, "repo", p.Repo, "live", p.Live, "late_until",
			p.Late,
			"error", p.Error)
	}
}

func (r *PeriodicJob) sweep(ctx context.Context) {
	swept, err := r.Sweep(ctx)
	r.warn(ctx, "branches without a pull request not looked for", err)
	for _, b := range swept {
		r.service.Log.Info("branch without a pull request", "repo", b.Repo, "branch", b.Branch, "error", b.Error)
	}
}

func (r *PeriodicJob) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.service.Log.Warn(what, "error", fault.From(err).Message)
	}
}

// Settled reports on a proposal that a process had left unfinished.
type Settled struct {
	RequestID string `json:"request_id"`
	Repo      string `json:"repo"` // provider:owner/name
	Branch    string `json:"branch"`
	// Live says that another process still works on it; it was left alone.
	Live bool `json:"live"`
	// Late is the time until which writes of its process may still arrive (RFC 3339, UTC): it was left alone, unless its
	// pull request was there. "" if that time is past, or the pull request was there.
	Late  string `json:"late_until,omitempty"`
	Error string `json:"error,omitempty"` // why it could not be settled now
	// Number is the number of the pull request that it became or was added to; 0 for none.
	Number int            `json:"number,omitempty"`
	Key    record.PullKey `json:"-"`
}

// Resume settles every proposal that a process which ended has left, or whose provider gave no clear answer: an open
// pull request is recorded, a branch without one is removed if it still is ours, once nothing can arrive any more that
// was sent for it. It goes on after a failure, which the entry reports.
func (s *Service) Resume(ctx context.Context) ([]Settled, error) {
	settler := s.settler()
	left, err := s.History.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Settled, 0, len(left))
	for _, p := range left {
		entry := Settled{RequestID: p.ID, Repo: p.Provider + ":" + p.Owner + "/" + p.Repo, Branch: p.Branch}
		if entry.Live = !settler.abandoned(p); !entry.Live {
			var late *lateError
			if err := settler.settleProposal(ctx, p); errors.As(err, &late) {
				entry.Late = timestamp(late.until)
			} else if fault.CodeOf(err) == fault.Paused {
				entry.Error = settler.log.redactedMessage(err)
			} else if err != nil {
				entry.Error = settler.log.redactedMessage(err)
				settler.log.error("proposal not settled", err, "request_id", p.ID)
			} else if now, err := s.History.Proposal(ctx, p.ID); err == nil && now.State == record.StateOpened {
				entry.Key = record.PullKey{Provider: now.Provider, Owner: now.Owner, Repo: now.Repo, Number: now.PRNumber}
				entry.Number = now.PRNumber
			}
		}
		out = append(out, entry)
	}
	return out, nil
}

// settleBudget bounds how long a proposal waits for what others have left in its repository.
const settleBudget = 5 * time.Second

// settleIn settles what processes that ended have left in a repository, whatever its files, and begins no more after
// settleBudget. found reports whether there was any. What could not be settled keeps its files reserved; a caller that
// proposes them settles it then, and so does a round of a server.
func (s *settler) settleIn(ctx context.Context, provider string, repo gitprovider.RepoRef) (found bool) {
	unfinished, err := s.history.Unfinished(ctx)
	if err != nil {
		s.log.warn("unfinished proposals not looked for", err)
	}
	began := s.clock.Now()
	for _, p := range unfinished {
		here := p.Provider == provider && strings.EqualFold(p.Owner+"/"+p.Repo, repo.String())
		if !here || !s.abandoned(p) {
			continue
		}
		if s.clock.Now().Sub(began) > settleBudget || ctx.Err() != nil {
			break
		}
		found = true
		var late *lateError // what was sent may still arrive: not known yet, and nothing to warn of
		if err := s.settleProposal(ctx, p); err != nil && !errors.As(err, &late) {
			s.log.warn("proposal not settled", err, "request_id", p.ID)
		}
	}
	return found
}

// resumeOnce settles what was left in the repository of the creation before the first one there of this process reads
// it. A failure does not make the creation fail.
func (c *creation) resumeOnce(ctx context.Context) {
	if !c.service.CurrentAuthority().mayWrite() {
		return
	}
	provider, repo := c.evidence.resolution.Provider.Name(), c.request.repo
	if _, before := c.service.resumed.LoadOrStore(provider+":"+strings.ToLower(repo.String()), true); !before {
		c.evidence.settler.settleIn(ctx, provider, repo)
	}
}

// Settling is the act of a person who has settled what was left. All fields are required.
type Settling struct {
	Kernel func() *operation.Kernel
	Rounds func() *PeriodicJob
	// Look brings the record of a pull request up to date with its provider: it may have ended since.
	Look func(ctx context.Context, key record.PullKey, by record.Door) error
	Log  func() *slog.Logger
}

// SettledList lists the settled proposals. Entries without a request id are branches without a record.
type SettledList struct {
	Items []Settled `json:"items"`
}

// Operation settles what killed processes and unclear answers have left.
func (s Settling) Operation() operation.Operation {
	return operation.Define(s.Kernel, "", operation.Operation{
		Name: "resume", Action: "create_pr.resume", Summary: "Settle what killed processes and unclear answers have left",
		Effect:  operation.Write,
		Command: "pr resume", Needs: operation.Needs{For: operation.Person, Policy: true, Writable: true},
		Shown: operation.Shown{
			Fresh: true,
			Help: "resume looks at the provider for each proposal that a process left behind, or whose provider gave no clear " +
				"answer: an open\n" +
				"pull request is recorded, a branch without one is removed if it is still ours. What was sent to a forge may " +
				"arrive late, so\n" +
				"there a branch is removed no earlier than a quarter of an hour after its proposal; the identical proposal goes " +
				"on with it at\n" +
				"once. Then resume looks, in the repositories that the records or the allowlist name, for branches of ours " +
				"without a record:\n" +
				"those that carry our mark, are an hour old and have no pull request are removed. What another process is " +
				"working on is left\n" +
				"alone. It ends with exit code 4 if something could not be settled. Before its first proposal in a repository, an\n" +
				"mcp-server does the first part there, and claudeops serve does both everywhere as long as it runs.",
			Said: func(out any, _ bool) string { return out.(SettledList).terminalText() },
			Failed: func(out any) bool {
				return slices.ContainsFunc(out.(SettledList).Items, func(s Settled) bool { return s.Error != "" })
			},
		},
	}, operation.CallSpec[struct{}]{Timeout: operation.Unbounded}, s.resumeSettling)
}

func (s Settling) resumeSettling(ctx context.Context, _ operation.Call, _ struct{}) (SettledList, error) {
	list, rounds := SettledList{[]Settled{}}, s.Rounds()
	settled, err := rounds.service.Resume(ctx)
	if err != nil {
		return list, err
	}
	list.Items = append(list.Items, settled...)
	for _, one := range settled {
		if one.Number == 0 {
			continue
		}
		if err := s.Look(ctx, one.Key, record.DoorCLI); err != nil { // the next round of a server looks at it
			s.Log().Warn("pull request not looked at", "number", one.Number, "error", fault.From(err).Message)
		}
	}
	swept, err := rounds.Sweep(ctx)
	for _, b := range swept {
		list.Items = append(list.Items, Settled{Repo: b.Repo, Branch: b.Branch, Error: b.Error})
	}
	return list, err
}

// terminalText returns the list as the terminal has it.
func (l SettledList) terminalText() string {
	lines := []string{}
	for _, s := range l.Items {
		what := "settled: nothing of it remains"
		switch {
		case s.Live:
			what = "is being worked on"
		case s.Late != "":
			what = fmt.Sprintf("waits until %s: what was sent to the provider may still arrive", s.Late)
		case s.Error != "" && s.RequestID == "":
			what = "branches not settled: " + s.Error
		case s.Error != "":
			what = "not settled: " + s.Error
		case s.RequestID == "":
			what = "removed: it had no pull request"
		case s.Number > 0:
			what = fmt.Sprintf("settled: it is #%d", s.Number)
		}
		if s.RequestID == "" {
			lines = append(lines, s.Repo+"  "+s.Branch+"  "+what)
			continue
		}
		lines = append(lines, s.RequestID+"  "+s.Repo+"  "+what)
	}
	if len(lines) == 0 {
		return "Nothing was left unfinished."
	}
	return strings.Join(lines, "\n")
}
