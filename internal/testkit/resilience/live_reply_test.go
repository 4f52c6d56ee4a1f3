//go:build live && unix

package resilience

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A process that answers a review is killed at each of its requests, with a commit and without one.
func TestLiveAnswersAreKilledAtWhicheverRequest(t *testing.T) {
	for _, commit := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a commit: %t", commit), func(t *testing.T) {
			t.Parallel()
			killAtEachRequestOfAnAnswer(t, liveKind(), commit)
		})
	}
}

// What a person has the server do to our branch leaves our commits ours.
func TestLiveUpdatedBranchIsRevisable(t *testing.T) {
	for _, style := range []string{"merge", "rebase"} {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			r, g := newLiveRevised(t)
			g.must(http.MethodPost, "repos/"+r.repo.String()+"/contents/elsewhere.md", map[string]any{
				"branch": "main", "message": "meanwhile", "content": []byte("more\n"),
			}, nil)
			before := g.Seen(r.repo, 1, r.branch).tip
			update := pullPath(r.repo, 1, "update?style="+style)
			for end := time.Now().Add(40 * time.Second); g.Seen(r.repo, 1,
				r.branch).tip == before; <-time.After(200 * time.Millisecond) {
				if status, answer := g.call("ann", http.MethodPost, update, nil); time.Now().After(end) {
					t.Fatalf("the branch is not updated: %d %.300s", status, answer)
				}
			}
			r.head = g.Seen(r.repo, 1, r.branch).tip
			if got := r.status(1).Revise; got != "yes: revises 1" {
				t.Errorf("status says %q", got)
			}
			if result, err := r.revise(t.Context()); err != nil || !result.Revised {
				t.Fatalf("%+v, %v", result, err)
			}
			r.assertOnce("at the end", true)
		})
	}
}

// A red check of the head opens a revision, which answers it.
func TestLiveRedCheckOpensARevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("before, status says %q", got)
	}
	set := func(state string) {
		g.must(http.MethodPost, "repos/"+w.repo.String()+"/statuses/"+first.Commit, map[string]any{
			"state": state, "context": "ci/lint", "description": "line 3 is too long", "target_url": "https://ci.example/1",
		}, nil)
	}
	set("pending")
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("while it runs, status says %q", got)
	}
	set("failure")
	status := w.status(1)
	if !strings.HasPrefix(status.Revise, "yes: revises 1") || !strings.Contains(fmt.Sprintf("%+v", status), "ci/lint") {
		t.Errorf("with a red check, status is %+v", status)
	}
	r := &revised{world: w, branch: first.Branch, head: first.Commit}
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("after the revision, status says %q", got)
	}
}
