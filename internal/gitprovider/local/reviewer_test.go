package local_test

import (
	"context"
	"fmt"
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
	w, pr := proposed(t, bare())
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
	w, pr := proposed(t, bare())
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
	w, pr := proposed(t, bare())
	w.Push(pr.Branch, providertest.File{Path: "checks/sneaked-in.md", Content: "x\n"})
	seen := local.Note{Who: "Ann", Body: "fine", Head: pr.HeadCommit}
	w.refused(w.review.Approve(t.Context(), w.Ref(), pr.Number, seen), fault.Conflict, "moved")
	_, err := w.review.Merge(t.Context(), w.Ref(), pr.Number, local.MergeNote{Note: seen, Force: true})
	w.refused(err, fault.Conflict, "moved")
}

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

func on(path string, line int, body string) gitprovider.LineComment {
	return gitprovider.LineComment{Path: path, Line: line, Body: body}
}

// commented is a world with an open pull request that adds a file of two lines, changes one of three to two and removes
// one.
func commented(t *testing.T) (w *world, number int, head string) {
	t.Helper()
	w = newWorld(t, kind{format: "sha1"}, providertest.File{Path: "checks/old.md", Content: "a\nb\nc\n"})
	head = w.Push("claude-ops/check/disk", providertest.File{Path: "checks/disk.md", Content: "one\ntwo"},
		providertest.File{Path: "checks/old.md", Content: "a\nb\n"})
	return w, w.OpenPR("claude-ops/check/disk", "Check disks"), head
}

func TestCommentsOnLinesComeBackWithPathAndLine(t *testing.T) {
	w, number, head := commented(t)
	before := on("checks/old.md", 3, "Why was it there?")
	before.Before = true
	n := local.Note{Who: "ann", Head: head,
		Comments: []gitprovider.LineComment{on("checks/disk.md", 2, "Say which disk."), before}}
	w.must(w.review.RequestChanges(t.Context(), w.Ref(), number, n))
	status, err := w.p.Status(t.Context(), w.Ref(), number)
	if err != nil || len(status.Reviews) != 1 || len(status.Reviews[0].Comments) != 2 {
		t.Fatalf("%+v, %v", status.Reviews, err)
	}
	for i, want := range n.Comments {
		want.ID, want.Commit = fmt.Sprintf("1.%d", i+1), head // of the first review
		if got := status.Reviews[0].Comments[i]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	remarks, err := w.p.Remarks(t.Context(), w.Ref(), number)
	if err != nil || len(remarks) != 1 || remarks[0].State != gitprovider.ReviewChangesRequested {
		t.Errorf("%+v, %v", remarks, err)
	}
}

func TestACommentOnALineThatIsNotThereIsRefused(t *testing.T) {
	w, number, head := commented(t)
	before := func(c gitprovider.LineComment) gitprovider.LineComment { c.Before = true; return c }
	for name, c := range map[string]struct {
		comment gitprovider.LineComment
		code    fault.Code
	}{
		"another file":                {on("checks/other.md", 1, "x"), fault.InvalidArgument},
		"a file above":                {on("../checks/disk.md", 1, "x"), fault.InvalidArgument},
		"no file":                     {on("", 1, "x"), fault.InvalidArgument},
		"line zero":                   {on("checks/disk.md", 0, "x"), fault.InvalidArgument},
		"after the last line":         {on("checks/disk.md", 3, "x"), fault.InvalidArgument},
		"the removed line, after":     {on("checks/old.md", 3, "x"), fault.InvalidArgument},
		"before the file was there":   {before(on("checks/disk.md", 1, "x")), fault.InvalidArgument},
		"no text":                     {on("checks/disk.md", 1, " \n"), fault.InvalidArgument},
		"the last line":               {on("checks/disk.md", 2, "x"), ""},
		"the removed line, as it was": {before(on("checks/old.md", 3, "x")), ""},
	} {
		for verb, do := range map[string]func(local.Note) error{
			"comment": func(n local.Note) error { return w.review.Comment(t.Context(), w.Ref(), number, n) },
			"approve": func(n local.Note) error { return w.review.Approve(t.Context(), w.Ref(), number, n) },
		} {
			earlier := len(reviewsOf(t, w, number))
			err := do(local.Note{Who: "ann", Head: head, Comments: []gitprovider.LineComment{c.comment}})
			if fault.CodeOf(err) != c.code {
				t.Errorf("%s, %s: %v, want %q", name, verb, err, c.code)
			}
			if added := len(reviewsOf(t, w, number)) - earlier; added != 0 && c.code != "" {
				t.Errorf("%s, %s: refused, and %d reviews were recorded", name, verb, added)
			}
		}
	}
	err := w.review.Comment(t.Context(), w.Ref(), number,
		local.Note{Who: "ann", Head: "0123", Comments: []gitprovider.LineComment{on("checks/disk.md", 1, "x")}})
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("on lines of another head: %v", err)
	}
}

func reviewsOf(t *testing.T, w *world, number int) []gitprovider.Review {
	t.Helper()
	status, err := w.p.Status(t.Context(), w.Ref(), number)
	if err != nil {
		t.Fatal(err)
	}
	return status.Reviews
}

func TestTextsOfTheHeadAreRead(t *testing.T) {
	w, _, head := commented(t)
	got, err := w.review.Texts(t.Context(), w.Ref(), head,
		[]string{"checks/disk.md", "checks/none.md", "checks/old.md", "a b"}, 7)
	if err != nil || len(got) != 2 || got["checks/disk.md"] != "one\ntwo" || got["checks/old.md"] != "a\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err = w.review.Texts(t.Context(), w.Ref(), head, []string{"checks/disk.md"}, 6); err != nil || len(got) != 0 {
		t.Errorf("a file that is too large: %q, %v", got, err)
	}
}
