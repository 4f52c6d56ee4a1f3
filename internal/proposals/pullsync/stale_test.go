package pullsync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

const day = 24 * time.Hour

var staleScanner = textscan.NewScanner(nil) //nolint:gochecknoglobals // its rules take long to load

// staleWorld is a pull request of ours at a forge, with the Follower and the flow of a server over a real store.
type staleWorld struct {
	bed
	fake   *forgetest.Fake
	people *memhost.World
	flow   prflow.Options
	follow pullsync.Options
	number int
}

func (w *staleWorld) Notices(event record.Event, a record.Attempt) []record.Notice {
	return []record.Notice{{Event: event, Payload: fmt.Appendf(nil, `{"number":%d}`, a.PRNumber)}}
}

func (w *staleWorld) Kick(context.Context) {}

// newStaleWorld has a pull request that was just opened. People are reminded after 7 days, and it is closed after 30.
func newStaleWorld(t *testing.T) *staleWorld {
	t.Helper()
	w := &staleWorld{fake: forgetest.NewFake()}
	w.begin(t)
	w.fake.SetClock(w.Now)
	ref := w.fake.AddRepo("joe", "infra", map[string]string{"checks/disk.md": "# Disk\n"})
	w.people = w.fake.World(t, ref).(*memhost.World)
	rules := policy.Default()
	rules.CloseAfter = 30 * day
	w.flow = prflow.Options{
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: w.fake, Hosts: []string{"git.example.org"}}}, nil, "", nil),
		Ledger: w.store.Ledger, History: w.store.History, Secrets: staleScanner, Pauses: w.store.Pauses(),
		Authority: prflow.Authority{Policy: rules, Tier: gitprovider.TierInvestigate},
		Log:       slog.New(slog.DiscardHandler), NewID: w.newID,
		Clock: prflow.Clock{Now: w.Now, Sleep: func(_ context.Context, d time.Duration) { w.advance(d) }},
		Proof: prflow.Proof{Key: func() ([]byte, error) { return []byte("a key for tests, of 32 bytes----"), nil }},
	}
	w.follow = pullsync.Options{
		Records: w.store.Pulls, Shared: w.store.JobClaims, Providers: []string{"fake"}, Notifier: w,
		RemindAfter: func() time.Duration { return w.flow.Authority.Policy.RemindAfter },
		Redact:      func(text string) string { return text },
		Every:       5 * time.Minute, Drain: time.Minute, Log: slog.New(slog.DiscardHandler), Now: w.Now, NewID: w.newID,
	}
	var err error
	w.number, err = w.propose("Check inodes")
	w.must(err)
	return w
}

// propose proposes the change as an agent does.
func (w *staleWorld) propose(title string) (number int, err error) {
	w.Helper()
	raw, err := json.Marshal(map[string]any{
		"repo_owner": "joe", "repo_name": "infra", "title": title, "body": "## Why\n\nDisks fill up with small files.\n",
		"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create", "content": "# Inodes\n"}},
	})
	w.must(err)
	result, err := prflow.New(w.flow).Create(w.Context(),
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "agent"}}, raw)
	return result.Number, err
}

// server returns what follows in one more process.
func (w *staleWorld) server() *pullsync.Follower {
	flow, o := prflow.New(w.flow), w.follow
	o.Status, o.Closer = flow.Reader().StatusAt, flow.NewStaleCloser()
	return pullsync.New(o)
}

func (w *staleWorld) key() record.PullKey {
	return record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: w.number}
}

// look looks at the pull request, in a process of its own.
func (w *staleWorld) look() {
	w.Helper()
	w.must(w.server().Look(w.Context(), w.key(), record.DoorPoll))
}

// age lets the days pass, with a look each week and on the last.
func (w *staleWorld) age(days int) {
	w.Helper()
	for days > 0 {
		step := min(days, 7)
		w.advance(time.Duration(step) * day)
		w.look()
		days -= step
	}
}

func (w *staleWorld) record() record.PullRecord {
	w.Helper()
	r, found, err := w.store.Pulls.FindPull(w.Context(), w.key())
	if err != nil || !found {
		w.Fatal(found, err)
	}
	return r
}

func (w *staleWorld) status() gitprovider.Status {
	w.Helper()
	status, err := w.fake.Status(context.Background(), w.people.Ref(), w.number)
	w.must(err)
	return status
}

// comments are ours, by which we say why it is closed.
func (w *staleWorld) comments() (out []string) {
	w.Helper()
	remarks, err := w.fake.Remarks(context.Background(), w.people.Ref(), w.number)
	w.must(err)
	for _, r := range remarks {
		if strings.HasPrefix(r.Body, gitprovider.CloseOpening) {
			out = append(out, r.Body)
		}
	}
	return out
}

// actions are those of the audit on the pull request, oldest first, after it was opened.
func (w *staleWorld) actions() (out []string) {
	w.Helper()
	rows, err := w.store.Audit.Page(w.Context(), record.AuditQuery{Ascending: true, Limit: record.MaxAuditLimit})
	w.must(err)
	for _, r := range rows {
		if strings.HasPrefix(r.Action, "pull.") {
			out = append(out, r.Action+" "+r.Actor.System)
		}
	}
	return out
}

// closedOnce holds that it was closed as stale, with one comment, one row and one notice.
func (w *staleWorld) closedOnce() {
	w.Helper()
	status, r := w.status(), w.record()
	w.same("state", status.State, gitprovider.StateClosed)
	w.same("comments", len(w.comments()), 1)
	w.same("audit", w.actions(), []string{"pull.stale claudeops serve", "pull.expired claudeops serve"})
	if r.State != gitprovider.StateClosed || !r.ExpiredAs(status.ClosedAt) {
		w.Errorf("the record is %s, closed as stale at %s, want %s", r.State, r.ExpiredAt, status.ClosedAt)
	}
	var events []string
	for _, n := range w.notices() {
		events = append(events, string(n.Event))
	}
	w.same("notices", events, []string{"stale", "closed"})
	report, err := w.store.History.Outcomes(w.Context(), noon(), record.ByAgent)
	w.must(err)
	w.same("outcomes", [3]int64{report.Total.Proposed, report.Total.Ignored, report.Total.Closed}, [3]int64{1, 1, 0})
}

func TestAPullRequestOnWhichNobodyActsIsClosedOnceAndItsFilesAreFree(t *testing.T) {
	w := newStaleWorld(t)
	w.age(29)
	w.same("audit after 29 days", w.actions(), []string{"pull.stale claudeops serve"})
	if at := w.record().ClosesAt(7*day, 30*day); !at.Equal(w.record().OpenedAt.Add(30 * day)) {
		t.Errorf("it closes at %s", at)
	}
	w.age(1)
	w.closedOnce()
	for _, words := range []string{"since 20 November 2026", "after 30 days", "reopen it", "propose the change again",
		"If it is open all the same"} {
		if !strings.Contains(w.comments()[0], words) {
			t.Errorf("the comment does not say %q: %s", words, w.comments()[0])
		}
	}
	if tip, err := w.fake.BranchTip(t.Context(), w.people.Ref(), w.status().Branch); err != nil || tip == "" {
		t.Errorf("its branch is at %q, %v", tip, err)
	}
	raw := fmt.Appendf(nil, `{"repo_owner":"joe","repo_name":"infra","pr_number":%d}`, w.number)
	told, err := prflow.New(w.flow).Status(t.Context(), operation.Caller{}, raw)
	if err != nil || !strings.Contains(told.Revise, "nobody had acted on it; propose the change again") {
		t.Errorf("the agent is told %q, %v", told.Revise, err)
	}
	w.fake.Script.ForgetCalls()
	w.age(2)
	w.same("writes after that", w.fake.Script.Writes(), 0)
	if next, err := w.propose("Check inodes"); err != nil || next <= w.number {
		t.Errorf("the same change again is #%d, %v", next, err)
	}
}

// Only who acts in the last days keeps it open; then it waits as long again. What counts as an act is tried in
// TestPeopleAreRemindedOnceOfWhatNobodyHasActedOn.
func TestWhoeverActsOnAPullRequestBeginsItsTimeAnew(t *testing.T) {
	for name, act := range map[string]func(w *staleWorld){
		"a comment":       func(w *staleWorld) { w.people.Comment(w.number, "ann", "Let me think.") },
		"a bot's comment": func(w *staleWorld) { w.people.Comment(w.number, "ci[bot]", "Green.") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newStaleWorld(t)
			w.age(29)
			act(w)
			w.advance(12 * time.Hour)
			w.age(1)
			if name == "a bot's comment" {
				w.closedOnce()
				return
			}
			w.same("state", w.status().State, gitprovider.StateOpen)
			w.same("comments", len(w.comments()), 0)
			w.age(28)
			w.same("state after 28 days more", w.status().State, gitprovider.StateOpen)
			w.age(2)
			w.same("state after 30 days more", w.status().State, gitprovider.StateClosed)
			w.same("audit", w.actions(), []string{"pull.stale claudeops serve", "pull.stale claudeops serve",
				"pull.expired claudeops serve"})
		})
	}
}

// Who takes a request for changes back acts, too, though the review keeps its time. Until then the agent was to act, so
// that nobody was reminded.
func TestWhoTakesAReviewBackBeginsItsTimeAnew(t *testing.T) {
	w := newStaleWorld(t)
	w.people.Review(w.number, "ann", gitprovider.ReviewChangesRequested, "No.")
	w.age(40)
	w.same("audit while the agent was to act", len(w.actions()), 0)
	w.people.Dismiss(w.number, "ann")
	w.look()
	w.age(29)
	w.same("state", w.status().State, gitprovider.StateOpen)
	w.same("comments", len(w.comments()), 0)
	w.age(3)
	w.closedOnce()
}

// timedCloser notes until when a close may take.
type timedCloser struct {
	pullsync.Closer
	until time.Time
}

func (c *timedCloser) Close(ctx context.Context, stale prflow.Stale) error {
	c.until, _ = ctx.Deadline()
	return c.Closer.Close(ctx, stale)
}

// However it comes to look: a command of a person has no limit of its own. The lease of a claim counts on one.
func TestACloseIsBoundedInTime(t *testing.T) {
	w := newStaleWorld(t)
	w.age(29)
	w.advance(day)
	flow, o := prflow.New(w.flow), w.follow
	closer := &timedCloser{Closer: flow.NewStaleCloser()}
	o.Status, o.Closer = flow.Reader().StatusAt, closer
	w.must(pullsync.New(o).Look(context.Background(), w.key(), record.DoorCLI))
	if closer.until.IsZero() || time.Until(closer.until) > time.Minute {
		t.Errorf("the close may take until %s", closer.until)
	}
	w.closedOnce()
}

// A person who reopens it begins its time anew, and one who closes it then has rejected it.
func TestAReopenedPullRequestIsThePersonsAgain(t *testing.T) {
	for name, seen := range map[string]bool{"after the close was recorded": true, "before it was": false} {
		t.Run(name, func(t *testing.T) {
			w := newStaleWorld(t)
			w.age(29)
			if !seen {
				w.fake.Script.After(forgetest.MethodClose, func() { w.people.Reopen(w.number) })
			}
			w.age(1)
			if seen {
				w.closedOnce()
				w.people.Reopen(w.number)
			}
			w.age(29)
			w.same("state", w.status().State, gitprovider.StateOpen)
			w.same("comments", len(w.comments()), 1)
			w.people.Close(w.number)
			w.look()
			if !w.record().ExpiredAt.IsZero() {
				t.Error("the record says that we closed it")
			}
			if _, err := w.propose("Check inodes"); fault.CodeOf(err) != fault.CooldownActive {
				t.Errorf("what a person has closed may be proposed again: %v", err)
			}
		})
	}
	w := newStaleWorld(t) // a person who reopens and closes it between two looks has rejected it, too
	w.age(30)
	w.people.Reopen(w.number)
	w.advance(time.Minute)
	w.people.Close(w.number)
	if _, err := w.propose("Check inodes"); fault.CodeOf(err) != fault.CooldownActive {
		t.Errorf("what a person has closed may be proposed again: %v", err)
	}
}

func TestNothingIsWrittenWhereNothingMayBeClosed(t *testing.T) {
	pause := func(repo string) func(*staleWorld) {
		return func(w *staleWorld) {
			p := record.Pause{Why: "moving", By: "ann"}
			if repo != "" {
				p.Owner, p.Repo = "joe", repo
			}
			row := record.Attempt{Time: w.Now(), RequestID: "pause", Door: record.DoorCLI, Action: "pause",
				Outcome: record.OutcomeDone}
			if _, err := w.store.Pauses().Pause(context.Background(), p, false, row); err != nil {
				w.Fatal(err)
			}
		}
	}
	for name, set := range map[string]func(*staleWorld){
		"everything is paused":      pause(""),
		"its repository is paused":  pause("infra"),
		"the server is read-only":   func(w *staleWorld) { w.flow.Authority.ReadOnly = "frozen" },
		"it is a dry run":           func(w *staleWorld) { w.flow.Authority.DryRun = true },
		"the rules cannot be read":  func(w *staleWorld) { w.flow.Authority.Unknown = "line 3" },
		"the policy closes nothing": func(w *staleWorld) { w.flow.Authority.Policy.CloseAfter = 0 },
		"its mark is gone":          func(w *staleWorld) { w.people.SetBody(w.number, "A person's text.") },
		"another key has signed it": func(w *staleWorld) { w.flow.Proof.Key = otherKey },
		"the agent is to act": func(w *staleWorld) {
			w.people.Review(w.number, "ann", gitprovider.ReviewChangesRequested, "No.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStaleWorld(t)
			w.age(29)
			set(w)
			w.fake.Script.ForgetCalls()
			for range 3 {
				w.age(1)
			}
			w.same("writes", w.fake.Script.Writes(), 0)
			w.same("state", w.status().State, gitprovider.StateOpen)
			w.same("actions", w.actions(), []string{"pull.stale claudeops serve"})
		})
	}
}

func otherKey() ([]byte, error) { return []byte("another key, also of 32 bytes---"), nil }

// Of a server that was off for long, people have a day after the reminder.
func TestPeopleHaveADayAfterTheReminder(t *testing.T) {
	w := newStaleWorld(t)
	w.advance(90 * day)
	w.look()
	w.same("audit", w.actions(), []string{"pull.stale claudeops serve"})
	w.advance(23 * time.Hour)
	w.look()
	w.same("state", w.status().State, gitprovider.StateOpen)
	w.advance(time.Hour)
	w.look()
	w.closedOnce()
}

// Whatever goes wrong, and wherever the process is killed: those that come later go on to one comment and one close.
func TestACloseThatWasInterruptedGoesOn(t *testing.T) {
	gone := fault.New(fault.UpstreamError, "502")
	denied := fault.New(fault.ProviderDisabled, "403")
	hidden, limited := fault.New(fault.NotFound, "404"), fault.New(fault.RateLimited, "429")
	kill := func(step string) func(*staleWorld) {
		return func(w *staleWorld) {
			w.flow.Step = func(at string) {
				if at == step {
					panic("killed")
				}
			}
		}
	}
	for name, set := range map[string]func(*staleWorld){
		"killed after the comment":     kill("stale commented"),
		"killed after the close":       kill("stale closed"),
		"no comment was made":          func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodComment, gone) },
		"no comment is permitted":      func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodComment, denied) },
		"the answer to the comment":    func(w *staleWorld) { w.fake.Script.FailAfter(forgetest.MethodComment) },
		"comments cannot be read":      func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodRemarks, gone) },
		"it was not closed":            func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodClose, gone) },
		"it is not permitted to close": func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodClose, denied) },
		"it is hidden for a moment":    func(w *staleWorld) { w.fake.Script.FailBefore(forgetest.MethodClose, hidden) },
		"the answer to the close":      func(w *staleWorld) { w.fake.Script.FailAfter(forgetest.MethodClose) },
		"the close is limited": func(w *staleWorld) {
			w.fake.Script.FailBefore(forgetest.MethodClose, limited)
		},
		"the look after the close fails": func(w *staleWorld) {
			w.fake.Script.After(forgetest.MethodClose, func() { w.fake.Script.FailBefore(forgetest.MethodStatus, gone) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStaleWorld(t)
			w.age(29)
			w.advance(day)
			set(w)
			w.die()
			w.flow.Step = nil
			for range 5 {
				w.advance(5 * time.Minute)
				w.look()
			}
			w.closedOnce()
		})
	}
}

// die looks in a process that may be killed at it.
func (w *staleWorld) die() {
	defer func() { _ = recover() }()
	_ = w.server().Look(w.Context(), w.key(), record.DoorPoll)
}

func TestOfManyProcessesOneCloses(t *testing.T) {
	for range 5 {
		w := newStaleWorld(t)
		w.age(29)
		w.advance(day)
		w.fake.Script.ForgetCalls()
		var all sync.WaitGroup
		for range 8 {
			follower := w.server()
			all.Go(func() { _ = follower.Look(context.Background(), w.key(), record.DoorPoll) })
		}
		all.Wait()
		w.closedOnce()
		w.same("closes", w.fake.Script.Count(forgetest.MethodClose), 1)
	}
}

// What a person does at the same moment wins.
func TestAPersonWhoActsAtTheSameMomentWins(t *testing.T) {
	push := func(w *staleWorld) {
		r, _, _ := w.store.Pulls.FindPull(context.Background(), w.key())
		w.people.Push(r.Branch, providertest.File{Path: "checks/more.md", Content: "m\n"})
	}
	for name, row := range map[string]struct {
		before string
		act    func(*staleWorld)
		state  gitprovider.State
		last   string
	}{
		"a merge before the comment": {forgetest.MethodRemarks, func(w *staleWorld) { w.people.Merge(w.number) },
			gitprovider.StateMerged, "pull.merged "},
		"a merge before the close": {forgetest.MethodClose, func(w *staleWorld) { w.people.Merge(w.number) },
			gitprovider.StateMerged, "pull.merged "},
		"a close before the close": {forgetest.MethodClose, func(w *staleWorld) { w.people.Close(w.number) },
			gitprovider.StateClosed, "pull.closed "},
		"a comment before our comment": {forgetest.MethodRemarks,
			func(w *staleWorld) { w.people.Comment(w.number, "ann", "Wait.") }, gitprovider.StateOpen,
			"pull.stale claudeops serve"},
		"a commit before the close": {forgetest.MethodClose, push, gitprovider.StateOpen, "pull.stale claudeops serve"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStaleWorld(t)
			w.age(29)
			w.advance(day)
			w.fake.Script.Before(row.before, func() { w.advance(time.Second); row.act(w) })
			w.look()
			w.same("state", w.status().State, row.state)
			if row.before == forgetest.MethodRemarks {
				w.same("comments", len(w.comments()), 0)
			}
			actions := w.actions()
			w.same("last row", actions[len(actions)-1], row.last)
			w.advance(30 * time.Minute)
			w.look()
			w.same("state later", w.status().State, row.state)
			if slices.Contains(w.actions(), "pull.expired claudeops serve") {
				t.Error("the audit says that we closed it")
			}
		})
	}
}
