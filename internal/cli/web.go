package cli

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/proposals/follow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/live"
	"github.com/claudeops/claudeops/internal/web/metrics"
	"github.com/claudeops/claudeops/internal/web/records"
)

// webServer makes the server for a listener at the address.
func newWebServer(p *parts, toolsets web.Toolsets, follower api.Follower, sessions dashboard.Sessions, tokens *door.Tokens, at net.Addr) (*web.Server, error) {
	return web.New(web.Options{
		Settings: handler.Settings{Version: version(), Tier: p.cfg.Permissions.Tier, DryRun: p.cfg.Permissions.DryRun, ReadOnly: p.rules.readOnly()},
		Callers:  web.Callers{Network: networkOf(p, at), Access: p.access, Agents: web.Agents{Tokens: tokens}},
		Toolsets: toolsets,
		Records: records.Records{
			Attempts: servedRecords{p.store.History, p.store.Store, stateFolderOf(p.cfg)}, Audit: p.comparedAudit(), Replies: p.store.Replies,
			Summary: p.store.History, Pulls: p.store.Pulls, Sessions: p.store.AgentSessions, Notices: p.store.Outbox, Changes: p.store.Changes(),
		},
		People: web.People{Sessions: sessions, Acts: acts(func() *parts { return p })},
		Providers: web.Providers{
			Providers: dashboard.Providers{Reader: p.flow.Reader(), Reviewer: newReviews(p), Registry: p.providers.registry},
			Remaining: p.providers.remaining, Latency: p.providers.latency,
		},
		Webhooks: api.Webhooks{Follower: follower, Senders: webhooks(p)},
		Rules: web.Rules{
			Policy: p.rules.effective, Doctor: newDoctor(p).Look,
			Boundary:     func() metrics.Boundary { return boundaryMetric(p.cfg) },
			ComparePulls: func(ctx context.Context) ([]record.HeadCheck, error) { return compareWithPulls(ctx, p) },
		},
		Live: web.Live{Topics: []live.Topic{
			{Name: live.TopicSessions, Version: p.store.AgentSessions.SessionsVersion},
			{Name: live.TopicConnections, Version: p.store.Connections().ConnectionsVersion},
		}},
		Env: handler.Env{Log: p.log, Redact: p.scanner.Redact, Redaction: p.scanner.Redaction, Now: time.Now, NewID: newID},
	})
}

// boundaryMetric is what keeps agents from our files now, for metrics.
func boundaryMetric(c config.Config) metrics.Boundary {
	b, _, err := decideBoundary(c)
	if err != nil {
		return metrics.Boundary{Kind: "invalid"}
	}
	return metrics.Boundary{Kind: string(b.Kind), ABI: b.ABI, Whole: b.Whole()}
}

// network is how the server is reached. Whether only this machine can connect is asked of the listener itself.
func networkOf(p *parts, at net.Addr) guard.Network {
	w := p.cfg.Web
	n := guard.Network{
		Hosts: w.Hosts, BasePath: w.BasePath, TrustedProxies: w.TrustedProxies, ProxyUserHeader: w.ProxyUserHeader,
	}
	if host := w.Host(); host != "" {
		n.Hosts = append(n.Hosts, host)
	}
	if addr, err := netip.ParseAddrPort(at.String()); err == nil {
		n.AnyIP = addr.Addr().IsUnspecified()
	}
	// What is configured for a proxy says that there is one, and who comes from this machine may be anybody then.
	n.Loopback = loopbackAddr(at) && w.BasePath == "" && len(w.TrustedProxies) == 0 && len(w.Hosts) == 0
	return n
}

func loopbackAddr(at net.Addr) bool {
	addr, err := netip.ParseAddrPort(at.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// followDrain is how long a server that ends waits for looks that webhooks have asked for.
const followDrain = 10 * time.Second

// follower follows our pull requests at every provider that is enabled. It only reads there, so that a server that is
// read-only or in dry run has one, too.
func newFollower(p *parts) *follow.Follower {
	var enabled []string
	for _, entry := range p.providers.registry.Entries() {
		if entry.Provider != nil {
			enabled = append(enabled, entry.Name)
		}
	}
	return follow.New(follow.Options{
		Records: p.store.Pulls, Shared: p.store.Rounds, Providers: enabled, Status: p.flow.Reader().StatusAt, Notifier: p.notifier,
		Redact: p.scanner.Redact, Every: p.cfg.Forges.PollInterval, After: time.After, Drain: followDrain,
		Log: p.log, Now: time.Now, NewID: newID,
	})
}

// webhooks are those that are listened to, and the secrets of their senders.
func webhooks(p *parts) (out []api.Sender) {
	for _, f := range p.cfg.Forges.All {
		out = append(out, api.Sender{Source: f.Driver.Webhooks, Secret: f.HookSecret})
	}
	return out
}
