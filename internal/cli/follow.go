package cli

import (
	"time"

	"github.com/claudeops/claudeops/internal/web/api"

	"github.com/claudeops/claudeops/internal/follow"
)

// followDrain is how long a server that ends waits for looks that webhooks have asked for.
const followDrain = 10 * time.Second

// follower follows our pull requests at every provider that is enabled. It only reads there, so that a server that is
// read-only or in dry run has one, too.
func (p *parts) follower() *follow.Follower {
	var enabled []string
	for _, entry := range p.registry.Entries() {
		if entry.Provider != nil {
			enabled = append(enabled, entry.Name)
		}
	}
	return follow.New(follow.Options{
		Records: p.store, Shared: p.store, Providers: enabled, Status: p.flow.StatusAt, Notifier: p.notifier,
		Redact: p.scanner.Redact, Every: p.cfg.Forges.PollInterval, After: time.After, Drain: followDrain,
		Log: p.log, Now: time.Now, NewID: newID,
	})
}

// webhooks are those that are listened to, and the secrets of their senders.
func (p *parts) webhooks() (out []api.Sender) {
	for _, f := range p.cfg.Forges.All {
		out = append(out, api.Sender{Source: f.Driver.Webhooks, Secret: f.HookSecret})
	}
	return out
}
