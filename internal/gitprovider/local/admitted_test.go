package local_test

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

func TestAPersonWhoIsNotLetInAnyMoreDecidesNothing(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("# Disk\n\none\nTWO\nthree\n"))
	before := w.Branches()
	asked := 0
	note := local.Note{Who: "Ann", Body: "No.", Admitted: func(context.Context) error {
		asked++
		return fault.New(fault.Unauthenticated, "the login has ended")
	}}
	merge := func(ctx context.Context, ref gitprovider.RepoRef, number int, n local.Note) error {
		_, err := w.review.Merge(ctx, ref, number, local.MergeNote{Note: n})
		return err
	}
	onLine := note
	onLine.Comments = []gitprovider.LineComment{{Path: "checks/disk.md", Line: 4, Body: "Why?"}}
	comment := func(ctx context.Context, ref gitprovider.RepoRef, number int, _ local.Note) error {
		return w.review.Comment(ctx, ref, number, onLine)
	}
	for name, do := range map[string]func(context.Context, gitprovider.RepoRef, int, local.Note) error{
		"merge": merge, "close": w.review.Close, "approve": w.review.Approve, "request-changes": w.review.RequestChanges,
		"comment": w.review.Comment, "comment on a line": comment,
	} {
		asked = 0
		if err := do(t.Context(), w.Ref(), pr.Number, note); fault.CodeOf(err) != fault.Unauthenticated || asked != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, asked)
		}
	}
	detail, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	if detail.State != gitprovider.StateOpen || len(detail.Reviews) != 0 {
		t.Errorf("it is %s, with the reviews %+v", detail.State, detail.Reviews)
	}
	if after := w.Branches(); after["main"] != before["main"] {
		t.Error("the base branch has moved")
	}
}
