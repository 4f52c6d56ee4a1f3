//go:build linux

package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// The rounds in which processes propose until a person pauses. A world has room for a part of them: its caps end at
// 1,000 pull requests.
const (
	pauseVariable   = "CLAUDEOPS_PAUSE_ROUNDS" // another number of rounds
	pauseRounds     = 6
	roundsOfAWorld  = 40
	pausedProposers = 8
)

// TestNothingIsWrittenAfterAPause lets 8 processes propose one change after the other, and pauses them from another
// process at a random moment. What had begun to write may end, and the command that pauses waits for it. From its
// answer on the repository and the records of pull requests stay as they are, whatever is proposed.
func TestNothingIsWrittenAfterAPause(t *testing.T) {
	seed, rounds := seedOf(t), pauseRounds
	if n, err := strconv.Atoi(os.Getenv(pauseVariable)); err == nil {
		rounds = n
	}
	t.Logf("seed %d (set %s to repeat it)", seed, seedVariable)
	random := rand.New(rand.NewPCG(seed, 0))
	opened, late, refused := 0, 0, 0
	for done := 0; done < rounds; done += roundsOfAWorld {
		w := newWorld(t)
		all := w.serveMany(t, pausedProposers)
		for round := range min(roundsOfAWorld, rounds-done) {
			r := w.proposeUntilPaused(t, all, round, random.IntN(pausedProposers))
			opened, late, refused = opened+r.opened, late+r.late, refused+r.refused
			if t.Failed() {
				t.FailNow()
			}
		}
		for _, s := range all {
			s.end()
		}
		w.assertSettled(t)
		w.assertWhole(t)
	}
	t.Logf("%d rounds: %d opened, %d of them were under way at the commit of a pause, %d calls refused", rounds, opened,
		late, refused)
}

// pausedRound counts what a round has seen.
type pausedRound struct{ opened, late, refused int }

// proposeUntilPaused pauses once so many proposals of the round were answered, and resumes when all were refused twice.
func (w *world) proposeUntilPaused(t *testing.T, all []*server, round, before int) (out pausedRound) {
	t.Helper()
	answered := make(chan answer)
	var calls sync.WaitGroup
	for i, s := range all {
		calls.Go(func() {
			for n, refused := 0, 0; refused < 2; n++ {
				name := fmt.Sprintf("%d-%d-%d", round, i, n)
				a, err := s.create(newCheck("Watch "+name, "checks/"+name+".md", "# "+name+"\n"))
				if err != nil || !a.opened() && a.Error.Code != "paused" {
					t.Errorf("server %d: %+v, %v", i, a, err)
					return
				}
				if a.Error.Code == "paused" {
					refused++
				}
				answered <- a
			}
		})
	}
	go func() { calls.Wait(); close(answered) }()
	count := func(a answer) {
		if a.opened() {
			out.opened++
		} else {
			out.refused++
		}
	}
	for range before {
		count(<-answered)
	}
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for a := range answered {
			count(a)
		}
	}()
	then := w.pauseAll(t)
	<-counted
	then.assertKept(t, w)
	w.run(t, "resume")
	out.late = w.openedAfterPause(t, then.row)
	return out
}

// pausedWorld is what is at the provider when a pause has been answered.
type pausedWorld struct {
	row      int64 // of the pause, in the audit
	writing  int   // that had not ended when it was answered
	branches map[string]string
	pulls    int
}

// pauseAll pauses as a person does, by the command.
func (w *world) pauseAll(t *testing.T) pausedWorld {
	t.Helper()
	answer := decode[struct {
		Writes int `json:"still_writing"`
	}](t, []byte(w.run(t, "pause", "--why", "moving", "--json")))
	out := pausedWorld{writing: answer.Writes, branches: w.branches(t), pulls: len(w.pulls(t, ""))}
	for _, a := range w.attempts(t) {
		if a.Action == "pause" {
			out.row = a.Seq
		}
	}
	return out
}

// assertKept holds that nothing has changed at the provider since.
func (p pausedWorld) assertKept(t *testing.T, w *world) {
	t.Helper()
	if p.writing != 0 {
		t.Errorf("the pause was answered while %d calls wrote", p.writing)
	}
	if now := w.branches(t); !maps.Equal(now, p.branches) {
		t.Errorf("branches were made or removed while everything was paused: %d, before %d", len(now), len(p.branches))
	}
	if now := len(w.pulls(t, "")); now != p.pulls {
		t.Errorf("%d pull requests were opened while everything was paused", now-p.pulls)
	}
	w.assertNothingReserved(t)
}

// openedAfterPause counts the pull requests that the audit has below the row of a pause: each process had one under way
// at most, and nothing may be opened by a call that a process began later.
func (w *world) openedAfterPause(t *testing.T, row int64) (n int) {
	t.Helper()
	n = w.count(t, func(a record.RecordedAttempt) bool { return a.Seq > row && a.Outcome == record.OutcomeOpened })
	if n > pausedProposers {
		t.Errorf("%d pull requests were opened after the commit of a pause, by %d processes", n, pausedProposers)
	}
	return n
}

// TestAPauseOutlivesTheProcessThatMadeIt kills the command between the commit of the pause and its answer: it waits for
// a process that has reserved its files and stands still.
func TestAPauseOutlivesTheProcessThatMadeIt(t *testing.T) {
	w := newWorld(t)
	late := newInodes()
	w.doomSlowly(t, doomed{Step: "reserved", Request: late}, func() {
		c := w.start(t, "", "pause", "--why", "moving")
		for len(w.pauses(t)) == 0 {
			select {
			case <-c.ended():
				t.Fatalf("the command has ended: %s%s", &c.out, &c.err)
			case <-time.After(time.Millisecond):
			}
		}
		c.kill(false)
		if killed, _ := c.wait(t); !killed || c.out.Len() > 0 {
			t.Fatalf("the command was not killed before its answer: %s", &c.out)
		}
	})
	if p := w.pauses(t); len(p) != 1 || p[0].Why != "moving" || p[0].Owner != "" {
		t.Fatalf("paused: %+v", p)
	}
	other := newCheck("Watch load", "checks/load.md", "# Load\n")
	for _, r := range []request{other, late} {
		if a := w.asked(t, r); a.Error.Code != "paused" {
			t.Errorf("%s: %+v", r.Title, a)
		}
	}
	c := w.start(t, "", "pr", "resume") // what the killed proposal left waits, too
	if _, code := c.wait(t); code == 0 || !strings.Contains(c.out.String(), "not settled: everything is paused") {
		t.Errorf("pr resume: %d %s", code, &c.out)
	}
	if b, p := w.branches(t), w.pulls(t, ""); len(b) > 0 || len(p) > 0 {
		t.Errorf("written: %v, %v", b, p)
	}
	isPause := func(a record.RecordedAttempt) bool { return a.Action == "pause" && a.Outcome == record.OutcomeDone }
	if rows := w.count(t, isPause); rows != 1 {
		t.Errorf("the audit has %d rows of the pause", rows)
	}
	w.run(t, "resume")
	if a := w.asked(t, late); !a.opened() {
		t.Errorf("after the end of the pause: %+v", a)
	}
	w.assertSettled(t)
	if open := w.pulls(t, gitprovider.StateOpen); len(open) != 1 {
		t.Errorf("%d are open", len(open))
	}
}

func (w *world) pauses(t *testing.T) []record.Pause {
	t.Helper()
	out, err := w.store(t).Pauses().Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}
