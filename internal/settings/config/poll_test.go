package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/settings/config"
)

func TestSecretsOfWebhooksAreKeptAndShortOnesAreNotUsed(t *testing.T) {
	const good, short = "sixteen-letters!", "fifteen-letters"
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(good+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		env    map[string]string
		github string
		gitea  string
		secret string // in Secrets
		warns  bool
	}{
		"none":          {nil, "", "", "", false},
		"GitHub's":      {map[string]string{"GITHUB_WEBHOOK_SECRET": good}, good, "", good, false},
		"Gitea's":       {map[string]string{"GITEA_WEBHOOK_SECRET": good}, "", good, good, false},
		"from a file":   {map[string]string{"GITHUB_WEBHOOK_SECRET_FILE": file}, good, "", good, false},
		"too short":     {map[string]string{"GITHUB_WEBHOOK_SECRET": short}, "", "", short, true},
		"a placeholder": {map[string]string{"GITEA_WEBHOOK_SECRET": "${GITEA_WEBHOOK_SECRET}"}, "", "", "", false},
	} {
		c := load(row.env)
		if c.Forges.All[0].HookSecret != row.github || c.Forges.All[1].HookSecret != row.gitea ||
			(len(c.Warnings) > 0) != row.warns {
			t.Errorf("%s: %+v, warnings %q", name, c.Forges, c.Warnings)
		}
		if row.secret != "" && !slices.Contains(c.Secrets, row.secret) {
			t.Errorf("%s: it is not among the secrets", name)
		}
		if row.warns && strings.Contains(c.Warnings[0], short) {
			t.Errorf("%s: the warning tells it: %q", name, c.Warnings[0])
		}
	}
}

func TestTheIntervalOfThePollIsWithinBounds(t *testing.T) {
	for value, want := range map[string]struct {
		every time.Duration
		warns bool
	}{
		"": {config.DefaultPollInterval, false}, "0": {0, false}, "0s": {0, false}, "30s": {30 * time.Second, false},
		"24h":   {24 * time.Hour, false},
		"1h30m": {90 * time.Minute, false}, "29s": {config.DefaultPollInterval, true},
		"24h1s": {config.DefaultPollInterval, true},
		"-1m":   {config.DefaultPollInterval, true}, "5": {config.DefaultPollInterval, true},
		"often":                      {config.DefaultPollInterval, true},
		"${CLAUDEOPS_POLL_INTERVAL}": {config.DefaultPollInterval, false},
	} {
		c := load(map[string]string{"CLAUDEOPS_POLL_INTERVAL": value})
		if c.Forges.PollInterval != want.every || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("%q: %s, warnings %q", value, c.Forges.PollInterval, c.Warnings)
		}
	}
}
