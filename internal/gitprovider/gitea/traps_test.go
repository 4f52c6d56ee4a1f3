package gitea_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func TestAnInstallationBelowAPathWorks(t *testing.T) {
	t.Parallel()
	sc := sceneAt(t, "/gitea")
	pr := sc.propose(sc.p, ourBranch)
	status := sc.status(pr.Number)
	sc.same("labels", status.Labels, []string{gitprovider.LabelOurs})
	sc.must(sc.p.DeleteBranch(t.Context(), sc.Ref(), pr.Branch, pr.HeadCommit))
	for _, asked := range sc.asked() {
		if _, path, _ := strings.Cut(asked, " "); !strings.HasPrefix(path, "/gitea/api/v1/") {
			t.Error(asked)
		}
	}
}

func TestARenamedRepositoryIsReadByItsFormerNameAndWrittenByItsNewOne(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) { s.RenamedFrom = "former" })
	q := sc.query([]gitprovider.FileChange{providertest.Update("checks/disk.md", "new")})
	q.Repo.Name = "former"
	snap, err := sc.p.Snapshot(t.Context(), q)
	sc.must(err)
	sc.same("repository", snap.Repo, sc.Ref())
	req := gitprovider.CommitRequest{Snapshot: snap, Branch: ourBranch, Message: "m",
		Changes: providertest.ChangeSet(t, providertest.Update("checks/disk.md", "new"))}
	_, err = sc.p.Commit(t.Context(), req)
	sc.must(err)
	snap.Repo.Name, req.Branch = "former", ourBranch+"-former"
	_, err = sc.p.Commit(t.Context(), req)
	wantCode(t, err, fault.NotFound)
}

func TestATagOfTheSameNameDoesNotStandForTheBaseBranch(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	first := sc.Branches()[memhost.MainBranch]
	tip := sc.Push("stable", memhost.File{Path: "checks/new.md", Content: "n"})
	sc.configure(func(s *fakegitea.Settings) { s.Tags = map[string]string{"stable": first} })
	snap, err := sc.p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: sc.Ref(), Base: "stable"})
	sc.must(err)
	sc.same("base", snap.BaseCommit, tip)
}

func TestABaseThatMovesWhileTheServerWorksLeavesTheCommitOnTheApprovedOne(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	approved := sc.Branches()[memhost.MainBranch]
	sc.configure(func(s *fakegitea.Settings) {
		s.Delays.BeforeRefUpdate = func() { sc.Push(memhost.MainBranch, memhost.File{Path: "README.md", Content: "moved"}) }
	})
	made := sc.mustCommit()
	sc.same("parents", sc.Parents(made.ID), []string{approved})
}

func TestABranchThatSomebodyMakesWhileTheServerWorksIsAConflict(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var theirs string
	sc.configure(func(s *fakegitea.Settings) {
		s.Delays.BeforeRefUpdate = func() { theirs = sc.Push(ourBranch, memhost.File{Path: "README.md", Content: "theirs"}) }
	})
	_, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new"))
	wantCode(t, err, fault.Conflict)
	sc.same("tip", sc.Branches()[ourBranch], theirs)
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(sc *scene)
		want   fault.Code
		says   string
	}{
		"read-only token": {func(sc *scene) { sc.configure(func(s *fakegitea.Settings) { s.ReadOnly = true }) },
			fault.ProviderDisabled, "write access"},
		"token without the scope": {func(sc *scene) { sc.s.SetScopes("read:repository", "read:issue") },
			fault.ProviderDisabled, "GITEA_TOKEN"},
		"archived repository": {func(sc *scene) { sc.configure(func(s *fakegitea.Settings) { s.Archived = true }) },
			fault.RepoNotAllowed, "archived"},
		"protected names": {func(sc *scene) {
			sc.configure(func(s *fakegitea.Settings) { s.Protection.ProtectedPatterns = []string{"claude-ops/**"} })
		}, fault.RepoNotAllowed, "let that user push to claude-ops/**"},
		"protected files": {func(sc *scene) {
			sc.configure(func(s *fakegitea.Settings) { s.Protection.ProtectedFiles = []string{"checks/**"} })
		}, fault.RepoNotAllowed, "protected file patterns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			tc.change(sc)
			_, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new"))
			wantCode(t, err, tc.want)
			wantSays(t, err, tc.says)
		})
	}
}

func TestCreationsThatOverlookEachOtherEndWithTheOlder(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	first := sc.propose(sc.p, ourBranch)
	sc.configure(func(s *fakegitea.Settings) { s.Delays.LaxParallel = 1 })
	// The other process looked before the first one opened: its look is answered as if there were nothing.
	sc.s.Faults().Plan(isFind, httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"not found"}`})
	pr, err := sc.provider().OpenPullRequest(t.Context(), sc.spec(ourBranch))
	sc.must(err)
	sc.same("number", pr.Number, first.Number)
	status := sc.status(first.Number + 1)
	sc.same("state of the one too many", status.State, gitprovider.StateClosed)
}

// isFind knows the search by base and head.
func isFind(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/pulls/"+memhost.MainBranch+"/")
}

func TestAClosedPullRequestDoesNotHideTheOpenOne(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	first := sc.propose(sc.p, ourBranch)
	sc.Close(first.Number)
	second, err := sc.p.OpenPullRequest(t.Context(), sc.spec(ourBranch))
	sc.must(err)
	again, err := sc.provider().OpenPullRequest(t.Context(), sc.spec(ourBranch))
	sc.must(err)
	sc.same("number", again.Number, second.Number)
}

func TestAPullRequestWithoutACommitIsClosedAgain(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.mustCommit()
	number := sc.OpenPR(ourBranch, "by somebody")
	sc.Merge(number)
	_, err := sc.p.OpenPullRequest(t.Context(), sc.spec(ourBranch)) // this process still takes the branch for fresh
	wantCode(t, err, fault.NoChange)
	open, err := sc.p.Snapshot(t.Context(), sc.query(nil))
	sc.must(err)
	sc.same("open", numbers(open.Open), []int{})
}

func TestAnAmbiguousCreationIsSettledByLooking(t *testing.T) {
	t.Parallel()
	for _, kind := range []httpfault.Kind{httpfault.ResetAfter, httpfault.BadGatewayAfter, httpfault.Truncated} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.mustCommit()
			sc.s.Faults().PlanNth(1, httpfault.Fault{Kind: kind})
			pr, err := sc.p.OpenPullRequest(t.Context(), sc.spec(ourBranch))
			sc.must(err)
			found, err := sc.p.FindByHead(t.Context(), sc.Ref(), ourBranch)
			sc.must(err)
			sc.same("number", pr.Number, found.Number)
		})
	}
}

func TestACloseThatFailsIsMadeOnceAndMayBeRepeated(t *testing.T) {
	forgetest.FailedCloses(t, func(t *testing.T) forgetest.Proposed {
		sc := newScene(t)
		return forgetest.Proposed{Provider: sc.p, Repo: sc.Ref(), Pull: sc.propose(sc.p, ourBranch), Faults: sc.s.Faults()}
	}, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests)
}

func TestADraftHasTheServersPrefix(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.mustCommit()
	spec := sc.spec(ourBranch)
	spec.Draft = true
	pr, err := sc.p.OpenPullRequest(t.Context(), spec)
	sc.must(err)
	sc.same("title", pr.Title, "WIP: t")
	status := sc.status(pr.Number)
	sc.same("mergeable", *status.Mergeable, false)
	sc.same("waits", len(sc.slept), 0)
}

func TestUnknownLabelsAreNamedAndTheOthersSet(t *testing.T) {
	t.Parallel()
	sc := newScene(t, func(o *gitea.Options) { o.CreateLabels = func() bool { return false } })
	pr := sc.propose(sc.p, ourBranch)
	err := sc.p.Label(t.Context(), sc.Ref(), pr.Number, []string{"no-such-label", "automated"})
	wantCode(t, err, fault.NotFound)
	if !strings.Contains(err.Error(), "no-such-label") || strings.Contains(err.Error(), "automated") {
		t.Errorf("the message is %q", err)
	}
	status := sc.status(pr.Number)
	sc.same("labels", status.Labels, []string{"automated", gitprovider.LabelOurs})
}

func TestAnExclusiveLabelOfAPersonStays(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) {
		s.Labels = append(s.Labels, fakegitea.Label{Name: "state/proposed", Exclusive: true},
			fakegitea.Label{Name: "state/approved", Exclusive: true}, fakegitea.Label{Name: "area/disks"})
	})
	pr := sc.propose(sc.p, ourBranch)
	set := func(names ...string) error { return sc.p.Label(t.Context(), sc.Ref(), pr.Number, names) }
	sc.must(set("state/approved"))
	err := set("state/proposed", "area/disks")
	wantCode(t, err, fault.Conflict)
	wantSays(t, err, "state/proposed was left out: pull request #1 has the label state/approved")
	status := sc.status(pr.Number)
	sc.same("labels", status.Labels, []string{"area/disks", gitprovider.LabelOurs, "state/approved"})
}

func TestMergeableIsLookedAtAgainWhileTheServerRechecks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		checking int
		conflict bool
		want     bool
		slept    []time.Duration
	}{
		"true at once":   {0, false, true, nil},
		"true after two": {2, false, true, []time.Duration{500 * time.Millisecond, time.Second}},
		"false when it stays": {1, true, false, []time.Duration{500 * time.Millisecond, time.Second,
			1500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			pr := sc.propose(sc.p, ourBranch)
			sc.configure(func(s *fakegitea.Settings) { s.Delays.MergeableReads.Checking = tc.checking })
			file := memhost.File{Path: "README.md", Content: "moved"}
			if tc.conflict {
				file.Path = "checks/disk.md"
			}
			sc.Push(memhost.MainBranch, file)
			status := sc.status(pr.Number)
			sc.same("mergeable", *status.Mergeable, tc.want)
			sc.same("waits", sc.slept, tc.slept)
		})
	}
}

func TestADeletedHeadThatTheServerHasNotNoticedIsWaitedForAndThenClosed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	sc := newScene(t, func(o *gitea.Options) { o.Now = func() time.Time { return now } })
	pr := sc.propose(sc.p, ourBranch)
	sc.configure(func(s *fakegitea.Settings) { s.Delays.LateClose = 2 })
	sc.must(sc.p.DeleteBranch(t.Context(), sc.Ref(), ourBranch, pr.HeadCommit))
	status := sc.status(pr.Number)
	sc.same("state", status.State, gitprovider.StateClosed)
	sc.same("closed at the server's time", status.ClosedAt.Equal(now), false)
	if len(sc.slept) == 0 {
		t.Error("nothing was waited for")
	}
}

func TestAnUnnoticedDeletionCountsAsClosedInASnapshot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s := serve(t, routes{
		"GET " + repoPath:                     repository(),
		"GET " + repoPath + "/git/trees/HEAD": object{"sha": baseCommit, "tree": []object{}},
		"GET " + repoPath + "/pulls": pullsByState(always(list(1, pull(4, object{
			"head": object{"label": ourBranch, "ref": "refs/pull/4/head", "sha": madeCommit, "repo_id": 1}}))), always(list(0))),
		"GET " + repoPath + "/pulls/4/files": list(0),
	})
	p := s.provider(t, func(o *gitea.Options) { o.Now = func() time.Time { return now } })
	snap, err := p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref(), ClosedSince: now.Add(-time.Hour)})
	wantCode(t, err, "")
	if len(snap.Open) != 0 || !slices.Equal(numbers(snap.Closed), []int{4}) || !snap.Closed[0].ClosedAt.Equal(now) {
		t.Errorf("open %v, closed %+v", snap.Open, snap.Closed)
	}
}

func always(answer reply) func(*http.Request) reply {
	return func(*http.Request) reply { return answer }
}

// reads are the calls that people make most.
func (sc *scene) reads() map[string]error {
	errs := map[string]error{}
	_, errs["ListOpen"] = sc.p.ListOpen(sc.t.Context(), sc.Ref(), gitprovider.LabelOurs)
	_, errs["Status"] = sc.p.Status(sc.t.Context(), sc.Ref(), 1)
	_, errs["Snapshot"] = sc.p.Snapshot(sc.t.Context(), sc.query(nil))
	return errs
}

func TestThatPullRequestsAreSwitchedOffIsSaid(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) { s.Features.NoPulls = true })
	for method, err := range sc.reads() {
		wantCode(t, err, fault.RepoNotAllowed)
		if !strings.Contains(err.Error(), "switched off") || strings.Contains(err.Error(), "write access") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestThatTheUserMayNotSignInIsSaid(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"blocked": fakegitea.Prohibited, "not activated": fakegitea.NotActivated,
		"has to choose a password": fakegitea.MustChangePassword,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.s.SetAccount(wrong)
			errs := sc.reads()
			errs["Label"] = sc.p.Label(t.Context(), sc.Ref(), 1, []string{gitprovider.LabelOurs})
			errs["Ping"] = sc.p.Ping(t.Context())
			for method, err := range errs {
				wantCode(t, err, fault.ProviderDisabled)
				if !strings.Contains(err.Error(), "may not sign in") || strings.Contains(err.Error(), "write access") {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
}

func TestABranchThatIsProtectedFromDeletionIsSaidToBe(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	made := sc.mustCommit()
	sc.configure(func(s *fakegitea.Settings) { s.Protection.ProtectedPatterns = []string{"claude-ops/**"} })
	err := sc.p.DeleteBranch(t.Context(), sc.Ref(), ourBranch, made.ID)
	wantCode(t, err, fault.RepoNotAllowed)
	if !strings.Contains(err.Error(), "branch protection") || strings.Contains(err.Error(), "write access") {
		t.Error(err)
	}
}

func TestAnAddressThatIsNotTheInstallationsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, below := range []string{"/joe", "/joe/repo-1", "/api/v1"} {
		p := newProvider(t, sc.s.URL()+below, sc.s.Token())
		sc.s.Faults().Plan(nil, notOfTheAPI())
		_, err := p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		wantCode(t, err, fault.ProviderDisabled)
		if !strings.Contains(err.Error(), "below "+below) || !strings.Contains(err.Error(), "leave out owner") {
			t.Errorf("%s: %v", below, err)
		}
	}
}

// notOfTheAPI is a router's answer to an unknown path.
func notOfTheAPI() httpfault.Fault {
	return httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: "404 page not found\n"}
}

const labelsRoute = "POST " + repoPath + "/issues/1/labels"

func TestLabelGoesByIDWhereNamesAreNotTaken(t *testing.T) {
	t.Parallel()
	have := []object{{"id": 7, "name": gitprovider.LabelOurs}}
	for _, status := range []int{400, 422, 500} {
		s := serve(t, routes{
			labelsRoute:                   []reply{{status: status, body: object{"message": "cannot unmarshal"}}, {body: have}},
			"GET " + repoPath + "/labels": list(1, have...),
		})
		wantCode(t, s.provider(t).Label(t.Context(), ref(), 1, []string{gitprovider.LabelOurs}), "")
		requests := s.faults.Requests()
		if last := requests[len(requests)-1]; last.Method != http.MethodPost || !strings.Contains(string(last.Body), "[7]") {
			t.Errorf("%d: the last request is %s %s", status, last.Method, last.Body)
		}
	}
}

func TestLabelRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script routes
		want   fault.Code
		says   string
	}{
		"a number that does not exist": {routes{labelsRoute: asRefusal(404, "not found")}, fault.NotFound, "#1"},
		"a user who may not": {routes{labelsRoute: asRefusal(403, "write permission is required")}, fault.ProviderDisabled,
			"access"},
		"a label that cannot be made": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": asRefusal(403, "user should be an owner")}, fault.ProviderDisabled, "owner"},
		"a label that is made and not taken": {routes{labelsRoute: reply{body: []object{}},
			"POST " + repoPath + "/labels": reply{status: 201, body: object{"id": 9, "name": "x"}}}, fault.UpstreamError, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, tc.script).provider(t).Label(t.Context(), ref(), 1, []string{"x"})
			wantCode(t, err, tc.want)
			wantSays(t, err, tc.says)
		})
	}
}
