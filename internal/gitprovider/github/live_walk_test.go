package github_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// liveSettings say on which GitHub, and as whom, to walk.
type liveSettings struct {
	api          *url.URL
	owner, token string
}

// liveSettingsFrom reads GITHUB_TOKEN, GITHUB_LIVE_OWNER and, if it is not github.com, GITHUB_API_URL. The error says
// what to set, and holds no token.
func liveSettingsFrom(getenv func(string) string) (liveSettings, error) {
	set := liveSettings{token: getenv("GITHUB_TOKEN"), owner: getenv("GITHUB_LIVE_OWNER")}
	var err error
	if set.token == "" || set.owner == "" {
		err = errors.New("set GITHUB_TOKEN to a token that may create and delete repositories of GITHUB_LIVE_OWNER, " +
			"which is its user or an organisation: a classic one with the scopes repo and delete_repo, or a fine-grained one for all " +
			"repositories that may write Administration, Contents and Pull requests")
	}
	api, wrong := url.Parse(cmp.Or(getenv("GITHUB_API_URL"), "https://api.github.com/"))
	set.api = api
	return set, errors.Join(err, wrong)
}

// maxLiveRequests bounds what a walk may cost.
const maxLiveRequests = 200

// walker is somebody who uses the adapter and REST on one repository.
type walker struct {
	testing.TB
	set    liveSettings
	client *transport.Transport
	p      *github.Provider
	repo   gitprovider.RepoRef
	base   string
	sleep  func(context.Context, time.Duration)
}

// walk makes a repository, does with it what a proposal's life consists of, and removes it. It returns how many
// requests it took.
func walk(t testing.TB, set liveSettings, sleep func(context.Context, time.Duration)) int64 {
	t.Helper()
	var requests atomic.Int64
	client, err := transport.New(transport.Options{
		Name: github.Name, Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Base: set.api,
		Token: set.token, Clock: transport.Clock{Sleep: sleep}, UserAgent: "claudeops-test",
		Limits:  transport.Limits{WritePause: time.Second, Retries: 4, MaxRetryAfter: 10 * time.Minute},
		Observe: func(string, time.Duration) { requests.Add(1) },
	})
	must.Do(t, err)
	t.Cleanup(client.CloseIdleConnections)
	w := &walker{TB: t, set: set, client: client, sleep: sleep,
		p: github.New(
			github.Options{API: set.api, Client: client, CreateLabels: func() bool { return true }, Sleep: sleep},
		),
		repo: gitprovider.RepoRef{Owner: set.owner, Name: "claude-ops-live-" + strings.ToLower(rand.Text())}}
	w.begin()
	w.step("examine", w.examine)
	w.step("propose", w.propose)
	w.step("revise", w.revise)
	w.step("merge", w.merge)
	w.step("refuse", w.refuse)
	return requests.Load()
}

// step logs what goes well, for people who run this for the first time.
func (w *walker) step(name string, do func()) {
	w.Helper()
	do()
	w.Logf("%s: as expected", name)
}

// rest is request for what must succeed.
func (w *walker) rest(method, path string, body, into any) {
	w.Helper()
	if status := w.request(method, path, body, into); status >= 300 {
		w.Fatalf("%s %s: %d", method, path, status)
	}
}

// request makes a request as the token's user and decodes a success into into. A refusal that can come from GitHub's
// not having caught up is tried again.
func (w *walker) request(method, path string, body, into any) (status int) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context()) // the cleanup makes requests too
	for range 10 {
		var in io.Reader
		if body != nil {
			raw, err := json.Marshal(body)
			must.Do(w, err)
			in = bytes.NewReader(raw)
		}
		req, err := http.NewRequestWithContext(ctx, method,
			transport.URL(w.set.api, strings.Split(path, "/")...).String(), in)
		must.Do(w, err)
		resp, err := w.client.Client().Do(req)
		must.Do(w, err)
		answer, err := io.ReadAll(resp.Body)
		must.Do(w, errors.Join(err, resp.Body.Close()))
		status = resp.StatusCode
		if status < 300 {
			if into != nil {
				must.Do(w, json.Unmarshal(answer, into))
			}
			return status
		}
		w.Logf("%s %s: %d %.200s", method, path, status, answer)
		if !slices.Contains([]int{404, 405, 409, 422}, status) {
			break
		}
		w.sleep(ctx, 2*time.Second)
	}
	return status
}

// remove removes the repository. If it is not known whether it was made, there may be none.
func (w *walker) remove(made bool) {
	w.Helper()
	at := strings.TrimSuffix(w.at(""), "/")
	switch status := w.request(http.MethodDelete, at, nil, nil); {
	case status < 300:
		w.Log("the repository is removed")
	case status == http.StatusNotFound && !made:
		w.Log("no repository was made")
	default:
		w.Fatalf("%s was not removed (%d): remove it by hand", w.repo, status)
	}
}

func (w *walker) at(path string) string { return "repos/" + w.repo.String() + "/" + path }

// begin makes the repository, with a file that is executable.
func (w *walker) begin() {
	w.Helper()
	var me struct{ Login string }
	w.rest(http.MethodGet, "user", nil, &me)
	path := "orgs/" + w.set.owner + "/repos"
	if strings.EqualFold(me.Login, w.set.owner) {
		path = "user/repos"
	}
	var made struct {
		DefaultBranch string `json:"default_branch"`
	}
	w.Cleanup(func() { w.remove(made.DefaultBranch != "") })
	w.rest(http.MethodPost, path, map[string]any{"name": w.repo.Name, "private": true, "auto_init": true}, &made)
	w.base = made.DefaultBranch
	tip, err := "", error(nil)
	for range 10 {
		if tip, err = w.p.BranchTip(w.Context(), w.repo, w.base); tip != "" {
			break
		}
		w.sleep(w.Context(), 2*time.Second)
	}
	must.Do(w, err)
	var tree, commit struct{ SHA string }
	w.rest(http.MethodPost, w.at("git/trees"), map[string]any{"base_tree": tip, "tree": []any{
		map[string]any{"path": "checks/disk.md", "mode": "100644", "type": "blob", "content": "# Disk\n"},
		map[string]any{"path": "playbooks/restart.md", "mode": "100755", "type": "blob", "content": "# Restart\n"},
	}}, &tree)
	w.rest(http.MethodPost, w.at("git/commits"), map[string]any{"message": "Begin", "tree": tree.SHA,
		"parents": []string{tip}}, &commit)
	w.rest(http.MethodPatch, w.at("git/refs/heads/"+w.base), map[string]any{"sha": commit.SHA}, nil)
	w.sleep(w.Context(), 5*time.Second)
}

func (w *walker) examine() {
	w.Helper()
	access, err := w.p.Examine(w.Context(), w.repo, "", []string{gitprovider.LabelOurs})
	must.Do(w, err)
	if access.Base != w.base || access.CanPush == nil || !*access.CanPush || access.User == "" ||
		!slices.Equal(access.MissingLabels, []string{gitprovider.LabelOurs}) {
		w.Fatalf("access %+v", access)
	}
	must.Do(w, w.p.Ping(w.Context()))
}

// look reads a branch, until it has a commit that the tests know of.
func (w *walker) look(base string, paths ...string) *gitprovider.Snapshot {
	w.Helper()
	q := gitprovider.SnapshotQuery{Repo: w.repo, Base: base, Contents: true, ClosedSince: time.Now().Add(-time.Hour)}
	for _, path := range paths {
		q.Paths = append(q.Paths, providertest.Path(w, path))
	}
	for range 10 {
		out, err := w.p.Snapshot(w.Context(), q)
		must.Do(w, err)
		if out.Tree["playbooks"].Kind == gitprovider.KindDir {
			return out
		}
		w.sleep(w.Context(), 2*time.Second)
	}
	w.Fatalf("GitHub does not show the first commit on %s", base)
	return nil
}

// liveBranch is the branch of the walk's one pull request, which has the number 1.
const liveBranch = "claude-ops/fix/live-walk"

func (w *walker) commit(branch string, changes ...gitprovider.FileChange) (gitprovider.Commit, error) {
	w.Helper()
	return w.p.Commit(w.Context(), gitprovider.CommitRequest{
		Snapshot: w.look("", "checks/disk.md", "checks/new.md"), Branch: branch,
		Changes: providertest.ChangeSet(w, changes...), Message: "Walk\n\nTo see that it goes.\n",
	})
}

func (w *walker) propose() {
	w.Helper()
	ctx := w.Context()
	made, err := w.commit(liveBranch, providertest.Create("checks/new.md", "# New\n"),
		providertest.Update("checks/disk.md", "# Disk\n\ndf -h\n"))
	must.Do(w, err)
	var seen struct{ Verification struct{ Verified bool } }
	w.rest(http.MethodGet, w.at("git/commits/"+made.ID), nil, &seen)
	w.Logf("the commit is signed by GitHub: %t", seen.Verification.Verified)
	spec := gitprovider.PullRequestSpec{Repo: w.repo, Base: w.base, Head: liveBranch, Title: "Walk", Body: "Why."}
	pr, err := w.p.OpenPullRequest(ctx, spec)
	must.Do(w, err)
	again, err := w.p.OpenPullRequest(ctx, spec)
	must.Do(w, err)
	if pr.Number != 1 || again.Number != 1 || pr.HeadCommit != made.ID {
		w.Fatalf("opened %+v, then %+v", pr, again)
	}
	must.Do(w, w.p.Label(ctx, w.repo, 1, []string{gitprovider.LabelOurs}))
	must.Do(w, w.p.Assign(ctx, w.repo, 1, nil, []string{pr.Author}))
	wantCode(w, w.p.Assign(ctx, w.repo, 1, []string{pr.Author}, nil), fault.NotFound) // the author reviews nothing
	details, err := w.p.Details(ctx, w.repo, 1)
	must.Do(w, err)
	list, err := w.p.ListOpen(ctx, w.repo, gitprovider.LabelOurs)
	must.Do(w, err)
	if !slices.Contains(details.Labels, gitprovider.LabelOurs) || len(details.Assignees) != 1 || len(list) != 1 ||
		!slices.Equal(list[0].Paths, []string{"checks/disk.md", "checks/new.md"}) {
		w.Fatalf("details %+v, list %+v", details, list)
	}
}

func (w *walker) revise() {
	w.Helper()
	ctx := w.Context()
	must.Do(w, w.p.Comment(ctx, w.repo, 1, "A comment."))
	w.rest(http.MethodPost, w.at("pulls/1/reviews"), map[string]any{"event": "COMMENT", "body": "A review."}, nil)
	remarks, err := w.p.Remarks(ctx, w.repo, 1)
	must.Do(w, err)
	if len(remarks) != 2 || !remarks[0].MayWrite || !remarks[1].MayWrite {
		w.Fatalf("remarks %+v", remarks)
	}
	states, err := w.p.ReviewStates(ctx, w.repo, []int{1})
	must.Do(w, err)
	if len(states) != 0 {
		w.Fatalf("states of reviews %v", states)
	}
	_, err = w.p.SetText(ctx, w.repo, 1, "Walk on", "Why not.")
	must.Do(w, err)
	snapshot := w.look(liveBranch, "playbooks/restart.md")
	appended, err := w.p.Append(ctx, gitprovider.CommitRequest{
		Snapshot: snapshot, Branch: liveBranch, Message: "Walk on",
		Changes: providertest.ChangeSet(w, providertest.Update("playbooks/restart.md", "# Restart\n\nTwice.\n")),
	})
	must.Do(w, err)
	info, err := w.p.ReadCommit(ctx, w.repo, appended.ID)
	must.Do(w, err)
	after := w.look(liveBranch, "playbooks/restart.md")
	if !slices.Equal(info.Paths, []string{"playbooks/restart.md"}) || !after.Tree["playbooks/restart.md"].Executable {
		w.Fatalf("the commit %+v, the file %+v", info, after.Tree["playbooks/restart.md"])
	}
}

func (w *walker) merge() {
	w.Helper()
	ctx := w.Context()
	status, err := w.p.Status(ctx, w.repo, 1)
	must.Do(w, err)
	checks, err := w.p.Checks(ctx, w.repo, 1, status.HeadCommit)
	must.Do(w, err)
	w.Logf("mergeable: %s, checks: %s", told(status.Mergeable), checks.State)
	if status.State != gitprovider.StateOpen || status.Title != "Walk on" || len(status.Reviews) != 2 {
		w.Fatalf("status %+v", status)
	}
	w.rest(http.MethodPut, w.at("pulls/1/merge"), map[string]any{"merge_method": "merge"}, nil)
	for range 10 {
		if status, err = w.p.Status(ctx, w.repo, 1); status.State == gitprovider.StateMerged {
			break
		}
		w.sleep(ctx, 2*time.Second)
	}
	must.Do(w, err)
	wantCode(w, w.p.DeleteBranch(ctx, w.repo, liveBranch, strings.Repeat("1", 40)), fault.Conflict)
	must.Do(w, w.p.DeleteBranch(ctx, w.repo, liveBranch, status.HeadCommit))
	found, err := w.p.FindByHead(ctx, w.repo, liveBranch)
	must.Do(w, err)
	branches, err := w.p.OurBranches(ctx, w.repo)
	must.Do(w, err)
	if status.State != gitprovider.StateMerged || found == nil || found.Number != 1 || len(branches) != 0 {
		w.Fatalf("status %+v, found %+v, branches %v", status, found, branches)
	}
}

func (w *walker) refuse() {
	w.Helper()
	ctx := w.Context()
	old := w.look("", "checks/disk.md")
	old.BaseCommit = old.Tree["checks/disk.md"].ID // of no commit
	_, err := w.p.Commit(ctx, gitprovider.CommitRequest{Snapshot: old, Branch: "claude-ops/fix/refused", Message: "No",
		Changes: providertest.ChangeSet(w, providertest.Update("checks/disk.md", "no\n"))})
	if code := fault.CodeOf(err); code != fault.Conflict && code != fault.UpstreamError {
		w.Fatalf("a commit on a base that is none: %v", err)
	}
	_, err = w.p.Status(ctx, w.repo, 4711)
	wantCode(w, err, fault.NotFound)
	missing := w.repo
	missing.Name += "-missing"
	_, err = w.p.ListOpen(ctx, missing, gitprovider.LabelOurs)
	wantCode(w, err, fault.NotFound)
	_, err = w.p.OpenPullRequest(ctx, gitprovider.PullRequestSpec{Repo: w.repo, Base: w.base, Head: "claude-ops/fix/none",
		Title: "None"})
	wantCode(w, err, fault.NotFound)
	branches, err := w.p.OurBranches(ctx, w.repo)
	must.Do(w, err)
	if len(branches) != 0 {
		w.Fatalf("branches are left: %v", branches)
	}
}

// stopped is a test that ends early, without failing the one that it is a part of.
type stopped struct {
	testing.TB
	why  string
	last []func()
}

func (s *stopped) Helper()           {}
func (s *stopped) Cleanup(do func()) { s.last = append(s.last, do) }
func (s *stopped) Fatalf(format string, a ...any) {
	s.why = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

// run runs a test and what it does at its end.
func (s *stopped) run(do func()) {
	each := func(do func()) {
		done := make(chan struct{})
		go func() { defer close(done); do() }()
		<-done
	}
	each(do)
	for _, do := range slices.Backward(s.last) {
		each(do)
	}
}

// A walk that fails removes its repository, also where it is not known whether GitHub has made it.
func TestALiveWalkThatFailsLeavesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		at   string
		kind httpfault.Kind
		made bool
	}{
		"the repository is made, and the answer lost": {"/repos", httpfault.ResetAfter, true},
		"the repository is not made":                  {"/repos", httpfault.ResetBefore, false},
		"a later request fails":                       {"/git/trees", httpfault.HTML, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakegithub.New(t)
			s.Faults().Plan(func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, row.at)
			}, httpfault.Fault{Kind: row.kind})
			api, err := url.Parse(s.URL())
			must.Do(t, err)
			part := &stopped{TB: t}
			part.run(func() {
				walk(part, liveSettings{api: api, owner: s.Viewer(), token: s.Token()},
					func(context.Context, time.Duration) { s.Settle() })
			})
			if part.why == "" {
				t.Error("the walk did not fail")
			}
			seen := s.Faults().Requests()
			last := seen[len(seen)-1]
			if want := map[bool]int{true: 204, false: 404}[row.made]; last.Method != http.MethodDelete || last.Status != want {
				t.Errorf("the last request is %s %s: %d", last.Method, last.Path, last.Status)
			}
		})
	}
}

// The walk that somebody with an account takes on GitHub goes on the fake, at once and where it lags, and leaves
// nothing.
func TestTheLiveWalkTakesFewRequestsAndLeavesNothing(t *testing.T) {
	for name, lags := range map[string]bool{"at once": false, "where GitHub lags": true} {
		t.Run(name, func(t *testing.T) {
			s := fakegithub.New(t)
			s.SetInitialBranch("trunk")
			if lags {
				s.Lag()
			}
			api, err := url.Parse(s.URL())
			must.Do(t, err)
			var requests int64
			t.Run("walk", func(t *testing.T) {
				set := liveSettings{api: api, owner: s.Viewer(), token: s.Token()}
				requests = walk(t, set, func(context.Context, time.Duration) { s.Settle() })
			})
			t.Logf("%d requests", requests)
			if requests < 30 || requests >= maxLiveRequests {
				t.Errorf("%d requests", requests)
			}
			seen := s.Faults().Requests()
			if last := seen[len(seen)-1]; last.Method != http.MethodDelete || strings.Count(last.Path, "/") != 3 {
				t.Errorf("the last request is %s %s", last.Method, last.Path)
			}
			for _, r := range seen {
				if strings.HasPrefix(r.Path, "/repos/") && !strings.Contains(r.Path, "/claude-ops-live-") {
					t.Errorf("another repository was asked about: %s", r.Path)
				}
			}
		})
	}
}

func TestTheLiveSettingsSayWhatIsMissing(t *testing.T) {
	env := map[string]string{"GITHUB_TOKEN": "ghp_secret"}
	_, err := liveSettingsFrom(func(name string) string { return env[name] })
	if err == nil || !strings.Contains(err.Error(), "GITHUB_LIVE_OWNER") || strings.Contains(err.Error(), "ghp_secret") {
		t.Errorf("got %v", err)
	}
}
