package notify

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestARetriedNoticeIsTriedLessAndLessOftenForADay(t *testing.T) {
	t.Parallel()
	n := record.PendingNotice{CreatedAt: noon()}
	now := noon()
	var waits []string
	for {
		s := settlement(n, &failure{Text: "down"}, now, 0.5)
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
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits differ (-want +got):\n%s", diff)
	}
	if age := now.Sub(noon()); age != maxAge {
		t.Errorf("given up at the age of %s, want %s", age, maxAge)
	}
}

func TestJitterKeepsTheScheduleInShape(t *testing.T) {
	t.Parallel()
	for _, random := range []float64{0, 0.999} {
		now, steps := noon(), 0
		for now.Sub(noon()) < 30*time.Minute {
			now = settlement(record.PendingNotice{CreatedAt: noon()}, &failure{}, now, random).RetryAt
			steps++
		}
		if steps < 4 || steps > 5 {
			t.Errorf("with random %v the fourth wait ends after %d attempts", random, steps)
		}
	}
	short := settlement(record.PendingNotice{CreatedAt: noon()}, &failure{}, noon(), 0).RetryAt.Sub(noon())
	long := settlement(record.PendingNotice{CreatedAt: noon()}, &failure{}, noon(), 0.999).RetryAt.Sub(noon())
	if short != 8*time.Second || long < 11*time.Second || long > 12*time.Second {
		t.Errorf("the first wait is between %s and %s, want 8s and 12s", short, long)
	}
	if short <= spacing {
		t.Errorf("a failed notice is back before those that were put off")
	}
}

func TestSettlement(t *testing.T) {
	t.Parallel()
	down := func(f failure) *failure { return &f }
	tests := []struct {
		name     string
		age      time.Duration
		attempts int
		failure  *failure
		giveUp   bool
		wait     time.Duration
	}{
		{"success", 0, 0, nil, false, 0},
		{"a permanent failure is not tried again", 0, 0, down(failure{Permanent: true}), true, 0},
		{"the target may ask for more time", 0, 0, down(failure{RetryAfter: time.Hour}), false, time.Hour},
		{"the target may not ask for less", 0, 0, down(failure{RetryAfter: time.Second}), false, 10 * time.Second},
		{"the target may not ask for ever", 0, 0, down(failure{RetryAfter: 1000 * time.Hour}), false, maxRetryAfter},
		{"nonsense of a sender is no wait", 0, 0, down(failure{RetryAfter: -time.Hour}), false, 10 * time.Second},
		{"the last attempt is after a day", 23 * time.Hour, 9, down(failure{RetryAfter: 3 * time.Hour}), false, time.Hour},
		{"a day is enough", 24 * time.Hour, 9, down(failure{}), true, 0},
		{"an old notice gets one attempt", 100 * time.Hour, 0, down(failure{}), true, 0},
		{"told in part once", 0, 0, down(failure{Partial: true}), false, 5 * time.Minute},
		{"told in part twice", 5 * time.Minute, 1, down(failure{Partial: true}), false, 2 * time.Hour},
		{"told in part three times", 2 * time.Hour, 2, down(failure{Partial: true}), true, 0},
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
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settlement differs (-want +got):\n%s", diff)
			}
		})
	}
}
