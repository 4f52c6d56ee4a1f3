//go:build linux

package crash

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// The caps of these rounds: the one on open pull requests holds in each but the last ones, where the one on those that
// were made in the last hour does.
const (
	capRounds   = 10
	maxOpen     = 3
	maxAnHour   = 26
	capsOfRound = "version: 1\ncaps: {open_prs: %d, creations_per_hour: %d}\ncooldown_hours: 0\n"
)

func TestSixteenServersNeverPassACap(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.at("policy.yaml"), fmt.Appendf(nil, capsOfRound, maxOpen, maxAnHour), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make([]*server, servers)
	for i := range all {
		all[i] = w.serve(t)
	}
	for round := range capRounds {
		want := max(0, min(maxOpen, maxAnHour-round*maxOpen))
		given := make([]answer, servers)
		var wg sync.WaitGroup
		for i, s := range all {
			wg.Go(func() {
				name := fmt.Sprintf("%d-%d", round, i)
				a, err := s.create(newCheck("Watch "+name, "checks/"+name+".md", "# "+name+"\n"))
				if err != nil {
					t.Errorf("server %d: %v", i, err)
				}
				given[i] = a
			})
		}
		wg.Wait()
		for i, a := range given {
			if !a.opened() && (a.Error.Code != "limit_reached" || a.Error.RetryAfter <= 0) {
				t.Errorf("server %d in round %d: %+v", i, round, a)
			}
		}
		open := w.pulls(t, gitprovider.StateOpen)
		if len(open) != want {
			t.Fatalf("%d pull requests are open in round %d, want %d", len(open), round, want)
		}
		for _, pr := range open {
			w.end(t, pr, gitprovider.StateClosed)
		}
	}
	for _, s := range all {
		s.end()
	}
	w.assertSettled(t)
	w.assertWhole(t)
}
