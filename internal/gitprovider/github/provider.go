package github

import (
	"context"
	"net/url"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
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
	CreateLabels bool
	// App is where Client's tokens come from if they are those of a GitHub App; nil for a token of a user.
	App   *githubapp.App
	Now   func() time.Time                     // nil means time.Now
	Sleep func(context.Context, time.Duration) // nil waits for the time to pass or the context to end
}

// Provider implements gitprovider.Provider, and what a provider can do besides: gitprovider.Assigner, Editor, RemarkReader,
// Examiner and Pinger.
type Provider struct {
	api          *url.URL
	graph        *url.URL
	transport    *transport.Transport
	client       *gogithub.Client
	createLabels bool
	app          *githubapp.App
	token        string // what messages call the token
	now          func() time.Time
	sleep        func(context.Context, time.Duration)

	files *lru[filesKey, []string] // changed files of pull requests
	facts *lru[string, facts]      // of repositories, by repoKey
	trees *lru[string, string]     // root tree by commit
	lists *lru[string, listing]    // of open pull requests, by listingKey
}

var (
	_ gitprovider.Provider     = (*Provider)(nil)
	_ gitprovider.Assigner     = (*Provider)(nil)
	_ gitprovider.Editor       = (*Provider)(nil)
	_ gitprovider.RemarkReader = (*Provider)(nil)
	_ gitprovider.Examiner     = (*Provider)(nil)
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// What the caches hold at most. A path is about 40 bytes, so that the files of some thousand pull requests are kept.
const (
	maxCachedFiles = 4 << 20 // bytes of paths
	maxCachedRepos = 512
	maxCachedTrees = 512
)

// New makes a Provider. It calls nobody.
func New(opts Options) *Provider {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Sleep == nil {
		opts.Sleep = sleep
	}
	api := *opts.API
	if !strings.HasSuffix(api.Path, "/") {
		api = *api.JoinPath("/")
	}
	client := gogithub.NewClient(opts.Client.Client())
	client.BaseURL = &api
	return &Provider{
		api: &api, graph: graphQLAddress(&api), transport: opts.Client, client: client, createLabels: opts.CreateLabels,
		app: opts.App, token: tokenName(opts.App), now: opts.Now, sleep: opts.Sleep,
		files: newLRU[filesKey](maxCachedFiles, weightOfPaths),
		facts: newLRU[string](maxCachedRepos, func(facts) int { return 1 }),
		trees: newLRU[string](maxCachedTrees, func(string) int { return 1 }),
		lists: newLRU[string](maxListings, weightOfListing),
	}
}

// graphQLAddress is where GraphQL is spoken. An Enterprise Server has REST at /api/v3 and GraphQL at /api/graphql
// (docs.github.com, "Forming calls with GraphQL"); github.com has it at /graphql below the API's root.
func graphQLAddress(api *url.URL) *url.URL {
	root := *api
	if above, found := strings.CutSuffix(strings.TrimSuffix(api.Path, "/"), "/api/v3"); found {
		root.Path, root.RawPath = above+"/api/", ""
	}
	return transport.URL(&root, "graphql")
}

// Name is "github".
func (p *Provider) Name() string { return Name }

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// facts is what was last seen of a repository.
type facts struct {
	id     string          // GraphQL node id
	labels map[string]bool // lower-case names of labels that exist
	seen   time.Time       // when labels was read
	warm   bool            // the files of our open pull requests have been read
}

// repoKey names a repository as GitHub compares it, letter case aside.
func repoKey(ref gitprovider.RepoRef) string { return strings.ToLower(ref.String()) }
