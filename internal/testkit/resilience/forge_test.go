package resilience

import (
	"cmp"
	"net/url"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// forge is a fake forge, or a real one behind a proxy.
type forge interface {
	URL() string
	Token() string
	// Host is what a fake holds; nil for a real one, which is an outside.
	Host() *memhost.Host
	Faults() *httpfault.Handler
	AddRepo(files ...memhost.File) gitprovider.RepoRef
}

// outside is a forge that can be looked at as people do only.
type outside interface {
	// Look gives our branches, and the open pull requests.
	Look(repo gitprovider.RepoRef) (branches []string, open []int)
	// AssertChange demands that the pull request is one commit on the base branch with what world.request asks for.
	AssertChange(repo gitprovider.RepoRef, number int)
	// AskForChanges has somebody who may write ask for changes of the pull request.
	AskForChanges(repo gitprovider.RepoRef, number int)
	// AskAboutLines has somebody who may write ask for changes, with comments on lines.
	AskAboutLines(repo gitprovider.RepoRef, number int, lines ...gitprovider.LineComment)
	// Posted are the texts of all comments on the pull request, those on lines included.
	Posted(repo gitprovider.RepoRef, number int) []string
	// Seen is what became of the pull request with the branch.
	Seen(repo gitprovider.RepoRef, number int, branch string) seen
}

// seen is what people see of a pull request.
type seen struct {
	tip         string   // of its branch
	title, body string   // of it
	parents     []string // of the tip
	inodes      string   // what the tip has as checks/inodes.md
	answers     int      // comments by which we answered a review
}

// kind is one sort of forge.
type kind struct {
	name  string
	start func(t testing.TB) forge
	// adapter makes the provider as a process does that has just started.
	adapter func(t testing.TB, f forge, client *transport.Transport) gitprovider.Provider
	options transport.Options
	// app makes the GitHub App in whose name requests are made; nil for a token.
	app func(t testing.TB, f forge, o transport.Options) *githubapp.App
	// patience and stallPatience bound one request; 0 means the constants.
	patience, stallPatience time.Duration
	// label is the kind in names of tests; "" means name.
	label string
}

func kinds() []kind {
	return []kind{
		{
			name:  "github",
			start: func(t testing.TB) forge { return fakegithub.New(t) },
			options: transport.Options{Name: "github",
				Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Scheme: "Bearer"},
			adapter: func(t testing.TB, f forge, client *transport.Transport) gitprovider.Provider {
				return github.New(github.Options{API: base(t, f), Client: client, Now: time.Now, Sleep: noSleep})
			},
		},
		{
			name:  "gitea",
			start: func(t testing.TB) forge { return fakegitea.New(t) },
			options: transport.Options{Name: "gitea", Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"},
				Scheme: "token"},
			adapter: func(t testing.TB, f forge, client *transport.Transport) gitprovider.Provider {
				return gitea.New(gitea.Options{Base: base(t, f), Client: client, Now: time.Now, Sleep: noSleep})
			},
		},
	}
}

func base(t testing.TB, f forge) *url.URL {
	t.Helper()
	u, err := url.Parse(f.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	// patience bounds one request to a fake, on a machine that is busy with other work.
	patience = 30 * time.Second
	// stallPatience is what it is while a request stalls, which costs the test as much. What other requests meet then is a
	// failure that the tests expect, or tried again.
	stallPatience = 1500 * time.Millisecond
)

// connect makes the client and the adapter.
func (k kind) connect(t testing.TB, f forge, o transport.Options) gitprovider.Provider {
	t.Helper()
	o.Name, o.Variables, o.Scheme = k.options.Name, k.options.Variables, k.options.Scheme
	o.Base, o.Token = base(t, f), f.Token()
	o.Clock = transport.Clock{Sleep: noSleep, Jitter: func(d time.Duration) time.Duration { return d }}
	bound := cmp.Or(k.patience, patience)
	if f.Faults().Stalls() {
		bound = cmp.Or(k.stallPatience, stallPatience)
	}
	o.Limits = transport.Limits{Whole: bound, Write: bound, Retries: 1, MaxBody: 1 << 20}
	var app *githubapp.App
	if k.app != nil {
		app = k.app(t, f, o)
		o.Credential = app
	}
	client, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if app != nil {
		return github.New(github.Options{API: base(t, f), Client: client, App: app, Now: time.Now, Sleep: noSleep})
	}
	return k.adapter(t, f, client)
}
