package gitea

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
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
	CreateLabels func() bool // asked each time; nil: they are not
	// Paths remembers the files of pull requests beyond the process; nil keeps them in the process alone.
	Paths driver.PathMemory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx ends; nil means to wait by a timer.
	Sleep func(ctx context.Context, d time.Duration)
}

// Provider implements gitprovider.Provider, and what a provider can do besides (gitprovider.Assigner, Editor,
// RemarkReader, Examiner and Pinger), for one Gitea or Forgejo. Each of its methods hands on to the part that does it,
// and makes of what the server refuses the codes of the port.
type Provider struct {
	api        *api
	branches   branches
	trees      trees
	pulls      pulls
	snapshots  snapshots
	commits    commitWriter
	opener     opener
	labels     labels
	status     status
	discussion discussion
	assigner   assigner
	examiner   examiner
}

var (
	_ gitprovider.Provider     = (*Provider)(nil)
	_ gitprovider.Assigner     = (*Provider)(nil)
	_ gitprovider.Editor       = (*Provider)(nil)
	_ gitprovider.RemarkReader = (*Provider)(nil)
	_ gitprovider.Reviser      = (*Provider)(nil)
	_ gitprovider.Examiner     = (*Provider)(nil)
	_ gitprovider.Lister       = (*Provider)(nil)
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// New makes a Provider. It makes no call.
func New(opts Options) *Provider {
	clock := transport.Clock{Now: opts.Now, Sleep: opts.Sleep}.WithDefaults()
	a := &api{base: opts.Base, http: opts.Client}
	ids, fresh, paths := newLabelIDs(), newFreshBranches(), forge.NewPaths()
	branches := branches{a}
	trees := trees{a, branches, new(atomic.Bool)}
	pulls := pulls{
		api: a, files: changedFiles{api: a, trees: trees, known: paths, memory: opts.Paths}, labels: ids, now: clock.Now,
		reviews: reviewNumbers{a, new(atomic.Bool)},
	}
	discussion := discussion{a, pulls}
	labels := labels{a, ids, opts.CreateLabels}
	return &Provider{
		api: a, branches: branches, trees: trees, pulls: pulls, labels: labels, discussion: discussion,
		snapshots: snapshots{a, trees, branches, pulls},
		commits:   commitWriter{api: a, branches: branches, trees: trees, paths: paths, fresh: fresh, now: clock.Now},
		opener:    opener{a, pulls, ids, fresh},
		status:    status{a, pulls, discussion, clock.Sleep},
		assigner:  assigner{a, pulls},
		examiner:  examiner{a, branches, labels},
	}
}

// Name returns "gitea".
func (p *Provider) Name() string { return Name }
