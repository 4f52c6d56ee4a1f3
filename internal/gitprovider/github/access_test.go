package github_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestReviewersAndAssigneesAreNamed(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) {
		set.People.Collaborators, set.People.Teams = []string{"ann", "bob"}, []string{"ops"}
	})
	pr := s.propose(branch)
	for range 2 {
		s.same("requests", s.cost(func() {
			must.Do(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"ann", "octo/ops"}, []string{"Bob"}))
		}), 2)
	}
	s.same("requests for nobody", s.cost(func() { must.Do(t, s.p.Assign(t.Context(), s.Ref(), pr.Number, nil, nil)) }), 0)
}

func TestNamesThatGitHubDoesNotTakeAreTold(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) { set.People.Collaborators = []string{"ann"} })
	pr := s.propose(branch)
	err := s.p.Assign(t.Context(), s.Ref(), pr.Number, []string{"ann", "stranger", "octo/none"}, []string{"ann", "nobody"})
	e := wantCode(t, err, fault.NotFound)
	for _, name := range []string{"stranger", "octo/none", "nobody"} {
		if !strings.Contains(e.Message, name) {
			t.Errorf("%q does not name %s", e.Message, name)
		}
	}
	if strings.Contains(e.Message, "ann") {
		t.Errorf("%q names ann", e.Message)
	}
	for _, number := range []int{0, 4711} {
		wantCode(t, s.p.Assign(t.Context(), s.Ref(), number, []string{"ann"}, nil), fault.NotFound)
		wantCode(t, s.p.Assign(t.Context(), s.Ref(), number, nil, []string{"ann"}), fault.NotFound)
	}
}

func TestATeamThatTheTokenMayNotSeeIsSaidToBeThat(t *testing.T) {
	for name, reviewers := range map[string][]string{"alone": {"octo/ops"}, "beside a person": {"ann", "octo/ops"}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.configure(func(set *fakegithub.Settings) {
				set.People.Collaborators, set.People.Teams = []string{"ann"}, []string{"ops"}
				set.Token.NotGranted = []string{"members"}
			})
			pr := s.propose(branch)
			err := s.p.Assign(t.Context(), s.Ref(), pr.Number, reviewers, nil)
			if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, `"Members: read"`) {
				t.Errorf("message %q", e.Message)
			}
		})
	}
}

func (s *scene) examine(base string, labels ...string) gitprovider.Access {
	s.t.Helper()
	access, err := s.p.Examine(s.t.Context(), s.Ref(), base, labels)
	must.Do(s.t, err)
	return access
}

func told(b *bool) string {
	switch {
	case b == nil:
		return "unknown"
	case *b:
		return "yes"
	}
	return "no"
}

func TestExamineTellsWhatTheTokenMayDo(t *testing.T) {
	for name, row := range map[string]struct {
		set  func(*fakegithub.Settings)
		want []string // push, push to base, merge, protected
	}{
		"in a plain repository": {func(*fakegithub.Settings) {}, []string{"yes", "yes", "yes", "no"}},
		"as a reader": {func(s *fakegithub.Settings) { s.Token.Permission = "read" },
			[]string{"no", "no", "no", "no"}},
		"in an archived repository": {func(s *fakegithub.Settings) { s.Archived = true }, []string{"no", "no", "no", "no"}},
		"with a protected base": {func(s *fakegithub.Settings) { s.Protection.Protected = []string{"main"} },
			[]string{"yes", "no", "no", "yes"}},
		"with reviews": {reviewed, []string{"yes", "no", "no", "yes"}},
		"as an administrator besides": {func(s *fakegithub.Settings) { reviewed(s); s.Token.Permission = "admin" },
			[]string{"yes", "no", "yes", "yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.configure(row.set)
			var access gitprovider.Access
			if cost := s.cost(func() { access = s.examine("", "claude-ops", "nope") }); cost > 5 {
				t.Errorf("%d requests", cost)
			}
			got := []string{told(access.CanPush), told(access.CanPushToBase), told(access.CanMerge), told(access.BaseProtected)}
			s.same("push, push to base, merge, protected", got, row.want)
			s.same("base", access.Base, memhost.MainBranch)
			s.same("missing labels", access.MissingLabels, []string{"nope"})
			if access.User == "" || !slices.Contains(access.Scopes, "repo") {
				t.Errorf("user %q, scopes %q", access.User, access.Scopes)
			}
		})
	}
}

func reviewed(s *fakegithub.Settings) {
	s.Protection.Protected, s.Protection.RequireReview = []string{"main"}, true
}

func TestExamineTellsWhetherChecksRun(t *testing.T) {
	workflow := memhost.File{Path: ".github/workflows/ci.yml", Content: "on: pull_request\n"}
	plain := memhost.File{Path: "README.md", Content: "# Home\n"}
	for name, row := range map[string]struct {
		files []memhost.File
		set   func(base string, set *fakegithub.Settings)
		want  string
	}{
		"no workflow": {[]memhost.File{plain}, func(string, *fakegithub.Settings) {}, "no"},
		"a workflow":  {[]memhost.File{plain, workflow}, func(string, *fakegithub.Settings) {}, "yes"},
		"another service": {[]memhost.File{plain}, func(base string, set *fakegithub.Settings) {
			set.CI.Statuses = map[string][]fakegithub.Status{base: {{Context: "ci", State: "success"}}}
		}, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, row.files...)
			base := s.Branches()[memhost.MainBranch]
			s.configure(func(set *fakegithub.Settings) { row.set(base, set) })
			s.same("checks run", told(s.examine("").ChecksRun), row.want)
		})
	}
}

func TestExamineForetellsTheRulesOfOurBranches(t *testing.T) {
	name := func(operator, pattern string, negate bool) fakegithub.Rule {
		return fakegithub.Rule{Branches: "claude-ops/*/*", Type: "branch_name_pattern",
			Parameters: map[string]any{"operator": operator, "pattern": pattern, "negate": negate}}
	}
	for title, row := range map[string]struct {
		rules    []fakegithub.Rule
		want     []string
		unsigned bool
	}{
		"none":           {nil, nil, false},
		"of other names": {[]fakegithub.Rule{{Branches: "release/*", Type: "creation"}}, nil, false},
		"on creation": {[]fakegithub.Rule{{Branches: "*/*/*", Type: "creation"},
			{Branches: "*/*/*", Type: "non_fast_forward"}},
			[]string{"their creation"}, false},
		"on names that ours have": {[]fakegithub.Rule{name("starts_with", "claude-ops/", false), name("regex", "^x", true),
			name("regex", "(", false)}, nil, false},
		"on names that ours lack": {[]fakegithub.Rule{name("starts_with", "feature/", false), name("contains", "ops", true)},
			[]string{"their names (starts_with feature/)", "their names (contains ops)"}, false},
		"on signatures":             {[]fakegithub.Rule{{Branches: "*/*/*", Type: "required_signatures"}}, nil, true},
		"on signatures of the base": {[]fakegithub.Rule{{Branches: "main", Type: "required_signatures"}}, nil, true},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t)
			s.configure(func(set *fakegithub.Settings) { set.Protection.Rules = row.rules })
			access := s.examine("")
			s.same("restricted", access.BranchRules, row.want)
			s.same("unsigned", access.Unsigned != "", row.unsigned)
		})
	}
}

func TestExamineOfWhatIsNotThere(t *testing.T) {
	s := newScene(t)
	_, err := s.p.Examine(t.Context(), s.Ref(), "releases/1.x", nil)
	if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, "releases/1.x") {
		t.Errorf("message %q", e.Message)
	}
	_, err = s.p.Examine(t.Context(), repo(), "", nil)
	wantCode(t, err, fault.NotFound)
	s.p = setup(t, s.s.URL(), "wrong")
	_, err = s.p.Examine(t.Context(), s.Ref(), "", nil)
	wantCode(t, err, fault.ProviderDisabled)
}

func TestExamineOfATokenWithoutTheScopeSaysThatItMayNotPush(t *testing.T) {
	s := newScene(t)
	s.configure(func(set *fakegithub.Settings) { set.Token.MissingScopes = true })
	access := s.examine("")
	s.same("push", told(access.CanPush), "no")
	s.same("lacks", access.Lacks, []string{"repo"})
}

func TestExamineFindsWhatAFineGrainedTokenLacksWithoutWriting(t *testing.T) {
	for name, row := range map[string]struct {
		set   func(*fakegithub.Settings)
		lacks []string
		push  string
	}{
		"nothing": {func(*fakegithub.Settings) {}, nil, "yes"},
		"contents": {func(s *fakegithub.Settings) { s.Token.NotGranted = []string{"contents"} },
			[]string{"Contents: read and write"}, "no"},
		"pull requests": {func(s *fakegithub.Settings) { s.Token.NotGranted = []string{"pull_requests"} },
			[]string{"Pull requests: read and write"}, "no"},
		"both": {func(s *fakegithub.Settings) { s.Token.NotGranted = []string{"contents", "pull_requests"} },
			[]string{"Contents: read and write", "Pull requests: read and write"}, "no"},
		"what its user may not do either": {func(
			s *fakegithub.Settings) {
			s.Token.Permission = "read"
			s.Token.NotGranted = []string{"contents"}
		}, nil, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.configure(func(set *fakegithub.Settings) { set.Token.FineGrained = true; row.set(set) })
			before := s.Branches()
			var access gitprovider.Access
			if cost := s.cost(func() { access = s.examine("") }); cost > 7 {
				t.Errorf("%d requests", cost)
			}
			s.same("lacks", access.Lacks, row.lacks)
			s.same("push", told(access.CanPush), row.push)
			s.same("scopes", access.Scopes, []string(nil))
			s.same("branches", s.Branches(), before)
			prs, err := s.p.ListOpen(t.Context(), s.Ref(), "")
			must.Do(t, err)
			s.same("pull requests", len(prs), 0)
		})
	}
}

func TestAPingTellsWhetherGitHubServesUs(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/rate_limit" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		_, _ = w.Write([]byte(`{"resources":{"core":{"limit":5000,"remaining":1,"reset":1}}}`))
	})
	for _, tt := range []struct {
		name  string
		fault *httpfault.Fault
		code  fault.Code // "" for an answer that is good
	}{
		{"it answers", nil, ""},
		{"the token was revoked", &httpfault.Fault{Kind: httpfault.Status, Status: 401,
			Body: `{"message":"Bad credentials"}`}, fault.ProviderDisabled},
		{"it is down", &httpfault.Fault{Kind: httpfault.Status, Status: 503, Body: `{"message":"x"}`}, fault.UpstreamError},
		{"it resets connections", &httpfault.Fault{Kind: httpfault.ResetBefore}, fault.UpstreamError},
		{"it comes too often", &httpfault.Fault{Kind: httpfault.Status, Status: 403,
			Header: http.Header{"Retry-After": {"60"}},
			Body:   `{"message":"You have exceeded a secondary rate limit"}`}, fault.RateLimited},
		{"an Enterprise Server without limits", &httpfault.Fault{Kind: httpfault.Status, Status: 404,
			Body: `{"message":"Rate limiting is not enabled."}`}, ""},
		{"no API is there", &httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"Not Found"}`},
			fault.NotFound},
		{"a portal answers with a page", &httpfault.Fault{Kind: httpfault.HTML}, fault.UpstreamError},
		{"something else answers", &httpfault.Fault{Kind: httpfault.Status, Status: 200, Body: `{"ok":true}`},
			fault.UpstreamError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faults, root := script(t, answers)
			if tt.fault != nil {
				faults.PlanFrom(1, *tt.fault)
			}
			err := setup(t, root, secret).Ping(t.Context())
			if tt.code == "" {
				must.Do(t, err)
				return
			}
			if e := wantCode(t, err, tt.code); strings.Contains(e.Error(), secret) {
				t.Errorf("the token is in %v", e)
			}
		})
	}
}

func TestAPingOfAGitHubThatHangsEndsWithItsDeadline(t *testing.T) {
	faults, root := script(t, http.NotFoundHandler())
	faults.PlanFrom(1, httpfault.Fault{Kind: httpfault.Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, setup(t, root, "token").Ping(ctx), fault.Timeout)
}

// The permissions in the app's manifest of the documentation are those that the tests of the app have, with which it
// keeps the contract.
func TestTheManifestAsksForWhatTheAppNeeds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "providers.md"))
	must.Do(t, err)
	found := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/guides/providers.md has no manifest")
	}
	var manifest struct {
		Permissions map[string]string `json:"default_permissions"`
		Public      bool
		Hook        struct{ Active bool } `json:"hook_attributes"`
	}
	must.Do(t, json.Unmarshal(found[1], &manifest))
	want := appPermissions()
	want["metadata"] = "read"
	if diff := cmp.Diff(want, manifest.Permissions); diff != "" || manifest.Public || manifest.Hook.Active {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	for _, members := range []bool{false, true} {
		if members {
			want["members"] = "read"
		}
		made, err := json.Marshal(githubapp.NewManifest("a-name-that-is-longer-than-GitHub-takes", "http://127.0.0.1:1/x", members))
		must.Do(t, err)
		var ours map[string]any
		must.Do(t, json.Unmarshal(made, &ours))
		permissions, _ := ours["default_permissions"].(map[string]any)
		got := map[string]string{}
		for name, level := range permissions {
			got[name], _ = level.(string)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(ours["name"].(string)) != githubapp.MaxName {
			t.Errorf("the manifest of init, members %t (-want +got):\n%s", members, diff)
		}
	}
}

// A code is exchanged once, and stands in no error and no log.
func TestACodeIsExchangedForAnApp(t *testing.T) {
	s := fakegithub.New(t)
	web, err := url.Parse(s.URL() + "/")
	must.Do(t, err)
	manifest, err := json.Marshal(githubapp.NewManifest("claude-ops-joe", s.URL()+"/back", false))
	must.Do(t, err)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	posted, err := browser.PostForm(githubapp.NewAppPage(web, "", "the-state").String(),
		url.Values{"manifest": {string(manifest)}})
	must.Do(t, err)
	_ = posted.Body.Close()
	back, err := posted.Location()
	if err != nil || back.Query().Get("state") != "the-state" || back.Path != "/back" {
		t.Fatalf("GitHub sends the browser to %v, %v", back, err)
	}
	var log bytes.Buffer
	client, err := transport.New(transport.Options{Name: "github", Base: web,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	must.Do(t, err)
	t.Cleanup(client.CloseIdleConnections)
	code := back.Query().Get("code")
	made, err := githubapp.Exchange(t.Context(), client, web, code)
	if err != nil || made.ID != 67890 || made.InstallPage() != s.URL()+"/apps/claude-ops-joe/installations/new" {
		t.Fatalf("%+v, %v", made, err)
	}
	_, err = githubapp.Exchange(t.Context(), client, web, code)
	if fault.CodeOf(err) != fault.NotFound || strings.Contains(err.Error(), code) {
		t.Errorf("a second exchange: %v", err)
	}
	s.Faults().Plan(func(*http.Request) bool { return true },
		httpfault.Fault{Kind: httpfault.Status, Status: http.StatusTeapot, Body: code})
	_, err = githubapp.Exchange(t.Context(), client, web, code)
	if err == nil || strings.Contains(err.Error(), code) {
		t.Errorf("an exchange that fails: %v", err)
	}
	if !strings.Contains(log.String(), "/app-manifests/[redacted]/conversions") || strings.Contains(log.String(), code) {
		t.Errorf("the log is\n%s", log.String())
	}
}
