package gitea_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// proposed is a scene with the pull request #1, and with ann and bob, who may write.
func proposed(t *testing.T) *scene {
	t.Helper()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) { s.Collaborators = map[string]string{"ann": "write", "bob": "write"} })
	_, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new\n"))
	must(t, err)
	_, err = sc.p.OpenPullRequest(t.Context(), gitprovider.PullRequestSpec{
		Repo: sc.Ref(), Base: memhost.MainBranch, Head: ourBranch, Title: "Watch", Labels: []string{gitprovider.LabelOurs},
	})
	must(t, err)
	sc.requests()
	return sc
}

func on(path string, line int, body string) gitprovider.LineComment {
	return gitprovider.LineComment{Path: path, Line: line, Body: body}
}

func (sc *scene) remarks() []gitprovider.Remark {
	sc.t.Helper()
	remarks, err := sc.p.Remarks(sc.t.Context(), sc.Ref(), 1)
	must(sc.t, err)
	return remarks
}

// A review may be begun long before it is submitted, and the server tells the former time alone. An answer to a comment
// on a line belongs to the review that the comment came with, however much later it was made.
func TestAnAnswerToACommentOnALineIsARemarkOfItsOwn(t *testing.T) {
	sc := proposed(t)
	sc.ReviewLines(1, "ann", gitprovider.ReviewChangesRequested, "", on("checks/disk.md", 1, "Which disk?"),
		on("checks/disk.md", 1, "Really?"))
	before := sc.remarks()
	if len(before) != 1 || len(before[0].Lines) != 2 || !before[0].MayWrite || !before[0].Lines[0].At.IsZero() {
		t.Fatalf("the remarks are %+v", before)
	}
	for i, author := range []string{"bob", "ann", "eve"} {
		sc.Reply(1, 0, 0, author, "The first one.")
		remarks := sc.remarks()
		if len(remarks) != i+2 || remarks[0].ID != before[0].ID || len(remarks[0].Lines) != 2 {
			t.Fatalf("after the answer the remarks are %+v", remarks)
		}
		last := remarks[len(remarks)-1]
		if last.Author != author || last.Body != "The first one." || last.State != "" || len(last.Lines) != 1 ||
			last.Lines[0].Line != 1 ||
			!last.At.After(before[0].At) || last.MayWrite != (author != "eve") {
			t.Errorf("the answer is %+v", last)
		}
	}
}

func TestAResolvedConversationIsMarked(t *testing.T) {
	sc := proposed(t)
	settled := on("checks/disk.md", 1, "Which disk?")
	settled.Resolved = true
	sc.ReviewLines(1, "ann", gitprovider.ReviewCommented, "", settled, on("checks/memory.md", 1, "Why?"))
	sc.Reply(1, 0, 0, "bob", "The first one.")
	status, err := sc.p.Status(t.Context(), sc.Ref(), 1)
	must(t, err)
	for _, c := range status.Reviews[0].Comments {
		if c.Resolved != (c.Path == "checks/disk.md") {
			t.Errorf("%+v", c)
		}
	}
}

// What a reviewer has not submitted is nobody else's to read, though an administrator's token may.
func TestCommentsOnLinesOfAReviewThatIsNotSubmittedAreNotRead(t *testing.T) {
	sc := proposed(t)
	sc.ReviewLines(1, "ann", gitprovider.ReviewPending, "", on("checks/disk.md", 1, "Draft"))
	status, err := sc.p.Status(t.Context(), sc.Ref(), 1)
	must(t, err)
	if len(sc.remarks()) != 0 || len(status.Reviews) != 1 || len(status.Reviews[0].Comments) > 0 {
		t.Errorf("%+v, %+v", sc.remarks(), status.Reviews)
	}
}

// However many reviews there are, the comments of the newest MaxCommentedReviews are read, and reviews without any cost
// nothing.
func TestCommentsOnLinesCostABoundedNumberOfRequests(t *testing.T) {
	sc := proposed(t)
	count := func() (n int) {
		for _, r := range sc.asked() {
			if strings.HasSuffix(r, "/comments") && strings.Contains(r, "/reviews/") {
				n++
			}
		}
		return n
	}
	sc.Review(1, "ann", gitprovider.ReviewCommented, "Thanks.")
	sc.remarks()
	if n := count(); n != 0 {
		t.Errorf("%d requests for the lines of a review without any", n)
	}
	const reviews = gitprovider.MaxCommentedReviews + 5
	for range reviews {
		sc.ReviewLines(1, "ann", gitprovider.ReviewCommented, "See the line.", on("checks/disk.md", 1, "Here."))
	}
	for what, read := range map[string]func() []gitprovider.LineComment{
		"remarks": func() (out []gitprovider.LineComment) {
			for _, r := range sc.remarks() {
				out = append(out, r.Lines...)
			}
			return out
		},
		"status": func() (out []gitprovider.LineComment) {
			status, err := sc.p.Status(t.Context(), sc.Ref(), 1)
			must(t, err)
			for _, r := range status.Reviews {
				out = append(out, r.Comments...)
			}
			if last := status.Reviews[len(status.Reviews)-1]; len(last.Comments) != 1 ||
				last.SubmittedAt.Before(time.Unix(1, 0)) {
				t.Errorf("the newest review lacks its comment: %+v", last)
			}
			return out
		},
	} {
		if got := read(); len(got) != gitprovider.MaxCommentedReviews {
			t.Errorf("%s: %d comments", what, len(got))
		}
		if n := count(); n != gitprovider.MaxCommentedReviews {
			t.Errorf("%s: %d requests", what, n)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
