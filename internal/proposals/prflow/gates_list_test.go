package prflow

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func TestThePageOfTheGatesHasTheirListInItsOrder(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/explain/gates.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, g := range gates() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", g.Name, g.Asks, g.Phase)
	}
	before, after, _ := strings.Cut(string(page), "|---|---|---|\n")
	end := strings.Index(after, "\n\n")
	operationtest.Golden(t, name, []byte(before+"|---|---|---|\n"+rows.String()+after[end+1:]))
}

func TestTheRecordsKnowEveryGate(t *testing.T) {
	t.Parallel()
	if !slices.Equal(Gates(), record.Gates()) {
		t.Errorf("the records know the gates %q; prflow asks %q", record.Gates(), Gates())
	}
	for _, gate := range append(Gates(), "") {
		if got, err := record.ParseGate(string(gate)); got != gate || err != nil {
			t.Errorf("%q is read as %q, %v", gate, got, err)
		}
	}
	if _, err := record.ParseGate("none"); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("a name that no gate has: %v", err)
	}
}

func TestEachGateIsWholeAndItsPhaseIsReached(t *testing.T) {
	t.Parallel()
	phases := []phase{phaseRequest, phaseRepository, phasePulls, phaseReserve}
	for _, g := range gates() {
		if g.Name == "" || g.Asks == "" || g.Judge == nil || !slices.Contains(phases, g.Phase) {
			t.Errorf("the gate %q is not whole: phase %q", g.Name, g.Phase)
		}
	}
}

// BenchmarkRemoteRules is the cost of gates 7 to 9 themselves: telling ours among 1,000 open and 1,000 closed pull
// requests by their signed marks, and finding no overlap. What provider and ledger cost is theirs; see
// internal/records/store for a ledger of 100,000 rows.
func BenchmarkRemoteRules(b *testing.B) {
	c := rulesCreation(b)
	open, closed := manyPRs(b, c, gitprovider.StateOpen), manyPRs(b, c, gitprovider.StateClosed)
	b.ResetTimer()
	for b.Loop() {
		snapshot := &gitprovider.Snapshot{
			Repo: c.evidence.snapshot.Repo, Base: "main", Open: append([]gitprovider.PullRequest(nil), open...),
			Closed: append([]gitprovider.PullRequest(nil), closed...),
		}
		c.evidence.snapshot = snapshot
		if err := c.evidence.sortByOrigin(snapshot); err != nil {
			b.Fatal(err)
		}
		for _, p := range []phase{phasePulls, phaseReserve} {
			if same, err := c.runGates(b.Context(), p); err != nil || same != nil {
				b.Fatal(same, err)
			}
		}
	}
}

func rulesCreation(b *testing.B) *creation {
	b.Helper()
	p, err := policy.Parse("bench.yaml", []byte("version: 1\ncaps: {open_prs: 1000, creations_per_hour: 1000}\n"))
	if err != nil {
		b.Fatal(err)
	}
	p.Limits.Caps.OpenPRs = 10_000
	changes, violations := gitprovider.NewChangeSet(
		gitprovider.Rules{Tier: 3, Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope()},
		[]gitprovider.FileChange{{Path: "checks/new.md", Action: gitprovider.ActionCreate, Content: "x"}})
	if len(violations) > 0 {
		b.Fatal(violations)
	}
	c := New(Options{
		Authority: Authority{Policy: p, Tier: 3}, History: emptyHistory{}, Log: slog.New(slog.DiscardHandler),
		Clock: Clock{Now: time.Now}, Proof: Proof{Key: func() ([]byte, error) { return make([]byte, 32), nil }},
		NewID: func() string { return "request" }, Secrets: textscan.NewScanner(nil),
	}).newCreation(operation.Call{ID: "request", Records: func(func(context.Context, *fault.Error) error) {}})
	c.request.changes = changes
	c.evidence.resolution = gitprovider.Resolution{Provider: nameless{}}
	c.evidence.snapshot = &gitprovider.Snapshot{Repo: gitprovider.RepoRef{Owner: "joe", Name: "infra"}, Base: "main"}
	return c
}

// manyPRs makes 1,000 pull requests of three files each, with true marks.
func manyPRs(b *testing.B, c *creation, state gitprovider.State) []gitprovider.PullRequest {
	b.Helper()
	out := make([]gitprovider.PullRequest, 1000)
	for i := range out {
		branch := fmt.Sprintf("claude-ops/fix/n%d", i)
		signed, err := mark{Provider: "bench", Repo: "joe/infra", Branch: branch, Digest: fmt.Sprint(i),
			Request: "r"}.sign(make([]byte, 32))
		if err != nil {
			b.Fatal(err)
		}
		out[i] = gitprovider.PullRequest{
			Number: i + 1, Branch: branch, Base: "main", State: state, Body: "Why.\n\n---\n\n" + signed,
			ClosedAt: c.request.started,
			Paths: []string{fmt.Sprintf("checks/%d-a.md", i), fmt.Sprintf("checks/%d-b.md", i),
				fmt.Sprintf("checks/%d-c.md", i)},
		}
	}
	return out
}

type nameless struct{ gitprovider.Provider }

func (nameless) Name() string { return "bench" }

type emptyHistory struct{ History }

func (emptyHistory) ByDigest(context.Context, string) ([]record.Proposal, error) { return nil, nil }
