package cli

import (
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/web"
)

// webServer makes the server for a listener at the address.
func (p *parts) webServer(hooks web.Hooks, agents web.Sessions, at net.Addr) (*web.Server, error) {
	return web.New(web.Options{
		Flow: func(ceiling gitprovider.Tier) web.Flow { return p.flow.AtMost(ceiling) }, Records: servedRecords{p.store, stateFolderOf(p.cfg)}, Audit: auditView{p.store}, Replies: replies{p.store}, Access: p.access,
		Remaining: p.remaining, Latency: p.latency, Summary: p.store, Reader: p.flow, Reviewer: p.reviews(),
		Pulls: p.store, Hooks: hooks, Webhooks: p.webhooks(),
		Sessions: agents, SessionRecords: p.store, Topics: []web.Topic{{Name: web.TopicSessions, Version: p.store.SessionsVersion}},
		Registry: p.registry, Policy: p.effectivePolicy, Doctor: p.doctor().Look,
		Tier: p.cfg.Permissions.Tier, DryRun: p.cfg.Permissions.DryRun, ReadOnly: p.readOnlyReason(), Version: version(), Network: p.network(at),
		Redact: p.scanner.Redact, Log: p.log, Now: time.Now, NewID: newID,
	})
}

func (p *parts) gatekeeper() *access.Gatekeeper {
	return access.NewGatekeeper(access.Options{
		Tokens: p.store, Sessions: p.store, Configured: p.cfg.Web.Tokens, AnonymousRead: p.cfg.Web.AnonymousRead, Now: time.Now,
		Random: rand.Reader,
	})
}

// network is how the server is reached. Whether only this machine can connect is asked of the listener itself.
func (p *parts) network(at net.Addr) web.Network {
	w := p.cfg.Web
	n := web.Network{
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

// auditView is the audit as the server reads it.
type auditView struct{ store *store.Lazy }

// Page implements web.Audit.
func (v auditView) Page(ctx context.Context, q web.AuditQuery) ([]record.RecordedAttempt, error) {
	rows, err := v.store.Audit(ctx, record.AuditQuery{
		After: q.After, Before: q.Before, Ascending: q.Ascending, Limit: q.Limit, Repo: q.Repo,
		Outcome: record.Outcome(q.Outcome), Code: fault.Code(q.Code), Caller: q.Caller, RequestID: q.RequestID,
		Pull: record.PullState(q.Pull), Since: q.Since, Until: q.Until,
	})
	out := make([]record.RecordedAttempt, len(rows))
	for i, r := range rows {
		out[i] = recorded(r)
	}
	return out, err
}

// recorded is a row of the audit without the store's type.
func recorded(r store.AuditRow) record.RecordedAttempt {
	return record.RecordedAttempt{Seq: r.Seq, PrevHash: r.PrevHash, Hash: r.Hash, Attempt: r.Attempt}
}

// Verify implements web.Audit.
func (v auditView) Verify(ctx context.Context, expectHead string) (web.AuditReport, error) {
	return reported(v.store.VerifyAudit(ctx, expectHead))
}

// VerifyAfter implements web.Audit.
func (v auditView) VerifyAfter(ctx context.Context, known web.AuditReport) (web.AuditReport, error) {
	return reported(v.store.VerifyAuditAfter(ctx, record.AuditReport{
		Rows: known.Rows, Head: known.Head, HeadSeq: known.HeadSeq, FirstBad: known.FirstBad, Problem: known.Problem,
	}))
}

func reported(r record.AuditReport, err error) (web.AuditReport, error) {
	return web.AuditReport{
		OK: err == nil && r.OK(), Rows: r.Rows, Head: r.Head, HeadSeq: r.HeadSeq, FirstBad: r.FirstBad, Problem: r.Problem,
	}, err
}

// Head implements web.Audit.
func (v auditView) Head(ctx context.Context) (int64, error) {
	seq, _, err := v.store.Head(ctx)
	return seq, err
}

// replies are the answers that the server remembers.
type replies struct{ store *store.Lazy }

// TakeKey implements web.Replies.
func (r replies) TakeKey(ctx context.Context, caller, key, bodyHash string, lifetime time.Duration) (web.Reply, error) {
	reply, err := r.store.TakeKey(ctx, caller, key, bodyHash, lifetime)
	return web.Reply(reply), err
}

// KeepReply implements web.Replies.
func (r replies) KeepReply(ctx context.Context, caller, key string, reply web.Reply) error {
	return r.store.KeepReply(ctx, caller, key, record.Reply(reply))
}
