package store

import (
	"bufio"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestSixteenProcessesReserveTheSamePaths(t *testing.T) {
	t.Parallel()
	const processes, rounds = 16, 10
	place := newPlace(t)
	wins := make([]string, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			out, err := child(t, "race", place, fmt.Sprint(i), fmt.Sprint(rounds)).Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			wins[i] = string(out)
		})
	}
	wg.Wait()
	s := open(t, place, Options{})
	all := strings.Join(wins, "")
	for round := range rounds {
		if n := strings.Count(all, fmt.Sprintf("won %d\n", round)); n != 1 {
			t.Errorf("round %d was won %d times", round, n)
		}
	}
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposals"), rounds)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 2*rounds)
	if got := verify(t, s, ""); !got.OK() || got.Rows != processes*rounds {
		t.Fatalf("got %+v", got)
	}
}

func TestAKilledProcessLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	reported := 0
	for kill := range 5 {
		cmd := child(t, "finish-forever", place)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 + 7*kill {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
			reported++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			reported++
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("the child was not killed: %v", err)
		}
		checkNothingHalfDone(t, place, reported)
	}
}

// checkNothingHalfDone holds that every opened proposal has its audit row and none of its paths, that every reserved
// one has both its paths and no audit row, and that nothing that was reported done is missing.
func checkNothingHalfDone(t *testing.T, place string, reported int) {
	t.Helper()
	s := open(t, place, Options{})
	wantEqual(t, s.Check(t.Context()), nil)
	report := verify(t, s, "")
	if !report.OK() || report.Rows < int64(reported) {
		t.Fatalf("%d were reported done, and the audit is %+v", reported, report)
	}
	opened := count(t, s, "SELECT COUNT(*) FROM proposals WHERE state = 'opened'")
	reserved := count(t, s, "SELECT COUNT(*) FROM proposals WHERE state = 'reserved'")
	wantEqual(t, int64(opened), report.Rows)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposals"), opened+reserved)
	wantEqual(t, count(t, s, `SELECT COUNT(*) FROM audit a JOIN proposals p
		ON p.id = a.request_id AND p.state = 'opened'`), opened)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposal_files"), 2*(opened+reserved))
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM reservations"), 2*reserved)
	wantEqual(t, count(t, s, `SELECT COUNT(*) FROM reservations r JOIN proposals p ON p.id = r.proposal_id
		WHERE p.state = 'reserved'`), 2*reserved)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSixteenProcessesOpenAnEmptyPlaceAtOnce(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if out, err := child(t, "race", place, fmt.Sprint(i), "1").Output(); err != nil {
				t.Errorf("process %d: %v %s", i, err, out)
			}
		})
	}
	wg.Wait()
	if got := verify(t, open(t, place, Options{}), ""); !got.OK() || got.Rows != 16 {
		t.Fatalf("got %+v", got)
	}
}
