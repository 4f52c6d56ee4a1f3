package cli

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
	"github.com/claudeops/claudeops/internal/keyfile"
	"github.com/claudeops/claudeops/internal/mounted"
	"github.com/claudeops/claudeops/internal/notify"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/web"
)

// parts is everything that a command may need. Making it touches neither disk nor network, the policy file aside.
type parts struct {
	cfg       config.Config
	log       *slog.Logger
	policy    policy.Policy
	policyErr error
	store     *store.Lazy
	access    *access.Gatekeeper
	scanner   *content.Scanner
	local     *local.Provider // nil when disabled
	people    *people.Service

	localDisabled string // why local is nil
	registry      *gitprovider.Registry
	clients       map[string]*transport.Transport // of forges, by provider
	latency       *web.ProviderLatency            // of their requests
	flow          *prflow.Service
	targets       notify.Targets
	deliverer     *notify.Deliverer
}

// wire makes the parts once per run. It is the only place that constructs them.
func (a *app) wire() *parts {
	if a.parts != nil {
		return a.parts
	}
	p := &parts{cfg: config.Load(a.environment), clients: map[string]*transport.Transport{}, latency: web.NewProviderLatency()}
	p.log = a.logger(p.cfg)
	for _, w := range p.cfg.Warnings {
		p.log.Warn(w)
	}
	p.policy, p.policyErr = policy.Load(p.cfg.Permissions.PolicyFile)
	if p.policyErr != nil {
		p.policy = policy.Default()
	}
	p.policy.EnvRepositories = p.cfg.Permissions.Repos
	p.notifications()
	p.scanner = content.NewScanner(append(p.cfg.Secrets, p.targets.Secrets()...))
	p.store = store.NewLazy(p.cfg.Records.Dir, store.Options{
		DatabaseURL: p.cfg.Records.DatabaseURL,
		Now:         time.Now, MakeParents: p.cfg.Records.DirDefault, MustExist: a.looksOnly(),
	})
	p.access = p.gatekeeper()
	p.deliverer = notify.New(p.store, p.targets.Senders(notify.SenderOptions{
		Transport: notify.NewTransport(http.ProxyFromEnvironment),
		Command:   notify.CommandOptions{Env: notify.CommandEnvironment(a.lookup)},
	}), notify.Options{Log: p.log})
	p.providers()
	p.people = p.peopleService()
	p.flow = prflow.New(prflow.Options{
		Registry: p.registry, Ledger: p.store, History: p.store, Secrets: p.scanner, Proposals: p.store,
		Policy: p.policy, Tier: p.cfg.Permissions.Tier, DryRun: p.cfg.Permissions.DryRun, Session: p.cfg.SessionID, ReadOnly: p.readOnlyReason(),
		Log: p.log, Now: time.Now, NewID: newID, Sleep: sleep, Key: p.markKey, Notices: p.notices,
	})
	a.parts = p
	return p
}

// providers registers every provider, those that lack something as disabled with the reason.
func (p *parts) providers() {
	entries := []gitprovider.Registration{p.githubEntry(), p.giteaEntry()}
	localEntry := gitprovider.Registration{
		Name: "local", Hosts: []string{gitprovider.HostLocal}, Disabled: "CLAUDEOPS_LOCAL_ROOT is not set",
	}
	if p.cfg.Forges.LocalRoot != "" {
		if provider, err := local.New(p.cfg.Forges.LocalRoot, p.store, local.Options{}); err != nil {
			localEntry.Disabled = "CLAUDEOPS_LOCAL_ROOT: " + err.Error()
		} else {
			p.local, localEntry.Provider, localEntry.Disabled = provider, provider, ""
		}
	}
	p.localDisabled = localEntry.Disabled
	var pins []gitprovider.Pin
	for _, r := range p.policy.AllRepositories() {
		if pin, ok := r.Pin(); ok {
			pins = append(pins, pin)
		}
	}
	for _, pin := range p.policy.Pins {
		pins = append(pins, gitprovider.Pin{
			Provider: pin.Provider, Owner: pin.Owner, Name: pin.Name, BaseBranch: pin.BaseBranch, Policy: true,
		})
	}
	p.registry = gitprovider.NewRegistry(append(entries, localEntry), pins, p.cfg.Forges.DefaultProvider,
		mounted.Repos{Dir: p.cfg.Mounted.Dir})
}

// markKey is the configured key of the marks, or that of the state folder. Machines that share a database share the key
// by CLAUDEOPS_MARK_KEY.
func (p *parts) markKey() ([]byte, error) {
	if p.cfg.Records.MarkKey == "" {
		if p.cfg.Records.Dir == "" {
			return nil, fault.New(fault.Misconfigured, "%s", p.cfg.Records.Problem)
		}
		return keyfile.Load(p.cfg.Records.Dir)
	}
	key, err := keyfile.Parse(p.cfg.Records.MarkKey)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "CLAUDEOPS_MARK_KEY is malformed: %s", err)
	}
	return key, nil
}

// readOnlyReason says why proposals are refused altogether, or "". A policy that cannot be read must not be replaced by
// a wider one, so it shuts the door; reading stays possible.
func (p *parts) readOnlyReason() string {
	switch {
	case p.policyProblem() != "":
		return p.policyProblem() + "; nothing can be proposed until the operator corrects it"
	case p.cfg.Permissions.ReadOnly:
		return "the server is read-only (CLAUDEOPS_READ_ONLY): it lists and reads pull requests, and opens none"
	}
	return ""
}

// logger writes to stderr, since stdout belongs to answers: JSON for mcp-server, which machines read, and for serve if it
// is asked for; text otherwise.
func (a *app) logger(cfg config.Config) *slog.Logger {
	name := ""
	if a.cmd != nil {
		name = a.cmd.Name()
	}
	if name == "mcp-server" || name == "serve" {
		return slog.New(a.queueLog(name == "mcp-server" || cfg.Web.LogJSON))
	}
	return slog.New(slog.NewTextHandler(a.streams.Err, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	}))
}

// looksOnly reports whether the command only looks at records: then it must not make an empty store and find it fine.
func (a *app) looksOnly() bool {
	if a.cmd == nil || a.cmd.Parent() == nil {
		return false
	}
	switch a.cmd.Name() {
	case "backup", "prune":
		return true
	}
	return a.cmd.Parent().Name() == "audit" || a.cmd.Parent().Name() == "session"
}

func (a *app) close() error {
	if a.parts == nil {
		return nil
	}
	return a.parts.store.Close()
}

// newID is a request id: a ULID, unique across processes and sorted by time.
func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
