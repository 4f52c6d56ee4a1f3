package github_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// appScene is a scene in which the provider acts as a GitHub App.
type appScene struct {
	*scene
	a *appSetup
}

func newAppScene(t *testing.T) *appScene {
	t.Helper()
	s := newScene(t)
	a := setupApp(t, s.s)
	s.p = a.Provider
	return &appScene{s, a}
}

// made counts the tokens that GitHub has made, by repository and kind.
func (s *appScene) made() map[string]int {
	out := map[string]int{}
	for _, token := range s.s.AppTokens() {
		kind := "read"
		if token.Permissions["contents"] == "write" {
			kind = "write"
		}
		out[token.Repo.Name+" "+kind]++
	}
	return out
}

func (s *appScene) wantMade(when string, want map[string]int) {
	s.t.Helper()
	if got := s.made(); !maps.Equal(got, want) {
		s.t.Errorf("%s: the tokens %v, want %v", when, got, want)
	}
}

func TestAnAppsTokensAreForOneRepositoryAndWhatTheRequestDoes(t *testing.T) {
	s := newAppScene(t)
	name := s.Ref().Name
	s.look("checks/disk.md")
	s.wantMade("after a look", map[string]int{name + " read": 1})
	pr := s.propose("claude-ops/fix/x")
	s.status(pr.Number)
	s.wantMade("after a proposal", map[string]int{name + " read": 1, name + " write": 1})

	tokens := s.s.AppTokens()
	s.same("what a reading token may do", tokens[0].Permissions, map[string]string{
		"metadata": "read", "contents": "read", "pull_requests": "read", "actions": "read", "checks": "read",
		"statuses": "read",
	})
	s.same("what a writing token may do", tokens[1].Permissions, map[string]string{
		"metadata": "read", "contents": "write", "pull_requests": "write",
	})
	carried := map[string]bool{}
	for _, r := range s.s.Faults().Requests() {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		writes := strings.Contains(string(r.Body), "mutation") || r.Method != http.MethodGet && r.Path != "/graphql"
		signed := strings.HasPrefix(r.Path, "/app/") || strings.HasSuffix(r.Path, "/installation")
		carried[r.Method+" "+r.Path] = true
		if want := map[bool]string{false: tokens[0].Token, true: tokens[1].Token}[writes]; !signed && token != want {
			t.Errorf("%s %s does not carry the token that fits", r.Method, r.Path)
		}
		if signed && strings.Count(token, ".") != 2 {
			t.Errorf("%s %s is not signed", r.Method, r.Path)
		}
	}
	if len(carried) < 5 {
		t.Errorf("only %v were asked", carried)
	}
}

func TestConcurrentCallersShareOneToken(t *testing.T) {
	s := newAppScene(t)
	s.s.Faults().SetLatency(5 * time.Millisecond)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := s.p.BranchTip(t.Context(), s.Ref(), "main"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s.wantMade("after 20 calls at once", map[string]int{s.Ref().Name + " read": 1})
}

func TestATokenIsRenewedBeforeItEndsAndRedactedForSomeTimeAfter(t *testing.T) {
	s := newAppScene(t)
	at := func(d time.Duration, want int) {
		t.Helper()
		s.a.now = s.a.now.Add(d)
		s.look("checks/disk.md")
		s.wantMade("after "+d.String(), map[string]int{s.Ref().Name + " read": want})
	}
	at(0, 1)
	at(50*time.Minute, 1)
	at(6*time.Minute, 2) // GitHub would take it for four minutes more
	first := s.s.AppTokens()[0].Token
	if !s.a.learnt[first] {
		t.Error("a token that may be under way still is not redacted any more")
	}
	at(2*time.Hour, 3)
	if s.a.learnt[first] {
		t.Error("a token is redacted hours after its end")
	}
	if last := s.s.AppTokens()[2].Token; !s.a.learnt[last] {
		t.Error("the present token is not redacted")
	}
}

// GitHub needs some seconds until all of its servers know a token, and longer for what it may do.
func TestANewTokenThatIsNotKnownYetIsKept(t *testing.T) {
	s := newAppScene(t)
	var waits []time.Duration
	s.a = setupApp(t, s.s, func(o *github.Options) {
		o.Sleep = func(_ context.Context, d time.Duration) {
			waits = append(waits, d)
			s.a.now = s.a.now.Add(d)
		}
	})
	s.p = s.a.Provider
	s.app(func(a *fakegithub.App) { a.NotYet = []int{401, 403} })
	pr := s.propose("claude-ops/fix/x")
	s.same("number", pr.Number, 1)
	s.wantMade("after a proposal", map[string]int{s.Ref().Name + " read": 1, s.Ref().Name + " write": 1})
	two := []time.Duration{time.Second, 2 * time.Second}
	s.same("waits", waits, append(two, two...))

	waits = nil
	s.a.now = s.a.now.Add(time.Hour)
	s.app(func(a *fakegithub.App) { a.NotYet = []int{401, 401, 401, 401, 401, 401} })
	_, err := s.p.Snapshot(t.Context(), s.query())
	wantCode(t, err, fault.ProviderDisabled)
	s.same("waits of a token that stays unknown", waits, append(two, 3*time.Second))
}

// What an installation need not grant is asked for again, too, where the new token is unknown altogether.
func TestWorkflowsAreSeenWithANewTokenThatIsNotKnownYet(t *testing.T) {
	s := newAppScene(t)
	s.Push(memhost.MainBranch, memhost.File{Path: ".github/workflows/ci.yml", Content: "on: pull_request\n"})
	s.app(func(a *fakegithub.App) { a.NotYet = []int{401, 401} })
	s.same("checks run", told(s.examine("").ChecksRun), "yes")
}

// A token that is not new is not kept for what it may not do.
func TestARefusalOfAnOlderTokenIsNotWaitedFor(t *testing.T) {
	s := newAppScene(t)
	s.a = setupApp(t, s.s, func(o *github.Options) {
		o.Sleep = func(context.Context, time.Duration) { t.Error("waits") }
	})
	s.p = s.a.Provider
	s.propose("claude-ops/fix/x")
	s.a.now = s.a.now.Add(6 * time.Second)
	s.s.Faults().Plan(nil, always(403, nil, `{"message":"Resource not accessible by integration"}`))
	wantCode(t, s.p.Label(t.Context(), s.Ref(), 1, []string{"automated"}), fault.ProviderDisabled)
}

func TestTeamsAreAskedWithATokenOfTheirOwn(t *testing.T) {
	s := newAppScene(t)
	s.configure(func(set *fakegithub.Settings) {
		set.People.Collaborators, set.People.Teams = []string{"ann"}, []string{"ops"}
	})
	pr := s.propose(branch)
	err := s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"ann", "octo/ops"}, []string{"ann"})
	if f := wantCode(t, err, fault.NotFound); !strings.Contains(f.Message, `lacks the permission "Members: read"`) ||
		strings.Contains(f.Message, "collaborators") {
		t.Errorf("message %q", f.Message)
	}
	details := func() (asked []string, assigned []string) {
		d, err := s.p.Details(t.Context(), s.Ref(), pr.Number)
		must.Do(t, err)
		return d.Requested, d.Assignees
	}
	asked, assigned := details()
	s.same("asked and assigned without it", [][]string{asked, assigned}, [][]string{{"ann"}, {"ann"}})
	for _, token := range s.s.AppTokens() {
		if token.Permissions["members"] != "" {
			t.Error("a token may read members where the installation grants nothing of it")
		}
	}
	s.app(func(a *fakegithub.App) { a.Permissions["members"] = "read" })
	must.Do(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"octo/ops"}, nil))
	asked, _ = details()
	s.same("asked with it", asked, []string{"ann", "octo/ops"})
	s.same("tokens that may read members", s.membersTokens(), 1)
}

func (s *appScene) membersTokens() (n int) {
	for _, token := range s.s.AppTokens() {
		if token.Permissions["members"] != "" {
			n++
		}
	}
	return n
}

func TestARevokedTokenIsReplacedAtOnce(t *testing.T) {
	s := newAppScene(t)
	req := s.request("claude-ops/fix/x")
	// has the writing token made
	must.Do(t, s.p.Label(t.Context(), s.Ref(), s.OpenPR("main", "X"), []string{gitprovider.LabelOurs}))
	revoked := s.s.AppTokens()
	s.s.RevokeAppTokens()
	s.a.now = s.a.now.Add(time.Minute) // a new one would be kept
	if _, err := s.p.Commit(t.Context(), req); err != nil {
		t.Errorf("a write with a revoked token: %v", err)
	}
	s.look("checks/disk.md")
	s.wantMade("after both were revoked", map[string]int{s.Ref().Name + " read": 2, s.Ref().Name + " write": 2})
	for _, token := range revoked {
		if !s.a.learnt[token.Token] {
			t.Error("a revoked token is not redacted any more")
		}
	}
}

func TestWhatAnAppLacksIsSaid(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must.Do(t, err)
	tests := map[string]struct {
		change    func(s *appScene)
		filesRead bool // a token was made before
		code      fault.Code
		says      string
	}{
		"not installed": {func(s *appScene) { s.app(func(a *fakegithub.App) { a.Uninstalled = true }) }, false,
			fault.NotFound, "is not installed for octo"},
		"uninstalled meanwhile": {func(s *appScene) { s.app(func(a *fakegithub.App) { a.Uninstalled = true }) }, true,
			fault.NotFound, "is not installed for octo"},
		"the repository left out": {func(s *appScene) {
			s.app(func(a *fakegithub.App) { a.Selected = []gitprovider.RepoRef{{Owner: "octo", Name: "x"}} })
		}, false, fault.NotFound, "leaves it out"},
		"suspended": {func(s *appScene) { s.app(func(a *fakegithub.App) { a.Suspended = true }) },
			false, fault.ProviderDisabled, "suspended"},
		"suspended meanwhile": {func(s *appScene) { s.app(func(a *fakegithub.App) { a.Suspended = true }) },
			true, fault.ProviderDisabled, "suspended"},
		"refused for another reason": {func(s *appScene) {
			s.s.Faults().Plan(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/access_tokens") },
				always(403, nil, `{"message":"the organization has an IP allow list enabled"}`))
		}, false, fault.ProviderDisabled, "IP allow list"},
		"without a permission": {func(
			s *appScene) {
			s.app(func(a *fakegithub.App) { delete(a.Permissions, "pull_requests") })
		}, false, fault.ProviderDisabled, `"Pull requests: read"`},
		"another key": {func(s *appScene) { s.a.key.value = pemOf(other) }, false,
			fault.ProviderDisabled, "belong together"},
		"a key that cannot be read": {func(s *appScene) { s.a.key.value = "no key" }, false, fault.ProviderDisabled,
			"GITHUB_APP_PRIVATE_KEY is not a key in PEM format"},
		"an ID that GitHub does not know": {func(s *appScene) { s.app(func(a *fakegithub.App) { a.ID = "999" }) }, false,
			fault.ProviderDisabled, "GITHUB_APP_ID"},
		"a clock that is behind": {func(s *appScene) { s.skewed(-time.Hour) }, false, fault.ProviderDisabled,
			"the clock of this machine differs from GitHub's by -"},
		"a clock that is ahead": {func(s *appScene) { s.skewed(time.Hour) }, false, fault.ProviderDisabled,
			"the clock of this machine differs from GitHub's by "},
		"a server that is not GitHub": {func(s *appScene) { s.s.Faults().Plan(nil, always(200, nil, "[]")) }, false,
			fault.UpstreamError, "GITHUB_API_URL"},
		"an app that comes too often": {func(s *appScene) {
			s.s.Faults().Plan(nil,
				always(403, http.Header{"Retry-After": {"90"}}, "{}"))
		}, false, fault.RateLimited, "1m30s"},
		"a server that fails all the while": {func(s *appScene) { s.fails(9) }, false, fault.UpstreamError, "failed (502)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newAppScene(t)
			s.t = t
			if tt.filesRead {
				s.look("checks/disk.md")
				s.a.now = s.a.now.Add(time.Minute)
			}
			tt.change(s)
			_, err := s.p.Snapshot(t.Context(), s.query("checks/disk.md"))
			f := wantCode(t, err, tt.code)
			if !strings.Contains(f.Message, tt.says) || strings.Contains(f.Message, "GITHUB_TOKEN") {
				t.Errorf("the message is %q", f.Message)
			}
			for _, token := range s.s.AppTokens() {
				if strings.Contains(f.Message, token.Token) {
					t.Errorf("the message holds a token: %q", f.Message)
				}
			}
		})
	}
}

// fails lets the server answer the next n requests with 502.
func (s *appScene) fails(n int) {
	for range n {
		s.s.Faults().Plan(nil, always(http.StatusBadGateway, nil, ""))
	}
}

func (s *appScene) app(change func(*fakegithub.App)) { s.s.ConfigureApp(change) }

// skewed sets our clock, while GitHub's stays right.
func (s *appScene) skewed(by time.Duration) {
	now := time.Now()
	s.app(func(a *fakegithub.App) { a.Now = func() time.Time { return now } })
	s.a.now = now.Add(by)
}

func TestAPermissionThatIsTakenAwayIsSeenWithTheNextToken(t *testing.T) {
	s := newAppScene(t)
	req := s.request("claude-ops/fix/x")
	s.app(func(a *fakegithub.App) { a.Permissions["contents"] = "read" })
	_, err := s.p.Commit(t.Context(), req)
	f := wantCode(t, err, fault.ProviderDisabled)
	if !strings.Contains(f.Message, `"Contents: read and write"`) {
		t.Errorf("the message is %q", f.Message)
	}
	s.wantMade("after the refusal", map[string]int{s.Ref().Name + " read": 1})
	s.app(func(a *fakegithub.App) { a.Permissions["contents"] = "write" })
	if _, err := s.p.Commit(t.Context(), req); err != nil {
		t.Errorf("after it was granted again: %v", err)
	}
}

func TestOptionalPermissionsAreAskedForIfTheyAreGranted(t *testing.T) {
	s := newAppScene(t)
	s.app(func(a *fakegithub.App) {
		a.Permissions = map[string]string{"contents": "write", "pull_requests": "write"}
	})
	pr := s.propose("claude-ops/fix/x")
	s.configure(func(set *fakegithub.Settings) {
		set.CI.Statuses = map[string][]fakegithub.Status{pr.HeadCommit: {{Context: "lint", State: "failure"}}}
	})
	if got := s.status(pr.Number).Checks; got.State != gitprovider.ChecksNone {
		t.Errorf("checks that the app may not see: %+v", got)
	}
}

func TestARenamedRepositoryIsFoundByTheAppToo(t *testing.T) {
	s := newAppScene(t)
	s.configure(func(set *fakegithub.Settings) { set.RenamedFrom = []string{"octo/former"} })
	tip, err := s.p.BranchTip(t.Context(), gitprovider.RepoRef{Owner: "octo", Name: "former"}, "main")
	must.Do(t, err)
	if tip == "" {
		t.Error("no tip")
	}
}

func TestAnAppsKeyMayBeReplaced(t *testing.T) {
	s := newAppScene(t)
	s.look("checks/disk.md")
	next, err := rsa.GenerateKey(rand.Reader, 2048)
	must.Do(t, err)
	s.app(func(a *fakegithub.App) { a.Key = &next.PublicKey })
	s.a.now = s.a.now.Add(time.Hour)
	_, err = s.p.Snapshot(t.Context(), s.query("checks/disk.md"))
	wantCode(t, err, fault.ProviderDisabled)
	s.a.key.value = strings.ReplaceAll(pemOf(next), "\n", `\n`) // as variables have it
	s.look("checks/disk.md")
}

func TestExamineShowsWhatTheInstallationGrants(t *testing.T) {
	s := newAppScene(t)
	access, err := s.p.Examine(t.Context(), s.Ref(), "", []string{"claude-ops"})
	must.Do(t, err)
	if access.User != "claude-ops[bot]" || access.CanPush == nil || !*access.CanPush || access.Installation == nil {
		t.Fatalf("got %+v", access)
	}
	s.same("the installation", *access.Installation, gitprovider.Installation{
		Permissions: []string{
			"actions: read", "checks: read", "contents: write", "metadata: read", "pull_requests: write", "statuses: read",
		},
		AllRepositories: true, Settings: "https://github.example/settings/installations/4711",
	})
	s.app(func(a *fakegithub.App) { a.Permissions["contents"] = "read" })
	if access, err = s.p.Examine(t.Context(), s.Ref(), "", nil); err != nil || access.CanPush == nil || *access.CanPush {
		t.Errorf("with contents to be read alone: %+v, %v", access, err)
	}
	must.Do(t, s.p.Ping(t.Context()))
	s.a.key.value = "no key"
	wantCode(t, s.p.Ping(t.Context()), fault.ProviderDisabled)
}

func TestKeysAreReadAsGitHubGivesThem(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // to be refused
	must.Do(t, err)
	lines := strings.SplitAfter(strings.TrimSpace(pemOf(appKey())), "\n")
	for name, tt := range map[string]struct{ text, says string }{
		"as it is":         {pemOf(appKey()), ""},
		"PKCS #8":          {pkcs8Of(t, appKey()), ""},
		"nothing":          {"", "not a key in PEM format"},
		"cut off":          {lines[0] + lines[1] + lines[2] + lines[len(lines)-1], "GitHub gave, whole"},
		"a public key":     {strings.ReplaceAll(pemOf(appKey()), "RSA PRIVATE", "RSA PUBLIC"), "something else"},
		"a small one":      {pemOf(small), "1024 bits"},
		"an elliptic one":  {ellipticPEM(t), "not an RSA key"},
		"with CRLF breaks": {strings.ReplaceAll(pemOf(appKey()), "\n", "\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := githubapp.ParseKey(tt.text)
			switch {
			case tt.says == "" && (err != nil || !key.Equal(appKey())):
				t.Errorf("got %v", err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// appKey is the private key of the tests' app, made once.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func pkcs8Of(t *testing.T, key any) string {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must.Do(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func ellipticPEM(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	return pkcs8Of(t, key)
}

// given is a secret that a test may replace.
type given struct{ value string }

func (g *given) Value() string  { return g.value }
func (g *given) Reread() string { return g.value }

// appPermissions are those that the documentation asks for.
func appPermissions() map[string]string {
	return map[string]string{
		"contents": "write", "pull_requests": "write", "actions": "read", "checks": "read", "statuses": "read",
	}
}

// appSetup is a provider that acts as a GitHub App on a fake GitHub.
type appSetup struct {
	*github.Provider
	app      *githubapp.App
	key      *given
	learnt   map[string]bool // tokens that are redacted
	now      time.Time
	requests *transport.Transport
}

func (a *appSetup) clock() time.Time { return a.now }

// setupApp makes the server know the app, and a provider that acts as it.
func setupApp(t testing.TB, s *fakegithub.Server, change ...func(*github.Options)) *appSetup {
	t.Helper()
	base, err := url.Parse(s.URL())
	must.Do(t, err)
	a := &appSetup{key: &given{pemOf(appKey())}, learnt: map[string]bool{}, now: time.Now()}
	s.SetApp(fakegithub.App{
		ID: "12345", Slug: "claude-ops", Key: &appKey().PublicKey, Permissions: appPermissions(), Now: a.clock,
	})
	noWait := func(context.Context, time.Duration) {}
	client := func(tokenName string, credential transport.Credential) *transport.Transport {
		out, err := transport.New(transport.Options{
			Name: github.Name, Variables: transport.Variables{Token: tokenName, Address: "GITHUB_API_URL"}, Base: base,
			Clock: transport.Clock{Now: a.clock, Sleep: noWait}, Credential: credential,
		})
		must.Do(t, err)
		t.Cleanup(out.CloseIdleConnections)
		return out
	}
	var mu sync.Mutex
	learn := func(token string, known bool) {
		mu.Lock()
		defer mu.Unlock()
		a.learnt[token] = known
	}
	a.app = githubapp.New(githubapp.Options{
		API: base, Client: client("GITHUB_APP_PRIVATE_KEY", githubapp.NewSigner("12345", a.key, a.clock)), Now: a.clock,
		Learn: func(token string) func() { learn(token, true); return func() { learn(token, false) } },
	})
	a.requests = client("the token of the GitHub App", a.app)
	opts := github.Options{API: base, Client: a.requests, App: a.app, Sleep: noWait}
	for _, c := range change {
		c(&opts)
	}
	a.Provider = github.New(opts)
	return a
}
