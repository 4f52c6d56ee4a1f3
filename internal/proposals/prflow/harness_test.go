package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// ownToken is a token of ours that no text may carry.
const ownToken = "own-token-value-0123456789"

// scanner is shared: its rules take long to load under the race detector.
var scanner = textscan.NewScanner([]string{ownToken})

// records lends stores to the tests.
var records storetest.Reused

func TestMain(m *testing.M) {
	code := m.Run()
	if err := records.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// infra is the repository that requests are about.
var infra = gitprovider.RepoRef{Owner: "joe", Name: "infra"}

// bench is a Service over the stateful fake and a real SQLite store, with a clock that the test moves.
type bench struct {
	*testing.T
	fake     *forgetest.Fake
	store    *storetest.Lent
	verified record.AuditReport // of the store's rows so far
	clock    *clock
	options  prflow.Options
}

type clock struct{ now atomic.Int64 }

func (c *clock) Now() time.Time          { return time.UnixMicro(c.now.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.now.Add(d.Microseconds()) }

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, fake: forgetest.NewFake(), clock: &clock{}}
	b.clock.now.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
	b.fake.SetClock(b.clock.Now)
	b.fake.AddRepo("joe", "infra", map[string]string{
		"checks/disk.md": "# Disk\n", "checks/old.md": "# Old\n", "playbooks/a.md": "# A\n", "README.md": "# Infra\n",
	})
	s := records.Open(t, nil, b.clock.Now)
	b.store = s
	var ids atomic.Int64
	b.options = prflow.Options{
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: b.fake, Hosts: []string{"git.example.org"}},
			{Name: "gitea", Disabled: "GITEA_TOKEN is not set", Hosts: []string{"gitea.example.org"}},
		}, nil, "", nil),
		Ledger: s.Ledger, History: s.History, Secrets: scanner, Pauses: s.Pauses(),
		Authority: prflow.Authority{Policy: policy.Default(), Tier: gitprovider.TierInvestigate},
		Log:       slog.New(slog.DiscardHandler),
		Clock:     prflow.Clock{Now: b.clock.Now, Sleep: func(_ context.Context, d time.Duration) { b.clock.advance(d) }},
		NewID:     func() string { return fmt.Sprintf("request-%04d", ids.Add(1)) },
		Proof: prflow.Proof{Key: func() ([]byte, error) { return []byte("a key for tests, of 32 bytes----"), nil },
			Head: s.Audit.Head},
	}
	return b
}

// createRequest is a good request; change alters it.
func createRequest(change func(map[string]any)) []byte {
	r := map[string]any{
		"repo_owner": "joe", "repo_name": "infra", "title": "Check inodes, too",
		"body":  "## Why\n\nDisks fill up with small files.\n",
		"files": []any{file("checks/inodes.md", "create", "# Inodes\n")}, "preview": "full",
	}
	if change != nil {
		change(r)
	}
	return encoded(r)
}

// inInfra is a request about the repository, other than for a proposal.
func inInfra(change ...func(map[string]any)) []byte {
	r := map[string]any{"repo_owner": "joe", "repo_name": "infra"}
	for _, c := range change {
		c(r)
	}
	return encoded(r)
}

func encoded(r map[string]any) []byte {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return raw
}

func file(path, action string, content ...string) map[string]any {
	f := map[string]any{"path": path, "action": action}
	if len(content) > 0 {
		f["content"] = content[0]
	}
	return f
}

func files(list ...any) func(map[string]any) {
	return func(r map[string]any) { r["files"] = list }
}

// titled is another change than that of a good request.
func titled(title string, list ...any) func(map[string]any) {
	return func(r map[string]any) { r["title"], r["files"] = title, list }
}

func with(key string, value any) func(map[string]any) {
	return func(r map[string]any) { r[key] = value }
}

var agent = operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test-agent 1"}}

func (b *bench) create(raw []byte) (prflow.CreateResult, error) {
	b.Helper()
	return prflow.New(b.options).Create(context.Background(), agent, raw)
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// mustOpen creates and fails the test unless a pull request was opened.
func (b *bench) mustOpen(raw []byte) prflow.CreateResult {
	b.Helper()
	result, err := b.create(raw)
	if err != nil {
		b.Fatalf("refused: %v", err)
	}
	if result.Number == 0 || result.Reused || result.DryRun {
		b.Fatalf("nothing was opened: %+v", result)
	}
	return result
}

// mustFail creates and fails the test unless the error has the code.
func (b *bench) mustFail(raw []byte, code fault.Code) {
	b.Helper()
	if result, err := b.create(raw); fault.CodeOf(err) != code {
		b.Fatalf("got %+v, %v, want %s", result, err, code)
	}
}

// resume settles what was left, as a server does when it starts.
func (b *bench) resume() {
	b.Helper()
	_, err := prflow.New(b.options).Resume(b.Context())
	b.must(err)
}

// mustRefuse creates and fails the test unless it is refused with the code, without a write and with one audit row that
// says the same. It returns the refusal and the row.
func (b *bench) mustRefuse(raw []byte, code fault.Code) (*fault.Error, record.Attempt) {
	b.Helper()
	b.fake.Script.ForgetCalls()
	before := len(b.attempts())
	result, err := b.create(raw)
	if err == nil {
		b.Fatalf("not refused: %+v", result)
	}
	e := fault.From(err)
	if e.Code != code {
		b.Fatalf("refused with %v, want %s", e, code)
	}
	if writes := b.fake.Script.Writes(); writes != 0 {
		b.Errorf("%d writes: %v", writes, b.fake.Script.Calls())
	}
	attempts := b.attempts()
	if len(attempts) != before+1 {
		b.Fatalf("%d audit rows for one attempt", len(attempts)-before)
	}
	row := attempts[0]
	if row.Code != code || row.RequestID != operation.RequestIDOf(err) || row.RequestID != operation.AttemptIDOf(err) ||
		row.RequestID == "" {
		b.Errorf("the audit has %+v for %v", row, err)
	}
	b.mustVerify()
	return e, row
}

// attempts are the audit's rows, newest first.
func (b *bench) attempts() []record.Attempt {
	b.Helper()
	rows, err := b.store.Audit.Page(context.Background(), record.AuditQuery{Limit: record.MaxAuditLimit})
	b.must(err)
	out := make([]record.Attempt, len(rows))
	for i, r := range rows {
		out[i] = r.Attempt
	}
	return out
}

func (b *bench) mustVerify() {
	b.Helper()
	var err error
	if b.verified, err = b.store.Audit.VerifyAfter(context.Background(), b.verified); err != nil || !b.verified.OK() {
		b.Errorf("the audit is not whole: %+v, %v", b.verified, err)
	}
}

// open lists the numbers of the open pull requests at the provider.
func (b *bench) open() (numbers []int) {
	b.Helper()
	prs, err := b.fake.ListOpen(context.Background(), infra,
		gitprovider.LabelOurs)
	b.must(err)
	for _, pr := range prs {
		numbers = append(numbers, pr.Number)
	}
	return numbers
}

// tip is the commit of a branch at the provider, or "".
func (b *bench) tip(branch string) string {
	b.Helper()
	tip, err := b.fake.BranchTip(context.Background(), infra, branch)
	b.must(err)
	return tip
}

// die plays a process that reserves a proposal and ends: a store of its own, closed.
func (b *bench) die(p record.Proposal) {
	b.Helper()
	b.store.Spend()
	s, err := store.Open(context.Background(), b.store.Dir, store.Options{Now: b.clock.Now})
	b.must(err)
	if taken, err := s.Ledger.Reserve(context.Background(), p, record.Claim{Seen: 99}); err != nil || taken != nil {
		b.Fatalf("reserve: %v, %v", taken, err)
	}
	b.must(s.Close())
}

// through has a provider stand before the fake.
func (b *bench) through(p gitprovider.Provider) {
	b.options.Registry = gitprovider.NewRegistry([]gitprovider.Registration{
		{Name: "fake", Provider: p, Hosts: []string{"git.example.org"}},
	}, nil, "", nil)
}

func (b *bench) world() providertest.World {
	return b.fake.World(b.T, infra)
}

// personOpens opens a pull request of a person's.
func (b *bench) personOpens(files ...providertest.File) int {
	b.Helper()
	b.world().Push("feature/x", files...)
	return b.world().OpenPR("feature/x", "A person's")
}

func mustPolicy(t *testing.T, rules string, kinds ...gitprovider.FileKind) policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte("version: 1\n"+rules+"\n"), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// memory is a ledger that forgets, so that the gates are measured and not the disk.
type memory struct{ prflow.Ledger }

func (memory) Record(context.Context, record.Attempt, *record.Proposal, ...record.Notice) error {
	return nil
}

type noHistory struct{ prflow.History }

func (noHistory) Position(context.Context) (record.Position, error) { return 0, nil }
func (noHistory) Undone(context.Context, string) (bool, error)      { return false, nil }
func (noHistory) UndoneBranches(context.Context, string, string, string, time.Time) ([]string, error) {
	return nil, nil
}
func (noHistory) ByDigest(context.Context, string) ([]record.Proposal, error) { return nil, nil }
func (noHistory) Unfinished(context.Context) ([]record.Proposal, error)       { return nil, nil }
func (noHistory) PathsOf(context.Context, string, string, string, int) ([]string, error) {
	return nil, nil
}
func (noHistory) Usage(context.Context, string, string, string, record.Claim) (record.Usage, error) {
	return record.Usage{}, nil
}

// prose is ordinary text of about n bytes.
func prose(n int) string {
	const line = "- Run `kubectl get pods -A` and compare the restarts with yesterday's; 3 or more within an hour is a finding.\n"
	return strings.Repeat(line, n/len(line)+1)[:n]
}

// BenchmarkGates is the whole pipeline of a dry run: two files of 4 KB, over an in-memory provider and ledger. The
// search for secrets takes most of the time.
func BenchmarkGates(b *testing.B) {
	for name, secrets := range map[string]prflow.Secrets{"with secrets": scanner, "without": noSecrets()} {
		b.Run(name, func(b *testing.B) {
			fake := forgetest.NewFake()
			fake.AddRepo("joe", "infra", map[string]string{"checks/a.md": "# A\n"})
			service := prflow.New(prflow.Options{
				Registry: gitprovider.NewRegistry([]gitprovider.Registration{{Name: "fake", Provider: fake}}, nil, "", nil),
				Ledger:   memory{}, History: noHistory{}, Secrets: secrets,
				Authority: prflow.Authority{Policy: policy.Default(), Tier: 3, DryRun: true},
				Log:       slog.New(slog.DiscardHandler), NewID: func() string { return "bench" },
				Clock: prflow.Clock{Now: time.Now, Sleep: func(context.Context, time.Duration) {}},
				Proof: prflow.Proof{Key: func() ([]byte, error) { return make([]byte, 32), nil }},
			})
			raw := createRequest(files(file("checks/a.md", "update", prose(4096)), file("checks/b.md", "create", prose(4096))))
			for b.Loop() {
				if _, err := service.Create(b.Context(), agent, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
