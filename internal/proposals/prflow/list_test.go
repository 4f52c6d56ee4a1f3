package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func (b *bench) listing(change ...func(map[string]any)) (prflow.ListResult, error) {
	b.Helper()
	fromTheFirst := func(r map[string]any) {
		if r["after"] == 0 {
			delete(r, "after")
		}
	}
	return prflow.New(b.options).List(b.Context(), agent, inInfra(append(change, fromTheFirst)...))
}

func (b *bench) list(change ...func(map[string]any)) prflow.ListResult {
	b.Helper()
	out, err := b.listing(change...)
	b.must(err)
	return out
}

// wantPage lists, demands the numbers of a page, and returns what is next, which there is if there are more.
func (b *bench) wantPage(more bool, want []int, change ...func(map[string]any)) (next int) {
	b.Helper()
	got := b.list(change...)
	if !slices.Equal(numbers(got), want) || (got.Next != 0) != more {
		b.Errorf("%v, next %d, want %v", numbers(got), got.Next, want)
	}
	return got.Next
}

func numbers(r prflow.ListResult) (out []int) {
	for _, pr := range r.PRs {
		out = append(out, pr.Number)
	}
	return out
}

// many opens pull requests of ours, #1 to #n.
func (b *bench) many(n int) {
	b.Helper()
	b.options.Authority.Policy = mustPolicy(b.T, fmt.Sprintf("caps: {open_prs: %[1]d, creations_per_hour: %[1]d}", n+1))
	for i := range n {
		b.mustOpen(createRequest(titled(fmt.Sprint("Add check number ", i),
			file(fmt.Sprintf("checks/n%d.md", i), "create", fmt.Sprintf("# N%d\n", i)))))
	}
}

func TestAListIsReadInPagesThatSayHowManyThereAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.many(10)
	for _, c := range []struct {
		limit, after int
		want         []int
		next         int
	}{
		{4, 0, []int{1, 2, 3, 4}, 4}, {4, 4, []int{5, 6, 7, 8}, 8}, {4, 8, []int{9, 10}, 0},
		{10, 0, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0},
		{2, 8, []int{9, 10}, 0}, {1, 99, nil, 0}, {100, 3, []int{4, 5, 6, 7, 8, 9, 10}, 0},
	} {
		got := b.list(with("limit", c.limit), with("after", c.after))
		if !slices.Equal(numbers(got), c.want) || got.Next != c.next || got.Total != 10 {
			t.Errorf("limit %d after %d: %v of %d, next %d", c.limit, c.after, numbers(got), got.Total, got.Next)
		}
	}
	for _, wrong := range []func(map[string]any){with("limit", 0), with("limit", 101), with("after", -1),
		with("state_of_review", "open")} {
		if _, err := b.listing(wrong); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("got %v", err)
		}
	}
}

// The pages of one listing read the pull requests once; those of another read them anew.
func TestAListingReadsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.many(5)
	s := prflow.New(b.options)
	for range 2 {
		b.fake.Script.ForgetCalls()
		ctx, got := prflow.OneListing(t.Context()), []int{}
		for after := 1; after <= 5; after += 2 { // there is always one before: after is at least 1
			page, err := s.List(ctx, agent, fmt.Appendf(nil,
				`{"repo_owner": "joe", "repo_name": "infra", "limit": 2, "after": %d}`, after))
			if err != nil || page.Total != 5 {
				t.Fatalf("%+v, %v", page, err)
			}
			got = append(got, numbers(page)...)
		}
		if n := b.fake.Script.Count("ListOpen"); !slices.Equal(got, []int{2, 3, 4, 5}) || n != 1 {
			t.Errorf("%v in %d lists: %v", got, n, b.fake.Script.Calls())
		}
	}
}

func TestAListSaysHowTheReviewsOfOursStand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.many(6)
	review := func(number int, who string, state gitprovider.ReviewState) {
		b.clock.advance(time.Minute)
		b.world().Review(number, who, state, "Well.")
	}
	review(2, "ann", gitprovider.ReviewChangesRequested)
	review(3, "ann", gitprovider.ReviewApproved)
	review(4, "ann", gitprovider.ReviewCommented)
	review(5, "ann", gitprovider.ReviewChangesRequested)
	review(5, "ann", gitprovider.ReviewApproved)
	review(6, "eve", gitprovider.ReviewApproved) // who may not write
	b.world().Push("claude-ops/fix/other", providertest.File{Path: "checks/o.md", Content: "o"})
	other := b.world().OpenPR("claude-ops/fix/other", "Labelled by somebody", gitprovider.LabelOurs)
	b.world().Review(other, "ann", gitprovider.ReviewApproved, "Good.")
	var states []string
	for _, pr := range b.list().PRs {
		states = append(states, pr.State)
	}
	want := []string{"none", "changes_requested", "approved", "none", "approved", "none", ""}
	if !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}
	for state, want := range map[string][]int{"none": {1, 4, 6}, "changes_requested": {2}, "approved": {3, 5}} {
		if got := b.list(with("state_of_review", state)); !slices.Equal(numbers(got), want) || got.Next != 0 ||
			got.Total != 7 {
			t.Errorf("%s: %v, next %d of %d", state, numbers(got), got.Next, got.Total)
		}
	}
	none := []func(map[string]any){with("state_of_review", "none"), with("limit", 2)}
	next := b.wantPage(true, []int{1, 4}, none...)
	b.wantPage(false, []int{6}, append(none, with("after", next))...)
}

func TestAListOfManyIsSmallAndAsksFewTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.many(60)
	b.ask(57, "Say how.")
	b.fake.Script.ForgetCalls()
	page := b.list()
	text, _ := json.Marshal(page)
	if len(text) > 4096 || len(text) < 3000 || page.Total != 60 || page.Next == 0 {
		t.Errorf("%d bytes, %d of %d, next %d", len(text), len(page.PRs), page.Total, page.Next)
	}
	if calls := b.fake.Script.Calls(); len(calls) != 2 {
		t.Errorf("calls %v", calls)
	}
	asked := with("state_of_review", "changes_requested")
	if next := b.wantPage(true, nil, asked); next != 50 { // it looks at 50 at a time, and says so
		t.Errorf("next %d", next)
	}
	b.wantPage(false, []int{57}, asked, with("after", 50))
}

func TestAListWithoutReviewsIsAWarningUnlessTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.many(1)
	b.fake.Script.FailBefore(forgetest.MethodReviewStates, fault.New(fault.UpstreamError, "no answer"))
	got := b.list()
	if len(got.PRs) != 1 || got.PRs[0].State != "" || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "no answer") {
		t.Errorf("%+v", got)
	}
	b.fake.Script.FailBefore(forgetest.MethodReviewStates, fault.New(fault.UpstreamError, "no answer"))
	if _, err := b.listing(with("state_of_review", "none")); fault.CodeOf(err) != fault.UpstreamError {
		t.Errorf("got %v", err)
	}
}

func TestPeopleReadAtTheProviderThatTheyName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pr := b.mustOpen(createRequest(nil))
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
	result := b.shown(createRequest(nil))
	s, ctx := prflow.New(b.options).Reader(), context.Background()
	p, err := b.options.History.Proposal(ctx, result.RequestID)
	b.must(err)
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
	p, err := b.options.History.Proposal(t.Context(), b.dryRun(createRequest(files(
		file("checks/old.md", "update", "# Old\n\nnew\n"), file("checks/inodes.md", "create", "# Inodes\n")))))
	b.must(err)
	reader := prflow.New(b.options).Reader()
	if got, err := reader.Compare(t.Context(), p); err != nil || got.Gone != nil {
		t.Errorf("before: %q, %v", got.Gone, err)
	}
	b.world().Merge(b.mustOpen(createRequest(titled("Away", file("checks/old.md", "delete")))).Number)
	if got, err := reader.Compare(t.Context(), p); err != nil || strings.Join(got.Gone, " ") != "checks/old.md" {
		t.Errorf("after: %q, %v", got.Gone, err)
	}
}
