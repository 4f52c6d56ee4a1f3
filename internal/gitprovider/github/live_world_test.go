package github_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// liveWorld is one repository, and people who use REST.
type liveWorld struct {
	t        testing.TB
	live     *live
	name     string
	provider gitprovider.Provider
	blobs    map[string]string // contents by object id
	invited  map[string]bool   // reviewers, by what the suite calls them
}

var _ providertest.Renamer = (*liveWorld)(nil)

func (w *liveWorld) Provider() gitprovider.Provider { return w.provider }

func (w *liveWorld) Ref() gitprovider.RepoRef { return w.live.ref(w.name) }

// at is the repository's path, or with a path one below it.
func (w *liveWorld) at(path string) string {
	self := "repos/" + w.Ref().String()
	if path == "" {
		return self
	}
	return self + "/" + path
}

// call is a request about the repository by its owner.
func (w *liveWorld) call(method, path string, body, into any) (status int, answer string) {
	w.t.Helper()
	return w.live.call(w.t, w.live.me, method, w.at(path), body, into)
}

// must is call for a request that has to succeed.
func (w *liveWorld) must(method, path string, body, into any) {
	w.t.Helper()
	w.live.must(w.t, w.live.me, method, w.at(path), body, into)
}

// insist repeats a request of somebody's while GitHub gives the answer that it also gives as long as it has not caught
// up.
func (w *liveWorld) insist(as livePerson, while int, method, path string, body any) {
	w.t.Helper()
	status, answer := 0, ""
	w.live.eventually(w.t, func() bool {
		status, answer = w.live.call(w.t, as, method, w.at(path), body, nil)
		return status != while
	})
	if status >= 300 {
		w.t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
	}
}

// Merge repeats what is refused with 405, which GitHub says while it is still finding out whether it can merge.
func (w *liveWorld) Merge(number int) {
	w.t.Helper()
	w.insist(w.live.me, http.StatusMethodNotAllowed, http.MethodPut, fmt.Sprintf("pulls/%d/merge", number),
		map[string]any{"merge_method": "merge"})
	w.until(number, "merged", func(pr livePull) bool { return pr.Merged })
}

func (w *liveWorld) Close(number int) {
	w.t.Helper()
	w.must(http.MethodPatch, fmt.Sprintf("pulls/%d", number), map[string]any{"state": "closed"}, nil)
	w.until(number, "closed", livePull.closed)
}

func (w *liveWorld) SetBody(number int, body string) {
	w.t.Helper()
	w.must(http.MethodPatch, fmt.Sprintf("pulls/%d", number), map[string]any{"body": body}, nil)
}

// Login implements providertest.Renamer.
func (w *liveWorld) Login(author string) string { return w.reviewer(author).login }

func (w *liveWorld) reviewer(author string) livePerson {
	w.t.Helper()
	p, known := w.live.reviewers[author]
	if !known {
		w.t.Fatalf("there is no account for the reviewer %s", author)
	}
	return p
}

// Review repeats what is not found: a new collaborator may have to wait until they see the repository.
func (w *liveWorld) Review(number int, author string, state gitprovider.ReviewState, body string) {
	w.t.Helper()
	w.invite(author)
	review := map[string]any{"body": body}
	event, known := map[gitprovider.ReviewState]string{
		gitprovider.ReviewApproved: "APPROVE", gitprovider.ReviewChangesRequested: "REQUEST_CHANGES",
		gitprovider.ReviewCommented: "COMMENT",
	}[state]
	switch {
	case known:
		review["event"] = event
	case state != gitprovider.ReviewPending:
		w.t.Fatalf("nobody can add a review that is %s", state)
	}
	w.insist(w.reviewer(author), http.StatusNotFound, http.MethodPost, fmt.Sprintf("pulls/%d/reviews", number), review)
}

// invite makes somebody a collaborator, once.
func (w *liveWorld) invite(author string) {
	w.t.Helper()
	if w.invited[author] {
		return
	}
	w.invited[author] = true
	p := w.reviewer(author)
	status, answer := w.call(http.MethodPut, "collaborators/"+p.login, map[string]any{"permission": "push"}, nil)
	if status == http.StatusNoContent { // a member of the organisation needs no invitation
		return
	}
	var invitation struct{ ID int64 }
	if status != http.StatusCreated || !decoded(answer, &invitation) {
		w.t.Fatalf("inviting %s: %d %.300s", p.login, status, answer)
	}
	w.live.must(w.t, p, http.MethodPatch, fmt.Sprintf("user/repository_invitations/%d", invitation.ID), nil, nil)
}

// OpenPR makes the labels that the repository lacks, as GitHub does for whoever may write.
func (w *liveWorld) OpenPR(head, title string, labels ...string) int {
	w.t.Helper()
	var made struct{ Number int }
	w.must(http.MethodPost, "pulls", map[string]any{"head": head, "base": providertest.MainBranch, "title": title}, &made)
	if len(labels) > 0 {
		w.must(http.MethodPost, fmt.Sprintf("issues/%d/labels", made.Number), map[string]any{"labels": labels}, nil)
	}
	return made.Number
}
