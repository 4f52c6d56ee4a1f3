package github

import (
	"context"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Name is the provider's name in configuration and records.
const Name = "github"

// Options are the settings of a Provider. API and Client are required.
type Options struct {
	// API is the root of the REST API: https://api.github.com/, or https://HOST/api/v3/ of an Enterprise Server.
	API *url.URL
	// Client carries the requests, and with them the token.
	Client *transport.Transport
	// CreateLabels says that labels which the repository lacks are made when a pull request is labelled.
	CreateLabels func() bool // asked each time; nil: they are not
	// App provides Client's tokens if they are those of a GitHub App; nil for a token of a user.
	App   *githubapp.App
	Now   func() time.Time                     // nil means time.Now
	Sleep func(context.Context, time.Duration) // nil waits for the time to pass or the context to end
}

// Provider implements gitprovider.Provider, and what a provider can do besides: gitprovider.Assigner, Editor,
// RemarkReader, Examiner and Pinger. Each of its methods notes which repository its requests are about, hands on to the
// part that does it, and gives the codes of the port.
type Provider struct {
	branches   branches
	pulls      pulls
	snapshots  snapshots
	lists      lists
	commits    commitWriter
	history    history
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
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// maxTrees bounds the commits whose root tree is remembered.
const maxTrees = 512

// New makes a Provider. It sends no request.
func New(opts Options) *Provider {
	clock := transport.Clock{Now: opts.Now, Sleep: opts.Sleep}.WithDefaults()
	token := tokenVariable
	if opts.App != nil {
		token = "the GitHub App"
	}
	a := newAPI(opts, refusals{transport: opts.Client, token: token, isApp: opts.App != nil, now: clock.Now}, clock)
	facts, trees := newRepositoryFacts(), forge.NewLRU[string, string](maxTrees, nil)
	branches := branches{a, facts}
	files := changedFiles{a, forge.NewPaths()}
	pulls := pulls{a, files}
	labels := labels{api: a, facts: facts, create: opts.CreateLabels, now: clock.Now}
	return &Provider{
		branches: branches, pulls: pulls, labels: labels, history: history{a}, assigner: assigner{a, opts.App != nil},
		snapshots: snapshots{api: a, pulls: pulls, facts: facts, trees: trees, now: clock.Now},
		lists: lists{pulls: pulls, facts: facts, kept: forge.NewLRU[string](maxListings, weightOfListing),
			now: clock.Now},
		commits:    commitWriter{api: a, branches: branches, files: files, trees: trees},
		opener:     opener{a, pulls},
		status:     status{pulls, clock.Sleep},
		discussion: discussion{pulls, writers{a, forge.NewLRU[string, writer](maxWriters, nil), clock.Now}},
		examiner:   examiner{a, labels, opts.App},
	}
}

// Name returns "github".
func (p *Provider) Name() string { return Name }
