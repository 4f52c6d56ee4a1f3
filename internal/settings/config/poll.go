package config

import "time"

// Bounds of CLAUDEOPS_POLL_INTERVAL.
const (
	DefaultPollInterval = 5 * time.Minute
	minPollInterval     = 30 * time.Second
	maxPollInterval     = 24 * time.Hour
)

// pollInterval returns a duration such as 5m; 0 is off.
func (e *env) pollInterval(name string) time.Duration {
	raw := e.get(name)
	if raw == "" {
		return DefaultPollInterval
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d != 0 && (d < minPollInterval || d > maxPollInterval) {
		e.warn("%s is %s, which is neither 0 nor a time from %s to %s such as 5m: %s holds", name, shown(raw),
			minPollInterval,
			maxPollInterval, DefaultPollInterval)
		return DefaultPollInterval
	}
	return d
}
