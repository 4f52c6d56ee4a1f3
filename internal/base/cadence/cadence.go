// Package cadence says when something is due that happens again and again: at an interval, or at the times of a cron
// expression in a time zone.
package cadence

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	_ "time/tzdata" // images may have no time zones

	"github.com/robfig/cron/v3"
)

// Bounds of an interval and of a jitter.
const (
	MinInterval = time.Minute
	MaxInterval = 7 * 24 * time.Hour
	MaxJitter   = time.Hour
)

// missed is how long after a time of a cron expression it still counts as due, the jitter aside. One that passed while
// no process looked is left out.
const missed = 10 * time.Minute

// Cadence is an interval or a cron expression. The zero value is never due.
type Cadence struct {
	every  time.Duration // 0 with a cron expression
	cron   cron.Schedule // nil with an interval
	jitter time.Duration
	text   string
}

// Parse reads an interval such as 15m, or the five fields of a cron expression with a time zone after them, such as
// 0 6 * * 1-5 Europe/Berlin; without one it is UTC. A word such as ~10m at the end delays each time by up to that. "",
// and the interval 0, are the zero value.
func Parse(text string) (Cadence, error) {
	words := strings.Fields(text)
	c := Cadence{text: strings.Join(words, " ")}
	if n := len(words); n > 0 && strings.HasPrefix(words[n-1], "~") {
		jitter, err := time.ParseDuration(words[n-1][1:])
		if err != nil || jitter <= 0 || jitter > MaxJitter {
			return Cadence{}, fmt.Errorf("%s is not a delay such as ~10m, of at most %s", words[n-1], MaxJitter)
		}
		c.jitter, words = jitter, words[:n-1]
	}
	switch len(words) {
	case 0:
		return Cadence{}, nil
	case 1:
		return c.parseInterval(words[0])
	}
	const fields = 5
	zone := "UTC"
	if len(words) == fields+1 {
		zone, words = words[fields], words[:fields]
	}
	if len(words) != fields {
		return Cadence{}, errors.New("a cron expression has five fields, and may have a time zone after them")
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Cadence{}, fmt.Errorf("%s is not a time zone such as Europe/Berlin", zone)
	}
	for _, word := range words {
		if strings.Contains(word, "=") { // the parser's own form of a time zone
			return Cadence{}, fmt.Errorf("%s is not a field of a cron expression", word)
		}
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	c.cron, err = parser.Parse("CRON_TZ=" + at.String() + " " + strings.Join(words, " "))
	if err == nil && c.cron.Next(time.Unix(0, 0)).IsZero() {
		err = errors.New("such a time never comes")
	}
	if err != nil {
		return Cadence{}, err
	}
	return c, nil
}

func (c Cadence) parseInterval(word string) (Cadence, error) {
	every, err := time.ParseDuration(word)
	switch {
	case err != nil || every != 0 && (every < MinInterval || every > MaxInterval):
		return Cadence{}, fmt.Errorf("%s is neither 0 nor a time from 1m to 168h such as 1h", word)
	case every == 0:
		return Cadence{}, nil
	case c.jitter >= every:
		return Cadence{}, errors.New("the delay must be shorter than the interval")
	}
	c.every = every
	return c, nil
}

// IsZero reports whether nothing is ever due.
func (c Cadence) IsZero() bool { return c.every == 0 && c.cron == nil }

// Next returns when it is due after it happened last; a past time if it is due already. last is zero if it never
// happened: an interval is due at once then, and a cron expression at its next time, as after a long pause. The same
// time always has the same delay, so that processes agree.
func (c Cadence) Next(last, now time.Time) time.Time {
	if c.cron == nil {
		if last.IsZero() {
			return now
		}
		next := last.Add(c.every)
		return next.Add(c.delay(next))
	}
	if oldest := now.Add(-c.jitter - missed); last.Before(oldest) {
		last = oldest
	}
	next := c.cron.Next(last)
	return next.Add(c.delay(next))
}

// Gap returns the interval, or the longest one between the next ten times of a cron expression.
func (c Cadence) Gap(now time.Time) (longest time.Duration) {
	if c.cron == nil {
		return c.every
	}
	const times = 10
	for at, n := c.cron.Next(now), 0; n < times; n++ {
		next := c.cron.Next(at)
		longest, at = max(longest, next.Sub(at)), next
	}
	return longest
}

// String returns the cadence as it was written; "" for never.
func (c Cadence) String() string { return c.text }

// Words says when it is due, for people: every 15m0s, or by 0 6 * * 1-5 Europe/Berlin.
func (c Cadence) Words() string {
	switch {
	case c.cron != nil:
		return "by " + c.text
	case c.jitter > 0:
		return fmt.Sprintf("every %s, up to %s later", c.every, c.jitter)
	}
	return "every " + c.every.String()
}

// delay returns the jitter of one time.
func (c Cadence) delay(at time.Time) time.Duration {
	if c.jitter == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, c.text, at.Unix())
	return time.Duration(h.Sum64() % uint64(c.jitter)).Truncate(time.Second)
}
