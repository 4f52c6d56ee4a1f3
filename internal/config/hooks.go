package config

import "time"

// MinHookSecret is the length in bytes below which a secret of a webhook is not accepted.
const MinHookSecret = 16

// Bounds of CLAUDEOPS_POLL_INTERVAL.
const (
	DefaultPollInterval = 5 * time.Minute
	minPollInterval     = 30 * time.Second
	maxPollInterval     = 24 * time.Hour
)

// Hooks is how `claudeops serve` hears of what becomes of pull requests.
type Hooks struct {
	GitHubSecret string        // GITHUB_WEBHOOK_SECRET; "" if there is none that is long enough
	GiteaSecret  string        // GITEA_WEBHOOK_SECRET
	PollInterval time.Duration // 0: nobody asks unless a webhook comes
}

func (e *env) hooks() Hooks {
	return Hooks{
		GitHubSecret: e.hookSecret("GITHUB_WEBHOOK_SECRET", e.secret("GITHUB_WEBHOOK_SECRET")),
		GiteaSecret:  e.hookSecret("GITEA_WEBHOOK_SECRET", e.secret("GITEA_WEBHOOK_SECRET")),
		PollInterval: e.pollInterval("CLAUDEOPS_POLL_INTERVAL"),
	}
}

func (e *env) hookSecret(name, value string) string {
	if value != "" && len(value) < MinHookSecret {
		e.warn("%s has less than %d characters: webhooks of this forge are refused", name, MinHookSecret)
		return ""
	}
	return value
}

// pollInterval is a duration such as 5m; 0 is off.
func (e *env) pollInterval(name string) time.Duration {
	raw := e.get(name)
	if raw == "" {
		return DefaultPollInterval
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d != 0 && (d < minPollInterval || d > maxPollInterval) {
		e.warn("%s is %s, which is neither 0 nor a time from %s to %s such as 5m: %s holds", name, shown(raw), minPollInterval,
			maxPollInterval, DefaultPollInterval)
		return DefaultPollInterval
	}
	return d
}
