package resilience

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// world is a forge with one repository, and the records of those who propose to it.
type world struct {
	t     testing.TB
	kind  kind
	forge forge
	repo  gitprovider.RepoRef
	store *storetest.Lent
	// known is what the audit had when the world began.
	known record.AuditReport
	// policy is the policy of the services.
	policy policy.Policy
	log    *safeBuffer
	said   []string     // everything that callers were answered
	ahead  atomic.Int64 // of the real clock, as everybody here sees it
	key    string       // of the marks; goes with the state folder
	asked  []byte       // what processes ask for; nil for request
}

func newWorld(t testing.TB, k kind) *world {
	t.Helper()
	w := &world{t: t, kind: k, forge: k.start(t), log: &safeBuffer{}, policy: policy.Default()}
	w.repo = w.forge.AddRepo(
		memhost.File{Path: "README.md", Content: "# Home cluster\n"},
		memhost.File{Path: "checks/disk.md", Content: "# Disk\n"},
		memhost.File{Path: "checks/old.md", Content: "# Old\n"},
	)
	w.key = rand.Text()
	if host := w.forge.Host(); host != nil {
		host.SetClock(w.now)
	}
	w.openRecords()
	return w
}

// openRecords begins with records that have one row.
func (w *world) openRecords() {
	w.t.Helper()
	begun := firstRow(w.t)
	w.store, w.known = records.Open(w.t, begun.image, w.now), begun.report
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// pass lets time go by, in which GitHub catches up.
func (w *world) pass(d time.Duration) {
	w.ahead.Add(int64(d))
	if lags, can := w.forge.(interface{ Settle() }); can {
		lags.Settle()
	}
}

// loseState takes away the state folder: records and key. Processes that were killed have left it for good.
func (w *world) loseState() {
	w.t.Helper()
	processes := w.store.IsSpent()
	w.key = rand.Text()
	if w.openRecords(); processes {
		w.store.Spend()
	}
}

// records are those of all worlds, one after another.
var records storetest.Reused

// begun is a database whose audit has one row, so that what follows it can be verified alone.
type begun struct {
	once   sync.Once
	image  storetest.Image
	report record.AuditReport
	err    error
}

var theBegun begun

func firstRow(t testing.TB) *begun {
	t.Helper()
	theBegun.once.Do(func() {
		l := records.Open(t, nil, time.Now)
		theBegun.err = l.Ledger.Record(t.Context(), record.Attempt{Action: "test.begun", Outcome: record.OutcomeDone}, nil)
		if theBegun.err == nil {
			theBegun.report, theBegun.err = l.Audit.Verify(t.Context(), "")
		}
		if theBegun.err == nil {
			theBegun.image, theBegun.err = l.Image(t.Context())
		}
	})
	if theBegun.err != nil || theBegun.report.Rows != 1 {
		t.Fatalf("%+v, %v", theBegun.report, theBegun.err)
	}
	return &theBegun
}

// redactor is the scanner without the search for secrets, which takes long under the race detector and is not what
// these tests are about.
type redactor struct{ *textscan.Scanner }

func (redactor) Secrets(context.Context, string, string) ([]textscan.Secret, error) { return nil, nil }

// service is the use case in a process that has just started.
func (w *world) service() *prflow.Service {
	logger := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	provider := w.kind.connect(w.t, w.forge, transport.Options{Log: logger, Clock: transport.Clock{Now: w.now}})
	return prflow.New(prflow.Options{
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{{Name: w.kind.name, Provider: provider}}, nil, "", nil),
		Ledger:   w.store.Ledger, History: w.store.History, Secrets: redactor{textscan.NewScanner([]string{w.forge.Token()})},
		Authority: prflow.Authority{Policy: w.policy, Tier: gitprovider.TierInvestigate},
		Log:       logger, Clock: prflow.Clock{Now: w.now, Sleep: noSleep}, NewID: rand.Text,
		Proof: prflow.Proof{Key: func() ([]byte, error) { return []byte(w.key), nil }, Head: w.store.Audit.Head},
	})
}

func noSleep(ctx context.Context, _ time.Duration) {}

// request asks for the change: one file new, one changed, one removed.
func (w *world) request() []byte {
	w.t.Helper()
	return w.arguments(map[string]any{
		"title": "Check inodes, too", "body": "Disks fill up with small files.",
		"files": []any{
			fileOf("create", "checks/inodes.md", "# Inodes\n"), editOf("checks/disk.md", "", "# Disk\n", "# Disk\n\ndf -h\n"),
			map[string]any{"path": "checks/old.md", "action": "delete"},
		},
	})
}

// arguments are those of a call about the repository.
func (w *world) arguments(more map[string]any) []byte {
	w.t.Helper()
	more["repo_owner"], more["repo_name"] = w.repo.Owner, w.repo.Name
	raw, err := json.Marshal(more)
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

func fileOf(action, path, content string) map[string]any {
	return map[string]any{"path": path, "action": action, "content": content}
}

func editOf(path, base, before, after string) map[string]any {
	return map[string]any{
		"path": path, "action": "update", "base_sha": base, "edits": []any{map[string]any{"old": before, "new": after}},
	}
}

// agent is who calls.
func agent() operation.Caller {
	return operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}}
}

// status asks a service of its own about a pull request.
func (w *world) status(number int) prflow.StatusResult {
	w.t.Helper()
	status, err := w.service().Status(w.t.Context(), agent(), w.arguments(map[string]any{"pr_number": number}))
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

// create makes the request to a service of its own.
func (w *world) create(ctx context.Context) (prflow.CreateResult, error) {
	w.t.Helper()
	return w.createBy(ctx, w.service())
}

// createBy makes the request to the service.
func (w *world) createBy(ctx context.Context, service *prflow.Service) (prflow.CreateResult, error) {
	w.t.Helper()
	return w.createOf(ctx, service, w.request())
}

// createOf asks the service for what the arguments say.
func (w *world) createOf(ctx context.Context, service *prflow.Service, arguments []byte) (prflow.CreateResult, error) {
	w.t.Helper()
	result, err := service.Create(ctx, agent(), arguments)
	text, _ := json.Marshal(result) // plain data
	w.said = append(w.said, string(text))
	if err != nil {
		w.said = append(w.said, err.Error())
	}
	return result, err
}

// state returns people's view of the forge: our branches, and our open pull requests.
func (w *world) state() (branches []string, open []int) {
	if real, is := w.forge.(outside); is {
		return real.Look(w.repo)
	}
	w.forge.Host().Locked(func() {
		repo := w.forge.Host().Repo(w.repo)
		for name := range repo.Branches {
			if strings.HasPrefix(name, gitprovider.BranchPrefix) {
				branches = append(branches, name)
			}
		}
		for _, pr := range repo.PRs {
			if pr.State == gitprovider.StateOpen {
				open = append(open, pr.Number)
			}
		}
	})
	slices.Sort(branches)
	return branches, open
}

// assertAtMostOne demands that nothing is doubled at the forge.
func (w *world) assertAtMostOne(when string) {
	w.t.Helper()
	if branches, open := w.state(); len(branches) > 1 || len(open) > 1 {
		w.t.Errorf("%s: branches %v, open pull requests %v", when, branches, open)
	}
}

// assertTheOne demands one pull request with one commit that holds the change, and nothing else.
func (w *world) assertTheOne(number int) {
	w.t.Helper()
	branches, open := w.state()
	if len(branches) != 1 || !slices.Equal(open, []int{number}) {
		w.t.Fatalf("branches %v, open pull requests %v, want #%d alone", branches, open, number)
	}
	if real, is := w.forge.(outside); is {
		real.AssertChange(w.repo, number)
		return
	}
	w.forge.Host().Locked(func() {
		repo := w.forge.Host().Repo(w.repo)
		tip := repo.Commits[repo.Branches[branches[0]]]
		if !slices.Equal(tip.Parents, []string{repo.Branches[repo.Default]}) {
			w.t.Errorf("the commit has the parents %v", tip.Parents)
		}
		_, old := tip.Files["checks/old.md"]
		if len(tip.Files) != 3 || old || tip.Files["checks/inodes.md"].Content != "# Inodes\n" ||
			tip.Files["checks/disk.md"].Content != "# Disk\n\ndf -h\n" {
			w.t.Errorf("the commit has the files %v", tip.Files)
		}
		if paths := repo.PR(number).Paths; len(paths) != 3 {
			w.t.Errorf("the pull request changes %v", paths)
		}
	})
}

// assertRecords demands that the audit is whole and that nothing is reserved any more.
func (w *world) assertRecords() {
	w.t.Helper()
	known := w.known
	if w.store.IsSpent() { // killed processes might have damaged the rest
		known = record.AuditReport{}
	}
	report, err := w.store.Audit.VerifyAfter(context.Background(), known)
	if err != nil || !report.OK() {
		w.t.Errorf("audit: %+v, %v", report, err)
	}
	left, err := w.store.History.Unfinished(context.Background())
	if err != nil || len(left) > 0 {
		w.t.Errorf("still reserved: %+v, %v", left, err)
	}
}

// audit returns the rows of the audit.
func (w *world) audit() []record.RecordedAttempt {
	w.t.Helper()
	rows, err := w.store.Audit.Page(context.Background(), record.AuditQuery{Limit: record.MaxAuditLimit})
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// assertNoToken looks for the token in everything that left the process.
func (w *world) assertNoToken() {
	w.t.Helper()
	audit, err := json.Marshal(w.audit())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, token := range w.tokens() {
		for _, form := range []string{token, url.QueryEscape(token), base64.StdEncoding.EncodeToString([]byte(token))} {
			for what, text := range map[string]string{
				"the log": w.log.String(), "an answer": strings.Join(w.said, "\n"), "the audit": string(audit),
			} {
				if strings.Contains(text, form) {
					w.t.Errorf("a token is in %s", what)
				}
			}
		}
	}
}

// safeBuffer is a bytes.Buffer for several writers.
type safeBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// appKey is the private key of the tests' app, made once.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// constant is a secret that stays.
type constant string

func (c constant) Value() string  { return string(c) }
func (c constant) Reread() string { return string(c) }

// title returns the kind's name in tests.
func (k kind) title() string {
	if k.label != "" {
		return k.label
	}
	return k.name
}

// tokens are all those that requests to the forge have carried.
func (w *world) tokens() []string {
	out := []string{w.forge.Token()}
	if s, is := w.forge.(*fakegithub.Server); is {
		for _, token := range s.AppTokens() {
			out = append(out, token.Token)
		}
	}
	return out
}

// forge is a fake forge, or a real one behind a proxy.
type forge interface {
	URL() string
	Token() string
	// Host returns the host of a fake; nil for a real forge, which is an outside.
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
	// Seen returns people's view of the pull request with the branch.
	Seen(repo gitprovider.RepoRef, number int, branch string) seen
}

// seen is people's view of a pull request.
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
	adapter func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider
	options transport.Options
	// app makes the GitHub App in whose name requests are made; nil for a token.
	app   func(t testing.TB, f forge, o transport.Options) *githubapp.App
	waits bool // a request that stalls is given up when its time is over, and not at once
	// label is the kind in names of tests; "" means name.
	label string
	lags  bool // it does not know at once what it has made
	real  bool // it is not a fake
}

// sequence is the requests of an undisturbed call, in their order: whether each of them writes.
type sequence []bool

// sequenceOf is the sequence of requests that a forge has seen. A query of GraphQL writes nothing.
func sequenceOf(seen []httpfault.Seen) (s sequence) {
	for _, r := range seen {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead ||
			strings.HasSuffix(r.Path, "/graphql") && !bytes.Contains(r.Body, []byte("mutation"))
		s = append(s, !reads)
	}
	return s
}

// tries reports whether a table tries its case i at the n-th request of a sequence, which is counted from 1. Each
// request that writes meets all cases. Of those that read it is one cell of three, since a case is one of transport
// there: each request meets some of the cases, and each case some of the requests. So it is where the forge lags.
func (k kind) tries(s sequence, n, i int) bool { return s[n-1] && !k.lags || (n+i)%3 == 0 }

// triesAgain is tries for a table whose reads the table of proposals or of revisions has, too: half as many of those.
func (k kind) triesAgain(s sequence, n, i int) bool {
	return k.tries(s, n, i) && (s[n-1] || (n+i)%2 == 0)
}

// triesWrites is tries for a table that is about what a request does.
func (k kind) triesWrites(s sequence, n, i int) bool { return s[n-1] && k.tries(s, n, i) }

// write returns how many requests before the n-th write.
func (s sequence) write(n int) (before int) {
	for _, writes := range s[:n-1] {
		if writes {
			before++
		}
	}
	return before
}

// kinds are the forges that every test of this package runs on, unless it is about one of them.
func kinds() []kind { return []kind{gitHub(), laggingGitHub(), giteaForge()} }

// prompt are the forges for tables in which nothing is made that a forge might not know at once.
func prompt() []kind { return []kind{gitHub(), giteaForge()} }

// withApp are kinds, and GitHub with an app in place of a token: its requests for installations and tokens are among
// those that go wrong.
func withApp() []kind { return append(kinds(), gitHubApp()) }

func gitHub() kind {
	return kind{
		name:  "github",
		start: func(t testing.TB) forge { return fakegithub.New(t) },
		options: transport.Options{Name: "github",
			Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Scheme: "Bearer"},
		adapter: func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider {
			return github.New(github.Options{API: base(t, f), Client: client, Now: now, Sleep: noSleep})
		},
	}
}

// laggingGitHub does not know at once what it has made.
func laggingGitHub() kind {
	k := gitHub()
	k.label, k.lags = "lagging github", true
	k.start = func(t testing.TB) forge {
		s := fakegithub.New(t)
		s.Lag()
		return s
	}
	return k
}

func gitHubApp() kind {
	k := laggingGitHub()
	k.label = "lagging github app"
	k.start = func(t testing.TB) forge {
		s := fakegithub.New(t)
		s.Lag()
		s.SetApp(fakegithub.App{ID: "12345", Slug: "claude-ops", Key: &appKey().PublicKey, Permissions: map[string]string{
			"contents": "write", "pull_requests": "write", "checks": "read", "statuses": "read",
		}})
		return s
	}
	k.app = func(t testing.TB, f forge, o transport.Options) *githubapp.App {
		text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())})
		o.Variables.Token, o.Credential = "GITHUB_APP_PRIVATE_KEY", githubapp.NewSigner("12345", constant(text), nil)
		client, err := transport.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		return githubapp.New(githubapp.Options{API: base(t, f), Client: client})
	}
	return k
}

func giteaForge() kind {
	return kind{
		name:  "gitea",
		start: func(t testing.TB) forge { return fakegitea.New(t) },
		options: transport.Options{Name: "gitea", Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"},
			Scheme: "token"},
		adapter: func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider {
			return gitea.New(gitea.Options{Base: base(t, f), Client: client, Now: now, Sleep: noSleep})
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

// patience bounds one request, on a machine that is busy with other work.
const patience = time.Minute

// givesUp ends a try as its limit would, but as soon as a request stalls, so that no test waits for the limit.
func givesUp(faults *httpfault.Handler) func(context.Context, time.Duration) (context.Context, context.CancelFunc) {
	return func(try context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		try, end := context.WithTimeout(try, d)
		stop := faults.OnStall(end)
		return try, func() { stop(); end() }
	}
}

// connect makes the client and the adapter.
func (k kind) connect(t testing.TB, f forge, o transport.Options) gitprovider.Provider {
	t.Helper()
	o.Name, o.Variables, o.Scheme = k.options.Name, k.options.Variables, k.options.Scheme
	o.Base, o.Token = base(t, f), f.Token()
	now := o.Clock.WithDefaults().Now
	o.Clock = transport.Clock{Now: o.Clock.Now, Sleep: noSleep, Jitter: func(d time.Duration) time.Duration { return d }}
	if !k.waits {
		o.Clock.Limit = givesUp(f.Faults())
	}
	o.Limits = transport.Limits{Whole: patience, Write: patience, Retries: 1, MaxBody: 1 << 20}
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
		return github.New(github.Options{API: base(t, f), Client: client, App: app, Now: now, Sleep: noSleep})
	}
	return k.adapter(t, f, client, now)
}
