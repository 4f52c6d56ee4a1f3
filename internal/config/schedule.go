package config

import (
	"fmt"
	"time"
)

// Bounds of CLAUDEOPS_INTERVAL.
const (
	minInterval = time.Minute
	maxInterval = 7 * 24 * time.Hour
)

// interval is how often sessions start by themselves; unset or 0 is never. Agents that nobody watches cost money and may
// change things, so a value that cannot be understood is a problem, not a guess.
func (e *env) interval() (every time.Duration, problem string) {
	raw := e.get("CLAUDEOPS_INTERVAL")
	if raw == "" {
		return 0, ""
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d != 0 && (d < minInterval || d > maxInterval) {
		return 0, fmt.Sprintf("CLAUDEOPS_INTERVAL is %s, which is neither 0 nor a time from 1m to 168h such as 1h", shown(raw))
	}
	return d, ""
}
