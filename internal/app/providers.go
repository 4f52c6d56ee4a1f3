package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/web/health"
)

// maxCAFile bounds CLAUDEOPS_CA_FILE, in bytes.
const maxCAFile = 4 << 20

// providers holds the providers of pull requests, and facts about the requests to them.
type providers struct {
	registry      *gitprovider.Registry
	local         *local.Provider                 // nil when disabled
	localDisabled string                          // why local is nil
	clients       map[string]*transport.Transport // of forges, by provider
	latency       *health.ProviderLatency         // of their requests
	sleep         func(context.Context, time.Duration)
}

// newProviders registers every provider, those that lack something as disabled with the reason.
func newProviders(p *Parts, sleep func(context.Context, time.Duration)) *providers {
	all := &providers{sleep: sleep, clients: map[string]*transport.Transport{}, latency: health.NewProviderLatency()}
	var entries []gitprovider.Registration
	for _, f := range p.Cfg.Forges.All {
		entries = append(entries, all.forge(p, f))
	}
	localEntry := gitprovider.Registration{
		Name: "local", Hosts: []string{gitprovider.HostLocal}, Disabled: "CLAUDEOPS_LOCAL_ROOT is not set",
	}
	if p.Cfg.Forges.LocalRoot != "" {
		localEntry.Base = "file://" + strings.TrimRight(p.Cfg.Forges.LocalRoot, "/")
		if provider, err := local.New(p.Cfg.Forges.LocalRoot, p.Store.LocalPulls,
			local.Options{Page: localPage(p.Cfg.Web.PublicURL)}); err != nil {
			localEntry.Disabled = "CLAUDEOPS_LOCAL_ROOT: " + err.Error()
		} else {
			all.local, localEntry.Provider, localEntry.Disabled = provider, provider, ""
		}
	}
	all.localDisabled = localEntry.Disabled
	all.registry = gitprovider.NewRegistry(append(entries, localEntry), nil, p.Cfg.Forges.DefaultProvider,
		config.Repos{Dir: p.Cfg.Mounted.Dir}).PinnedBy(func() []gitprovider.Pin { return pinsOf(p.Rules.Now().Policy) })
	return all
}

// pinsOf returns the repositories that the rules tie to a provider.
func pinsOf(rules policy.Policy) (pins []gitprovider.Pin) {
	for _, r := range rules.AllRepositories() {
		if pin, ok := r.Pin(); ok {
			pins = append(pins, pin)
		}
	}
	for _, pin := range rules.Targets.Pins {
		pins = append(pins, gitprovider.Pin{
			Provider: pin.Provider, Owner: pin.Owner, Name: pin.Name, BaseBranch: pin.BaseBranch, Policy: true,
		})
	}
	return pins
}

// localRoot asks for the identity of the root of local repositories; nil where there is none.
func localRoot(dir string) func() string {
	if dir == "" {
		return nil
	}
	return func() string { return local.RootIdentity(dir) }
}

// OtherRecords lists the records beside ours that hold pull requests of the local repositories; see local.OtherRecords.
func (p *Parts) OtherRecords() []string {
	if p.Cfg.Forges.LocalRoot == "" {
		return nil
	}
	return local.OtherRecords(p.Cfg.Forges.LocalRoot, p.placeOfRecords(), time.Now())
}

// NoteRecords notes in the folder of the local repositories where the records of this process are. Processes that
// propose for a long time do so; one that only looks does not.
func (p *Parts) NoteRecords() {
	if now := p.Rules.Now(); p.Cfg.Forges.LocalRoot != "" && !now.DryRun.On && now.noProposals() == "" {
		local.NoteRecords(p.Cfg.Forges.LocalRoot, p.placeOfRecords(), time.Now())
	}
}

// placeOfRecords returns the state folder, or the address of the database without user and password.
func (p *Parts) placeOfRecords() string {
	if u, err := url.Parse(p.Cfg.Records.DatabaseURL); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host + u.Path
	}
	return p.Cfg.Records.Dir
}

// localPage returns the addresses of the dashboard's pages of local pull requests; nil where the address of the
// dashboard is not configured.
func localPage(public string) func(ref gitprovider.RepoRef, number int) string {
	if public == "" {
		return nil
	}
	return func(ref gitprovider.RepoRef, number int) string {
		return public + "/pulls/" + strings.Join([]string{local.Name, url.PathEscape(ref.Owner), url.PathEscape(ref.Name),
			strconv.Itoa(number)}, "/")
	}
}

// whyDisabled returns the message of an error that turns a forge off: of settings that cannot be used, its own text.
func whyDisabled(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// forge returns the registration of a forge: disabled, with the reason, if its settings or its client cannot be used.
func (all *providers) forge(p *Parts, f config.Forge) gitprovider.Registration {
	name := f.Driver.Name
	entry := gitprovider.Registration{Name: name, Hosts: f.Driver.Hosts(f.URL), Disabled: f.Problem}
	entry.Base = CloneBase(f.URL, entry.Hosts)
	if entry.Disabled != "" {
		return entry
	}
	provider, client, err := f.Driver.New(f.Settings, forge.Runtime{
		Client: func(s forge.Settings, o transport.Options) (*transport.Transport, error) {
			return all.transport(p, s, o)
		}, Learn: func(secret string) (forget func()) { return p.Scanner.Learn(secret) },
		CreateLabels: func() bool { return p.Rules.Now().Policy.Pulls.CreateLabels }, Paths: p.Store.PullPaths(name),
		Now: time.Now, Sleep: all.sleep,
	})
	if err != nil {
		entry.Disabled = whyDisabled(err)
		return entry
	}
	all.clients[name], entry.Provider = client, provider
	return entry
}

// CloneBase returns the common prefix of a forge's clone URLs. GitHub's API has a path or a host of its own; Gitea's
// address is that of its pages.
func CloneBase(api *url.URL, hosts []string) string {
	if api == nil || len(hosts) == 0 {
		return ""
	}
	base := api.Scheme + "://" + hosts[0]
	if hosts[0] == api.Host {
		base += strings.TrimRight(strings.TrimSuffix(api.Path, "/api/v3/"), "/")
	}
	return base
}

// transport makes an HTTP client of a forge. Its token is read again when it is in a file that is replaced.
func (all *providers) transport(p *Parts, s forge.Settings, o transport.Options) (*transport.Transport, error) {
	roots, err := certificates(p.Cfg.Forges.CAFile)
	if err != nil {
		return nil, err
	}
	o.Base, o.Token = s.URL, s.Token.Text
	o.Network = transport.Network{RootCAs: roots, Proxy: http.ProxyFromEnvironment,
		AllowPlainHTTP: p.Cfg.Forges.AllowPlainHTTP}
	if o.Credential == nil && s.Token.File != "" {
		o.Credential = transport.Replaceable(s.Token.Source(func(token string) func() { return p.Scanner.Learn(token) }))
	}
	o.UserAgent, o.Log = "claudeops", p.Log
	o.Clock = transport.Clock{Now: time.Now, Sleep: all.sleep}
	all.latency.Expect(o.Name)
	o.Observe = func(outcome string, took time.Duration) { all.latency.Observe(o.Name, outcome, took) }
	return transport.New(o)
}

// remaining returns how many requests are left at each forge, as it last reported.
func (all *providers) remaining() map[string]int {
	out := map[string]int{}
	for name, client := range all.clients {
		if n, known := client.Remaining(); known {
			out[name] = n
		}
	}
	return out
}

// certificates returns the system's and those of the file; nil, the system's alone, without a file.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, _, err := files.ReadPath(file, maxCAFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("CLAUDEOPS_CA_FILE names a file that cannot be read or is larger than %d bytes", maxCAFile)
	}
	if err != nil {
		return nil, errors.New("CLAUDEOPS_CA_FILE names a file that cannot be read")
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("CLAUDEOPS_CA_FILE names a file without a PEM certificate")
	}
	return pool, nil
}

// NewReviews returns the use case of what people do to pull requests.
func NewReviews(p *Parts) *review.Service {
	o := review.Options{
		Provider: local.Name, Kernel: p.kernel, Records: p.Store.Ledger, Notifier: p.notifier, Pulls: p.Store.Pulls,
		Disabled: p.Providers.localDisabled,
	}
	o.Starters, o.NewestChange = p.Store.Pulls.Starters, p.Store.Pulls.NewestChange
	o.Ask = p.Flow.Reader().OursAt
	if p.Providers.local != nil {
		o.Host, o.Look = local.NewReviewer(p.Providers.local), NewFollower(p).Look
	}
	return review.New(o)
}

// Bounds of what is looked at for the list of what can be read.
const (
	maxOpenPulls  = 200
	maxNamedPulls = 15
)

// knownFiles returns the files of our newest open pull requests, by the records, and those of mounted working copies.
func knownFiles(ctx context.Context, p *Parts) (out []prflow.KnownFiles) {
	pulls, err := p.Store.Pulls.OpenPulls(ctx, maxOpenPulls)
	if err != nil {
		p.Log.Warn("the open pull requests of the records are not listed", "error", err)
	}
	slices.Reverse(pulls)
	for _, pr := range pulls[:min(len(pulls), maxNamedPulls)] {
		paths, err := p.Store.History.PathsOf(ctx, pr.Provider, pr.Owner, pr.Repo, pr.Number)
		if err != nil {
			p.Log.Warn("the files of a pull request are not listed", "pr", pr.Number, "error", err)
		}
		out = append(out, prflow.KnownFiles{Provider: pr.Provider, Owner: pr.Owner, Repo: pr.Repo, Pull: pr.Number,
			Paths: paths})
	}
	for _, r := range (config.Repos{Dir: p.Cfg.Mounted.Dir}).Offers().Repositories {
		owner, name, _ := strings.Cut(r.Folder, "/")
		if r.Manifest.Owner != "" && r.Manifest.Repo != "" {
			owner, name = r.Manifest.Owner, r.Manifest.Repo
		}
		if name == "" { // nothing says whose it is
			continue
		}
		out = append(out, prflow.KnownFiles{Owner: owner, Repo: name, Paths: slices.Concat(r.Checks, r.Playbooks,
			r.Skills, r.OtherSkills)})
	}
	return out
}

// FindPlaces reads which folders of a repository hold procedures. complete is false if it has more files than its
// provider tells of.
func (p *Parts) FindPlaces(ctx context.Context, repo gitprovider.RepoRef) (found []places.Place, complete bool,
	err error) {
	at, err := p.Providers.registry.Resolve(repo)
	if err != nil {
		return nil, false, err
	}
	files, complete, err := places.List(ctx, at)
	return places.Find(repo, files), complete, err
}

// findListedPlaces is FindPlaces for people who ask a server: repo_not_allowed for a repository off the operator's
// list.
func (p *Parts) findListedPlaces(ctx context.Context, repo gitprovider.RepoRef) ([]places.Place, bool,
	error) {
	at, err := p.Providers.registry.Resolve(repo)
	if err != nil {
		return nil, false, err
	}
	if err := p.kernel.CurrentAuthority().Reads(at.Provider.Name(), repo.Owner, repo.Name); err != nil {
		return nil, false, err
	}
	return p.FindPlaces(ctx, repo)
}
