package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Age describes how long ago something was, in the largest unit that fits: "4 min", "3 h", "2 d".
func Age(d time.Duration) string {
	switch {
	case d <= -time.Minute:
		return "in " + span(30*time.Second-d) // what was set to 90 days a moment ago is in 90 days
	case d < time.Minute: // clocks differ a little
		return "now"
	}
	return span(d)
}

func span(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Length describes a duration: "54 ms", "0.8 s", "12 s", "31 min", "2 h 5 min".
func Length(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d%time.Hour < time.Minute:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Money returns an amount of US dollars, in cents: "$0.43". What costs less than half a cent, but not nothing, is
// "under $0.01".
func Money(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "under $0.01"
	}
	whole, cents := math.Modf(math.Round(max(usd, 0)*100) / 100)
	return "$" + thousands(strconv.FormatInt(int64(whole), 10)) + strings.TrimPrefix(fmt.Sprintf("%.2f", cents), "0")
}

// Cost describes the cost of a session, with "about" before an estimate and "and more" where a price is not known.
func Cost(u sessions.Usage) string {
	switch u.CostSource {
	case sessions.CostEstimate, sessions.CostClientGuess:
		return "about " + Money(u.CostUSD)
	case sessions.CostUnknown:
		if u.CostUSD == 0 {
			return "not known"
		}
		return Money(u.CostUSD) + " and more"
	}
	if u.CostUSD == 0 && u.Tokens() == 0 {
		return "–"
	}
	return Money(u.CostUSD)
}

// Tokens returns a number of tokens, short: "850", "18 k", "1.2 M".
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return strconv.FormatInt(n/1000, 10) + " k"
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

// Count returns a whole number: "1,204".
func Count[N int | int64](n N) string { return thousands(strconv.FormatInt(int64(n), 10)) }

func thousands(digits string) string {
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Many returns a count with its noun: "1 file", "1,204 rows".
func Many[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + more
}
