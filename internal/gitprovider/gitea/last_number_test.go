package gitea_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// TestLastNumberCountsNoPullRequestThatWasOpenedAfterTheOpenOnesWereRead lets two be opened between the reading of the
// open pull requests and that of the closed ones, of which the second one is closed at once. The first one is in
// neither list, so LastNumber must not be the number of the second one.
func TestLastNumberCountsNoPullRequestThatWasOpenedAfterTheOpenOnesWereRead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ago := time.Hour
	sc.s.Host().SetClock(func() time.Time { return time.Now().Add(-ago) })
	opens := func(branch string) int {
		sc.Push(branch, memhost.File{Path: branch + ".md", Content: "x\n"})
		return sc.OpenPR(branch, "t", gitprovider.LabelOurs)
	}
	before := opens("claude-ops/check/before")
	sc.Close(before)
	ago = 0
	openRead := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") == "closed" {
			<-openRead
		}
		sc.s.Faults().ServeHTTP(w, r)
		if r.URL.Query().Get("state") == "open" {
			once.Do(func() {
				opens("claude-ops/check/first")
				sc.Close(opens("claude-ops/check/second"))
				close(openRead)
			})
		}
	}))
	t.Cleanup(server.Close)
	snap, err := newProvider(t, server.URL, sc.s.Token()).Snapshot(t.Context(), sc.query(nil))
	sc.must(err)
	sc.same("open", numbers(snap.Open), []int{})
	sc.same("closed", len(snap.Closed), 2)
	sc.same("last number", snap.LastNumber, before)
}
