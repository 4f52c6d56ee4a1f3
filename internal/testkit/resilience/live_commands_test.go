//go:build live && unix

package resilience

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// runs gives what the program says to people, with the token, or with that of the forge.
func (w *world) runs(token string, args ...string) (said string, err error) {
	w.t.Helper()
	var out bytes.Buffer
	cmd := w.program(args...)
	if token != "" {
		cmd.Env = append(cmd.Env, w.kind.options.Variables.Token+"="+token)
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// The server says how a pull request ended, not our record of it.
func TestLiveLiftCooldownAsksTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	number := w.finished().Number
	lift := []string{"review", "lift-cooldown", fmt.Sprint(number), "--repo", w.repo.String()}
	if said, err := w.runs("", lift...); err == nil || !strings.Contains(said, "is open, so it has no cooldown") {
		t.Errorf("while it is open: %s, %v", said, err)
	}
	g.close(w.repo, number) // of which the records know nothing
	w.asked = w.titled("Check inodes once more", "# Inodes once more\n")
	var out bytes.Buffer
	if err := w.process(&out).Run(); err == nil || !strings.Contains(out.String(), "cooldown") {
		t.Errorf("before it is lifted: %s, %v", &out, err)
	}
	if said, err := w.runs("", lift...); err != nil {
		t.Errorf("closed: %s, %v", said, err)
	}
	if again := w.finished(); again.Number <= number {
		t.Errorf("after it was lifted: %+v", again)
	}

	merged := newWorld(t, liveKind())
	number = merged.finished().Number
	merged.forge.(*liveGitea).merge(merged.repo, number)
	if said, err := merged.runs("", "review", "lift-cooldown", fmt.Sprint(number), "--repo",
		merged.repo.String()); err == nil ||
		!strings.Contains(said, "was merged, so it has no cooldown") {
		t.Errorf("merged: %s, %v", said, err)
	}
}

func TestLiveResumeAsksTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(g *liveGitea, repo gitprovider.RepoRef)
		want gitprovider.State
	}{
		"merged": {func(g *liveGitea, repo gitprovider.RepoRef) { g.merge(repo, 1) }, gitprovider.StateMerged},
		"closed": {func(g *liveGitea, repo gitprovider.RepoRef) { g.close(repo, 1) }, gitprovider.StateClosed},
		"open":   {func(*liveGitea, gitprovider.RepoRef) {}, gitprovider.StateOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := liveKind()
			w := newWorld(t, k)
			w.killedWhen(opensPull, true) // it was opened, and its process heard nothing of it
			w.forge.Faults().Forget()
			g := w.forge.(*liveGitea)
			g.untilOpen(w.repo)
			c.end(g, w.repo)
			said, err := w.runs("", "pr", "resume")
			if err != nil || !strings.Contains(said, "settled: it is #1") {
				t.Errorf("%s, %v", said, err)
			}
			key := record.PullKey{Provider: k.name, Owner: w.repo.Owner, Repo: w.repo.Name, Number: 1}
			pull, found, err := w.store.Pulls.FindPull(t.Context(), key)
			if err != nil || !found || pull.State != c.want {
				t.Errorf("the records have %+v, %t, %v", pull, found, err)
			}
		})
	}
}

// doctor advises what can be done, and not what is done already.
func TestLiveDoctorAdvises(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	asks := func(token, says, not string) {
		t.Helper()
		said, _ := w.runs(token, "doctor", "--online", "--repo", w.repo.String()) // ends with 3 where something is wrong
		if !strings.Contains(said, says) || not != "" && strings.Contains(said, not) {
			t.Errorf("want %q and not %q:\n%s", says, not, said)
		}
	}
	const require, approved = "require a review there", "once they are approved"
	asks("", require, approved)
	protection := "repos/" + w.repo.String() + "/branch_protections"
	g.must(http.MethodPost, protection, map[string]any{"rule_name": "main", "required_approvals": 1}, nil)
	asks("", approved, require)

	g.change(w.repo, map[string]any{"private": true})
	asks(g.publicOnly(w.repo), "is limited to public repositories", "public_only")

	empty := gitprovider.RepoRef{Owner: w.repo.Owner, Name: w.repo.Name + "-empty"}
	g.must(http.MethodPost, "user/repos", map[string]any{"name": empty.Name, "default_branch": "main"}, nil)
	g.removeInTheEnd(empty)
	w.repo = empty
	asks("", "has no commit yet; make a first one", "")
}

// publicOnly is a token for public repositories alone, of a user who may write.
func (g *liveGitea) publicOnly(repo gitprovider.RepoRef) string {
	g.t.Helper()
	who, password := "cat-"+strings.ToLower(rand.Text())[:8], rand.Text()
	g.must(http.MethodPost, "admin/users", map[string]any{
		"username": who, "email": who + "@example.test", "password": password, "must_change_password": false,
	}, nil)
	g.t.Cleanup(func() { g.must(http.MethodDelete, "admin/users/"+who+"?purge=true", nil, nil) })
	g.must(http.MethodPut, "repos/"+repo.String()+"/collaborators/"+who, map[string]any{"permission": "write"}, nil)
	status, answer := g.callWith("Basic "+base64.StdEncoding.EncodeToString([]byte(who+":"+password)), "", http.MethodPost,
		"users/"+who+"/tokens",
		map[string]any{"name": "public", "scopes": []string{"public-only", "write:repository", "write:issue", "read:user"}})
	var made struct {
		Token string `json:"sha1"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.Token == "" {
		g.t.Fatalf("no token: %d %.300s", status, answer)
	}
	return made.Token
}

// A process that answers a review is killed at each of its requests, with a commit and without one.
func TestLiveAnswersAreKilledAtWhicheverRequest(t *testing.T) {
	for _, commit := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a commit: %t", commit), func(t *testing.T) {
			t.Parallel()
			killAtEachRequestOfAnAnswer(t, liveKind(), commit)
		})
	}
}

// What a person has the server do to our branch leaves our commits ours.
func TestLiveUpdatedBranchIsRevisable(t *testing.T) {
	for _, style := range []string{"merge", "rebase"} {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			r, g := newLiveRevised(t)
			g.must(http.MethodPost, "repos/"+r.repo.String()+"/contents/elsewhere.md", map[string]any{
				"branch": "main", "message": "meanwhile", "content": []byte("more\n"),
			}, nil)
			g.updateBranch(r.repo, 1, style)
			r.head = g.Seen(r.repo, 1, r.branch).tip
			if got := r.status(1).Revise; got != "yes: revises 1" {
				t.Errorf("status says %q", got)
			}
			if result, err := r.revise(t.Context()); err != nil || !result.Revised {
				t.Fatalf("%+v, %v", result, err)
			}
			r.assertOnce("at the end", true)
		})
	}
}

// A red check of the head opens a revision, which answers it.
func TestLiveRedCheckOpensARevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	w.policy.Revisions.Once = false // else a fresh one may be corrected anyway
	g := w.forge.(*liveGitea)
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("before, status says %q", got)
	}
	set := func(state string) {
		g.must(http.MethodPost, "repos/"+w.repo.String()+"/statuses/"+first.Commit, map[string]any{
			"state": state, "context": "ci/lint", "description": "line 3 is too long", "target_url": "https://ci.example/1",
		}, nil)
	}
	set("pending")
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("while it runs, status says %q", got)
	}
	set("failure")
	status := w.status(1)
	if !strings.HasPrefix(status.Revise, "yes: revises 1") || !strings.Contains(fmt.Sprintf("%+v", status), "ci/lint") {
		t.Errorf("with a red check, status is %+v", status)
	}
	r := &revised{world: w, branch: first.Branch, head: first.Commit}
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := w.status(1).Revise; !strings.HasPrefix(got, "no: ") {
		t.Errorf("after the revision, status says %q", got)
	}
}

// TestLiveRequestsOfTheProgram counts what a process asks of the real server: seven requests for new files, one more
// for a file that is changed, and at most twelve for a revision.
func TestLiveRequestsOfTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	count := func(what string, asked []byte, least, most int) {
		t.Helper()
		w.forge.Faults().Forget()
		w.asked = asked
		w.finished()
		n := len(w.forge.Faults().Requests())
		t.Logf("%s: %d requests", what, n)
		if n < least || n > most {
			for _, r := range w.forge.Faults().Requests() {
				t.Log(r.Method, r.Path, r.Query)
			}
			t.Errorf("%s: %d requests, want %d", what, n, most)
		}
	}
	count("new files", w.titled("Check inodes", "# Inodes\n"), 7, 7)
	other := newWorld(t, liveKind())
	w, other = other, w
	count("new files and an updated one", w.request(), 8, 8)
	w = other
	r := newRevisedFor(t, liveKind(), true)
	w = r.world
	count("a revision", r.request(), 1, 12)
	r.assertOnce("at the end", true)
}

// TestLiveListOfManyCostsFewRequests is TestAListOfManyCostsFewRequests at the real server.
func TestLiveListOfManyCostsFewRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	withMemory(w)
	w.listsCheaply()
}
