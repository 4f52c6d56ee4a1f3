package cadence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/cadence"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestWhenSomethingIsDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, last, now, want string }{
		{"an interval", "1h", "2026-03-02T10:00:00Z", "2026-03-02T10:20:00Z", "2026-03-02T11:00:00Z"},
		{"an interval that was missed", "1h", "2026-03-02T10:00:00Z", "2026-03-02T20:00:00Z", "2026-03-02T11:00:00Z"},
		{"an interval, for the first time", "1h", "", "2026-03-02T10:20:00Z", "2026-03-02T10:20:00Z"},
		{"cron in UTC", "30 6 * * *", "2026-03-02T06:30:02Z", "2026-03-02T07:00:00Z", "2026-03-03T06:30:00Z"},
		{"in winter", "0 6 * * 1-5 Europe/Berlin", "2026-03-02T05:00:02Z", "2026-03-02T07:00:00Z", "2026-03-03T05:00:00Z"},
		{"in summer", "0 6 * * 1-5 Europe/Berlin", "2026-07-01T04:00:02Z", "2026-07-01T07:00:00Z", "2026-07-02T04:00:00Z"},
		{"over a weekend", "0 6 * * 1-5", "2026-03-06T06:00:01Z", "2026-03-06T09:00:00Z", "2026-03-09T06:00:00Z"},
		{"at a time that the clock skips", "30 2 * * * Europe/Berlin", "2026-03-28T01:30:02Z", "2026-03-28T10:00:00Z",
			"2026-03-30T00:30:00Z"},
		{"cron, for the first time", "0 6 * * *", "", "2026-03-02T10:20:00Z", "2026-03-03T06:00:00Z"},
		{"cron that was missed long ago", "0 6 * * *", "2026-03-01T06:00:00Z", "2026-03-02T10:00:00Z",
			"2026-03-03T06:00:00Z"},
		{"cron that was just missed", "0 6 * * *", "2026-03-01T06:00:00Z", "2026-03-02T06:09:00Z", "2026-03-02T06:00:00Z"},
	} {
		parsed, err := cadence.Parse(c.text)
		if err != nil {
			t.Fatalf("%s: %s", c.name, err)
		}
		if got := parsed.Next(at(t, c.last), at(t, c.now)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s: due at %s, want %s", c.name, got.UTC(), c.want)
		}
	}
}

// Each time has a delay of its own within the bound, and the same one however often it is asked for.
func TestADelayIsSteadyAndBounded(t *testing.T) {
	t.Parallel()
	c, err := cadence.Parse("0 6 * * * ~10m")
	if err != nil {
		t.Fatal(err)
	}
	delays := map[time.Duration]bool{}
	for day := range 30 {
		nominal := time.Date(2026, 3, 1+day, 6, 0, 0, 0, time.UTC)
		due := c.Next(time.Time{}, nominal.Add(-time.Hour))
		delay := due.Sub(nominal)
		if delays[delay] = true; delay < 0 || delay >= 10*time.Minute {
			t.Fatalf("day %d is delayed by %s", day, delay)
		}
		for _, now := range []time.Time{nominal, due, due.Add(9 * time.Minute)} {
			if again := c.Next(nominal.Add(-24*time.Hour), now); !again.Equal(due) {
				t.Fatalf("at %s it is due at %s, and before that at %s", now, again, due)
			}
		}
		if next := c.Next(due, due); next.Sub(nominal) < 24*time.Hour {
			t.Fatalf("after the start at %s it is due again at %s", due, next)
		}
	}
	if len(delays) < 10 {
		t.Errorf("30 days have %d delays", len(delays))
	}
}

func TestTheLongestGap(t *testing.T) {
	t.Parallel()
	friday := time.Date(2026, 3, 6, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"15m": 15 * time.Minute, "0 6 * * *": 24 * time.Hour, "0 6 * * 1-5": 72 * time.Hour,
	} {
		if c, err := cadence.Parse(text); err != nil || c.Gap(friday) != want {
			t.Errorf("%s: %s, %v", text, c.Gap(friday), err)
		}
	}
}

func TestWhatIsNoCadence(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"59s": "neither 0 nor", "169h": "neither 0 nor", "hourly": "neither 0 nor", "@daily": "neither 0 nor",
		"0 6 * *": "five fields", "0 6 * * * Berlin Europe": "five fields", "0 6 * * * Mars/Olympus": "not a time zone",
		"0 6 * * * Local": "not a time zone", "61 6 * * *": "above maximum", "0 0 30 2 *": "never comes",
		"1h ~2h": "at most", "1h ~x": "not a delay", "30m ~30m": "shorter", "TZ=UTC 6 * * *": "not a field",
	} {
		if _, err := cadence.Parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
	for _, text := range []string{"", "0", "0s"} {
		if c, err := cadence.Parse(text); err != nil || !c.IsZero() {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}
