package cli

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/claudeops/claudeops/internal/agents/checkouts"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/keyfile"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// parts is everything that a command may need. Making it touches neither disk nor network, the policy file aside.
type parts struct {
	cfg       config.Config
	log       *slog.Logger
	rules     rules
	store     exportedStore
	scanner   *content.Scanner
	access    *access.Gatekeeper
	kernel    *operation.Kernel
	providers *providers
	flow      *prflow.Service
	notifier  *notify.Deliverer
	tools     tools
	agents    *door.Host                              // who is connected from elsewhere
	update    func(context.Context) []checkouts.State // of mounted working copies; nil for nothing
	// supervisor gives what runs sessions, the same at each call.
	supervisor func() (*session.Supervisor, error)
}

// exportedStore is the store, and what exports the heads of its audit.
type exportedStore struct {
	*store.Store
	sinks *auditsink.Exporter
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
	p := &parts{cfg: config.Load(a.environment, forges.All())}
	p.log = a.logger(n.log, p.cfg)
	targets, problems := notify.ParseTargets(notify.Settings(p.cfg.Notifications))
	p.cfg.Warnings = append(p.cfg.Warnings, problems...)
	for _, w := range p.cfg.Warnings {
		p.log.Warn(w)
	}
	p.rules = readRules(p.cfg.Permissions)
	p.scanner = content.NewScanner(append(p.cfg.Secrets, targets.Secrets()...))
	p.store.Store = store.New(p.cfg.Records.Dir, store.Options{
		DatabaseURL: p.cfg.Records.DatabaseURL,
		LocalRoot:   localRoot(p.cfg.Forges.LocalRoot),
		Process:     store.Process{Version: version(), Command: commandOf(a.args)},
		Now:         time.Now, MakeParents: p.cfg.Records.DirDefault, MustExist: n.records,
		Appended: func(ctx context.Context) { p.store.sinks.Appended(ctx) },
	})
	p.store.sinks = newSinks(p)
	p.access = access.NewGatekeeper(access.Options{
		Tokens: p.store.Access, Logins: p.store.Access, Configured: p.cfg.Web.Tokens, AnonymousRead: p.cfg.Web.AnonymousRead, Now: time.Now,
		Random: rand.Reader,
	})
	p.notifier = notify.New(p.store.Outbox, targets.Senders(notify.SenderOptions{
		Transport: transport.NewPool(http.ProxyFromEnvironment),
		Command:   notify.CommandOptions{Env: notify.CommandEnvironment(a.lookup)},
	}), notify.Options{Log: p.log})
	p.providers = newProviders(p)
	authorize(a, p)
	p.agents, p.update = newDoorHost(a, p), newCheckouts(a, p)
	p.supervisor = sync.OnceValues(func() (*session.Supervisor, error) { return newSupervisor(p) })
	a.parts = p
	return p
}

// authorize makes what acts with the rights of p.cfg and by the rules of p.rules.
func authorize(a *app, p *parts) {
	p.kernel = newKernel(a, p)
	p.flow = prflow.New(prflow.Options{
		Registry: p.providers.registry, Ledger: p.store.Ledger, History: p.store.History, Secrets: p.scanner,
		Authority: prflow.Authority{
			Policy: p.rules.policy, Tier: p.cfg.Permissions.Tier, DryRun: p.cfg.Permissions.DryRun, ReadOnly: p.rules.readOnly(),
			Unknown: p.rules.problem(), Session: p.cfg.SessionID,
		},
		Log: p.log, Clock: prflow.Clock{Now: time.Now, Sleep: transport.Sleep}, NewID: newID, Notifier: p.notifier,
		Proof: prflow.Proof{Key: p.markKey, Head: p.store.Audit.Head, Exported: p.store.sinks.Required},
	})
	p.tools = a.newTools(p)
}

// newKernel makes what takes calls their way.
func newKernel(a *app, p *parts) *operation.Kernel {
	locks, allowed := "", p.cfg.Permissions
	if p.cfg.Records.Dir != "" {
		locks = filepath.Join(p.cfg.Records.Dir, "locks")
	}
	return operation.NewKernel(operation.KernelOptions{
		Authority: operation.Authority{
			Enabled: a.enabled, Tier: allowed.Tier, AllowWrite: allowed.AllowWrite, DryRun: allowed.DryRun, ReadOnly: p.rules.noWriting(),
			Session: p.cfg.SessionID, Least: p.rules.policy.LeastTier,
			Rules: operation.Rules{Policy: p.rules.policy, Problem: p.rules.problem(), Closed: allowed.ReadOnly},
		},
		Audit: p.store.Ledger, Locks: operation.NewLocks(locks), Redact: p.scanner.Redact, Log: p.log, Now: time.Now, NewID: newID,
	})
}

// commandOf is the words of a command, without what it is given: that may be secret.
func commandOf(args []string) string {
	const most = 2
	words := args[:min(len(args), most)]
	if at := slices.IndexFunc(words, func(w string) bool { return !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(w) }); at >= 0 {
		words = words[:at]
	}
	return strings.Join(words, " ")
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

// keyOfMarks is markKey without making a key: nil if there is none yet.
func (p *parts) keyOfMarks() ([]byte, error) {
	if p.cfg.Records.MarkKey != "" || p.cfg.Records.Dir == "" {
		return p.markKey()
	}
	return keyfile.Find(p.cfg.Records.Dir)
}

func (a *app) close() error {
	if a.parts == nil {
		return nil
	}
	a.parts.notifier.Close()
	a.parts.store.sinks.Close()
	return a.parts.store.Close()
}

// newID is a request id: a ULID, unique across processes and sorted by time.
func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }
