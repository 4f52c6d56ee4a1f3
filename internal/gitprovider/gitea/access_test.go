package gitea_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

func TestAssignNamesWhomTheServerDoesNotTake(t *testing.T) {
	t.Parallel()
	const requested, issue = "POST " + repoPath + "/pulls/1/requested_reviewers", "PATCH " + repoPath + "/issues/1"
	team := func(names ...string) object {
		var teams []object
		for _, name := range names {
			teams = append(teams, object{"name": name})
		}
		return pull(1, object{"requested_reviewers_teams": teams})
	}
	created, done := reply{status: 201, body: []object{}}, reply{status: 201, body: object{}}
	unknown := asRefusal(404, "User 'x' not exist")
	for name, tc := range map[string]struct {
		script               routes
		reviewers, assignees []string
		want                 fault.Code
		says                 string
		calls                int
	}{
		"all are taken": {routes{requested: created, issue: done}, []string{"ann"}, []string{"bob"}, "", "", 2},
		"nobody":        {routes{}, nil, nil, "", "", 0},
		"one of two reviewers is unknown": {
			routes{requested: []reply{unknown, created, unknown}, "GET " + repoPath + "/pulls/1": pull(1, nil)},
			[]string{"ann", "nobody"}, nil, fault.NotFound, "nobody", 3},
		"the author cannot review": {routes{requested: asRefusal(422, "poster of pr can't be reviewer"),
			"GET " + repoPath + "/pulls/1": pull(1, nil)}, []string{"joe"}, nil, fault.NotFound, "joe", 2},
		"no such pull request": {routes{requested: unknown, "GET " + repoPath + "/pulls/1": asRefusal(404, "not found")},
			[]string{"ann"}, nil, fault.NotFound, "pull request #1", 2},
		"a team that is left out without a word": {routes{requested: created, "GET " + repoPath + "/pulls/1": team("ops")},
			[]string{"joe/ops", "joe/none"}, nil, fault.NotFound, "joe/none", 2},
		"a team of another owner": {routes{requested: created, "GET " + repoPath + "/pulls/1": team("ops")},
			[]string{"joe/ops", "acme/ops"}, nil, fault.NotFound, "acme/ops", 2},
		"an unknown assignee, for whom the server fails": {routes{issue: []reply{asRefusal(500, "user does not exist"), done},
			"GET " + repoPath + "/assignees": []object{{"login": "Bob"}}}, nil, []string{"bob", "nobody"}, fault.NotFound,
			"nobody", 3},
		"a server that fails for another reason": {
			routes{issue: reply{status: 500}, "GET " + repoPath + "/assignees": []object{{"login": "bob"}}}, nil,
			[]string{"bob"}, fault.UpstreamError, "", 2},
		"a token that may not": {routes{requested: asRefusal(403, "write permission is required")}, []string{"ann"}, nil,
			fault.ProviderDisabled, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.script)
			err := s.provider(t).Assign(t.Context(), ref(), 1, tc.reviewers, tc.assignees)
			wantCode(t, err, tc.want)
			wantSays(t, err, tc.says)
			if n := len(s.faults.Requests()); n != tc.calls {
				t.Errorf("%d requests, want %d", n, tc.calls)
			}
		})
	}
}

func TestExamineTellsWhatTheTokenMayDo(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const writeRepository, writeIssue = "POST " + repoPath + "/pulls/0/requested_reviewers", "POST " + repoPath +
		"/issues/0/labels"
	lacks := func(scope, have string) reply {
		return asRefusal(403, "token does not have at least one of required scope(s), required=["+scope+"]"+have)
	}
	base := func() routes {
		return routes{
			"GET " + repoPath: repository(), "GET /user": object{"login": "joe"},
			"GET " + repoPath + "/labels": list(1, object{"id": 1, "name": "claude-ops"}),
			"GET " + repoPath + "/branches/main": object{"name": "main", "commit": object{"id": baseCommit}, "protected": true,
				"user_can_push": false, "user_can_merge": true},
			"GET " + repoPath + "/commits/" + baseCommit + "/status": counted(object{"statuses": []object{}}),
			writeRepository: asRefusal(404, "GetPullRequestByIndex"), writeIssue: asRefusal(404, "not found"),
		}
	}
	all := gitprovider.Access{User: "joe", Base: "main", CanPush: &yes, CanPushToBase: &no, CanMerge: &yes,
		BaseProtected: &yes,
		MissingLabels: []string{"automated"}, ChecksRun: &no}
	with := func(change func(a *gitprovider.Access)) gitprovider.Access {
		a := all
		change(&a)
		return a
	}
	actions := repository()
	actions["has_actions"] = true
	workflow := "GET " + repoPath + "/contents/.github/workflows"
	missing := asRefusal(404, "not found")
	for name, tc := range map[string]struct {
		change func(routes)
		want   gitprovider.Access
		code   fault.Code
	}{
		"everything is told": {func(routes) {}, all, ""},
		"a label of the organization": {func(r routes) {
			r["GET /orgs/joe/labels"] = []object{{"id": 9,
				"name": "automated"}}
		},
			with(func(a *gitprovider.Access) { a.MissingLabels = nil }), ""},
		"a token that may not read its user": {func(r routes) { r["GET /user"] = asRefusal(403, "required scope(s)") },
			with(func(a *gitprovider.Access) { a.User = "" }), ""},
		"a token for reading": {func(r routes) {
			r[writeRepository] = lacks("write:repository", ", token scope=read:repository,read:issue")
			r[writeIssue] = lacks("write:issue", ", token scope=read:repository,read:issue")
		}, with(func(a *gitprovider.Access) {
			a.CanPush, a.CanMerge, a.Scopes = &no, &no, []string{"read:issue", "read:repository"}
			a.Lacks, a.LacksForLabels = []string{"write:repository"}, []string{"write:issue"}
		}), ""},
		"a token that may not see labels, of a server that tells no scopes": {func(r routes) {
			r[writeIssue], r["GET "+repoPath+"/labels"] = lacks("write:issue", ""), lacks("read:issue", "")
		}, with(func(a *gitprovider.Access) {
			a.LacksForLabels, a.MissingLabels = []string{"write:issue"}, nil
		}), ""},
		"a server that does not say": {func(r routes) {
			r[writeRepository], r[writeIssue] = asRefusal(500, ""), asRefusal(404, "")
		}, all, ""},
		"workflows": {func(r routes) {
			r["GET "+repoPath], r[workflow] = actions, []object{{"name": "ci.yaml", "type": "file"}}
			r["GET "+repoPath+"/contents/.gitea/workflows"], r["GET "+repoPath+"/contents/.forgejo/workflows"] = missing, missing
		}, with(func(a *gitprovider.Access) { a.ChecksRun = &yes }), ""},
		"workflows that cannot be read": {func(r routes) {
			r["GET "+repoPath], r[workflow] = actions, asRefusal(403, "no")
			r["GET "+repoPath+"/contents/.gitea/workflows"], r["GET "+repoPath+"/contents/.forgejo/workflows"] = missing, missing
		}, with(func(a *gitprovider.Access) { a.ChecksRun = nil }), ""},
		"another CI": {func(r routes) {
			r["GET "+repoPath+"/commits/"+baseCommit+"/status"] = counted(object{
				"statuses": []object{{"status": "success", "context": "x"}}})
		}, with(func(a *gitprovider.Access) { a.ChecksRun = &yes }), ""},
		"a branch that cannot be read": {func(r routes) { r["GET "+repoPath+"/branches/main"] = asRefusal(403, "no") },
			with(func(a *gitprovider.Access) {
				a.CanPushToBase, a.CanMerge, a.BaseProtected, a.ChecksRun = nil, nil, nil, nil
			}), ""},
		"a missing branch": {func(r routes) { r["GET "+repoPath+"/branches/main"] = missing }, gitprovider.Access{},
			fault.NotFound},
		"a missing repository": {func(r routes) { r["GET "+repoPath] = missing }, gitprovider.Access{}, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := base()
			tc.change(script)
			got, err := serve(t, script).provider(t).Examine(t.Context(), ref(), "", []string{"claude-ops", "automated"})
			wantCode(t, err, tc.code)
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
		})
	}
}

// counted is an answer that counts its entries elsewhere.
func counted(body object) reply {
	return reply{header: map[string]string{"X-Total-Count": fmt.Sprint(len(body["statuses"].([]object)))}, body: body}
}

func TestExamineOnAServerOfPeople(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.configure(func(s *fakegitea.Settings) { s.Protection.ProtectedPatterns = []string{"main"}; s.Fork = true })
	access, err := sc.p.Examine(t.Context(), sc.Ref(), "", []string{gitprovider.LabelOurs})
	sc.must(err)
	if access.User != fakegitea.Owner || !*access.CanPush || *access.CanPushToBase || !*access.BaseProtected ||
		!access.Fork || len(access.MissingLabels) > 0 {
		t.Errorf("access %+v", access)
	}
}

func TestExamineOfATokenForReadingChangesNothing(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	pr := sc.propose(sc.p, ourBranch)
	before := sc.Branches()
	for _, row := range []struct{ scopes, lacks, lacksForLabels []string }{
		{nil, nil, nil},
		{[]string{"write:repository", "write:issue"}, nil, nil},
		{[]string{"write:repository", "read:issue"}, nil, []string{"write:issue"}},
		{[]string{"read:repository", "read:issue"}, []string{"write:repository"}, []string{"write:issue"}},
		{[]string{"read:repository"}, []string{"write:repository"}, []string{"write:issue"}},
	} {
		if row.scopes != nil {
			sc.s.SetScopes(row.scopes...)
		}
		access, err := sc.p.Examine(t.Context(), sc.Ref(), "", []string{gitprovider.LabelOurs})
		sc.must(err)
		if !slices.Equal(access.Lacks, row.lacks) || !slices.Equal(access.LacksForLabels, row.lacksForLabels) ||
			*access.CanPush != (row.lacks == nil) || row.lacks != nil && (*access.CanMerge || *access.CanPushToBase) {
			t.Errorf("%v: %+v", row.scopes, access)
		}
	}
	sc.s.SetScopes("all")
	status := sc.status(pr.Number)
	if diff := cmp.Diff(before, sc.Branches()); diff != "" || status.State != gitprovider.StateOpen ||
		len(status.Reviews) > 0 {
		t.Errorf("something has changed: %s %+v", diff, status)
	}
}

func TestExamineSaysWhichRuleDemandsSignatures(t *testing.T) {
	t.Parallel()
	const ofOurs = "the commits of proposals"
	for pattern, want := range map[string]string{"**": ofOurs, "claude-ops/*": ofOurs,
		"main": "the merge commits on main", "release/*": ""} {
		sc := newScene(t)
		sc.configure(func(s *fakegitea.Settings) { s.Protection.Signed = []string{pattern} })
		access, err := sc.p.Examine(t.Context(), sc.Ref(), "", nil)
		sc.must(err)
		sc.same(pattern, access.Unsigned, want)
	}
}

func TestAPingTellsWhetherGiteaServesUs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault httpfault.Fault
		code  fault.Code
	}{
		{"it is down", httpfault.Fault{Kind: httpfault.Status, Status: 503}, fault.UpstreamError},
		{"it resets connections", httpfault.Fault{Kind: httpfault.ResetBefore}, fault.UpstreamError},
		{"a portal answers with a page", httpfault.Fault{Kind: httpfault.HTML}, fault.UpstreamError},
		{"something else answers", httpfault.Fault{Kind: httpfault.Status, Status: 200, Body: `{"ok":true}`},
			fault.UpstreamError},
		{"no API is there", httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: "404 page not found\n"},
			fault.ProviderDisabled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc := newScene(t)
			sc.s.Faults().PlanFrom(1, tt.fault)
			if err := sc.p.Ping(t.Context()); fault.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	for name, first := range map[string]reply{"an unknown path": {status: 404, body: "404 page not found\n"},
		"a page": {status: 200, body: "<!doctype html><title>home</title>"}} {
		t.Run("installed below a path, where the root has "+name, func(t *testing.T) {
			s := serve(t, routes{"GET /version": func(r *http.Request) reply {
				if strings.HasPrefix(r.URL.Path, "/git/") {
					return reply{body: object{"version": "1.25.0"}}
				}
				return first
			}})
			err := s.provider(t).Ping(t.Context())
			wantCode(t, err, fault.ProviderDisabled)
			wantSays(t, err, "set GITEA_URL to "+s.URL+"/git/")
		})
	}
	sc := newScene(t)
	if err := sc.p.Ping(t.Context()); err != nil || strings.Join(sc.asked(), " ") != "GET /api/v1/version" {
		t.Errorf("it answers: %v", err)
	}
	const other = "a-token-that-was-revoked"
	err := newProvider(t, sc.s.URL(), other).Ping(t.Context())
	if fault.CodeOf(err) != fault.ProviderDisabled || strings.Contains(err.Error(), other) {
		t.Errorf("the token was revoked: %v", err)
	}
	sc.s.Faults().PlanFrom(1, httpfault.Fault{Kind: httpfault.Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := sc.p.Ping(ctx); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("it hangs: %v", err)
	}
}
