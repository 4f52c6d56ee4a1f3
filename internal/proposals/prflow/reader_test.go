package prflow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func TestPeopleReadAtTheProviderThatTheyName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pr := b.mustOpen(request(nil))
	s, ctx := prflow.New(b.options).Reader(), context.Background()
	name := b.fake.Name()
	prs, err := s.ListAt(ctx, name, "joe", "infra")
	if err != nil || len(prs) != 1 || prs[0].Number != pr.Number || prs[0].Branch == "" {
		t.Errorf("%+v, %v", prs, err)
	}
	status, err := s.StatusAt(ctx, name, "joe", "infra", pr.Number)
	if err != nil || status.Number != pr.Number || !strings.Contains(status.Body, "Proposed by an agent") {
		t.Errorf("%+v, %v", status, err)
	}
	if got := s.ProviderOf("joe", "infra"); got != name {
		t.Errorf("provider %q", got)
	}
	for want, ask := range map[fault.Code]func() error{
		fault.ProviderUnresolved: func() error { _, err := s.ListAt(ctx, "nothing", "joe", "infra"); return err },
		fault.InvalidArgument:    func() error { _, err := s.ListAt(ctx, name, "..", "infra"); return err },
		fault.NotFound:           func() error { _, err := s.StatusAt(ctx, name, "joe", "infra", 99); return err },
	} {
		if err := ask(); fault.CodeOf(err) != want || operation.RequestIDOf(err) == "" {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAProposalIsComparedWithItsBaseAsItIsNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.DryRun = true
	result, err := b.create(request(nil))
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := prflow.New(b.options).Reader(), context.Background()
	p, err := b.options.History.Proposal(ctx, result.RequestID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Compare(ctx, p)
	if err != nil || got.BaseCommit != p.BaseCommit || got.Diff != result.Preview.Diff {
		t.Errorf("%+v, %v; the preview was\n%s", got, err, result.Preview.Diff)
	}
	p.Provider = "nothing"
	if _, err := s.Compare(ctx, p); fault.CodeOf(err) != fault.ProviderUnresolved {
		t.Errorf("got %v", err)
	}
	if text := prflow.AgentText(p.Body); strings.Contains(text, "Proposed by an agent") ||
		!strings.HasPrefix(p.Body, text) {
		t.Errorf("the agent's text is %q", text)
	}
}

// A merge follows a file that was moved, so that people are told that the base branch has it no more.
func TestFilesThatTheBaseHasMovedAwayAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.DryRun = true
	result, err := b.create(request(files(file("checks/old.md", "update", "# Old\n\nnew\n"),
		file("checks/inodes.md", "create", "# Inodes\n"))))
	if err != nil {
		t.Fatal(err)
	}
	b.options.Authority.DryRun = false
	p, err := b.options.History.Proposal(t.Context(), result.RequestID)
	if err != nil {
		t.Fatal(err)
	}
	reader := prflow.New(b.options).Reader()
	if got, err := reader.Compare(t.Context(), p); err != nil || got.Gone != nil {
		t.Errorf("before: %q, %v", got.Gone, err)
	}
	b.world().Merge(b.mustOpen(request(func(r map[string]any) {
		r["title"], r["files"] = "Away", []any{file("checks/old.md", "delete")}
	})).Number)
	if got, err := reader.Compare(t.Context(), p); err != nil || strings.Join(got.Gone, " ") != "checks/old.md" {
		t.Errorf("after: %q, %v", got.Gone, err)
	}
}
