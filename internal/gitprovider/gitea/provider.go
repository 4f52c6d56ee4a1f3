package gitea

import (
	"context"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Name is the provider's name in configuration and records. Forgejo goes by it too.
const Name = "gitea"

// Variables that messages tell people to look at.
const (
	urlVariable   = "GITEA_URL"
	tokenVariable = "GITEA_TOKEN" // #nosec G101: the name of a variable
)

// Options are the settings of a Provider. Base and Client are required.
type Options struct {
	// Base is the address of the installation (GITEA_URL); one below a path is fine. The API is at api/v1 below it.
	Base *url.URL
	// Client carries the token and everything about HTTP.
	Client *transport.Transport
	// CreateLabels lets Label make the labels that a repository lacks. Without it they are not_found.
	CreateLabels bool
	// Paths remembers the files of pull requests beyond the process; nil keeps them in the process alone.
	Paths driver.PathMemory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx ends; nil means to wait by a timer.
	Sleep func(ctx context.Context, d time.Duration)
}

// Provider implements gitprovider.Provider, and what a provider can do besides (gitprovider.Assigner, Editor, RemarkReader,
// Examiner and Pinger), for one Gitea or Forgejo.
type Provider struct {
	base         *url.URL
	http         *transport.Transport
	createLabels bool
	paths        driver.PathMemory
	now          func() time.Time
	sleep        func(ctx context.Context, d time.Duration)
	labels       *labelIDs
	fresh        *freshBranches
	seen         *pathCache
	own          *ownCommits
}

var (
	_ gitprovider.Provider     = (*Provider)(nil)
	_ gitprovider.Assigner     = (*Provider)(nil)
	_ gitprovider.Editor       = (*Provider)(nil)
	_ gitprovider.RemarkReader = (*Provider)(nil)
	_ gitprovider.Examiner     = (*Provider)(nil)
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// New makes a Provider. It makes no call.
func New(opts Options) *Provider {
	p := &Provider{
		base: opts.Base, http: opts.Client, createLabels: opts.CreateLabels, paths: opts.Paths,
		now: opts.Now, sleep: opts.Sleep,
		labels: newLabelIDs(), fresh: newFreshBranches(), seen: newPathCache(), own: newOwnCommits(),
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.sleep == nil {
		p.sleep = wait
	}
	return p
}

// Name is "gitea".
func (p *Provider) Name() string { return Name }

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
