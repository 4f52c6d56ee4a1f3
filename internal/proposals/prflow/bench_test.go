package prflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

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

// BenchmarkGates is the whole pipeline of a dry run: two files of 4 KB, over an in-memory provider and ledger.
func BenchmarkGates(b *testing.B) {
	fake := forgetest.NewFake()
	fake.AddRepo("joe", "infra", map[string]string{"checks/a.md": "# A\n"})
	service := prflow.New(prflow.Options{
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{{Name: "fake", Provider: fake}}, nil, "", nil),
		Ledger:   memory{}, History: noHistory{}, Secrets: scanner,
		Authority: prflow.Authority{Policy: policy.Default(), Tier: 3, DryRun: true},
		Log:       slog.New(slog.DiscardHandler), NewID: func() string { return "bench" },
		Clock: prflow.Clock{Now: time.Now, Sleep: func(context.Context, time.Duration) {}},
		Proof: prflow.Proof{Key: func() ([]byte, error) { return make([]byte, 32), nil }},
	})
	raw := request(files(file("checks/a.md", "update", prose(4096)), file("checks/b.md", "create", prose(4096))))
	if _, err := service.Create(b.Context(), agent, raw); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := service.Create(b.Context(), agent, raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGatesWithoutSecrets is the same without the search for secrets, which takes most of the time.
func BenchmarkGatesWithoutSecrets(b *testing.B) {
	fake := forgetest.NewFake()
	fake.AddRepo("joe", "infra", map[string]string{"checks/a.md": "# A\n"})
	service := prflow.New(prflow.Options{
		Registry: gitprovider.NewRegistry([]gitprovider.Registration{{Name: "fake", Provider: fake}}, nil, "", nil),
		Ledger:   memory{}, History: noHistory{}, Secrets: noSecrets{},
		Authority: prflow.Authority{Policy: policy.Default(), Tier: 3, DryRun: true},
		Log:       slog.New(slog.DiscardHandler), NewID: func() string { return "bench" },
		Clock: prflow.Clock{Now: time.Now, Sleep: func(context.Context, time.Duration) {}},
		Proof: prflow.Proof{Key: func() ([]byte, error) { return make([]byte, 32), nil }},
	})
	raw := request(files(file("checks/a.md", "update", prose(4096)), file("checks/b.md", "create", prose(4096))))
	for b.Loop() {
		if _, err := service.Create(b.Context(), agent, raw); err != nil {
			b.Fatal(fmt.Errorf("refused: %w", err))
		}
	}
}
