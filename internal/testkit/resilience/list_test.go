package resilience

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
)

// withMemory makes the adapter of Gitea with the records' memory of files, as the program does.
func withMemory(w *world) {
	w.kind.adapter = func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider {
		return gitea.New(gitea.Options{Base: base(t, f), Client: client, Now: now, Sleep: noSleep,
			Paths: w.store.PullPaths("gitea")})
	}
}

func (w *world) list(after int) (prflow.ListResult, error) {
	raw, _ := json.Marshal(map[string]any{"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "after": after,
		"limit": 100})
	if after == 0 {
		raw, _ = json.Marshal(map[string]any{"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "limit": 100})
	}
	return w.service().List(
		w.t.Context(),
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
		raw,
	)
}

// openMany opens pull requests that look like those of this program, as another state folder with the same key has made
// them.
func (w *world) openMany(many int) {
	w.t.Helper()
	for i := range many {
		raw, _ := json.Marshal(map[string]any{
			"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "title": fmt.Sprintf("Watch number %d", i), "body": "Because.",
			"files": []any{map[string]any{"path": fmt.Sprintf("checks/n%03d.md", i), "action": "create",
				"content": fmt.Sprintf("# Watch number %d\n", i)}},
		})
		w.policy.Limits.Caps.OpenPRs, w.policy.Limits.Caps.CreationsPerHour = many, many
		if _, err := w.service().Create(w.t.Context(),
			operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}}, raw); err != nil {
			w.t.Fatal(err)
		}
	}
}

// list_prs beside 120 pull requests of ours costs at most 10 requests where the records know their files, in whatever
// process, and at most 45 where they do not. A page ends where more files than 40 pull requests' would have to be asked
// for.
func TestAListOfManyCostsFewRequests(t *testing.T) {
	w := newWorld(t, giteaForge())
	withMemory(w)
	w.listsCheaply()
}

func (w *world) listsCheaply() {
	const many, most, mostKnown = 120, 45, 10
	t := w.t
	t.Helper()
	w.openMany(many)
	pages := func(when string, limit int) (costs []int) {
		t.Helper()
		seen, after := 0, 0
		for {
			w.forge.Faults().Forget()
			list, err := w.list(after)
			if err != nil || list.Total != many {
				t.Fatalf("%s: %+v, %v", when, list, err)
			}
			for _, pr := range list.PRs {
				if len(pr.Files) != 1 || pr.Files[0] != fmt.Sprintf("checks/n%03d.md", seen) || !pr.Ours || pr.State != "none" {
					t.Errorf("%s: #%d is %+v", when, pr.Number, pr)
				}
				seen++
			}
			n := len(w.forge.Faults().Requests())
			if costs = append(costs, n); n > limit {
				t.Errorf("%s: %d requests, at most %d", when, n, limit)
			}
			if after = list.Next; after == 0 {
				break
			}
		}
		if seen != many {
			t.Errorf("%s: %d pull requests", when, seen)
		}
		return costs
	}
	t.Logf("known: %v requests for the pages", pages("where the records know them", mostKnown))
	key := w.key
	w.loseState()
	w.key = key
	t.Logf("not known: %v", pages("where they do not", most))
	t.Logf("the next time: %v", pages("the next time", mostKnown))
	w.askForChanges(3)
	w.forge.Faults().Forget()
	list, err := w.list(0)
	if err != nil || list.PRs[2].State != "changes_requested" || list.PRs[3].State != "none" ||
		len(w.forge.Faults().Requests()) > mostKnown {
		t.Errorf("with a review: %d requests, %v", len(w.forge.Faults().Requests()), err)
	}
}

// A pull request that this program opened is known to every process on the same records, and so are the files of its
// revisions.
func TestARevisionCostsTwelveRequestsAtMostWhereTheRecordsKnowTheFiles(t *testing.T) {
	k := giteaForge()
	w := newWorld(t, k)
	withMemory(w)
	r := openedAndReviewed(t, w)
	if s, is := w.forge.(*fakegitea.Server); is {
		s.Configure(w.repo, func(set *fakegitea.Settings) { set.Delays.LateHead = 0 }) // the list is read a second later
	}
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := len(r.forge.Faults().Requests()); n > 12 {
		t.Errorf("%d requests", n)
	}
	r.forge.Faults().Forget()
	if list, err := r.list(0); err != nil || len(list.PRs) != 1 || len(list.PRs[0].Files) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, q := range r.forge.Faults().Requests() { // the list, and how its reviews stand: no files
		if strings.Contains(q.Path, "/files") || strings.Contains(q.Path, "/git/trees") {
			t.Errorf("%s %s", q.Method, q.Path)
		}
	}
}

// A repository that is archived takes no revision, and status says so.
func TestAnArchivedRepositoryIsNotRevisable(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			r := newRevised(t, k)
			r.forge.Host().Locked(func() { r.forge.Host().Repo(r.repo).Archived = true })
			raw, _ := json.Marshal(map[string]any{"repo_owner": r.repo.Owner, "repo_name": r.repo.Name, "pr_number": 1})
			status, err := r.service().Status(
				t.Context(),
				operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
				raw,
			)
			if err != nil || !strings.HasPrefix(status.Revise, "no: #1 is in a repository that is archived") {
				t.Errorf("status says %q, %v", status.Revise, err)
			}
			if _, err := r.revise(t.Context()); fault.CodeOf(err) == "" || fault.CodeOf(err).Ambiguous() {
				t.Errorf("%v", err)
			}
		})
	}
}
