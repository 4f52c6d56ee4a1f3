package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestPositionGrowsWithEveryRecord(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	before := must.Get(s.History.Position(ctx))(t)
	recordAttempts(t, s, attempt("1"))
	after := must.Get(s.History.Position(ctx))(t)
	if after <= before {
		t.Fatalf("position %d after %d", after, before)
	}
}

func TestByDigestReturnsTheNewestFirstAndLiveReservationsToo(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	for i := range maxByDigest + 3 {
		id := fmt.Sprint(i)
		p := proposal(id, "checks/a.md")
		p.Digest, p.CreatedAt = "same", c.now
		reserve(t, s, p, 99)
		c.now = c.now.Add(time.Second)
		finish(t, s, id, opened(i+1))
	}
	reserve(t, s, proposal("reserved", "checks/b.md"), 99)
	got := must.Get(s.History.ByDigest(context.Background(), "same"))(t)
	if len(got) != maxByDigest || got[0].PRNumber != maxByDigest+3 || got[maxByDigest-1].PRNumber != 4 ||
		len(got[0].Files) != 1 {
		t.Fatalf("got %d, first %+v", len(got), got[0])
	}
	got = must.Get(s.History.ByDigest(context.Background(), "d-reserved"))(t)
	if len(got) != 1 || got[0].State != record.StateReserved {
		t.Fatalf("got %+v", got)
	}
	finish(t, s, "reserved", record.Progress{State: record.StateFailed})
	wantEqual(t, len(must.Get(s.History.ByDigest(context.Background(), "d-reserved"))(t)), 0)
}

func TestUnfinishedListsWhatHoldsPathsOldestFirst(t *testing.T) {
	t.Parallel()
	c := &clock{now: noon()}
	ctx, s := context.Background(), openWith(t, Options{Now: c.Now})
	for i, id := range []string{"young", "old", "failed", "committed", "unsettled"} {
		p := proposal(id, "checks/"+id+".md", "checks/"+id+"-2.md")
		p.CreatedAt = time.Time{} // of the call, whatever it is
		c.now = noon().Add(time.Duration(i) * time.Second)
		if id == "young" {
			c.now = noon().Add(time.Hour)
		}
		reserve(t, s, p, 0)
	}
	wantEqual(t, s.Ledger.Advance(ctx, "committed", record.Progress{State: record.StateCommitted}), nil)
	wantEqual(t, s.Ledger.Advance(ctx, "unsettled", record.Progress{State: record.StateUnsettled}), nil)
	finish(t, s, "failed", record.Progress{State: record.StateFailed})
	left := each(must.Get(s.History.Unfinished(ctx))(t),
		func(p record.Proposal) string { return fmt.Sprintf("%s %s %d", p.ID, p.State, len(p.Files)) })
	wantEqual(t, left, []string{"old reserved 2", "committed committed 2", "unsettled unsettled 2", "young reserved 2"})
}

func TestPathsOfAPullRequest(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	reserve(t, s, proposal("1", "checks/b.md", "checks/Z.md", "checks/a.md"), 0)
	reserve(t, s, proposal("2", "checks/c.md"), 0)
	finish(t, s, "1", opened(1))
	finish(t, s, "2", record.Progress{State: record.StateFailed, PRNumber: 2})
	for number, want := range map[int][]string{1: {"checks/Z.md", "checks/a.md", "checks/b.md"}, 2: nil, 3: nil} {
		wantEqual(t, must.Get(s.History.PathsOf(ctx, "local", "demo", "home-cluster", number))(t), want)
	}
	wantEqual(t, len(must.Get(s.History.PathsOf(ctx, "local", "demo", "other", 1))(t)), 0)
}

func TestUsageCountsEachPullRequestOnce(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{Now: noon})
	open := func(id string, number int) {
		reserve(t, s, proposal(id, "checks/"+id+".md"), 0)
		finish(t, s, id, record.Progress{State: record.StateOpened, Commit: "head-" + id, PRNumber: number})
	}
	open("before", 1)
	seen := must.Get(s.History.Position(t.Context()))(t)
	open("after", 2)
	for _, id := range []string{"reserved", "committed", "unsettled", "failed"} {
		reserve(t, s, proposal(id, "checks/"+id+".md"), 0)
	}
	advance(t, s, "committed", record.Progress{State: record.StateCommitted, Commit: "head-committed"})
	advance(t, s, "unsettled", record.Progress{State: record.StateUnsettled})
	finish(t, s, "failed", record.Progress{State: record.StateFailed})
	elsewhere := proposal("elsewhere", "checks/elsewhere.md")
	elsewhere.Repo = "other"
	reserve(t, s, elsewhere, 0)

	for name, c := range map[string]struct {
		listed        []record.OpenPull
		open, pending int
	}{
		"nothing is listed":                     {nil, 4, 3},
		"one from before":                       {[]record.OpenPull{{Number: 1, Head: "head-before"}}, 5, 3},
		"one recorded since":                    {[]record.OpenPull{{Number: 2}}, 4, 3},
		"one of a person":                       {[]record.OpenPull{{Number: 9, Head: "x"}}, 5, 3},
		"one not recorded yet, by its mark":     {[]record.OpenPull{{Number: 9, Request: "reserved"}}, 4, 3},
		"one not recorded yet, by its commit":   {[]record.OpenPull{{Number: 9, Head: "head-committed"}}, 4, 3},
		"one that failed according to our book": {[]record.OpenPull{{Number: 9, Request: "failed"}}, 5, 3},
	} {
		t.Run(name, func(t *testing.T) {
			claim := record.Claim{Seen: seen, Open: c.listed, Within: time.Hour}
			got := must.Get(s.History.Usage(t.Context(), "local", "demo", "home-cluster", claim))(t)
			wantEqual(t, []int{got.Open, got.Pending, len(got.Made)}, []int{c.open, c.pending, 2})
		})
	}
}

func TestUsageSaysWhenPullRequestsWereMade(t *testing.T) {
	t.Parallel()
	c := &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	for i := range 5 {
		id := fmt.Sprint(i)
		p := proposal(id, "checks/"+id+".md")
		if i == 4 {
			p.Repo = "other"
		}
		reserve(t, s, p, 99)
		to := opened(i + 1)
		if i == 3 {
			to = record.Progress{State: record.StateFailed}
		}
		finish(t, s, id, to)
		c.now = c.now.Add(time.Minute)
	}
	for since, want := range map[time.Duration]int{-time.Hour: 3, 0: 3, time.Minute: 2, 2*time.Minute + time.Second: 0} {
		got := must.Get(s.History.Usage(t.Context(), "local", "demo", "home-cluster",
			record.Claim{Seen: 99, Within: c.now.Sub(noon().Add(since))}))(t)
		if len(got.Made) != want || want > 0 && !got.Made[want-1].Equal(noon().Add(2*time.Minute)) {
			t.Errorf("since noon and %s: got %v, want %d", since, got.Made, want)
		}
	}
}

func TestAReservationThatIsNotAdmittedIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	full := fault.New(fault.LimitReached, "full")
	claim := record.Claim{Admit: func(record.Usage) error { return full }}
	_, err := s.Ledger.Reserve(t.Context(), proposal("1", "checks/a.md"), claim)
	wantCode(t, err, fault.LimitReached)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposals"), 0)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 0)

	reserve(t, s, proposal("2", "checks/a.md"), 0)
	taken, err := s.Ledger.Reserve(t.Context(), proposal("3", "checks/a.md"), claim) // whose files they are comes first
	wantEqual(t, err, nil)
	wantEqual(t, taken.ID, "2")
}

// places limits the open pull requests in TestSixteenProcessesNeverPassACap.
const places = 3

func TestSixteenProcessesNeverPassACap(t *testing.T) {
	t.Parallel()
	const rounds = 6
	all := processes(t, "race-for-places", emptyPlace(t), fmt.Sprint(rounds))
	for round := range rounds {
		if n := strings.Count(all, fmt.Sprintf("won %d\n", round)); n != places {
			t.Errorf("in round %d %d processes got one of %d places", round, n, places)
		}
	}
}

// childRaceForPlaces tries to get one of a few places in a repository for each round, in which others do the same.
// Every second one that it gets, it opens.
func childRaceForPlaces(ctx context.Context, place, name, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		return err
	}
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	for round := range n {
		id := fmt.Sprintf("%s-%d", name, round)
		p := proposal(id, "checks/"+id+".md")
		p.Repo = fmt.Sprintf("round-%d", round)
		claim := record.Claim{Within: time.Hour, Admit: func(u record.Usage) error {
			if u.Open >= places || len(u.Made)+u.Pending >= places {
				return fault.New(fault.LimitReached, "full")
			}
			return nil
		}}
		taken, err := s.Ledger.Reserve(ctx, p, claim)
		switch {
		case fault.CodeOf(err) == fault.LimitReached:
			continue
		case err != nil || taken != nil:
			return fmt.Errorf("taken by %v: %w", taken, err)
		}
		fmt.Println("won", round)
		if round%2 == 0 {
			continue
		}
		to := record.Progress{State: record.StateOpened, PRNumber: number + 1}
		if err := s.Ledger.Finish(ctx, id, to, attempt(id)); err != nil {
			return err
		}
	}
	return s.Close()
}

func advance(t *testing.T, s *Store, id string, to record.Progress) {
	t.Helper()
	wantEqual(t, s.Ledger.Advance(t.Context(), id, to), nil)
}
