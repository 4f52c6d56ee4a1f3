package pullsync_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// host is a provider's side: the pull requests of joe/infra by number, and how it fails.
type host struct {
	mu    sync.Mutex
	pulls map[int]gitprovider.Status
	fails map[int]error // 0: whatever is asked
	asked []int
	// before, if not nil, is called before an answer is read, without the lock.
	before func(ctx context.Context, number int)
	after  func(number int) // the same, when it was read and is not handed out yet
}

func (h *host) set(number int, change func(*gitprovider.Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.pulls[number]
	change(&st)
	h.pulls[number] = st
}

func (h *host) merge(number int, by string) {
	h.set(number, func(st *gitprovider.Status) {
		st.State, st.MergedBy, st.ClosedAt = gitprovider.StateMerged, by, noon().Add(time.Second)
	})
}

func (h *host) review(number int, r gitprovider.Review) {
	h.set(number, func(st *gitprovider.Status) { st.Reviews = append(st.Reviews, r) })
}

func (h *host) close(number int, at time.Time) {
	h.set(number, func(st *gitprovider.Status) { st.State, st.ClosedAt = gitprovider.StateClosed, at })
}

func (h *host) reopen(number int) {
	h.set(number, func(st *gitprovider.Status) { st.State, st.ClosedAt = gitprovider.StateOpen, time.Time{} })
}

func (h *host) fail(number int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fails[number] = err
}

// looks are the numbers that were asked for since the last call.
func (h *host) looks() (asked []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, h.asked = h.asked, nil
	return asked
}

// Status is the provider's answer.
func (h *host) Status(ctx context.Context, _, _, _ string, number int) (gitprovider.Status, error) {
	if h.before != nil {
		h.before(ctx, number)
	}
	st, err := h.read(number)
	if h.after != nil {
		h.after(number)
	}
	return st, err
}

func (h *host) read(number int) (gitprovider.Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, number)
	for _, err := range []error{h.fails[0], h.fails[number]} {
		if err != nil {
			return gitprovider.Status{}, err
		}
	}
	st, known := h.pulls[number]
	if !known {
		return st, fault.New(fault.NotFound, "there is no pull request %d", number)
	}
	return st, nil
}

// records lends stores to the tests.
var records storetest.Reused

func TestMain(m *testing.M) {
	code := m.Run()
	if err := records.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bed is a test with records, and with a clock that it moves.
type bed struct {
	*testing.T
	store *store.Store
	now   atomic.Int64
	ids   atomic.Int64
}

func (b *bed) begin(t *testing.T) {
	t.Helper()
	b.T = t
	b.now.Store(noon().UnixMicro())
	b.store = records.Open(t, nil, b.Now).Store
}

func (b *bed) Now() time.Time          { return time.UnixMicro(b.now.Load()).UTC() }
func (b *bed) advance(d time.Duration) { b.now.Add(d.Microseconds()) }
func (b *bed) newID() string           { return fmt.Sprintf("id-%04d", b.ids.Add(1)) }

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) same(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// notices are those that wait, oldest first.
func (b *bed) notices() []record.PendingNotice {
	b.Helper()
	notices, err := b.store.Outbox.ClaimNotices(b.Context(), b.Now().Add(time.Hour), 0, 1000)
	b.must(err)
	return notices
}

// world is a Follower of the provider github over a real store.
type world struct {
	bed
	host    *host
	remind  atomic.Int64 // nanoseconds
	options pullsync.Options
	follow  *pullsync.Follower
	changed atomic.Int64
}

// Notices implements record.Notifier.
func (w *world) Notices(event record.Event, a record.Attempt) []record.Notice {
	return []record.Notice{{Event: event, Payload: fmt.Appendf(nil, `{"number":%d,"by":%q}`, a.PRNumber, a.Caller)}}
}

// Kick implements record.Notifier.
func (w *world) Kick(context.Context) { w.changed.Add(1) }

// newWorld has open pull requests with the numbers.
func newWorld(t *testing.T, numbers ...int) *world {
	t.Helper()
	w := &world{host: &host{pulls: map[int]gitprovider.Status{}, fails: map[int]error{}}}
	w.begin(t)
	for _, number := range numbers {
		w.open(number)
	}
	w.options = pullsync.Options{
		Records: w.store.Pulls, Shared: w.store.JobClaims, Providers: []string{"github"}, Status: w.host.Status,
		Notifier: w, RemindAfter: func() time.Duration { return time.Duration(w.remind.Load()) }, Closer: closesNothing{},
		Redact: func(text string) string { return text },
		Every:  5 * time.Minute, Drain: time.Minute, Log: slog.New(slog.DiscardHandler), Now: w.Now,
		NewID: w.newID,
	}
	w.follow = pullsync.New(w.options)
	return w
}

// closesNothing is the Closer where the policy closes nothing.
type closesNothing struct{}

func (closesNothing) After() time.Duration { return 0 }

func (closesNothing) Close(context.Context, prflow.Stale) error { panic("closed") }

func (closesNothing) Marked(record.PullRecord, gitprovider.PullRequest) (bool, error) {
	return false, nil
}

// open opens a pull request and records its proposal.
func (w *world) open(number int) {
	w.Helper()
	w.host.set(number, func(st *gitprovider.Status) {
		st.State, st.HeadCommit, st.Checks.State = gitprovider.StateOpen, "c0ffee", gitprovider.ChecksNone
	})
	p := record.Proposal{
		ID: fmt.Sprintf("proposal-%d", number), CreatedAt: w.Now(), Provider: "github", Owner: "joe", Repo: "infra",
		Base:  "main",
		Title: "Check inodes", Files: []gitprovider.FileChange{{Path: fmt.Sprintf("checks/%d.md", number),
			Action: gitprovider.ActionCreate}},
	}
	if taken, err := w.store.Ledger.Reserve(w.Context(), p, record.Claim{Seen: 1 << 40}); err != nil || taken != nil {
		w.Fatal(taken, err)
	}
	to := record.Progress{State: record.StateOpened, Branch: fmt.Sprint("branch-", number), Commit: "c0ffee",
		PRNumber: number, PRURL: "https://github.com/joe/infra"}
	if err := w.store.Ledger.Finish(w.Context(), p.ID, to,
		record.Attempt{RequestID: p.ID, Action: record.ActionCreate}); err != nil {
		w.Fatal(err)
	}
}

func key(number int) record.PullKey {
	return record.PullKey{Provider: "github", Owner: "joe", Repo: "infra", Number: number}
}

func (w *world) record(number int) record.PullRecord {
	w.Helper()
	r, found, err := w.store.Pulls.FindPull(w.Context(), key(number))
	if err != nil || !found {
		w.Fatalf("record of %d: found %t, %v", number, found, err)
	}
	return r
}

// round makes a round of the poll, later than the last one.
func (w *world) round() {
	w.Helper()
	w.advance(w.options.Every)
	next, err := w.follow.Round(w.Context())
	w.must(err)
	if want := w.Now().Add(w.options.Every); !next.Equal(want) {
		w.Errorf("the next round is due at %s, want %s", next, want)
	}
}

// rows are the actions of the audit about pull requests, oldest first, with the door and who did it.
func (w *world) rows() (out []string) {
	w.Helper()
	rows, err := w.store.Audit.Page(w.Context(), record.AuditQuery{Ascending: true, Limit: 1000})
	w.must(err)
	ids := map[string]bool{}
	for _, r := range rows {
		if r.RequestID == "" || ids[r.RequestID] {
			w.Errorf("the request id %q does not name one row", r.RequestID)
		}
		ids[r.RequestID] = true
		if r.Action != record.ActionCreate {
			out = append(out, fmt.Sprintf("%s #%d %s by %q", r.Action, r.PRNumber, r.Door, r.Caller))
		}
	}
	return out
}

// told are the notices that wait, oldest first.
func (w *world) told() (out []string) {
	w.Helper()
	for _, n := range w.notices() {
		out = append(out, string(n.Event)+" "+string(n.Payload))
	}
	return out
}

// deliver hands on a delivery about pull requests of joe/infra.
func (w *world) deliver(id string, numbers ...int) (taken bool, err error) {
	return w.follow.Accept(w.Context(), "github", forge.Delivery{ID: id, Event: "pull_request", Owner: "Joe",
		Repo: "INFRA", Numbers: numbers})
}

// mustDeliver hands on a delivery that is taken.
func (w *world) mustDeliver(id string, numbers ...int) {
	w.Helper()
	if taken, err := w.deliver(id, numbers...); !taken || err != nil {
		w.Error(taken, err)
	}
}

// served makes the looks that deliveries have asked for, and ends the Follower.
func (w *world) served() {
	w.follow.Begin(w.Context())
	w.follow.Finish()
	w.follow = pullsync.New(w.options)
}

func sorted(numbers []int) []int { return slices.Sorted(slices.Values(numbers)) }
