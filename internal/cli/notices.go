package cli

import (
	"net/http"

	"github.com/claudeops/claudeops/internal/notify"
)

// targets reads who wants to be told. What cannot be understood is a warning, never a reason not to start.
func (p *parts) readTargets() notify.Targets {
	targets, problems := notify.ParseTargets(notify.Settings{
		AppriseURLs: p.cfg.Notifications.AppriseURLs, WebhookURL: p.cfg.Notifications.WebhookURL, WebhookSecret: p.cfg.Notifications.WebhookSecret,
		AllowPlainHTTP: p.cfg.Notifications.AllowPlainHTTP,
	})
	for _, problem := range problems {
		p.cfg.Warnings = append(p.cfg.Warnings, problem)
		p.log.Warn(problem)
	}
	return targets
}

// deliverer takes notices to the targets.
func (p *parts) newNotifier(targets notify.Targets, lookup func(string) (string, bool)) *notify.Deliverer {
	return notify.New(p.store.Outbox, targets.Senders(notify.SenderOptions{
		Transport: notify.NewTransport(http.ProxyFromEnvironment),
		Command:   notify.CommandOptions{Env: notify.CommandEnvironment(lookup)},
	}), notify.Options{Log: p.log})
}
