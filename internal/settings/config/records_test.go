package config_test

import (
	"strings"
	"testing"
	"time"
)

func TestRecordsAreKeptUnlessARetentionIsClear(t *testing.T) {
	const day = 24 * time.Hour
	for value, want := range map[string]struct {
		age   time.Duration
		warns string
	}{
		"": {0, ""}, "0": {0, ""}, "90d": {90 * day, ""}, "7d": {7 * day, ""}, "2160h": {90 * day, ""},
		"${CLAUDEOPS_RETENTION}": {0, ""},
		"6d":                     {0, "less than 7d"}, "1h": {0, "less than 7d"}, "0d": {0, "less than 7d"},
		"-90d":   {0, "no age"},
		"-9000h": {0, "less than 7d"},
		"ninety": {0, "no age"}, "90": {0, "no age"}, "d": {0, "no age"}, "99999999d": {0, "no age"},
	} {
		c := load(map[string]string{"CLAUDEOPS_RETENTION": value})
		warnings := strings.Join(c.Warnings, " ")
		if c.Records.Retention != want.age || !strings.Contains(warnings, want.warns) ||
			strings.Contains(warnings, "CLAUDEOPS_RETENTION") != (want.warns != "") {
			t.Errorf("%q: %s, warnings %q", value, c.Records.Retention, warnings)
		}
	}
}

// What agents say is by far the most of the records: a disk that nobody looks at would be full of it.
func TestWhatSessionsSaidIsKeptForAMonthUnlessTheOperatorSaysOtherwise(t *testing.T) {
	const day = 24 * time.Hour
	for value, want := range map[string]time.Duration{"": 30 * day, "0": 0, "90d": 90 * day, "1d": 0, "long": 0} {
		c := load(map[string]string{"CLAUDEOPS_SESSION_RETENTION": value})
		warned := strings.Contains(strings.Join(c.Warnings, " "), "CLAUDEOPS_SESSION_RETENTION")
		if c.Records.SessionRetention != want || c.Records.Retention != 0 || warned != (value == "1d" || value == "long") {
			t.Errorf("%q: %+v, %q", value, c.Records, c.Warnings)
		}
	}
}
