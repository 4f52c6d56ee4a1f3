package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const testLease = time.Minute

func notice(payload string) record.Notice {
	return record.Notice{Event: record.EventOpened, Payload: []byte(payload)}
}

// post records notices with a refusal.
func post(t testing.TB, s *Store, payloads ...string) {
	t.Helper()
	notices := make([]record.Notice, len(payloads))
	for i, p := range payloads {
		notices[i] = notice(p)
	}
	must.Do(t, s.Ledger.Record(context.Background(), attempt("n"), nil, notices...))
}

// claim returns the payloads that are claimed at the time.
func claim(t testing.TB, s *Store, now time.Time, limit int) string {
	t.Helper()
	claimed := must.Get(s.Outbox.ClaimNotices(context.Background(), now, testLease, limit))(t)
	var payloads []string
	for _, n := range claimed {
		payloads = append(payloads, fmt.Sprintf("%s/%d", n.Payload, n.Attempts))
	}
	return strings.Join(payloads, " ")
}

func settle(t testing.TB, s *Store, id int64, settlement record.NoticeSettlement) {
	t.Helper()
	wantEqual(t, s.Outbox.SettleNotice(context.Background(), id, settlement), nil)
}

func TestANoticeIsKeptAsItWas(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	wantEqual(t, s.Ledger.Record(context.Background(), attempt("1"), nil,
		record.Notice{Event: record.EventRefused, Payload: []byte("{\"a\":\"\\u0000\x00\xff\"}")},
		record.Notice{Event: "odd\x00", Payload: []byte("{}")}), nil)
	got := must.Get(s.Outbox.ClaimNotices(context.Background(), noon(), testLease, 5))(t)
	wantEqual(t, got, []record.PendingNotice{
		{ID: 1, Event: record.EventRefused, Payload: []byte("{\"a\":\"\\u0000\x00\xff\"}"), CreatedAt: noon()},
		{ID: 2, Event: "odd\x00", Payload: []byte("{}"), CreatedAt: noon()},
	})
}

func TestNoticesAreRecordedWithWhatTheyTellOrNotAtAll(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, s.Ledger.Finish(ctx, "1", opened(1), attempt("1"), notice("opened")), nil)
	wantCode(t, s.Ledger.Finish(ctx, "1", opened(1), attempt("1"), notice("again")), fault.Conflict)
	dryRun := proposal("1", "checks/a.md") // the id is taken
	wantCode(t, s.Ledger.Record(ctx, attempt("1"), &dryRun, notice("dry run")), fault.Internal)
	wantEqual(t, claim(t, s, noon(), 5), "opened/0")
}

func TestClaimedNoticesAreKeptFromOthersForTheLease(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	post(t, s, "a", "b", "c")
	wantEqual(t, claim(t, s, noon(), 2), "a/0 b/0")
	wantEqual(t, claim(t, s, noon(), 2), "c/0")
	later := noon().Add(testLease)
	wantEqual(t, claim(t, s, later.Add(-time.Microsecond), 5), "")
	wantEqual(t, claim(t, s, later, 5), "a/1 b/1 c/1")
}

func TestANoticeIsDueAtOnceWhateverTheClaimantsClockSays(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	post(t, s, "a")
	wantEqual(t, claim(t, s, noon().Add(-time.Hour), 5), "a/0")
}

func TestSettledNotices(t *testing.T) {
	t.Parallel()
	const delivered, pending, givenUp = "delivered", "pending", "given_up"
	retry := record.NoticeSettlement{RetryAt: noon().Add(time.Hour), Error: "later"}
	done := record.NoticeSettlement{Delivered: true}
	lost := record.NoticeSettlement{GiveUp: true, Error: "gone for good"}
	for name, test := range map[string]struct {
		settlements []record.NoticeSettlement
		state       string
		counts      record.NoticeCounts
	}{
		"delivered": {[]record.NoticeSettlement{done}, delivered, record.NoticeCounts{}},
		"to be tried again": {[]record.NoticeSettlement{retry}, pending,
			record.NoticeCounts{Pending: 1, LastError: "later"}},
		"given up": {[]record.NoticeSettlement{lost}, givenUp,
			record.NoticeCounts{GivenUp: 1, LastError: "gone for good"}},
		"given up after a retry": {[]record.NoticeSettlement{retry, lost}, givenUp,
			record.NoticeCounts{GivenUp: 1, LastError: "gone for good"}},
		"delivered, and a late claimant fails": {[]record.NoticeSettlement{done, retry}, delivered, record.NoticeCounts{}},
		"delivered, and a late one gives up":   {[]record.NoticeSettlement{done, lost}, delivered, record.NoticeCounts{}},
		"given up, and a late one delivers":    {[]record.NoticeSettlement{lost, done}, delivered, record.NoticeCounts{}},
		"given up, and a late one fails": {[]record.NoticeSettlement{lost, retry}, givenUp,
			record.NoticeCounts{GivenUp: 1, LastError: "gone for good"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			post(t, s, "a")
			wantEqual(t, claim(t, s, noon(), 5), "a/0")
			for _, settlement := range test.settlements {
				settle(t, s, 1, settlement)
			}
			wantEqual(t, count(t, s, "SELECT COUNT(*) FROM notices WHERE state = '"+test.state+"'"), 1)
			wantEqual(t, must.Get(s.Outbox.NoticeCounts(context.Background()))(t), test.counts)
			wantEqual(t, claim(t, s, noon().Add(time.Hour-time.Microsecond), 5), "")
			again := ""
			if test.state == pending {
				again = "a/1"
			}
			wantEqual(t, claim(t, s, noon().Add(time.Hour), 5), again)
		})
	}
}

func TestASettlementSaysOneThing(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	post(t, s, "a")
	wantCode(t, s.Outbox.SettleNotice(ctx, 1, record.NoticeSettlement{}), fault.Internal)
	wantCode(t, s.Outbox.SettleNotice(ctx, 1, record.NoticeSettlement{Delivered: true, GiveUp: true}), fault.Internal)
	wantCode(t, s.Outbox.SettleNotice(ctx, 1, record.NoticeSettlement{GiveUp: true, RetryAt: noon()}), fault.Internal)
	wantEqual(t, claim(t, s, noon(), 5), "a/0")
}

func TestTheErrorOfANoticeIsCut(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	post(t, s, "a")
	settle(t, s, 1, record.NoticeSettlement{RetryAt: noon(), Error: "\x00" + strings.Repeat("ü", 1000)})
	counts := must.Get(s.Outbox.NoticeCounts(context.Background()))(t)
	wantEqual(t, counts.LastError, "\x00"+strings.Repeat("ü", 249))
}

func TestSettledNoticesAreRemovedAMonthLater(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	post(t, s, "waiting", "delivered", "given up")
	wantEqual(t, claim(t, s, noon(), 5), "waiting/0 delivered/0 given up/0")
	year := noon().AddDate(1, 0, 0)
	settle(t, s, 1, record.NoticeSettlement{RetryAt: year})
	settle(t, s, 2, record.NoticeSettlement{Delivered: true})
	settle(t, s, 3, record.NoticeSettlement{GiveUp: true})

	wantEqual(t, claim(t, s, noon().Add(noticeKeep), 5), "")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM notices"), 3)
	wantEqual(t, claim(t, s, noon().Add(noticeKeep+time.Microsecond), 5), "")
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM notices"), 1)
	wantEqual(t, claim(t, s, year, 5), "waiting/1")

	post(t, s, "new")
	settle(t, s, 2, record.NoticeSettlement{Delivered: true}) // by somebody who slept for a month
	settle(t, s, 3, record.NoticeSettlement{Delivered: true})
	wantEqual(t, claim(t, s, noon(), 5), "new/0") // its number is another one
}

func TestAClaimOfNothingWritesNothing(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	post(t, s, "a")
	wantEqual(t, claim(t, s, noon(), 5), "a/0")
	defer holdWriteLock(t, s)() // a claim that writes would wait for it
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wantEqual(t, len(must.Get(s.Outbox.ClaimNotices(ctx, noon(), testLease, 5))(t)), 0)
}

func TestManyClaimantsGetEachNoticeOnce(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	first := open(t, place, Options{Now: noon})
	const notices = 40
	for i := range notices {
		post(t, first, fmt.Sprint(i))
	}
	var mu sync.Mutex
	got := map[int64]int{}
	var wg sync.WaitGroup
	for range 4 {
		s := open(t, place, Options{Now: noon})
		wg.Go(func() {
			for {
				claimed, err := s.Outbox.ClaimNotices(context.Background(), noon(), testLease, 3)
				if err != nil {
					t.Errorf("%v (%v)", err, errCause(err))
				}
				if len(claimed) == 0 {
					return
				}
				mu.Lock()
				for _, n := range claimed {
					got[n.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wantEqual(t, len(got), notices)
	for id, times := range got {
		if times != 1 {
			t.Errorf("notice %d was claimed %d times", id, times)
		}
	}
}
