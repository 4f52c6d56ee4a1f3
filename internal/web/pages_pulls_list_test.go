package web_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestEachOpenPullRequestHasItsChecksAndReviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/", 200).has("Nothing waits for you")
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	repo := gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	w.page("/changes/forges", 200).has("None none now")
	hosted := w.fake.World(t, repo)
	w.fake.People.SetChecks(repo, 1, gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"ci"}})
	for _, review := range []struct {
		author string
		state  gitprovider.ReviewState
	}{{"ann", gitprovider.ReviewChangesRequested}, {"bob", gitprovider.ReviewApproved},
		{"cyd", gitprovider.ReviewApproved},
		{"bob", gitprovider.ReviewChangesRequested}, {"ann", gitprovider.ReviewApproved},
		{"ann", gitprovider.ReviewCommented}} {
		w.advance(time.Minute)
		hosted.Review(1, review.author, review.state, "words")
	}
	w.page("/changes/forges", 200).has("Checks failed 1 against 2 approved 6 min")
	w.advance(3 * time.Minute)
	w.fake.Script.ForgetCalls()
	w.page("/", 200).has("Check inodes, too Nobody has reviewed it · joe/infra #1 9 min Review")
	for _, call := range w.fake.Script.Calls() {
		if call != "Ping" { // whether it answers at all is asked beside the page
			t.Errorf("the overview asked the provider: %v", call)
		}
	}
	w.fake.Script.FailBefore("Status", fault.New(fault.UpstreamError, "the host is down"))
	w.page("/changes/forges", 200).has("#1 Check inodes, too", "The forge failed, ask about #1")
}

func TestChecksAreReadForTheNewestPullRequestsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fake.AddRepo("joe", "other", map[string]string{"README.md": "x"})
	w.flow.Authority.Policy.Targets.EnvRepositories = append(w.flow.Authority.Policy.Targets.EnvRepositories,
		pattern(t, "fake:joe/infra"), pattern(t, "fake:joe/other"))
	for _, name := range []string{"infra", "other"} {
		hosted := w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: name})
		for i := range 20 {
			w.advance(time.Minute)
			branch := fmt.Sprintf("claude-ops/fix/x%d", i)
			hosted.Push(branch)
			hosted.OpenPR(branch, "One of many", "claude-ops")
		}
	}
	w.fake.Script.ForgetCalls()
	d := w.page("/changes/forges", 200)
	if n := w.fake.Script.Count("Status"); n != 30 {
		t.Errorf("%d statuses were read", n)
	}
	unasked := 0
	for _, td := range d.find("td") {
		if attr(td, "colspan") == "2" {
			unasked++
		}
	}
	if unasked != 10 {
		t.Errorf("%d rows say that nobody asked", unasked)
	}
	d.has("not asked, ask about #1")
}

func TestPagesThatRefreshThemselvesShareAReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	refresh := header("HX-Request", "true")
	reads := func(edits ...edit) int {
		w.fake.Script.ForgetCalls()
		w.page("/changes/forges", 200, edits...)
		return w.fake.Script.Count("ListOpen")
	}
	if n := reads(); n != 1 {
		t.Fatalf("a page costs %d lists", n)
	}
	if shared, own := reads(refresh), reads(); shared != 0 || own != 1 {
		t.Errorf("a refresh costs %d lists, a person's look %d", shared, own)
	}
	w.refuse(1)
	if n := reads(refresh); n != 1 {
		t.Errorf("after a change a refresh costs %d lists", n)
	}
	w.advance(16 * time.Second)
	if n := reads(refresh); n != 1 {
		t.Errorf("when the reading is old a refresh costs %d lists", n)
	}

	entered, release := w.fake.Script.Block("ListOpen")
	w.fake.Script.ForgetCalls()
	var group sync.WaitGroup
	group.Go(func() { w.get("/changes/forges", browser) })
	<-entered
	for range 5 {
		group.Go(func() { w.get("/changes/forges", browser, refresh) })
	}
	release()
	group.Wait()
	if n := w.fake.Script.Count("ListOpen"); n != 1 {
		t.Errorf("pages at the same time cost %d lists", n)
	}
}
