package local_test

import (
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

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
	if err := w.review.RequestChanges(t.Context(), w.Ref(), number, n); err != nil {
		t.Fatal(err)
	}
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
