package cli

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/forges"
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
	"github.com/claudeops/claudeops/internal/web/metrics"
)

// parts is everything that a command may need. Making it touches neither disk nor network, the policy file aside.
type parts struct {
	cfg       config.Config
	log       *slog.Logger
	policy    policy.Policy
	policyErr error
	store     *store.Store
	access    *access.Gatekeeper
	scanner   *content.Scanner
	local     *local.Provider // nil when disabled
	people    *people.Service

	localDisabled string // why local is nil
	registry      *gitprovider.Registry
	clients       map[string]*transport.Transport // of forges, by provider
	latency       *metrics.ProviderLatency        // of their requests
	flow          *prflow.Service
	notifier      *notify.Deliverer
}

// needs is what a command says of itself before its parts are made.
type needs struct {
	// records says that there must be some: the command looks at them, and must not make an empty store and find it fine.
	records bool
	log     logForm
}

// wire makes the parts once per run. It is the only place that constructs them.
func (a *app) wire(n needs) *parts {
	if a.parts != nil {
		return a.parts
	}
	p := &parts{cfg: config.Load(a.environment, forges.All()), clients: map[string]*transport.Transport{}, latency: metrics.NewProviderLatency()}
	p.log = a.logger(n.log, p.cfg)
	for _, w := range p.cfg.Warnings {
		p.log.Warn(w)
	}
	p.policy, p.policyErr = policy.Load(p.cfg.Permissions.PolicyFile)
	if p.policyErr != nil {
		p.policy = policy.Default()
	}
	p.policy.Targets.EnvRepositories = p.cfg.Permissions.Repos
	targets := p.readTargets()
	p.scanner = content.NewScanner(append(p.cfg.Secrets, targets.Secrets()...))
	p.store = store.New(p.cfg.Records.Dir, store.Options{
		DatabaseURL: p.cfg.Records.DatabaseURL,
		Now:         time.Now, MakeParents: p.cfg.Records.DirDefault, MustExist: n.records,
	})
	p.access = p.gatekeeper()
	p.notifier = p.newNotifier(targets, a.lookup)
	p.providers()
	p.people = p.peopleService()
	p.flow = prflow.New(prflow.Options{
		Registry: p.registry, Ledger: p.store.Ledger, History: p.store.History, Secrets: p.scanner,
		Authority: prflow.Authority{
			Policy: p.policy, Tier: p.cfg.Permissions.Tier, DryRun: p.cfg.Permissions.DryRun, ReadOnly: p.readOnlyReason(),
			Session: p.cfg.SessionID,
		},
		Log: p.log, Clock: prflow.Clock{Now: time.Now, Sleep: sleep}, NewID: newID, Key: p.markKey, Notifier: p.notifier,
	})
	a.parts = p
	return p
}

// providers registers every provider, those that lack something as disabled with the reason.
func (p *parts) providers() {
	var entries []gitprovider.Registration
	for _, f := range p.cfg.Forges.All {
		entries = append(entries, p.forge(f))
	}
	localEntry := gitprovider.Registration{
		Name: "local", Hosts: []string{gitprovider.HostLocal}, Disabled: "CLAUDEOPS_LOCAL_ROOT is not set",
	}
	if p.cfg.Forges.LocalRoot != "" {
		if provider, err := local.New(p.cfg.Forges.LocalRoot, p.store.LocalPulls, local.Options{}); err != nil {
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
	for _, pin := range p.policy.Targets.Pins {
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

func (a *app) close() error {
	if a.parts == nil {
		return nil
	}
	a.parts.notifier.Close()
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
