package github_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// drafts tells for each request that opened a pull request whether it asked for a draft.
func (s *scene) drafts() []bool {
	var out []bool
	for _, r := range s.s.Faults().Requests() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/pulls") {
			var body struct{ Draft bool }
			must.Do(s.t, json.Unmarshal(r.Body, &body))
			out = append(out, body.Draft)
		}
	}
	return out
}

func TestADraftIsOpenedWhereThereAreDrafts(t *testing.T) {
	for _, row := range []struct {
		none bool
		want []bool
	}{{false, []bool{true}}, {true, []bool{true, false}}} {
		s := newScene(t)
		s.configure(func(set *fakegithub.Settings) { set.NoDrafts = row.none })
		s.commit(branch)
		spec := s.spec(branch)
		spec.Draft = true
		pr, err := s.p.OpenPullRequest(t.Context(), spec)
		must.Do(t, err)
		s.same("asked for a draft", s.drafts(), row.want)
		must.Do(t, s.p.Label(t.Context(), s.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
		s.same("list", len(s.list()), 1)
	}
}

func TestAnAmbiguousOpeningIsNotRepeatedAndCanBeFound(t *testing.T) {
	s := newScene(t)
	s.commit(branch)
	s.s.Faults().Plan(nil, httpfault.Fault{Kind: httpfault.BadGatewayAfter})
	_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	wantCode(t, err, fault.UpstreamError)
	found, err := s.p.FindByHead(t.Context(), s.Ref(), branch)
	must.Do(t, err)
	again, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	must.Do(t, err)
	if found == nil || found.Number != 1 || again.Number != 1 {
		t.Errorf("found %+v, again #%d; want #1 both times", found, again.Number)
	}
}

// 404 is not among it: GitHub does not know at once what was just made, and is asked again.
func TestACloseThatFailsIsMadeOnceAndMayBeRepeated(t *testing.T) {
	forgetest.FailedCloses(t, func(t *testing.T) forgetest.Proposed {
		s := newScene(t)
		return forgetest.Proposed{Provider: s.p, Repo: s.Ref(), Pull: s.propose(branch), Faults: s.s.Faults()}
	}, http.StatusForbidden, http.StatusTooManyRequests)
}

func TestAnOpeningIsRefusedForGood(t *testing.T) {
	for name, row := range map[string]struct {
		set  func(*fakegithub.Settings)
		want fault.Code
	}{
		"in an archived repository": {func(s *fakegithub.Settings) { s.Archived = true }, fault.RepoNotAllowed},
		"for a token without the scope": {func(s *fakegithub.Settings) { s.Token.MissingScopes = true },
			fault.ProviderDisabled},
		"in a repository that is hidden": {func(s *fakegithub.Settings) { s.Private, s.Token.Permission = true, "none" },
			fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit(branch)
			s.configure(row.set)
			_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
			wantCode(t, err, row.want)
		})
	}
}

func TestLabelsThatAreMissingAreNamedAndNotMade(t *testing.T) {
	for name, fresh := range map[string]bool{"as a snapshot knows": true, "as GitHub is asked": false} {
		t.Run(name, func(t *testing.T) {
			s, pr := proposed(t)
			if !fresh {
				s.p = setup(t, s.s.URL(), s.s.Token())
			}
			err := s.p.Label(t.Context(), s.Ref(), pr.Number, []string{"Automated", "no-such", "nor-this"})
			if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, "no-such, nor-this") {
				t.Errorf("message %q", e.Message)
			}
			s.same("labels", len(s.status(pr.Number).Labels), 2)
			s.s.Configure(s.Ref(), func(set *fakegithub.Settings) { s.same("defined", len(set.Labels), 2) })
		})
	}
}

func TestASecondRoundOnTheSameFilesStartsFromWhatIsThere(t *testing.T) {
	s := newScene(t)
	first := s.propose(branch, providertest.Create("checks/a.md", "a\n"))
	s.Merge(first.Number)
	s.DeleteBranch(branch)
	second := s.propose(branch, providertest.Update("checks/a.md", "b\n"))
	s.same("paths", s.status(second.Number).Paths, []string{"checks/a.md"})
	s.same("file", s.Files(second.HeadCommit)[1], memhost.File{Path: "checks/a.md", Kind: gitprovider.KindFile,
		Content: "b\n"})
}

func TestAnOldMemoryOfLabelsDoesNotBringBackWhatWasDeleted(t *testing.T) {
	s := newScene(t)
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s.p = setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) { o.Now = func() time.Time { return now } })
	pr := s.propose(branch)
	s.configure(func(set *fakegithub.Settings) { set.Labels = []string{gitprovider.LabelOurs} })
	now = now.Add(2 * time.Minute)
	wantCode(t, s.p.Label(t.Context(), s.Ref(), pr.Number, []string{"automated"}), fault.NotFound)
	s.same("labels", s.status(pr.Number).Labels, []string{gitprovider.LabelOurs})
}

// lagScene is a scene on a GitHub that does not know at once what it has made, with the waits for it.
type lagScene struct {
	*scene
	waits []time.Duration
	now   time.Time
}

func newLagScene(t *testing.T) *lagScene {
	t.Helper()
	s := &lagScene{scene: newScene(t), now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	s.s.Host().SetClock(func() time.Time { return s.now })
	s.start()
	s.s.Lag()
	return s
}

// start is a process that starts, and knows nothing of what was made before.
func (s *lagScene) start() {
	s.waits = nil
	s.p = setup(s.t, s.s.URL(), s.s.Token(), func(o *github.Options) {
		o.Now = func() time.Time { return s.now }
		o.Sleep = func(_ context.Context, d time.Duration) {
			s.waits = append(s.waits, d)
			s.now = s.now.Add(d)
		}
	})
}

func TestWhatGitHubDoesNotKnowYetIsAskedForAgain(t *testing.T) {
	for name, row := range map[string]struct {
		change gitprovider.FileChange
		waits  int // of which each but one is the first for an object
	}{
		"with a commit on the branch": {providertest.Update("checks/disk.md", "new\n"), 1 + 2 + 1},
		"with a commit of a tree":     {providertest.Update("playbooks/restart.md", "new\n"), 1 + 1 + 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLagScene(t)
			pr := s.propose(branch, row.change)
			s.same("waits", len(s.waits), row.waits)
			s.same("labels", s.status(pr.Number).Labels, []string{gitprovider.LabelOurs})
		})
	}
}

func TestReviewersOfANewPullRequestAreNotBlamed(t *testing.T) {
	s := newLagScene(t)
	s.configure(func(set *fakegithub.Settings) { set.People.Collaborators = []string{"ann"} })
	s.commit(branch)
	pr, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	must.Do(t, err)
	must.Do(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"ann"}, nil))
}

// A process may start again, or another one look, before GitHub has caught up. What is new is known by what GitHub says
// about it.
func TestWhatAnotherProcessHasJustMadeIsWaitedFor(t *testing.T) {
	for name, row := range map[string]struct {
		made func(s *lagScene)
		do   func(s *lagScene) error
		old  fault.Code // what is answered where it is not new, if GitHub does not show it
	}{
		"the head of a pull request": {
			func(s *lagScene) {
				s.commit(branch)
				_, err := s.p.BranchTip(s.t.Context(), s.Ref(), branch)
				must.Do(s.t, err)
			},
			func(s *lagScene) error { _, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch)); return err }, fault.NotFound,
		},
		"a branch that is in the way": {
			func(s *lagScene) { s.branchAlone() },
			func(s *lagScene) error {
				_, err := s.p.Commit(s.t.Context(), s.request(branch))
				wantCode(s.t, err, fault.Conflict)
				tip, err := s.p.BranchTip(s.t.Context(), s.Ref(), branch)
				s.same("shown", tip != "", true)
				return err
			}, "",
		},
		"the commit of a branch": {
			func(s *lagScene) { s.commit(branch) },
			func(s *lagScene) error {
				tip, err := s.p.BranchTip(s.t.Context(), s.Ref(), branch)
				must.Do(s.t, err)
				_, err = s.p.ReadCommit(s.t.Context(), s.Ref(), tip)
				return err
			}, "",
		},
		"a pull request that a list shows": {
			func(s *lagScene) { s.opened() },
			func(s *lagScene) error {
				s.look()
				return s.p.Label(s.t.Context(), s.Ref(), 1, []string{gitprovider.LabelOurs})
			}, fault.InvalidArgument,
		},
		"the files of a pull request, with a rename": {
			func(s *lagScene) {
				s.commit(branch, providertest.Delete("checks/disk.md"), providertest.Create("checks/storage.md", "# Disk\n"))
				_, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch))
				must.Do(s.t, err)
			},
			func(s *lagScene) error {
				q := s.query()
				_, err := s.p.Snapshot(s.t.Context(), q)
				return err
			}, fault.NotFound,
		},
		"a pull request of which only the number is known": {
			func(s *lagScene) { s.opened() },
			func(s *lagScene) error { _, err := s.p.Status(s.t.Context(), s.Ref(), 1); return err }, fault.NotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLagScene(t)
			row.made(s)
			s.start()
			must.Do(t, row.do(s))
			if len(s.waits) == 0 {
				t.Error("it was not waited for")
			}
			if row.old == "" {
				return
			}
			s = newLagScene(t)
			row.made(s)
			s.now = s.now.Add(time.Hour)
			s.start()
			wantCode(t, row.do(s), row.old)
			s.same("waits for what is not new", len(s.waits), 0)
		})
	}
}

// Old servers move and remove a branch by its id, which they may not know yet.
func TestANewBranchIsRemovedByItsIDAlthoughItIsNotShownYet(t *testing.T) {
	s := newLagScene(t)
	s.s.MakeOld()
	made := s.commit(branch)
	s.s.Faults().Plan(holding("{ id target { oid } }"), always(200, nil, `{"data":{"repository":{"ref":null}}}`))
	must.Do(t, s.p.DeleteBranch(t.Context(), s.Ref(), branch, made.ID))
	s.gone(branch)
}

// opened opens a pull request without labels.
func (s *lagScene) opened() {
	s.t.Helper()
	s.commit(branch)
	_, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch))
	must.Do(s.t, err)
}

// branchAlone makes the branch, and is killed before there is a commit on it.
func (s *lagScene) branchAlone() {
	s.t.Helper()
	s.s.Faults().Plan(holding("createCommitOnBranch(input"), httpfault.Fault{Kind: httpfault.ResetBefore})
	_, err := s.p.Commit(s.t.Context(), s.request(branch))
	wantCode(s.t, err, fault.UpstreamError)
}

// A branch that is not shown yet would be left behind if it were taken for gone.
func TestANewBranchIsRemovedAlthoughItIsNotShownYet(t *testing.T) {
	s := newLagScene(t)
	req := s.request(branch)
	s.configure(func(set *fakegithub.Settings) {
		set.Delays.Before = func(mutation string, repo *memhost.Repo) {
			if mutation == "createRef" {
				repo.Write(memhost.MainBranch, "Meanwhile", []memhost.File{{Path: "README.md", Content: "# New\n"}})
			}
		}
	})
	_, err := s.p.Commit(t.Context(), req)
	wantCode(t, err, fault.Conflict)
	s.gone(branch)
}

func TestARefusalOfANewObjectIsNeverDefinite(t *testing.T) {
	problem := func(rest string) string {
		return `{"message":"Validation Failed","errors":[{"resource":"X",` + rest + `}]}`
	}
	gone := `{"data":{"createCommitOnBranch":null},"errors":[{"type":"NOT_FOUND","path":["createCommitOnBranch"],` +
		`"message":"Could not resolve to a Ref with the name 'claude-ops/fix/one'."}]}`
	for name, row := range map[string]struct {
		holds  string // what the request has in its path or body
		status int
		body   string
		do     func(s *lagScene) error
		old    fault.Code // what it means of an object that is not new
	}{
		"no commits between": {"/pulls", 422, problem(`"code":"custom","message":"No commits between main and x"`),
			func(s *lagScene) error { _, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch)); return err },
			fault.NoChange},
		"an invalid head": {"/pulls", 422, problem(`"field":"head","code":"invalid"`),
			func(s *lagScene) error { _, err := s.p.OpenPullRequest(s.t.Context(), s.spec(branch)); return err },
			fault.NotFound},
		"a branch without a name": {"createCommitOnBranch(input", 200, gone, func(s *lagScene) error {
			_, err := s.p.Commit(s.t.Context(), s.request("claude-ops/fix/two"))
			return err
		}, ""},
		"a branch to be revised": {"createCommitOnBranch(input", 200, gone, func(s *lagScene) error {
			set := providertest.ChangeSet(s.t, providertest.Update("checks/disk.md", "more\n"))
			q := s.query("checks/disk.md")
			q.Base = branch
			snapshot, err := s.p.Snapshot(s.t.Context(), q)
			must.Do(s.t, err)
			_, err = s.p.Append(s.t.Context(), gitprovider.CommitRequest{Snapshot: snapshot, Branch: branch, Changes: set,
				Message: "More"})
			return err
		}, fault.NotFound},
		"labels of no node": {"/labels", 422,
			problem(`"message":"Could not resolve to a node with the global id of 'PR_x'."`),
			func(s *lagScene) error {
				return s.p.Label(s.t.Context(), s.Ref(), 1, []string{gitprovider.LabelOurs})
			}, fault.InvalidArgument},
		"an issue that is not found": {"/comments", 404, `{"message":"Not Found"}`,
			func(s *lagScene) error { return s.p.Comment(s.t.Context(), s.Ref(), 1, "Hello") }, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLagScene(t)
			s.commit(branch)
			if strings.HasPrefix(row.holds, "/") && row.holds != "/pulls" {
				_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
				must.Do(t, err)
			}
			refuse := func(times int) {
				for range times {
					s.s.Faults().Plan(func(r *http.Request) bool {
						return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, row.holds) || holding(row.holds)(r)
					}, always(row.status, nil, row.body))
				}
			}
			refuse(4)
			s.waits = nil
			wantCode(t, row.do(s), fault.UpstreamError)
			s.same("waits", s.waits, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second})
			if _, there := s.Branches()["claude-ops/fix/two"]; row.old == "" && !there {
				t.Error("a branch was removed that may have a commit")
			}
			if row.old == "" {
				return
			}
			s.now, s.waits = s.now.Add(time.Hour), nil
			refuse(1)
			wantCode(t, row.do(s), row.old)
			s.same("waits of an object that is not new", len(s.waits), 0)
		})
	}
}
