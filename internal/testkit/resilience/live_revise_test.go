//go:build live && unix

package resilience

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// newLiveRevised is newRevised at the real server.
func newLiveRevised(t *testing.T) (*revised, *liveGitea) {
	t.Helper()
	r := newRevised(t, liveKind())
	return r, r.forge.(*liveGitea)
}

// meanwhile has somebody act just before the next request that matches reaches the server.
func (w *world) meanwhile(match func(*http.Request) bool, act func()) {
	var once sync.Once
	w.forge.Faults().Plan(func(r *http.Request) bool {
		if match(r) {
			once.Do(act)
		}
		return false
	}, httpfault.Fault{})
}

func comments(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/comments")
}

func setsText(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/pulls/")
}

// again asks for one more revision, of what the first one has made.
func (r *revised) again(ctx context.Context) (prflow.CreateResult, error) {
	r.t.Helper()
	return r.createOf(ctx, r.service(), r.arguments(map[string]any{
		"title": "Check inodes daily", "body": "As bob asked.", "revises": 1,
		"files": []any{fileOf("update", "checks/inodes.md", "# Inodes\n\ndf -i, daily\n")},
	}))
}

func TestLiveRevisionsAreKilledAtWhicheverRequest(t *testing.T) {
	killAtEachRequestOfARevision(t, liveKind())
}

// The tip of the branch decides, since the server's lists show the former head for a while after a push.
func TestLiveCommitOfAKilledRevisionArrivesLate(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("identical call: %t", again), func(t *testing.T) {
			t.Parallel()
			r, _ := newLiveRevised(t)
			r.forge.Faults().Plan(makesBranch, httpfault.Fault{Kind: httpfault.Late})
			if result, err := r.revise(t.Context()); err == nil {
				t.Fatalf("the first call: %+v", result)
			}
			r.forge.Faults().ActLate() // and at once, before the lists show it:
			if again {
				if result, err := r.revise(t.Context()); err != nil || !result.Revised {
					t.Errorf("the identical call: %+v, %v", result, err)
				}
				r.assertOnce("after the identical call", true)
			}
			r.settleLeft(t.Context())
			r.assertOnce("at the end", true)
			r.assertRecords()
		})
	}
	t.Run("after the identical call", func(t *testing.T) {
		t.Parallel()
		r, _ := newLiveRevised(t)
		r.forge.Faults().Plan(makesBranch, httpfault.Fault{Kind: httpfault.Late})
		if result, err := r.revise(t.Context()); err == nil {
			t.Fatalf("the first call: %+v", result)
		}
		if result, err := r.revise(t.Context()); err != nil || !result.Revised {
			t.Fatalf("the identical call: %+v, %v", result, err)
		}
		r.assertOnce("after the identical call", true)
		r.forge.Faults().ActLate()
		r.assertOnce("after the late commit", true)
		r.assertRecords()
	})
}

func TestLiveRefusedTextIsTriedAgain(t *testing.T) {
	t.Parallel()
	r, _ := newLiveRevised(t)
	for call, refused := range []bool{true, true, false} {
		if refused {
			r.forge.Faults().Plan(setsText, httpfault.Fault{Kind: httpfault.Status, Status: http.StatusForbidden,
				Body: `{"message":"no"}`})
		}
		result, err := r.revise(t.Context())
		if err != nil || warned(result, "title and body could not be set") != refused {
			t.Errorf("call %d: %+v, %v", call+1, result, err)
		}
		r.assertOnce(fmt.Sprintf("after call %d", call+1), !refused)
	}
}

// What people do between our look and our commit is told, and nothing is commented.
func TestLivePullRequestEndsWhileARevisionIsOnItsWay(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(g *liveGitea, r *revised)
		says string
	}{
		"merged": {func(g *liveGitea, r *revised) { g.merge(r.repo, 1) },
			"was merged while the revision was on its way, and without it"},
		"closed": {func(g *liveGitea, r *revised) { g.close(r.repo, 1) },
			"was closed while the revision was on its way, and without it"},
		"merged, branch removed too": {func(g *liveGitea, r *revised) {
			g.merge(r.repo, 1)
			g.must(http.MethodDelete, "repos/"+r.repo.String()+"/branches/"+r.branch, nil, nil)
		}, "was merged since it was read a moment ago; nothing was added to it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g := newLiveRevised(t)
			r.meanwhile(makesBranch, func() { c.end(g, r) })
			_, err := r.revise(t.Context())
			if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if said := g.comments(r.repo, 1); len(said) > 0 {
				t.Errorf("commented: %q", said)
			}
			r.assertRecords()
		})
	}
}

// What was said after our read is unanswered, in the very second of our answer too.
func TestLiveWordsSaidWhileARevisionRunsAreUnanswered(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*http.Request) bool
		say    func(g *liveGitea, r *revised)
	}{
		"a comment, before the commit": {makesBranch,
			func(g *liveGitea, r *revised) { g.comment("bob", r.repo, 1, "And how often?") }},
		"a comment, in the second of the answer": {comments,
			func(g *liveGitea, r *revised) { g.comment("bob", r.repo, 1, "And how often?") }},
		"a review, before the commit": {makesBranch,
			func(g *liveGitea, r *revised) { g.review("bob", r.repo, 1, "REQUEST_CHANGES", "And how often?") }},
		"a comment on a line, in the answer's second": {comments,
			func(g *liveGitea, r *revised) { g.review("bob", r.repo, 1, "COMMENT", "", onInodes("And how often?")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g := newLiveRevised(t)
			r.meanwhile(c.before, func() { c.say(g, r) })
			if _, err := r.revise(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := r.status(1).Revise; got != "yes: revises 1" {
				t.Errorf("status says %q", got)
			}
			if result, err := r.again(t.Context()); err != nil || !result.Revised {
				t.Errorf("the next revision: %+v, %v", result, err)
			}
			if got := r.status(1).Revise; !strings.HasPrefix(got, "no: #1 waits for its review") {
				t.Errorf("after the next revision status says %q", got)
			}
		})
	}
}

func onInodes(body string) gitprovider.LineComment {
	return gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: body}
}

func TestLiveCommentsOnLinesReachStatusAndRefusal(t *testing.T) {
	t.Parallel()
	r, g := newLiveRevised(t)
	g.review("ann", r.repo, 1, "COMMENT", "", onInodes("Of which disk?"), onInodes("How often?"))
	var told []string
	for _, review := range r.status(1).Reviews {
		for _, c := range review.Comments {
			told = append(told, fmt.Sprint(review.Author, " ", c.Path, " ", c.Line, " ", c.Body))
		}
	}
	slices.Sort(told)
	if want := []string{"ann checks/inodes.md 1 How often?", "ann checks/inodes.md 1 Of which disk?"}; !slices.Equal(told,
		want) {
		t.Errorf("status tells %q", told)
	}
	_, err := r.service().Create(t.Context(), agent(), r.titled("Other", "# Other\n"))
	existing := fault.From(err).Existing
	if fault.CodeOf(err) != fault.DuplicatePR || existing == nil || existing.LastReview == nil {
		t.Fatalf("%v, %+v", err, existing)
	}
	quoted := slices.SortedFunc(slices.Values(existing.LastReview.Comments),
		func(a, b fault.LineQuote) int { return cmp.Compare(a.Text, b.Text) })
	if len(quoted) != 2 || quoted[0].Text != "How often?" || quoted[0].Author != "ann" ||
		quoted[0].Path != "checks/inodes.md" || quoted[0].Line != 1 {
		t.Errorf("the refusal quotes %+v", quoted)
	}
}

// Marks are bound to the repository's id.
func TestLiveRepositoryIsRenamedOrTransferred(t *testing.T) {
	for name, move := range map[string]func(g *liveGitea, r gitprovider.RepoRef) gitprovider.RepoRef{
		"renamed": func(g *liveGitea, r gitprovider.RepoRef) gitprovider.RepoRef {
			return g.Rename(r, r.Owner, r.Name+"-renamed")
		},
		"transferred": func(g *liveGitea, r gitprovider.RepoRef) gitprovider.RepoRef {
			return g.Rename(r, "ad-org-"+strings.ToLower(rand.Text())[:8], r.Name)
		},
	} {
		for _, former := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked by its former name: %t", name, former), func(t *testing.T) {
				t.Parallel()
				r, g := newLiveRevised(t)
				was, now := r.repo, move(g, r.repo)
				if r.repo = now; former {
					r.repo = was
				}
				if got := r.status(1).Revise; got != "yes: revises 1" {
					t.Errorf("status says %q", got)
				}
				result, err := r.revise(t.Context())
				if err != nil || !result.Revised {
					t.Fatalf("%+v, %v", result, err)
				}
				r.repo = now
				r.assertOnce("at the end", true)
			})
		}
	}
}

// With an empty state folder, and so with another key, the advice names the variable that brings the marks back.
func TestLiveEmptyStateFolder(t *testing.T) {
	t.Parallel()
	r, _ := newLiveRevised(t)
	key := r.key
	r.loseState()
	if got := r.status(1).Revise; !strings.HasPrefix(got, "no: ") || !strings.Contains(got, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("status says %q", got)
	}
	_, err := r.revise(t.Context())
	if e := fault.From(err); e.Code != fault.Conflict || len(e.Violations) == 0 ||
		!strings.Contains(e.Violations[0].Message, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("%+v", e)
	}
	r.assertOnce("after the refusal", false)
	r.key = key
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Errorf("with the key: %+v, %v", result, err)
	}
	r.assertOnce("at the end", true)
}

func TestLiveArchivedRepositoryIsNotRevisable(t *testing.T) {
	t.Parallel()
	r, g := newLiveRevised(t)
	g.change(r.repo, map[string]any{"archived": true})
	if got := r.status(1).Revise; !strings.HasPrefix(got, "no: #1 is in a repository that is archived") {
		t.Errorf("status says %q", got)
	}
	if _, err := r.revise(t.Context()); fault.CodeOf(err) == "" || fault.CodeOf(err).Ambiguous() {
		t.Errorf("%v", err)
	}
	r.assertOnce("at the end", false)
}

// list_prs gives up after the 30 seconds of a read, however long the server takes.
func TestLiveListEndsAfterThirtySeconds(t *testing.T) {
	t.Parallel()
	k := liveKind()
	k.waits = true
	w := newWorld(t, k)
	w.forge.Faults().PlanFrom(1, httpfault.Fault{Kind: httpfault.Stall})
	begun := time.Now()
	_, err := w.list(0)
	if took := time.Since(begun); fault.CodeOf(err) != fault.Timeout || took > 33*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}
