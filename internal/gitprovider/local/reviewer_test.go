package local_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func ann() local.Note { return local.Note{Who: "Ann"} }

func TestShowHasReviewsAndDiff(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("# Disk\n\none\nTWO\nthree\n"),
		providertest.Create("checks/new.md", "new\n"))
	w.Push("main", providertest.File{Path: "README.md", Content: "moved on\n"})
	w.must(w.review.Comment(t.Context(), w.Ref(), pr.Number, local.Note{Who: "Ann", Body: "Why two?"}))
	detail, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	for _, part := range []string{"\n-two\n+TWO\n", "new file mode 100644", "+++ b/checks/new.md"} {
		if !strings.Contains(detail.Diff, part) {
			t.Errorf("the diff lacks %q:\n%s", part, detail.Diff)
		}
	}
	if strings.Contains(detail.Diff, "moved on") || strings.Contains(detail.Diff, "README") {
		t.Errorf("the diff shows what changed on the base:\n%s", detail.Diff)
	}
	if len(detail.Reviews) != 1 || detail.Mergeable == nil || !*detail.Mergeable || detail.URL != w.state(pr.Number).URL {
		t.Errorf("detail %+v", detail.Status)
	}
	_, err = w.review.Merge(t.Context(), w.Ref(), pr.Number, local.MergeNote{Note: ann()})
	w.must(err)
	after, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	if after.Diff != detail.Diff {
		t.Errorf("after the merge the diff is:\n%s", after.Diff)
	}
}

func TestShowLeavesOutAnEnormousDiff(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/large",
		providertest.Create("checks/large.md", strings.Repeat("a line of text\n", 1_100_000)))
	detail, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	if detail.Diff != "" || !detail.DiffTooLarge {
		t.Errorf("%d bytes, too large: %v", len(detail.Diff), detail.DiffTooLarge)
	}
}

func TestListHasTheStateThatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	open := w.propose("claude-ops/check/open", disk("open\n"))
	closed := w.propose("claude-ops/check/closed", disk("closed\n"))
	w.must(w.review.Close(t.Context(), w.Ref(), closed.Number, local.Note{Who: "Ann", Body: "No."}))
	for state, want := range map[gitprovider.State]int{gitprovider.StateOpen: open.Number,
		gitprovider.StateClosed: closed.Number} {
		prs, err := w.review.List(t.Context(), w.Ref(), state)
		w.must(err)
		if len(prs) != 1 || prs[0].Number != want || prs[0].URL == "" {
			t.Errorf("%s: %+v", state, prs)
		}
	}
	all, err := w.review.List(t.Context(), w.Ref(), "")
	w.must(err)
	if len(all) != 2 {
		t.Errorf("all: %+v", all)
	}
	if reviews := w.state(closed.Number).Reviews; len(reviews) != 1 || reviews[0].Body != "No." {
		t.Errorf("the reason for closing became %+v", reviews)
	}
	if w.Branches()["claude-ops/check/closed"] == "" {
		t.Error("closing removed the branch")
	}
}

func TestNotesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	ctx, long := t.Context(), strings.Repeat("x", 64<<10+1)
	for name, err := range map[string]error{
		"nobody":               w.review.Approve(ctx, w.Ref(), pr.Number, local.Note{Who: " "}),
		"a long name":          w.review.Approve(ctx, w.Ref(), pr.Number, local.Note{Who: strings.Repeat("x", 101)}),
		"a name with newlines": w.review.Close(ctx, w.Ref(), pr.Number, local.Note{Who: "a\nb"}),
		"a long text":          w.review.Close(ctx, w.Ref(), pr.Number, local.Note{Who: "Ann", Body: long}),
		"an empty comment":     w.review.Comment(ctx, w.Ref(), pr.Number, local.Note{Who: "Ann", Body: " \n"}),
		"an empty request":     w.review.RequestChanges(ctx, w.Ref(), pr.Number, ann()),
	} {
		if fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.review.Merge(ctx, w.Ref(), pr.Number, local.MergeNote{})
	w.refused(err, fault.InvalidArgument)
	if got := w.state(pr.Number); got.State != gitprovider.StateOpen || len(got.Reviews) != 0 {
		t.Errorf("status %+v", got)
	}
}

func TestNothingIsDoneToAPullRequestThatIsNotOpen(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	ctx := t.Context()
	w.must(w.review.Close(ctx, w.Ref(), pr.Number, ann()))
	_, err := w.review.Merge(ctx, w.Ref(), pr.Number, local.MergeNote{Note: ann(), Force: true})
	w.refused(err, fault.Conflict, "closed")
	w.refused(w.review.Close(ctx, w.Ref(), pr.Number, ann()), fault.Conflict, "closed")
	w.refused(w.review.Approve(ctx, w.Ref(), pr.Number, ann()), fault.Conflict, "closed")
	w.must(w.review.Comment(ctx, w.Ref(), pr.Number, local.Note{Who: "Ann", Body: "a late remark"}))
	w.refused(w.review.Approve(ctx, w.Ref(), 99, ann()), fault.NotFound)
	_, err = w.review.Show(ctx, w.Ref(), 99)
	w.refused(err, fault.NotFound)
}

func TestAReviewOfAnotherHeadIsRefused(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.Push(pr.Branch, providertest.File{Path: "checks/sneaked-in.md", Content: "x\n"})
	seen := local.Note{Who: "Ann", Body: "fine", Head: pr.HeadCommit}
	w.refused(w.review.Approve(t.Context(), w.Ref(), pr.Number, seen), fault.Conflict, "moved")
	_, err := w.review.Merge(t.Context(), w.Ref(), pr.Number, local.MergeNote{Note: seen, Force: true})
	w.refused(err, fault.Conflict, "moved")
}
