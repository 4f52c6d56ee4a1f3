package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/proposals/pullsync"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/live"
	"github.com/claudeops/claudeops/internal/web/views"
)

// NewWebServer makes the server for a listener at the address.
func NewWebServer(p *Parts, toolsets web.Toolsets, follower api.Follower, sessions dashboard.Sessions,
	tokens *gateway.Tokens, at net.Addr, own httpx.Own) (*web.Server, error) {
	return web.New(web.Options{
		Settings: httpx.Settings{
			Version: Version(), Tier: p.Cfg.Permissions.Tier, PublicURL: p.Cfg.Web.PublicURL,
			Rules: func() httpx.Rules {
				now := p.Rules.Now()
				return httpx.Rules{DryRun: now.DryRun.On, ReadOnly: now.noProposals(), Problem: now.Problem}
			},
		},
		Callers: web.Callers{Network: networkOf(p, at, own), Access: p.access, SignIn: p.identities,
			Agents: web.Agents{Tokens: tokens, Programs: newPrograms(p)}},
		Toolsets: toolsets,
		Records: views.Records{
			Attempts: servedRecords{p.Store.History, p.Store.Store, stateFolderOf(p.Cfg)}, Audit: p.ComparedAudit(),
			Replies: p.Store.Replies,
			Summary: p.Store.History, Pulls: p.Store.Pulls, Sessions: p.Store.AgentSessions, Notices: p.Store.Outbox,
			Pauses: p.Store.Pauses(), Changes: p.Store.Changes(),
		},
		People: web.People{Sessions: sessions, Acts: Acts(func() *Parts { return p })},
		Providers: web.Providers{
			Providers: dashboard.Providers{Reader: p.Flow.Reader(), Reviewer: NewReviews(p), Registry: p.Providers.registry},
			Remaining: p.Providers.remaining, Latency: p.Providers.latency,
		},
		Webhooks: api.Webhooks{Follower: follower, Senders: webhooks(p), Runs: newRunHooks(p)},
		Rules: web.Rules{
			Policy: p.Rules.Effective, Doctor: func(ctx context.Context) []doctor.Finding { return lookAtServer(ctx, p) },
			Stamp:        func() string { return fmt.Sprint(p.PolicyState(), p.secrets.Problems()) },
			Room:         func(ctx context.Context) (health.Room, error) { return roomOf(ctx, p) },
			Boundary:     func() health.Boundary { return boundaryMetric(p.Cfg) },
			ComparePulls: func(ctx context.Context) ([]record.HeadCheck, error) { return CompareWithPulls(ctx, p) },
		},
		Live: web.Live{Topics: []live.Topic{
			{Name: live.TopicSessions, Version: p.Store.AgentSessions.SessionsVersion},
			{Name: live.TopicConnections, Version: p.Store.Connections().ConnectionsVersion},
		}},
		Env: httpx.Env{
			Log:       p.Log,
			Redact:    p.Scanner.Redact,
			Hide:      p.Scanner.Hide,
			Redaction: p.Scanner.Redaction,
			Now:       p.Store.Now,
			NewID:     NewID,
		},
	})
}

// lookAtServer returns doctor's findings, except on the audit: the server verifies it by itself.
func lookAtServer(ctx context.Context, p *Parts) []doctor.Finding {
	d := NewDoctor(p)
	d.LeaveAudit = true
	d.Rules.Secrets = p.secrets.Problems()
	return d.Look(ctx)
}

// roomOf is what the records take, and the disk of the state folder.
func roomOf(ctx context.Context, p *Parts) (room health.Room, err error) {
	size, err := p.Store.Size(ctx)
	room.Records = uint64(max(size, 0)) //nolint:gosec // not negative
	if free, disk, known := files.Room(p.Cfg.Records.Dir); known && p.Cfg.Records.Dir != "" {
		room.DiskFree, room.Disk = free, disk
	}
	return room, err
}

// boundaryMetric returns the boundary between agents and our files now, for metrics.
func boundaryMetric(c config.Config) health.Boundary {
	b, _, err := decideBoundary(c)
	if err != nil {
		return health.Boundary{Kind: "invalid"}
	}
	return health.Boundary{Kind: string(b.Kind), ABI: b.ABI, Whole: b.Whole()}
}

// networkOf returns how the server is reached. Whether only this machine can connect is read from the listener itself.
func networkOf(p *Parts, at net.Addr, own httpx.Own) httpx.Network {
	w := p.Cfg.Web
	n := httpx.Network{
		Hosts: w.Hosts, BasePath: w.BasePath, TrustedProxies: w.TrustedProxies, ProxyUserHeader: w.ProxyUserHeader,
	}
	if host := w.Host(); host != "" {
		n.Hosts = append(n.Hosts, host)
	}
	if u, err := url.Parse(w.PublicURL); err == nil && len(w.SignIn) > 0 { // people come back there from their provider
		n.Hosts = append(n.Hosts, u.Hostname())
	}
	if addr, err := netip.ParseAddrPort(at.String()); err == nil {
		n.AnyIP = addr.Addr().IsUnspecified()
	}
	// What is configured for a proxy says that there is one, and who comes from this machine may be anybody then.
	n.Own = own
	n.Loopback = loopbackAddr(at) && w.BasePath == "" && len(w.TrustedProxies) == 0 && len(w.Hosts) == 0
	return n
}

func loopbackAddr(at net.Addr) bool {
	addr, err := netip.ParseAddrPort(at.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// followDrain limits how long an ending server waits for looks that webhooks have asked for.
const followDrain = 10 * time.Second

// NewFollower makes what follows our pull requests at every provider that is enabled. A server that is read-only or in
// dry run has one, too, which only reads there.
func NewFollower(p *Parts) *pullsync.Follower {
	var enabled []string
	for _, entry := range p.Providers.registry.Entries() {
		if entry.Provider != nil {
			enabled = append(enabled, entry.Name)
		}
	}
	return pullsync.New(pullsync.Options{
		Records: p.Store.Pulls, Shared: p.Store.JobClaims, Providers: enabled, Status: p.Flow.Reader().StatusAt,
		Notifier: p.notifier, RemindAfter: p.remindAfter, Closer: p.Flow.NewStaleCloser(),
		Redact: p.Scanner.Redact, Every: p.Cfg.Forges.PollInterval, After: time.After, Drain: followDrain,
		Log: p.Log, Now: p.Store.Now, NewID: NewID,
	})
}

// remindAfter is that of the policy as it is now; 0 while it cannot be read.
func (p *Parts) remindAfter() time.Duration {
	rules, err := p.Rules.Effective()
	if err != nil {
		return 0
	}
	return rules.RemindAfter
}

// webhooks returns the webhooks that are accepted, and the secrets of their senders.
func webhooks(p *Parts) (out []api.Sender) {
	for _, f := range p.Cfg.Forges.All {
		out = append(out, api.Sender{Source: f.Driver.Webhooks, Secret: func() string { return p.secrets.Hook(f.Driver) }})
	}
	return out
}

// NewDoctorOf is NewDoctor for a command, which also looks at the servers that run.
func NewDoctorOf(p *Parts) *doctor.Doctor {
	d := NewDoctor(p)
	d.Rules.Servers = p.servers
	return d
}

// NewDoctor makes what looks once at everything that this process is configured with, by the rules as they are now.
func NewDoctor(p *Parts) *doctor.Doctor {
	now := p.Rules.Now()
	o := doctor.Options{
		Config: p.Cfg, Rules: doctor.Rules{Policy: now.Policy, ReadOnly: now.noProposals(), DryRun: now.DryRun,
			ReposProblem: now.ReposProblem}, Redact: p.Scanner.Redact,
		Records: p.Store, Audit: p.ComparedAudit(), Outbox: p.Store.Outbox, Registry: p.Providers.registry, Key: p.keyOfMarks,
		Notifying: p.notifier.Names(), OtherRecords: p.OtherRecords(), Proposed: p.Store.History.Proposed,
		MergeMCP: func(offers config.Offers) (mcpconfig.Result, error) { return MergedMCP(p.Cfg, offers, nil, nil) },
	}
	o.Boundary = doctor.Boundary{
		Held: func() (sandbox.Boundary, error) {
			b, _, err := decideBoundary(p.Cfg)
			return b, err
		},
		Exposed: func() string { return exposedToAgents(p) },
		Scripts: func() []string { return placesOfScripts(p) },
		Managed: managedServers,
	}
	for _, provider := range p.identities {
		o.SignIn = append(o.SignIn, provider)
	}
	if now.Problem != now.ReposProblem {
		o.Rules.Problem = now.Problem
	}
	if p.Providers.local != nil {
		o.Git = p.Providers.local
	}
	return doctor.New(o)
}
