// Package app makes what the program consists of, from its configuration: it is the only one that constructs. Commands
// are in cli.
package app

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// App holds the parts of one run of the program. Each part is made when it is first asked for.
type App struct {
	// options is asked each time, since flags are read after the first command is known. nil: none.
	options func() Options
	Parts   *Parts

	toolsetsMade sync.Mutex
	toolsets     map[string]operation.Toolset // of the program, by name; see toolset
}

// Options configure a run of the program.
type Options struct {
	Lookup      func(name string) (string, bool) // reads the environment
	Environment func(name string) (string, bool) // with flags before it
	// Sources are the places that settings come from, with files as they are now; an error says which cannot be read.
	Sources func() (config.Sources, error)
	// EnvironmentFile is the file that Lookup reads beside the environment, whether it exists or not; "" for none.
	EnvironmentFile string
	Args            []string // of the command line
	Out             io.Writer
	Logger          func(form LogForm, cfg config.Config) *slog.Logger
	// FlushLog waits, for a bounded time, until the lines so far are written.
	FlushLog func()
	// Sleep passes the pauses between requests to a forge; nil waits for the time to pass.
	Sleep func(context.Context, time.Duration)

	More   []operation.Toolset // beside those of the program; tests add some
	Only   string              // the one toolset that is served; "" for those of CLAUDEOPS_TOOLSETS
	Folder string              // that toolsets beside pr look at; "" for the working folder
}

// sources returns the places that settings come from when the command begins.
func (a *App) sources() config.Sources {
	if a.Options().Sources == nil { // of tests
		return config.Environment(a.Options().Environment)
	}
	out, _ := a.Options().Sources() // the command line has refused files that cannot be read
	return out
}

// New makes an App. It touches nothing.
func New(options func() Options) *App { return &App{options: options} }

// Options returns the options as they are now.
func (a *App) Options() Options {
	if a.options == nil {
		return Options{}
	}
	return a.options()
}

// Parts holds everything that a command may need. Making it touches neither disk nor network, the policy file aside.
type Parts struct {
	Cfg     config.Config
	Log     *slog.Logger
	Rules   rules
	Store   exportedStore
	Scanner *textscan.Scanner
	secrets *config.Secrets
	access  *access.Gatekeeper
	// identities are the providers by which people sign in.
	identities []*identity.Provider
	kernel     *operation.Kernel
	Providers  *providers
	Flow       *prflow.Service
	notifier   *notify.Deliverer
	Tools      tools
	Agents     *gateway.Host                                 // who is connected from elsewhere
	update     func(context.Context) []session.CheckoutState // of mounted working copies; nil for nothing
	// supervisor gives what runs sessions, the same at each call.
	supervisor func() (*session.Supervisor, error)
}

// exportedStore adds to the store what exports the heads of its audit.
type exportedStore struct {
	*store.Store
	sinks *auditsink.Exporter
}

// LogForm selects the format of a command's log on stderr; stdout belongs to answers.
type LogForm int

// The forms. Commands that run for long log behind a queue.
const (
	LogWarnings   LogForm = iota // for people, without times
	logQueued                    // in the form that CLAUDEOPS_LOG_FORMAT names
	LogQueuedJSON                // for a machine that reads it
)

// Needs tells what a command requires before its parts are made.
type Needs struct {
	// Records says that there must be some: the command looks at them, and must not make an empty store and find it fine.
	Records bool
	Log     LogForm
}

// Wire makes the parts once per run. It is the only place that constructs them.
func (a *App) Wire(n Needs) *Parts {
	if a.Parts != nil {
		return a.Parts
	}
	p := &Parts{Cfg: config.Load(a.sources(), forges.All())}
	p.Cfg.EnvironmentFile = a.Options().EnvironmentFile
	p.Log = a.Options().Logger(n.Log, p.Cfg)
	targets, problems := notify.ParseTargets(notify.Settings(p.Cfg.Notifications))
	p.Rules = NewRules(a.Options().Sources, p.Log)
	p.Cfg.Warnings = append(p.Rules.Now().withSwitches(p.Cfg.Warnings, config.LoadRules(a.sources())), problems...)
	for _, w := range p.Cfg.Warnings {
		p.Log.Warn(w)
	}
	p.Scanner = textscan.NewScanner(append(p.Cfg.Secrets, targets.Secrets()...))
	p.secrets = newSecrets(a, p)
	p.Store.Store = store.New(p.Cfg.Records.Dir, store.Options{
		DatabaseURL: p.Cfg.Records.DatabaseURL, Kind: p.Cfg.Records.Kind,
		LocalRoot:   localRoot(p.Cfg.Forges.LocalRoot),
		Process:     store.Process{Version: Version(), Command: commandOf(a.Options().Args)},
		MakeParents: p.Cfg.Records.DirDefault, MustExist: n.Records,
		Appended:       func(ctx context.Context) { p.Store.sinks.Appended(ctx) },
		Policy:         func() string { return p.Rules.Now().policyHash() },
		SessionNotices: func(r sessions.Record) []record.Notice { return p.notifier.SessionNotices(r) },
	})
	p.Store.sinks = newSinks(p)
	p.identities = newIdentities(p)
	p.access = access.NewGatekeeper(access.Options{
		Tokens: p.Store.Access, Logins: p.Store.Access, Configured: p.secrets.APITokens,
		AnonymousRead: p.Cfg.Web.AnonymousRead, Now: p.Store.Now,
		Random: rand.Reader, Directory: newDirectory(p), Operator: User(),
		Closed: func() string { return p.Rules.Now().Problem },
	})
	p.notifier = notify.New(p.Store.Outbox, targets.Senders(notify.SenderOptions{
		Transport: transport.NewPool(http.ProxyFromEnvironment),
		Command:   notify.CommandOptions{Env: notify.CommandEnvironment(a.Options().Lookup)},
	}), notify.Options{Log: p.Log})
	p.Providers = newProviders(p, a.Options().Sleep)
	authorize(a, p)
	p.Agents, p.update = newDoorHost(a, p), newCheckouts(a, p)
	p.supervisor = sync.OnceValues(func() (*session.Supervisor, error) { return newSupervisor(p) })
	a.Parts = p
	return p
}

// authorize makes what acts with the rights of p.cfg and by the rules of p.rules.
func authorize(a *App, p *Parts) {
	p.kernel = newKernel(a, p)
	p.Flow = prflow.New(prflow.Options{
		Registry: p.Providers.registry, Ledger: p.Store.Ledger, History: p.Store.History, Secrets: p.Scanner,
		Live: func() prflow.Authority {
			now := p.Rules.Now()
			return prflow.Authority{
				Policy: now.Policy, Tier: p.Cfg.Permissions.Tier, DryRun: now.DryRun.On, ReadOnly: now.noProposals(),
				Unknown: now.Problem, Session: p.Cfg.SessionID,
			}
		},
		Log: p.Log, Clock: prflow.Clock{Now: p.Store.Now, Sleep: transport.Sleep}, NewID: NewID, Notifier: p.notifier,
		Checkers: newCheckers(a, p), Pauses: p.Store.Pauses(),
		Proof: prflow.Proof{Key: p.markKey, Head: p.Store.Audit.Head, Exported: p.Store.sinks.Required},
	})
	p.Tools = a.newTools(p)
}

// newKernel makes what takes calls their way.
func newKernel(a *App, p *Parts) *operation.Kernel {
	locks, allowed := "", p.Cfg.Permissions
	if p.Cfg.Records.Dir != "" {
		locks = filepath.Join(p.Cfg.Records.Dir, "locks")
	}
	return operation.NewKernel(operation.KernelOptions{
		Live: func() operation.Authority {
			now := p.Rules.Now()
			return operation.Authority{
				Enabled: a.enabled, Tier: allowed.Tier, AllowWrite: allowed.AllowWrite, DryRun: now.DryRun.On,
				ReadOnly: now.noWriting(), Session: p.Cfg.SessionID, Least: now.Policy.LeastTier,
				Rules: operation.Rules{Policy: now.Policy, Problem: now.Problem, Closed: now.ReadOnly.On},
			}
		},
		Audit: p.Store.Ledger, Pauses: p.Store.Pauses(),
		Locks: operation.NewLocks(locks), Redact: p.Scanner.Redact, Hide: p.Scanner.Hide, Log: p.Log,
		Now:   p.Store.Now,
		NewID: NewID,
	})
}

// commandOf returns the words of a command without its arguments, which may be secret.
func commandOf(args []string) string {
	const most = 2
	words := args[:min(len(args), most)]
	if at := slices.IndexFunc(words,
		func(w string) bool { return !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(w) }); at >= 0 {
		words = words[:at]
	}
	return strings.Join(words, " ")
}

// markKey returns the configured key of the marks, or that of the state folder. Machines that share a database share
// the key by CLAUDEOPS_MARK_KEY.
func (p *Parts) markKey() ([]byte, error) {
	if p.Cfg.Records.MarkKey == "" {
		if p.Cfg.Records.Dir == "" {
			return nil, fault.New(fault.Misconfigured, "%s", p.Cfg.Records.Problem)
		}
		return config.LoadMarkKey(p.Cfg.Records.Dir)
	}
	key, err := config.ParseKey(p.Cfg.Records.MarkKey)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured, "CLAUDEOPS_MARK_KEY is malformed: %s", err)
	}
	return key, nil
}

// grantKey seals what lets providers of identities be asked about people. It is made of the configured key of the
// marks, which machines share, or is that of the state folder.
func (p *Parts) grantKey() ([]byte, error) {
	if p.Cfg.Records.MarkKey != "" || p.Cfg.Records.Dir == "" {
		return p.markKey()
	}
	return config.LoadKeyFile(p.Cfg.Records.Dir, config.GrantsKeyName)
}

// keyOfMarks is markKey without making a key: nil if there is none yet.
func (p *Parts) keyOfMarks() ([]byte, error) {
	if p.Cfg.Records.MarkKey != "" || p.Cfg.Records.Dir == "" {
		return p.markKey()
	}
	return config.FindMarkKey(p.Cfg.Records.Dir)
}

// Close ends what was opened, if anything was.
func (a *App) Close() error {
	if a.Parts == nil {
		return nil
	}
	a.Parts.notifier.Close()
	a.Parts.Store.sinks.Close()
	return a.Parts.Store.Close()
}

// NewID makes a request id: a ULID, unique across processes and sorted by time.
func NewID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// Release is the version of this source tree; CHANGELOG.md has the same.
const Release = "0.1.0"

// Version returns the tag that the binary was built from (or that `go install` was asked for), else the release with
// the commit if Go stamped one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	return VersionOf(info)
}

// VersionOf returns the version that a build says.
func VersionOf(info *debug.BuildInfo) string {
	if tag := regexp.MustCompile(`^v(\d+\.\d+\.\d+(-[a-z]+\.?\d*)?(\+dirty)?)$`).FindStringSubmatch(
		info.Main.Version); tag != nil {
		return tag[1]
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return Release + "+" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return Release
}

// newSecrets makes what reads the secrets that come from files, again and again.
func newSecrets(a *App, p *Parts) *config.Secrets {
	sources := a.Options().Sources
	if sources == nil { // of tests
		sources = func() (config.Sources, error) { return a.sources(), nil }
	}
	return config.NewSecrets(config.SecretsOptions{
		Sources: sources, Drivers: forges.All(), Learn: func(secret string) { p.Scanner.Learn(secret) },
		Changed: func(is []config.SecretProblem) {
			for _, one := range is {
				p.Log.Error(one.Detail, "variable", one.Name)
			}
			if len(is) == 0 {
				p.Log.Warn("every secret can be read again, and is the one that this process goes by")
			}
		},
		Now: time.Now,
	})
}
