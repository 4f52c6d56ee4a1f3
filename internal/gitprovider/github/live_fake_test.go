package github_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

// naps are the waits that somebody asked for and did not have to sit out.
type naps struct {
	mu  sync.Mutex
	all []time.Duration
}

func (n *naps) sleep(_ context.Context, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, d)
}

// liveOnFake is the live harness on a fake GitHub, whose new repositories begin with the branch master, with what it
// has slept through.
func liveOnFake(t *testing.T, owner string) (*live, *fakegithub.Server, *naps) {
	t.Helper()
	s, n := fakegithub.New(t), &naps{}
	s.SetInitialBranch("master")
	api, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	set := liveSettings{api: api, owner: owner, token: s.Token(),
		reviewers: [2]string{s.TokenOf("Ada"), s.TokenOf("grace")}}
	return newLive(t, set, n.sleep), s, n
}

func TestTheLiveHarnessHoldsTheAdapterAgainstAGitHubOverTheNetwork(t *testing.T) {
	h, s, _ := liveOnFake(t, "ops-bot")
	h.rehearse(t)
	t.Run("contract", func(t *testing.T) { providertest.Run(t, h) })
	made, removed := map[string]bool{}, map[string]bool{}
	for _, r := range s.Faults().Requests() {
		name := strings.TrimPrefix(r.Path, "/repos/ops-bot/")
		switch {
		case r.Method == http.MethodPost && r.Path == "/user/repos":
			body := string(r.Body)
			if !strings.Contains(body, `"name":"`+livePrefix) || !strings.Contains(body, `"private":true`) {
				t.Errorf("made the repository %s", body)
			}
			made[fmt.Sprint(len(made))] = true
		case r.Method == http.MethodDelete && !strings.Contains(name, "/"):
			removed[name] = true
		}
	}
	if len(made) < 50 || len(made) != len(removed) {
		t.Errorf("%d repositories were made and %d removed", len(made), len(removed))
	}
}
