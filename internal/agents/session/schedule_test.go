//go:build unix

package session

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/cadence"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// clock is moved by the test. Callers that wait on it report the duration in naps.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	naps chan nap
}

type nap struct {
	length time.Duration
	over   chan time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), naps: make(chan nap)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond) // as a real one, it never says the same twice
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	c.naps <- nap{d, over}
	return over
}

// scheduled is a world with a schedule that a goroutine keeps.
type scheduled struct {
	*world
	*testing.T
	clock    *clock
	schedule *Schedule
	log      bytes.Buffer
	asleep   nap
	stop     context.CancelFunc
	ended    chan struct{}
}

func hourly(t *testing.T) cadence.Cadence {
	t.Helper()
	return must.Get(cadence.Parse("1h"))(t)
}

func newScheduled(t *testing.T, act string, change func(*scheduled)) *scheduled {
	t.Helper()
	s := &scheduled{world: newWorld(t, act), T: t, clock: newClock(), ended: make(chan struct{})}
	s.runner.Now = s.clock.Now
	s.schedule = NewSchedule(ScheduleOptions{
		Cadence: hourly(t), Supervisor: NewSupervisor(s.runner),
		Records: s.world, Now: s.clock.Now, After: s.clock.After,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	if change != nil {
		change(s)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() {
		defer close(s.ended)
		s.schedule.runSchedule(ctx)
	}()
	t.Cleanup(func() { s.end(); s.schedule.Supervisor.Close() })
	s.asleep = <-s.clock.naps // it has looked at the records
	return s
}

// end lets nothing start any more. The session that runs goes on.
func (s *scheduled) end() {
	s.stop()
	for {
		select {
		case <-s.clock.naps:
		case <-s.ended:
			return
		}
	}
}

// wake moves the clock, ends the nap, and waits for the next one.
func (s *scheduled) wake(d time.Duration) {
	s.Helper()
	s.clock.move(d)
	s.asleep.over <- s.clock.Now()
	s.asleep = <-s.clock.naps
}

// starts returns the records, oldest first: the minute of each start and its state, once nothing runs.
func (s *scheduled) starts() string {
	s.Helper()
	must.Do(s, s.schedule.Supervisor.Wait(s.Context()))
	records := must.Get(s.Sessions(s.Context(), sessions.Query{Limit: 200}))(s)
	var out []string
	for _, r := range slices.Backward(records) {
		out = append(out, r.StartedAt.Format("15:04")+" "+string(r.State))
	}
	return strings.Join(out, ", ")
}

func (s *scheduled) want(starts string) {
	s.Helper()
	if got := s.starts(); got != starts {
		s.Errorf("recorded %q, want %q; the log says %s", got, starts, s.log.String())
	}
}

func (s *scheduled) dueAt(clock string) {
	s.Helper()
	if got := s.schedule.Next().Format("15:04"); got != clock {
		s.Errorf("the next one is due at %s, want %s", got, clock)
	}
}

// before records a session that was scheduled, with its start at the time of day.
func before(hour, minute int) func(*scheduled) {
	return func(s *scheduled) {
		s.records = append(s.records, sessions.Record{
			ID:        "earlier",
			StartedAt: time.Date(2026, 11, 20, hour, minute, 0, 0, time.UTC),
			Task:      sessions.Task{Trigger: sessions.TriggerSchedule},
			Ending:    sessions.Ending{State: sessions.StateSucceeded},
		})
	}
}

func TestSessionsOfTierOneStartAtTheInterval(t *testing.T) {
	s := newScheduled(t, "good", nil)
	s.want("12:00 succeeded")
	s.dueAt("13:00")
	s.wake(59*time.Minute + 58*time.Second + 999*time.Millisecond)
	s.want("12:00 succeeded")
	if s.asleep.length.Round(time.Second) != time.Second {
		t.Errorf("it sleeps %s", s.asleep.length)
	}
	s.wake(time.Second + time.Millisecond)
	s.want("12:00 succeeded, 13:00 succeeded")
	if s.asleep.length != time.Minute {
		t.Errorf("it sleeps %s and would not notice a clock that is set", s.asleep.length)
	}
	for _, r := range s.records {
		if r.Tier != 1 || r.Trigger != sessions.TriggerSchedule {
			t.Errorf("recorded %+v", r)
		}
	}
}

func TestARestartNeitherRepeatsNorSkips(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*scheduled)
		want, after string
	}{
		"the last one is not an interval ago": {before(11, 30), "11:30 succeeded", "12:30"},
		"it is due at this moment":            {before(11, 0), "11:00 succeeded, 12:00 succeeded", "13:00"},
		"several were missed":                 {before(3, 10), "03:10 succeeded, 12:00 succeeded", "13:00"},
		"the clock was ahead by less":         {before(12, 40), "12:40 succeeded", "13:40"},
		"the clock was far ahead":             {before(20, 0), "20:00 succeeded, 12:00 succeeded", "13:00"},
		"a person started one meanwhile": {func(s *scheduled) {
			before(11, 30)(s)
			s.records = append(s.records, sessions.Record{ID: "later", StartedAt: s.clock.now,
				Task: sessions.Task{Trigger: sessions.TriggerREST}, Ending: sessions.Ending{State: sessions.StateFailed}})
		}, "11:30 succeeded, 12:00 failed", "12:30"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScheduled(t, "good", c.change)
			s.want(c.want)
			s.dueAt(c.after)
		})
	}
}

func TestSessionsStartByACronExpression(t *testing.T) {
	s := newScheduled(t, "good", func(s *scheduled) {
		s.schedule.Cadence = must.Get(cadence.Parse("30 14,15 * * 5 Europe/Berlin"))(t)
	})
	s.want("")
	s.dueAt("13:30")
	s.wake(90 * time.Minute)
	s.want("13:30 succeeded")
	s.dueAt("14:30")
	s.wake(3 * time.Hour) // the machine slept
	s.want("13:30 succeeded")
}

func TestASlotIsSkippedWhileAnotherSessionRuns(t *testing.T) {
	s := newScheduled(t, "hang", before(11, 0))
	s.until(t, "ready")
	s.wake(time.Hour)
	s.dueAt("14:00")
	s.wake(time.Hour)
	s.dueAt("15:00")
	id, _ := s.schedule.Supervisor.Current()
	must.Do(t, s.schedule.Supervisor.Stop(t.Context(), id))
	s.want("11:00 succeeded, 12:00 cancelled, 13:00 skipped, 14:00 skipped")
	if r := s.records[2]; !strings.Contains(r.Reason, id) || r.Cause != sessions.CauseBusy ||
		r.Trigger != sessions.TriggerSchedule || r.EndedAt.IsZero() ||
		r.Turns != 0 {
		t.Errorf("recorded %+v", r)
	}
	must.Contain(t, s.log.String(), "skipped")
}

func TestTwoServersOnOneFolderShareASchedule(t *testing.T) {
	for name, act := range map[string]string{"while it runs": "hang", "after it has ended": "good"} {
		t.Run(name, func(t *testing.T) {
			s := newScheduled(t, act, before(11, 30))
			other := NewSchedule(ScheduleOptions{
				Cadence: hourly(t), Supervisor: NewSupervisor(s.runner),
				Records: s.world, Now: s.clock.Now, After: s.clock.After,
				Log: s.schedule.Log,
			})
			if wait := other.startDue(t.Context()); wait.Round(time.Second) != 30*time.Minute {
				t.Fatalf("it waits %s", wait)
			}
			s.wake(30 * time.Minute)
			if act == "hang" {
				s.until(t, "ready")
			} else {
				s.starts()
			}
			if wait := other.startDue(t.Context()); wait.Round(time.Second) != time.Hour {
				t.Errorf("the other one waits %s", wait)
			}
			s.schedule.Supervisor.Close()
			if n := strings.Count(s.starts(), "12:30"); n != 1 {
				t.Errorf("recorded %s", s.starts())
			}
		})
	}
}

func TestASessionThatCannotRunIsRecordedAndTheScheduleGoesOn(t *testing.T) {
	s := newScheduled(t, "good", func(s *scheduled) { s.runner.Settings.Claude.Binary = "/nowhere/claude" })
	s.want("12:00 failed")
	s.wake(time.Hour)
	s.want("12:00 failed, 13:00 failed")
	must.Contain(t, s.records[0].Reason, "CLAUDEOPS_CLAUDE_BIN")
}

func TestASessionThatIsRefusedIsSkippedAndOnTheRecord(t *testing.T) {
	var refused []error
	exposed, managed := "the policy can be written by everybody; chmod it", ""
	s := newScheduled(t, "good", func(s *scheduled) {
		s.runner.Settings.Confinement.Exposed = func() string { return exposed }
		s.runner.Settings.Confinement.Managed = func() string { return managed }
		s.schedule.Refused = func(_ context.Context, why error) { refused = append(refused, why) }
	})
	s.want("12:00 skipped")
	if len(refused) != 1 || fault.CodeOf(refused[0]) != fault.Misconfigured ||
		s.records[0].Cause != sessions.CauseRefused ||
		!strings.Contains(s.records[0].Reason, exposed) {
		t.Errorf("refused %v, recorded %+v", refused, s.records[0])
	}
	exposed, managed = "", "an administrator names the servers"
	s.wake(time.Hour)
	s.want("12:00 skipped, 13:00 skipped")
	managed = ""
	s.wake(time.Hour)
	s.want("12:00 skipped, 13:00 skipped, 14:00 succeeded")
	if len(refused) != 2 || !strings.Contains(refused[1].Error(), "an administrator") {
		t.Errorf("refused %v", refused)
	}
}

func TestRecordsThatFailAreTriedAgain(t *testing.T) {
	broken := fault.Wrap(errFull, fault.Internal, "the disk is full")
	for _, call := range []string{"sessions", "close"} {
		s := newScheduled(t, "good", func(s *scheduled) { s.faults = map[string]error{call: broken} })
		s.wantTrouble(call)
		s.mu.Lock()
		s.faults = nil
		s.mu.Unlock()
		s.wake(time.Minute)
		s.want("12:01 succeeded")
	}
}

// wantTrouble holds that nothing started while the records fail, and that somebody is told.
func (s *scheduled) wantTrouble(call string) {
	s.Helper()
	if !strings.Contains(s.log.String(), "the disk is full") || len(s.records) != 0 || s.asleep.length != time.Minute {
		s.Errorf("%s: recorded %+v, sleeps %s, says %s", call, s.records, s.asleep.length, s.log.String())
	}
}

func TestAServerThatEndsEndsItsSessionAndStartsNone(t *testing.T) {
	s := newScheduled(t, "hang", nil)
	s.until(t, "ready")
	s.end()
	s.schedule.Supervisor.Close()
	s.clean(t)
	s.want("12:00 cancelled")
}

func TestWhoeverStartsASessionCapsWhatItEscalatesTo(t *testing.T) {
	w := newWorld(t, "handoff-to 3")
	ran, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1, Ceiling: 2})
	if err != nil || len(ran) != 2 || ran[1].Tier != 2 ||
		!strings.Contains(ran[0].Escalation, "the person who started it may start tier 2 at most") {
		t.Errorf("%v: %+v", err, ran)
	}
	w = newWorld(t, "handoff-to 3")
	if ran, err = NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1, Ceiling: 1}); err != nil || len(ran) != 1 {
		t.Errorf("%v: %+v", err, ran)
	}
	_, err = NewSupervisor(w.runner).Start(t.Context(), Spec{Tier: 2, Ceiling: 1})
	wantCode(t, err, fault.TierDenied, "this caller")
}

func TestASessionThatIsNotAdmittedDoesNotStart(t *testing.T) {
	w := newWorld(t, "good")
	s := NewSupervisor(w.runner)
	var asked string
	refuse := func(_ context.Context, id string) error { asked = id; return fault.New(fault.Internal, "not recorded") }
	_, err := s.Start(t.Context(), Spec{Tier: 1, Admit: refuse})
	wantCode(t, err, fault.Internal, "not recorded")
	if asked == "" || len(w.records) != 0 {
		t.Errorf("asked for %q, recorded %+v", asked, w.records)
	}
	if ran, err := s.Run(t.Context(), Spec{Tier: 1,
		Admit: func(context.Context, string) error { return nil }}); err != nil || len(ran) != 1 {
		t.Errorf("%v, %v", ran, err)
	}
}

func TestWhatASessionHasDoneIsRecordedWhileItRuns(t *testing.T) {
	w := newWorld(t, "hang")
	s := NewSupervisor(w.runner)
	id := must.Get(s.Start(t.Context(), Spec{Tier: 1}))(t)
	w.until(t, "ready")
	for r, err := w.Session(t.Context(), id); r.Turns != 1; r, err = w.Session(t.Context(), id) { // right after the event
		if err != nil || r.State != sessions.StateRunning {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	s.Close()
}
