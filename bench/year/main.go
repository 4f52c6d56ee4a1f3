// Command year lives through months of a server's records in minutes: scheduled sessions and skipped ones, refusals,
// proposals and revisions, changes of the policy, the daily retention, backups. It prints what the records take, and
// what the process does, every ten days, and fails if they grow by more than what is kept for good.
//
//	go run ./bench/year [-days 100] [-every 1h]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/records/store"
)

// What a day and a session are made of. A session of 60 events of 3 kB is as large as those that were measured.
const (
	events        = 60
	eventBytes    = 3000
	refusedADay   = 10
	proposedADay  = 2
	keepOutput    = 30 * 24 * time.Hour
	policyEvery   = 7
	backupEvery   = 10
	maxGrowthADay = 200 << 10 // bytes that stay for good, of one day with hourly sessions
)

func main() {
	days := flag.Int("days", 100, "how many days")
	every := flag.Duration("every", time.Hour, "how often a session starts")
	flag.Parse()
	if err := run(context.Background(), *days, *every); err != nil {
		fmt.Fprintln(os.Stderr, "year:", err)
		os.Exit(1)
	}
}

// life is a server's records and its clock.
type life struct {
	*store.Store
	dir   string
	now   time.Time
	every time.Duration
	ids   int
	sizes []int64 // of the file, at the end of each day
}

func run(ctx context.Context, days int, every time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "claudeops-year-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l := &life{dir: dir, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), every: every}
	l.Store, err = store.Open(ctx, filepath.Join(dir, "state"),
		store.Options{Now: func() time.Time { return l.now }, NoSync: true})
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Println("day   rows  records kB  resident kB  goroutines  descriptors")
	if err := l.report(ctx, 0); err != nil {
		return err
	}
	for day := 1; day <= days; day++ {
		if err := l.day(ctx, day); err != nil {
			return fmt.Errorf("day %d: %w", day, err)
		}
		size, err := l.Size(ctx)
		if err != nil {
			return err
		}
		l.sizes = append(l.sizes, size)
		if day%10 == 0 || day == days {
			if err := l.report(ctx, day); err != nil {
				return err
			}
		}
	}
	whole, err := l.Audit.Verify(ctx, "")
	if err != nil || !whole.OK() {
		return fmt.Errorf("the audit is not whole: %s, %w", whole.Problem, err)
	}
	if err := l.Close(); err != nil {
		return err
	}
	fmt.Printf("%d days of a session every %s in %s; %d rows of the audit are whole\n", days, every,
		time.Since(began).Round(time.Second), whole.Rows)
	return l.grown(days)
}

// day is what happens on one day, and what the server does by itself at its end.
func (l *life) day(ctx context.Context, day int) error {
	policy := fmt.Sprintf("%064d", day/policyEvery)
	for n := range int(24 * time.Hour / l.every) {
		skipped := (day*24+n)%13 == 0
		if err := l.session(ctx, skipped); err != nil {
			return err
		}
		l.now = l.now.Add(l.every)
	}
	for n := range refusedADay {
		if err := l.Ledger.Record(ctx, l.attempt(day, n, policy, record.OutcomeRefused), nil); err != nil {
			return err
		}
	}
	for n := range proposedADay {
		for _, outcome := range []record.Outcome{record.OutcomeOpened, record.OutcomeRevised} {
			if err := l.propose(ctx, l.attempt(day, refusedADay+n, policy, outcome)); err != nil {
				return err
			}
		}
	}
	_, err := l.Retention.Prune(ctx, l.now.Add(-keepOutput), func(removed []record.Pruned) record.Attempt {
		return record.Attempt{Time: l.now, RequestID: l.id(), Action: "prune", Outcome: record.OutcomeDone,
			Message: fmt.Sprint(removed)}
	}, store.KindSessionOutput)
	if err == nil && day%backupEvery == 0 {
		folder := filepath.Join(l.dir, "backup")
		if _, _, err = l.Backup(ctx, folder); err == nil {
			err = os.RemoveAll(folder)
		}
	}
	return err
}

func (l *life) id() string {
	l.ids++
	return fmt.Sprintf("%026d", l.ids)
}

// session is one of the schedule, which says much, or one that was due and did not start.
func (l *life) session(ctx context.Context, skipped bool) error {
	r := sessions.Record{ID: l.id(), StartedAt: l.now, Ending: sessions.Ending{State: sessions.StateRunning},
		Task: sessions.Task{Tier: gitprovider.TierObserve, Trigger: sessions.TriggerSchedule, Model: "haiku"}}
	if skipped {
		r.State, r.Cause, r.EndedAt = sessions.StateSkipped, sessions.CauseBusy, l.now
		return l.AgentSessions.BeginSession(ctx, r)
	}
	if err := l.AgentSessions.BeginSession(ctx, r); err != nil {
		return err
	}
	var said []sessions.Event
	for seq := 1; seq <= events; seq++ {
		text := fmt.Sprintf("%s %d: ", r.ID, seq) + strings.Repeat("the disk of node-3 is 71% full; ", eventBytes/32)
		said = append(said, sessions.Event{Seq: seq, Time: l.now, Kind: "text", Text: text})
	}
	if err := l.AgentSessions.AppendEvents(ctx, r.ID, said); err != nil {
		return err
	}
	r.State, r.EndedAt, r.Report = sessions.StateSucceeded, l.now.Add(5*time.Minute), strings.Repeat("All is well. ", 40)
	r.Usage = sessions.Usage{InputTokens: 9000, OutputTokens: 1200, CostUSD: 0.03, CostSource: sessions.CostClient}
	return l.AgentSessions.SaveSession(ctx, r)
}

func (l *life) attempt(day, n int, policy string, outcome record.Outcome) record.Attempt {
	a := record.Attempt{Time: l.now, RequestID: l.id(), Door: record.DoorMCP, Caller: "claude-code/2.1",
		Tier: gitprovider.TierInvestigate, Action: record.ActionCreate, Provider: "local", Owner: "joe", Repo: "infra",
		Base: "main", Title: fmt.Sprintf("Watch disk %d", n), Paths: []string{fmt.Sprintf("checks/d%d-%d.md", day, n)},
		Policy: policy, Outcome: outcome, Duration: 40 * time.Millisecond}
	a.Digest = a.RequestID
	if outcome == record.OutcomeRefused {
		a.Code, a.Message = fault.ScopeDenied, "1 path is outside the scope"
		a.Verdicts = []record.Verdict{{Gate: record.GateScope, Ruling: record.Deny, Violations: []fault.Violation{{
			Code: a.Code, Path: a.Paths[0], Rule: "prompts/**", Message: "the path is protected"}}}}
	}
	return a
}

// propose reserves and finishes a proposal, which opens a pull request or adds to one.
func (l *life) propose(ctx context.Context, a record.Attempt) error {
	p := record.Proposal{ID: a.RequestID, CreatedAt: l.now, Door: a.Door, Caller: a.Caller, Tier: a.Tier,
		Provider: a.Provider, Owner: a.Owner, Repo: a.Repo, Base: a.Base, BaseCommit: strings.Repeat("ab", 20),
		ChangeType: gitprovider.TypeCheck, Title: a.Title, Body: "It was full.\n", Digest: a.Digest,
		Files: []gitprovider.FileChange{{Path: a.RequestID + ".md", Action: gitprovider.ActionCreate,
			Content: strings.Repeat("# Disk\n", 100)}}}
	if taken, err := l.Ledger.Reserve(ctx, p, record.Claim{Seen: 1 << 40}); err != nil || taken != nil {
		return fmt.Errorf("reserved by %v: %w", taken, err)
	}
	a.PRNumber = l.ids
	return l.Ledger.Finish(ctx, p.ID, record.Progress{State: record.StateOpened, PRNumber: a.PRNumber}, a)
}

// report prints how it stands.
func (l *life) report(ctx context.Context, day int) error {
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	rows, _, err := l.Audit.Head(ctx)
	descriptors, _ := os.ReadDir("/proc/self/fd") // nothing on other systems
	fmt.Printf("%3d %6d %11d %12d %11d %12d\n", day, rows, size>>10, resident()>>10, runtime.NumGoroutine(),
		len(descriptors))
	return err
}

// resident is the memory of this process in bytes; 0 where the system does not tell.
func resident() (bytes int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var all, here int64
	if _, err := fmt.Sscan(string(text), &all, &here); err != nil {
		return 0
	}
	return here * int64(os.Getpagesize())
}

// grown fails if the records go on to grow once as much is removed each day as comes.
func (l *life) grown(days int) error {
	from := int(keepOutput/(24*time.Hour)) + 5
	if days <= from {
		return nil
	}
	perDay := (l.sizes[days-1] - l.sizes[from]) / int64(days-from)
	fmt.Printf("after day %d they grew by %d kB a day\n", from, perDay>>10)
	if most := int64(maxGrowthADay) * int64(max(time.Hour/l.every, 1)); perDay > most {
		return fmt.Errorf("the records grew by %d kB a day, more than %d", perDay>>10, most>>10)
	}
	return nil
}
