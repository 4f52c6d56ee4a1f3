package notify

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// steady are options with a clock that the test moves, and no jitter.
func steady(now *time.Time) Options {
	return Options{Now: func() time.Time { return *now }, Rand: func() float64 { return 0.5 }}
}

func deliver(t *testing.T, d *Deliverer, delivered, pending int) {
	t.Helper()
	gotDelivered, gotPending, err := d.Deliver(t.Context())
	if err != nil || gotDelivered != delivered || gotPending != pending {
		t.Errorf("Deliver gives %d, %d, %v; want %d, %d", gotDelivered, gotPending, err, delivered, pending)
	}
}

func down(context.Context, Delivery) error { return &deliveryFailure{Text: "down"} }

func TestAFailingTargetDoesNotMakeOthersSendAgain(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	good, bad := &fakeSender{name: "webhook"}, &fakeSender{name: "apprise-ntfy", fail: down}
	d := New(box, []Sender{good, bad}, steady(&now))
	box.addMessages(t, now, 1, "apprise-ntfy", "webhook")

	deliver(t, d, 1, 1)
	for range 3 {
		now = now.Add(2 * time.Hour)
		deliver(t, d, 0, 1)
	}
	bad.fail = nil
	now = now.Add(2 * time.Hour)
	deliver(t, d, 1, 0)
	deliver(t, d, 0, 0)
	if good.attempts() != 1 || bad.attempts() != 5 {
		t.Errorf("%d and %d attempts, want 1 and 5", good.attempts(), bad.attempts())
	}
}

func TestABacklogOfSeveralBatchesIsDeliveredInOrder(t *testing.T) {
	t.Parallel()
	now, box, s := noon(), &outbox{}, &fakeSender{name: "webhook"}
	const n = 2*batch + 1
	box.addMessages(t, now, n, "webhook")
	deliver(t, New(box, []Sender{s}, steady(&now)), n, 0)
	var want []string
	for i := range n {
		want = append(want, string(rune('A'+i)))
	}
	must.Equal(t, s.took(), want)
}

func TestAfterAFailureTheOthersOfATargetArePutOff(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	s := &fakeSender{name: "webhook", fail: down}
	d := New(box, []Sender{s}, steady(&now))
	box.addMessages(t, now, 4, "webhook")
	deliver(t, d, 0, 4)
	if s.attempts() != 1 {
		t.Errorf("%d attempts at a target that is down", s.attempts())
	}
	want := map[int64]float64{1: 10, 2: 5, 3: 10, 4: 15}
	must.Equal(t, box.waiting(noon()), want)
}

func TestATargetThatAsksForPeaceGetsIt(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	s := &fakeSender{name: "webhook", fail: func(context.Context, Delivery) error {
		return &deliveryFailure{Text: "busy", RetryAfter: 2 * time.Minute}
	}}
	box.addMessages(t, now, 3, "webhook")
	deliver(t, New(box, []Sender{s}, steady(&now)), 0, 3)
	want := map[int64]float64{1: 120, 2: 125, 3: 130}
	must.Equal(t, box.waiting(noon()), want)
}

func TestAMessageThatATargetNeverTakesDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	s := &fakeSender{name: "webhook", fail: func(_ context.Context, d Delivery) error {
		if d.Message.RequestID == "A" {
			return &deliveryFailure{Text: "cannot"}
		}
		return nil
	}}
	d := New(box, []Sender{s}, steady(&now))
	box.addMessages(t, now, 3, "webhook")
	deliver(t, d, 0, 3)
	now = now.Add(5 * time.Second)
	deliver(t, d, 1, 0)
	must.Equal(t, s.took(), []string{"B"})
}

func TestAPermanentFailureIsGivenUpAtOnceAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	var log bytes.Buffer
	s := &fakeSender{name: "webhook", fail: func(_ context.Context, d Delivery) error {
		if d.Message.RequestID == "A" {
			return &deliveryFailure{Text: "webhook (h) answered 400", Permanent: true}
		}
		return nil
	}}
	o := steady(&now)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	box.addMessages(t, now, 2, "webhook")
	deliver(t, New(box, []Sender{s}, o), 1, 0)
	want := []record.NoticeSettlement{{GiveUp: true, Error: "webhook (h) answered 400"}, {Delivered: true}}
	must.Equal(t, box.settled, want)
	must.Contain(t, log.String(),
		`level=ERROR msg="notice given up" notice=1 event=opened target=webhook error="webhook (h) answered 400" age=0s`,
		`level=INFO msg="notice delivered" notice=2 event=opened target=webhook`)
}

func TestADeadTargetIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	now, box, s := noon(), &outbox{}, &fakeSender{name: "webhook", fail: down}
	d := New(box, []Sender{s}, steady(&now))
	box.addMessages(t, now, 1, "webhook")
	for range 1000 {
		deliver, pending, err := d.Deliver(t.Context())
		if err != nil || deliver != 0 {
			t.Fatal(deliver, err)
		}
		if pending == 0 {
			break
		}
		now = noon().Add(time.Duration(box.waiting(noon())[1] * float64(time.Second)))
	}
	if age := now.Sub(noon()); age != maxAge || s.attempts() != 17 || !box.rows[1].done {
		t.Errorf("given up after %s and %d attempts, want 24h and 17", age, s.attempts())
	}
}

func TestForeignErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	var log bytes.Buffer
	s := &fakeSender{name: "webhook", fail: func(context.Context, Delivery) error {
		return errors.New("Post https://example.net/" + sentinel)
	}}
	o := steady(&now)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	box.addMessages(t, now, 1, "webhook")
	deliver(t, New(box, []Sender{s}, o), 0, 1)
	if strings.Contains(log.String()+box.settled[0].Error, sentinel) {
		t.Errorf("the log or the outbox holds a secret: %s %s", log.String(), box.settled[0].Error)
	}
}

func TestNoticesThatCannotBeSentHereWaitForAProcessThatCan(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	s := &fakeSender{name: "webhook"}
	box.addMessages(t, now, 1, "apprise-ntfy")
	for _, payload := range []string{
		`{"target":"webhook","message":{"version":2,"event":"opened"}}`, `nonsense`, `{"message":{}}`,
		strings.Repeat("x", 2*maxPayload),
	} {
		box.add(t, now, record.Notice{Event: record.EventOpened, Payload: []byte(payload)})
	}
	box.addMessages(t, now, 1, "webhook")
	deliver(t, New(box, []Sender{s}, steady(&now)), 1, 5)
	must.Equal(t, box.waiting(noon()), map[int64]float64{1: 10, 2: 10, 3: 10, 4: 10, 5: 10})
	now = now.Add(maxAge)
	deliver(t, New(box, []Sender{s}, steady(&now)), 0, 0)
	if left := box.waiting(noon()); len(left) != 0 {
		t.Errorf("after a day %v still wait", left)
	}
}

func TestWithoutSendersTheOutboxIsLeftAlone(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	box.addMessages(t, now, 1, "webhook")
	d := New(box, nil, steady(&now))
	deliver(t, d, 0, 0)
	d.Kick(t.Context())
	d.Close()
	if box.claims != 0 {
		t.Errorf("%d claims", box.claims)
	}
}

func TestFailuresOfTheOutboxAreReported(t *testing.T) {
	t.Parallel()
	now, s := noon(), &fakeSender{name: "webhook"}
	broken := errors.New("disk")
	_, _, err := New(&outbox{claimErr: broken}, []Sender{s}, steady(&now)).Deliver(t.Context())
	if !errors.Is(err, broken) {
		t.Errorf("a failed claim gives %v", err)
	}
	box := &outbox{settle: broken}
	box.addMessages(t, now, batch, "webhook") // a full batch, so that a pass would go on
	if _, _, err := New(box, []Sender{s}, steady(&now)).Deliver(t.Context()); !errors.Is(err, broken) {
		t.Errorf("a failed settlement gives %v", err)
	}
	if box.claims != 1 {
		t.Errorf("%d claims though nothing can be settled", box.claims)
	}
}

func TestWhenTheProgramEndsWhatIsClaimedIsSettled(t *testing.T) {
	t.Parallel()
	now, box := noon(), &outbox{}
	ctx, cancel := context.WithCancel(t.Context())
	s := &fakeSender{name: "webhook", fail: func(context.Context, Delivery) error { cancel(); return nil }}
	box.addMessages(t, now, 3, "webhook")
	delivered, pending, err := New(box, []Sender{s}, steady(&now)).Deliver(ctx)
	if delivered != 1 || pending != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("Deliver gives %d, %d, %v", delivered, pending, err)
	}
	must.Equal(t, box.waiting(noon()), map[int64]float64{2: 0, 3: 0})
}

func TestAStalledTargetHoldsUpItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &outbox{}
		slow := &fakeSender{name: "apprise-ntfy", fail: func(context.Context, Delivery) error {
			time.Sleep(sendTimeout)
			return &deliveryFailure{Text: "stalled"}
		}}
		quick := &fakeSender{name: "webhook"}
		box.addMessages(t, time.Now(), 5, "apprise-ntfy", "webhook")
		done := make(chan struct{})
		go func() {
			defer close(done)
			deliver(t, New(box, []Sender{slow, quick}, Options{}), 5, 5)
		}()
		synctest.Wait()
		if len(quick.took()) != 5 {
			t.Errorf("the quick target has %v while the slow one stalls", quick.took())
		}
		<-done
		if slow.attempts() != 1 {
			t.Errorf("the slow target was waited for %d times", slow.attempts())
		}
	})
}

// running kicks, and closes with the test's bubble.
func running(t *testing.T, d *Deliverer) {
	d.Kick(t.Context())
	t.Cleanup(d.Close)
	synctest.Wait()
}

func TestCloseMakesALastPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &outbox{}
		release := make(chan struct{})
		s := &fakeSender{name: "webhook", fail: func(context.Context, Delivery) error { <-release; return nil }}
		d := New(box, []Sender{s}, Options{})
		box.addMessages(t, time.Now(), 1, "webhook")
		ctx, cancel := context.WithCancel(t.Context())
		d.Kick(ctx)
		synctest.Wait()
		cancel() // what is under way is not broken off
		box.addMessages(t, time.Now(), 1, "webhook")
		d.Kick(ctx)
		close(release)
		d.Close()
		if len(s.took()) != 2 {
			t.Errorf("%d delivered when it is closed", len(s.took()))
		}
	})
}

func TestWhatWaitsAtTheEndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &outbox{}
		var log bytes.Buffer
		d := New(box, []Sender{&fakeSender{name: "webhook", fail: down}},
			Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		box.addMessages(t, time.Now(), 1, "webhook")
		d.Kick(t.Context())
		d.Close()
		must.Contain(t, log.String(), "notices wait for a later process")
	})
}

func TestADelivererDeliversWhenKicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, s := &outbox{}, &fakeSender{name: "webhook"}
		d := New(box, []Sender{s}, Options{})
		box.addMessages(t, time.Now(), 1, "webhook")
		running(t, d)
		if len(s.took()) != 1 {
			t.Fatal("what waits at the start is not delivered at once")
		}
		start := time.Now()
		box.addMessages(t, start, 1, "webhook")
		d.Kick(t.Context())
		d.Kick(t.Context()) // never blocks
		synctest.Wait()
		if len(s.took()) != 2 || time.Since(start) != 0 {
			t.Errorf("%d delivered %s after a kick", len(s.took()), time.Since(start))
		}
	})
}

func TestAKickDuringAPassIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &outbox{}
		release := make(chan struct{})
		s := &fakeSender{name: "webhook", fail: func(context.Context, Delivery) error { <-release; return nil }}
		d := New(box, []Sender{s}, Options{})
		box.addMessages(t, time.Now(), 1, "webhook")
		running(t, d)
		box.addMessages(t, time.Now(), 1, "webhook")
		d.Kick(t.Context())
		start := time.Now()
		close(release)
		synctest.Wait()
		if len(s.took()) != 2 || time.Since(start) != 0 {
			t.Errorf("%d delivered after %s", len(s.took()), time.Since(start))
		}
	})
}

func TestADelivererWakesForRetriesAndForOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, s := &outbox{}, &fakeSender{name: "webhook", fail: down}
		d := New(box, []Sender{s}, Options{Rand: func() float64 { return 0.5 }})
		box.addMessages(t, time.Now(), 1, "webhook")
		running(t, d)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.attempts() != 2 {
			t.Errorf("%d attempts after the first wait", s.attempts())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.attempts() != 3 {
			t.Errorf("%d attempts after the second wait", s.attempts())
		}
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		box.addMessages(t, time.Now(), 1, "webhook") // by another process: no kick
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.took()) != 1 {
			t.Errorf("what another process made is not found after the interval: %v", s.took())
		}
	})
}

func TestADelivererSurvivesAnOutboxThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, s := &outbox{claimErr: errors.New("disk")}, &fakeSender{name: "webhook"}
		var log bytes.Buffer
		d := New(box, []Sender{s}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		box.addMessages(t, time.Now(), 1, "webhook")
		running(t, d)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if box.claims != 1 || !strings.Contains(log.String(), "disk") {
			t.Errorf("%d claims within a minute; log: %s", box.claims, log.String())
		}
		box.mu.Lock()
		box.claimErr = nil
		box.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.took()) != 1 {
			t.Error("nothing is delivered after the outbox has recovered")
		}
	})
}

// TestMain lets this binary be the reaper of the commands that tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processtree.ReaperCommand {
		os.Exit(processtree.Reap())
	}
	os.Exit(m.Run())
}

func TestARetriedNoticeIsTriedLessAndLessOftenForADay(t *testing.T) {
	t.Parallel()
	n := record.PendingNotice{CreatedAt: noon()}
	now := noon()
	var waits []string
	for {
		s := settlement(n, &deliveryFailure{Text: "down"}, now, 0.5)
		if s.Error != "down" || s.Delivered {
			t.Fatalf("settlement %+v", s)
		}
		if s.GiveUp {
			break
		}
		waits = append(waits, s.RetryAt.Sub(now).String())
		now = s.RetryAt
		n.Attempts++
	}
	want := []string{
		"10s", "1m0s", "5m0s", "30m0s", "2h0m0s", "2h0m0s", "2h0m0s", "2h0m0s", "2h0m0s", "2h0m0s", "2h0m0s", "2h0m0s",
		"2h0m0s",
		"2h0m0s", "2h0m0s", "1h23m50s",
	}
	must.Equal(t, waits, want)
	if age := now.Sub(noon()); age != maxAge {
		t.Errorf("given up at the age of %s, want %s", age, maxAge)
	}
}

func TestJitterKeepsTheScheduleInShape(t *testing.T) {
	t.Parallel()
	for _, random := range []float64{0, 0.999} {
		now, steps := noon(), 0
		for now.Sub(noon()) < 30*time.Minute {
			now = settlement(record.PendingNotice{CreatedAt: noon()}, &deliveryFailure{}, now, random).RetryAt
			steps++
		}
		if steps < 4 || steps > 5 {
			t.Errorf("with random %v the fourth wait ends after %d attempts", random, steps)
		}
	}
	short := settlement(record.PendingNotice{CreatedAt: noon()}, &deliveryFailure{}, noon(), 0).RetryAt.Sub(noon())
	long := settlement(record.PendingNotice{CreatedAt: noon()}, &deliveryFailure{}, noon(), 0.999).RetryAt.Sub(noon())
	if short != 8*time.Second || long < 11*time.Second || long > 12*time.Second {
		t.Errorf("the first wait is between %s and %s, want 8s and 12s", short, long)
	}
	if short <= spacing {
		t.Errorf("a failed notice is back before those that were put off")
	}
}

func TestSettlement(t *testing.T) {
	t.Parallel()
	down := func(f deliveryFailure) *deliveryFailure { return &f }
	tests := []struct {
		name     string
		age      time.Duration
		attempts int
		failure  *deliveryFailure
		giveUp   bool
		wait     time.Duration
	}{
		{"success", 0, 0, nil, false, 0},
		{"a permanent failure is not tried again", 0, 0, down(deliveryFailure{Permanent: true}), true, 0},
		{"the target may ask for more time", 0, 0, down(deliveryFailure{RetryAfter: time.Hour}), false, time.Hour},
		{"the target may not ask for less", 0, 0, down(deliveryFailure{RetryAfter: time.Second}), false, 10 * time.Second},
		{"the target may not ask for ever", 0, 0, down(deliveryFailure{RetryAfter: 1000 * time.Hour}), false, maxRetryAfter},
		{"nonsense of a sender is not a wait", 0, 0, down(deliveryFailure{RetryAfter: -time.Hour}), false, 10 * time.Second},
		{"the last attempt is after a day", 23 * time.Hour, 9, down(deliveryFailure{RetryAfter: 3 * time.Hour}), false,
			time.Hour},
		{"a day is enough", 24 * time.Hour, 9, down(deliveryFailure{}), true, 0},
		{"an old notice gets one attempt", 100 * time.Hour, 0, down(deliveryFailure{}), true, 0},
		{"told in part once", 0, 0, down(deliveryFailure{Partial: true}), false, 5 * time.Minute},
		{"told in part twice", 5 * time.Minute, 1, down(deliveryFailure{Partial: true}), false, 2 * time.Hour},
		{"told in part three times", 2 * time.Hour, 2, down(deliveryFailure{Partial: true}), true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := noon().Add(tt.age)
			got := settlement(record.PendingNotice{CreatedAt: noon(), Attempts: tt.attempts}, tt.failure, now, 0.5)
			want := record.NoticeSettlement{Delivered: tt.failure == nil, GiveUp: tt.giveUp}
			if tt.wait > 0 {
				want.RetryAt = now.Add(tt.wait)
			}
			must.Equal(t, got, want)
		})
	}
}
