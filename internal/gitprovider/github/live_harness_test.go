package github_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// livePrefix begins the names of the repositories that are made. No other is ever written to.
const livePrefix = "claude-ops-live-"

// live makes repositories on a GitHub that is reached over HTTP and knows nothing of tests.
type live struct {
	set       liveSettings
	me        livePerson
	reviewers map[string]livePerson // by what the suite calls them
	sleep     func(context.Context, time.Duration)
}

// livePerson is an account and a way to act as it.
type livePerson struct {
	login  string
	client *transport.Transport
}

var _ providertest.Harness = (*live)(nil)

// newLive finds out whose the tokens are. A nil sleep lets time pass.
func newLive(t testing.TB, set liveSettings, sleep func(context.Context, time.Duration)) *live {
	t.Helper()
	if sleep == nil {
		sleep = pass
	}
	h := &live{set: set, sleep: sleep, reviewers: map[string]livePerson{}}
	h.me = h.person(t, "GITHUB_TOKEN", set.token)
	people := []livePerson{h.me}
	for i, name := range []string{"ann", "bob"} {
		p := h.person(t, "GITHUB_REVIEWER_TOKENS", set.reviewers[i])
		for _, other := range people {
			if strings.EqualFold(other.login, p.login) {
				t.Fatalf("the tokens in GITHUB_TOKEN and GITHUB_REVIEWER_TOKENS are to be of three users, but %s has two", p.login)
			}
		}
		people = append(people, p)
		h.reviewers[name] = p
	}
	return h
}

// pass waits for the time to pass or the context to end.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// person connects as the owner of a token, and keeps GitHub's advice: a second between writes, and as long a wait as it
// asks for when it has had enough ("Best practices for using the REST API" in its documentation).
func (h *live) person(t testing.TB, variable, token string) livePerson {
	t.Helper()
	client, err := transport.New(transport.Options{
		Name: github.Name, Variables: transport.Variables{Token: variable, Address: "GITHUB_API_URL"}, Base: h.set.api,
		Token: token, Clock: transport.Clock{Sleep: h.sleep},
		UserAgent: "claudeops-test",
		Limits:    transport.Limits{WritePause: time.Second, Retries: 4, MaxRetryAfter: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	p := livePerson{client: client}
	var self struct{ Login string }
	h.must(t, p, http.MethodGet, "user", nil, &self)
	p.login = self.Login
	return p
}

// rehearse makes and removes one repository, so that a token that may not do it leaves one behind and not a hundred.
func (h *live) rehearse(t testing.TB) {
	t.Helper()
	name := h.create(t, true)
	if status, answer := h.remove(t, name); status != http.StatusNoContent {
		t.Fatalf("GITHUB_TOKEN made the repository %s/%s and may not delete it; delete it by hand, and give the token the "+
			"scope delete_repo: %d %.300s", h.set.owner, name, status, answer)
	}
}

// ManyPRs is one more than the largest page.
func (h *live) ManyPRs() int { return 101 }

// NewRepo makes a private repository, which is removed after the test.
func (h *live) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	t.Helper()
	w := &liveWorld{t: t, live: h, name: h.create(t, len(files) > 0), blobs: map[string]string{},
		invited: map[string]bool{}}
	t.Cleanup(func() {
		if status, answer := h.remove(t, w.name); status != http.StatusNoContent {
			t.Errorf("the repository %s is left; delete it by hand: %d %.300s", w.Ref(), status, answer)
		}
	})
	if len(files) > 0 {
		w.begin(files)
	}
	w.provider = github.New(github.Options{API: h.set.api, Client: h.me.client, CreateLabels: true, Sleep: h.sleep})
	return w
}

// create makes a private repository and gives its name. If first is set, it has a commit of GitHub's making: git data
// cannot be written to a repository that has none.
func (h *live) create(t testing.TB, first bool) string {
	t.Helper()
	name := livePrefix + strings.ToLower(rand.Text())
	path := "orgs/" + h.set.owner + "/repos"
	if strings.EqualFold(h.set.owner, h.me.login) {
		path = "user/repos"
	}
	h.must(t, h.me, http.MethodPost, path, map[string]any{"name": name, "private": true, "auto_init": first}, nil)
	return name
}

func (h *live) remove(t testing.TB, name string) (int, string) {
	t.Helper()
	if !strings.HasPrefix(name, livePrefix) {
		t.Fatalf("%s is no repository of this test's", name)
	}
	return h.call(t, h.me, http.MethodDelete, "repos/"+h.ref(name).String(), nil, nil)
}

func (h *live) ref(name string) gitprovider.RepoRef {
	return gitprovider.RepoRef{Owner: h.set.owner, Name: name}
}
