package gitea_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
)

func TestChecksCombineEveryPage(t *testing.T) {
	t.Parallel()
	status := func(state, context string) fakegitea.Status { return fakegitea.Status{State: state, Context: context} }
	var many []fakegitea.Status
	for i := range 70 {
		many = append(many, status("success", fmt.Sprintf("ci/%02d", i)))
	}
	for name, tc := range map[string]struct {
		statuses []fakegitea.Status
		want     gitprovider.Checks
	}{
		"none": {nil, gitprovider.Checks{State: gitprovider.ChecksNone}},
		"success": {[]fakegitea.Status{status("success", "a")},
			gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"a warning is success": {[]fakegitea.Status{status("warning", "a")},
			gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"one is pending": {[]fakegitea.Status{status("success", "a"), status("pending", "b")},
			gitprovider.Checks{State: gitprovider.ChecksPending}},
		"an unknown word is pending": {[]fakegitea.Status{status("frob", "a"), status("success", "b")},
			gitprovider.Checks{State: gitprovider.ChecksPending}},
		"failure and error fail": {[]fakegitea.Status{status("error", "z"), status("pending", "b"), status("failure", "a")},
			gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"a", "z"}}},
		"the newest of a context counts": {[]fakegitea.Status{status("failure", "a"), status("success", "a")},
			gitprovider.Checks{State: gitprovider.ChecksSuccess}},
		"the failure of the second page": {append([]fakegitea.Status{status("failure", "first")}, many...),
			gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"first"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			pr := sc.propose(sc.p, ourBranch)
			sc.configure(func(s *fakegitea.Settings) { s.Statuses = map[string][]fakegitea.Status{pr.HeadCommit: tc.statuses} })
			got, err := sc.p.Status(t.Context(), sc.Ref(), pr.Number)
			sc.must(err)
			sc.same("details", len(got.Checks.Details), len(tc.want.Failing))
			got.Checks.Details = nil
			sc.same("checks", got.Checks, tc.want)
		})
	}
}

func TestReviewsAreThoseOfPeople(t *testing.T) {
	t.Parallel()
	review := func(id int, state, at string, change object) object {
		r := object{"id": id, "state": state, "body": "b", "user": object{"login": "ann"}, "submitted_at": at}
		for name, value := range change {
			r[name] = value
		}
		return r
	}
	s := serve(t, routes{
		"GET " + repoPath + "/pulls/1": pull(1, nil), "GET " + repoPath + "/pulls/1/files": list(0),
		"GET " + repoPath + "/commits/" + madeCommit + "/status": reply{body: object{"state": "", "statuses": nil}},
		"GET " + repoPath + "/pulls/1/reviews": list(6,
			review(5, "PENDING", "2026-11-20T10:00:00Z", nil),
			review(1, "REQUEST_REVIEW", "2026-11-20T10:00:01Z", nil),
			review(3, "APPROVED", "2026-11-20T10:00:03Z", object{"dismissed": true}),
			review(2, "COMMENT", "2026-11-20T10:00:02Z", nil),
			review(4, "REQUEST_CHANGES", "2026-11-20T10:00:03Z", object{"user": nil}),
			review(6, "SOMETHING_NEW", "2026-11-20T10:00:06Z", nil),
		),
	})
	status, err := s.provider(t).Status(t.Context(), ref(), 1)
	wantCode(t, err, "")
	at := func(second int) time.Time { return time.Date(2026, 11, 20, 10, 0, second, 0, time.UTC) }
	want := []gitprovider.Review{
		{Author: "ann", State: gitprovider.ReviewCommented, Body: "b", SubmittedAt: at(2)},
		{Author: "ann", State: gitprovider.ReviewDismissed, Body: "b", SubmittedAt: at(3)},
		{Author: "", State: gitprovider.ReviewChangesRequested, Body: "b", SubmittedAt: at(3)},
		{Author: "ann", State: gitprovider.ReviewPending, Body: "b"},
	}
	if diff := cmp.Diff(want, status.Reviews); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

func TestAReviewPageThatIsHiddenFromUsDoesNotEndTheList(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{
		"GET " + repoPath + "/pulls/1": pull(1, nil), "GET " + repoPath + "/pulls/1/files": list(0),
		"GET " + repoPath + "/commits/" + madeCommit + "/status": reply{body: object{"state": "", "statuses": nil}},
		"GET " + repoPath + "/pulls/1/reviews": func(r *http.Request) reply {
			if r.URL.Query().Get("page") == "1" {
				return list(51)
			}
			return list(51, object{"id": 9, "state": "APPROVED", "user": object{"login": "bob"},
				"submitted_at": "2026-11-20T10:00:00Z"})
		},
	})
	status, err := s.provider(t).Status(t.Context(), ref(), 1)
	wantCode(t, err, "")
	if len(status.Reviews) != 1 {
		t.Errorf("reviews %+v", status.Reviews)
	}
}

func TestFindByHeadLooksBeyondThePageWhenTheSecondIsShared(t *testing.T) {
	t.Parallel()
	const at = "2026-11-20T18:50:38Z"
	var first []object
	for i := 100; i > 50; i-- {
		change := object{"created_at": "2026-11-20T18:50:39Z",
			"head": object{"label": "x", "ref": "x", "sha": otherID, "repo_id": 1}}
		if i == 51 {
			change = object{"created_at": at, "state": "closed"}
		}
		first = append(first, pull(i, change))
	}
	s := serve(t, routes{
		"GET " + repoPath + "/pulls": func(r *http.Request) reply {
			if r.URL.Query().Get("page") == "1" {
				return list(51, first...)
			}
			return list(51, pull(101, object{"created_at": at}))
		},
		"GET " + repoPath + "/pulls/101/files": list(0),
	})
	found, err := s.provider(t).FindByHead(t.Context(), ref(), ourBranch)
	wantCode(t, err, "")
	if found == nil || found.Number != 101 {
		t.Errorf("found %+v, want number 101", found)
	}
}
