package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
)

// fill records attempts as the use case does, spread over the last 90 days: of ten, five are refused, three are dry
// runs, one was opened and one was reused.
func fill(ctx context.Context, stateDir string, rows int) error {
	now := time.Now()
	at := now
	s, err := store.Open(ctx, stateDir, store.Options{Now: func() time.Time { return at }})
	if err != nil {
		return err
	}
	for i := range rows {
		at = now.Add(-90 * 24 * time.Hour / time.Duration(rows) * time.Duration(rows-i))
		if err := fillOne(ctx, s, i, at); err != nil {
			return err
		}
	}
	return s.Close()
}

func fillOne(ctx context.Context, s *store.Store, i int, at time.Time) error {
	a := record.Attempt{
		Time: at, RequestID: fmt.Sprintf("filled-%08d", i), Door: record.DoorMCP, Caller: "claude-code/2.1",
		Tier:   gitprovider.TierInvestigate,
		Action: record.ActionCreate, Provider: "local", Owner: "filled", Repo: fmt.Sprintf("repo-%d", i%20), Base: "main",
		Title: fmt.Sprintf("Watch disk %d", i), Paths: []string{fmt.Sprintf("checks/disk-%d.md", i)},
		Digest:   fmt.Sprintf("digest-%d", i),
		Verdicts: []record.Verdict{{Gate: record.GateTier, Ruling: record.Pass, Detail: "tier 2, 1 file"}},
		Duration: 40 * time.Millisecond,
	}
	p := record.Proposal{
		ID: a.RequestID, CreatedAt: at, Door: a.Door, Caller: a.Caller, Tier: a.Tier, Provider: a.Provider, Owner: a.Owner,
		Repo: a.Repo,
		Base: a.Base, BaseCommit: strings.Repeat("ab", 20), ChangeType: gitprovider.TypeCheck, Title: a.Title,
		Body:   "It was full.\n",
		Digest: a.Digest,
		Files: []gitprovider.FileChange{{Path: a.Paths[0], Action: gitprovider.ActionCreate,
			Content: strings.Repeat("# Disk\n", 100)}},
	}
	switch i % 10 {
	case 0:
		if taken, err := s.Ledger.Reserve(ctx, p, record.Claim{Seen: 1 << 40}); err != nil || taken != nil {
			return fmt.Errorf("reserved by %v: %w", taken, err)
		}
		a.Outcome, a.PRNumber, a.PRURL = record.OutcomeOpened, i, fmt.Sprintf("https://git.example.org/%d", i)
		return s.Ledger.Finish(ctx, p.ID, record.Progress{State: record.StateOpened, PRNumber: a.PRNumber, PRURL: a.PRURL}, a)
	case 1:
		a.Outcome, a.PRNumber = record.OutcomeReused, i-1
		return s.Ledger.Record(ctx, a, nil)
	case 2, 3, 4:
		a.Outcome = record.OutcomeDryRun
		return s.Ledger.Record(ctx, a, &p)
	}
	gates := []record.Gate{record.GateScope, record.GateTier, record.GateContent, record.GateDuplicate, record.GateScope}
	a.Outcome, a.Code, a.Message = record.OutcomeRefused, fault.ScopeDenied, "1 path is outside the scope"
	a.Verdicts = append(a.Verdicts, record.Verdict{Gate: gates[i%5], Ruling: record.Deny, Violations: []fault.Violation{{
		Code: a.Code, Path: a.Paths[0], Rule: "prompts/**", Message: "the path is protected",
	}}})
	return s.Ledger.Record(ctx, a, nil)
}

// makeRepo makes the bare repository bench/infra below root, with 200 files.
func makeRepo(ctx context.Context, root string) error {
	dir := filepath.Join(root, "bench", "infra.git")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter Operator <operator@example.invalid> 1767225600 +0000\ndata 5\nSeed\n")
	for i := range 200 {
		content := fmt.Sprintf("# Check %d\n", i)
		fmt.Fprintf(&b, "M 100644 inline checks/check-%d.md\ndata %d\n%s\n", i, len(content), content)
	}
	for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch=main"}, {"fast-import", "--quiet"}} {
		cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204: fixed words
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(b.String()), os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}
