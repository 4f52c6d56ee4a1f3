//go:build live && unix

package resilience

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// What people set and do at a real Gitea, and what an agent and its operator are told of it, is held here.

// refusal returns the fault that a request ends with.
func (w *world) refusal(raw []byte, want fault.Code) *fault.Error {
	w.t.Helper()
	result, err := w.service().Create(w.t.Context(), agent(), raw)
	if fault.CodeOf(err) != want {
		w.t.Fatalf("%+v, %v, want %s", result, err, want)
	}
	return fault.From(err)
}

// blob returns the id of a text.
func blob(text string) string { return gitprovider.BlobID([]byte(text), strings.Repeat("0", 40)) }

// push writes a file to main, as a person does in the web interface.
func (g *liveGitea) push(repo gitprovider.RepoRef, path, content string) {
	g.t.Helper()
	change := map[string]any{"operation": "create", "path": path, "content": []byte(content)}
	var old struct {
		SHA string `json:"sha"`
	}
	at := "repos/" + repo.String() + "/contents"
	if status, answer := g.call("", http.MethodGet, at+"/"+path, nil); status == http.StatusOK {
		g.decode(answer, &old)
		change["operation"], change["sha"] = "update", old.SHA
	}
	g.must(http.MethodPost, at, map[string]any{
		"branch": memhost.MainBranch, "message": "a person's", "files": []any{change},
	}, nil)
}

func (g *liveGitea) branch(repo gitprovider.RepoRef, name string) {
	g.t.Helper()
	g.must(http.MethodPost, "repos/"+repo.String()+"/branches",
		map[string]any{"new_branch_name": name, "old_branch_name": memhost.MainBranch}, nil)
}

// The status, a revision and the identical call say the same about a pull request that was moved to another branch.
func TestLiveTargetBranchIsChanged(t *testing.T) {
	t.Parallel()
	r, g := newLiveRevised(t)
	g.branch(r.repo, "release")
	g.must(http.MethodPatch, pullPath(r.repo, 1), map[string]any{"base": "release"}, nil)
	const says = `#1 goes into "release" now`
	if got := r.status(1).Revise; !strings.HasPrefix(got, "no: "+says) {
		t.Errorf("status says %q", got)
	}
	if e := r.refusal(r.request(), fault.Conflict); !strings.Contains(e.Message, says) {
		t.Errorf("the revision: %v", e)
	}
	if e := r.refusal(r.world.request(), fault.DuplicatePR); !strings.Contains(e.Next, says) {
		t.Errorf("the identical call: %s", e.Next)
	}
	r.assertOnce("at the end", false)
}

// A comment in the conversation, and comments one by one, are told with their words.
func TestLiveEachWordIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	w.policy.Revisions.Once = false
	g := w.forge.(*liveGitea)
	if _, err := w.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.comment("bob", w.repo, 1, "And how often?")
	if s := w.status(1); s.Revise != "yes: revises 1" || len(s.Reviews) != 1 || s.Reviews[0].Author != "bob" ||
		s.Reviews[0].Body != "And how often?" {
		t.Errorf("status says %q and %+v", s.Revise, s.Reviews)
	}
	for told := 0; told < 25; {
		for range map[bool]int{true: 12, false: 13}[told == 0] {
			told++
			g.review("ann", w.repo, 1, "COMMENT", "", onInodes(fmt.Sprintf("remark %d.", told)))
		}
		s, lines := w.status(1), 0
		for _, said := range s.Reviews {
			lines += len(said.Comments)
			if said.LeftOut > 0 {
				t.Errorf("of %d comments %d are left out", told, said.LeftOut)
			}
		}
		if lines != told {
			t.Errorf("of %d comments %d are told", told, lines)
		}
	}
}

// Main moves in another line of the same file, and a person has the server bring our branch up to date.
func TestLiveBranchIsUpdatedInAFileOfOurs(t *testing.T) {
	t.Parallel()
	const was = "# Disk\n\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	for _, style := range []string{"merge", "rebase"} {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, liveKind())
			g := w.forge.(*liveGitea)
			g.push(w.repo, "checks/disk.md", was)
			propose := func(base, old, text string, more map[string]any) {
				t.Helper()
				more["title"], more["body"] = "Say it", "So."
				more["files"] = []any{editOf("checks/disk.md", blob(base), old, text)}
				result, err := w.service().Create(t.Context(), agent(), w.arguments(more))
				if err != nil {
					t.Fatalf("%+v, %v", result, err)
				}
			}
			propose(was, "two\n", "TWO\n", map[string]any{})
			w.askForChanges(1)
			g.push(w.repo, "checks/disk.md", strings.Replace(was, "seven", "SEVEN", 1))
			g.updateBranch(w.repo, 1, style)
			if got := w.status(1).Revise; got != "yes: revises 1" {
				t.Errorf("status says %q", got)
			}
			both := strings.NewReplacer("two", "TWO", "seven", "SEVEN").Replace(was)
			propose(both, "four\n", "FOUR\n", map[string]any{"revises": 1})
			var file struct {
				Content []byte `json:"content"`
			}
			g.must(http.MethodGet, "repos/"+w.repo.String()+"/contents/checks/disk.md?ref="+
				url.QueryEscape(g.head(w.repo, 1)), nil, &file)
			if string(file.Content) != strings.Replace(both, "four", "FOUR", 1) {
				t.Errorf("the file holds %q", file.Content)
			}
		})
	}
}

// LFS in force for a path is refused for good, by the gate and by what the server stores; nothing is reserved.
func TestLiveFileOfLFS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	g.push(w.repo, ".gitattributes", "*.md filter=lfs diff=lfs merge=lfs -text\n")
	if said, _ := w.runs("", "doctor", "--online", "--repo", w.repo.String()); !strings.Contains(said, "*.md (lfs)") {
		t.Errorf("doctor says nothing of it:\n%s", said)
	}
	e := w.refusal(w.request(), fault.ContentDenied)
	if len(e.Violations) == 0 || e.Violations[0].Rule != "filter" || !e.Violations[0].Final {
		t.Errorf("%+v", e.Violations)
	}
	if branches, open := g.Look(w.repo); len(branches)+len(open) > 0 {
		t.Errorf("branches %v, open %v", branches, open)
	}
	g.push(w.repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	result, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.assertTheOne(result.Number)
}

// A person's branch claude-ops leaves no room for ours, whatever their titles are.
func TestLiveBranchAtTheNameOfOurFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	g.branch(w.repo, "claude-ops")
	e := w.refusal(w.request(), fault.RepoNotAllowed)
	if !strings.Contains(e.Error(), "rename or remove") || strings.Contains(e.Error(), "another title") {
		t.Error(e)
	}
	g.must(http.MethodDelete, "repos/"+w.repo.String()+"/branches/claude-ops", nil, nil)
	if _, err := w.create(t.Context()); err != nil {
		t.Errorf("once it is gone: %v", err)
	}
}

// doctor warns of a rule that demands signatures, and the refusal names what helps.
func TestLiveRuleThatDemandsSignatures(t *testing.T) {
	t.Parallel()
	for pattern, warns := range map[string]string{"**": "the commits of proposals", "main": "the merge commits on main"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, liveKind())
			g := w.forge.(*liveGitea)
			g.must(http.MethodPost, "repos/"+w.repo.String()+"/branch_protections",
				map[string]any{"rule_name": pattern, "enable_push": true, "require_signed_commits": true}, nil)
			if said, _ := w.runs("", "doctor", "--online", "--repo", w.repo.String()); !strings.Contains(said, warns) {
				t.Errorf("doctor says nothing of %s:\n%s", warns, said)
			}
			if pattern == "main" {
				if _, err := w.create(t.Context()); err != nil {
					t.Error(err)
				}
				return
			}
			if e := w.refusal(w.request(), fault.RepoNotAllowed); !strings.Contains(e.Error(), "SIGNING_KEY") {
				t.Error(e)
			}
			if branches, open := g.Look(w.repo); len(branches)+len(open) > 0 {
				t.Errorf("branches %v, open %v", branches, open)
			}
		})
	}
}

// A label of an exclusive scope that a person has set stays, and the answer says which one was left out.
func TestLiveExclusiveLabelOfAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	for _, name := range []string{"state/proposed", "state/approved"} {
		g.must(http.MethodPost, "repos/"+w.repo.String()+"/labels",
			map[string]any{"name": name, "color": "#00aabb", "exclusive": true}, nil)
	}
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.must(http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/labels", w.repo, first.Number),
		map[string]any{"labels": []string{"state/approved"}}, nil)
	w.policy.Labels = append(slices.Clone(w.policy.Labels), "state/proposed")
	again, err := w.create(t.Context())
	if err != nil || !again.Reused || !warned(again, "state/proposed was left out") {
		t.Errorf("%+v, %v", again, err)
	}
	var labels []struct {
		Name string `json:"name"`
	}
	g.must(http.MethodGet, fmt.Sprintf("repos/%s/issues/%d/labels", w.repo, first.Number), nil, &labels)
	if !slices.ContainsFunc(labels, func(l struct {
		Name string `json:"name"`
	}) bool {
		return l.Name == "state/approved"
	}) {
		t.Errorf("the labels are %v", labels)
	}
}

// A proxy that asks for patience is heard at each door: the answer says how long to wait.
func TestLiveProxyAsksForPatience(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	w.forge.Faults().PlanFrom(1, httpfault.Fault{Kind: httpfault.Status, Status: http.StatusServiceUnavailable,
		Header: http.Header{"Retry-After": {"120"}}})
	if _, err := w.create(t.Context()); fault.From(err).RetryAfter != 2*time.Minute {
		t.Errorf("%v", err)
	}
	said, err := w.runs("", "pr", "list", "--repo", w.repo.String(), "--json")
	if err == nil || !strings.Contains(said, `"retry_after_seconds": 120`) {
		t.Errorf("the command: %v\n%s", err, said)
	}
}

// An address without the path below which a proxy serves the forge is answered with the one to set.
func TestLiveAddressWithoutItsPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, liveKind())
	g := w.forge.(*liveGitea)
	proxy := httptest.NewServer(http.StripPrefix("/git", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(g.base)
	}}))
	t.Cleanup(proxy.Close)
	for path, found := range map[string]bool{"": false, "/": false, "/git": true, "/git/": true} {
		cmd := w.program("doctor", "--online", "--repo", w.repo.String())
		cmd.Env = append(cmd.Env, w.kind.options.Variables.Address+"="+proxy.URL+path)
		out, _ := cmd.CombinedOutput() // ends with 3 where something is wrong
		if advised := strings.Contains(string(out), "set GITEA_URL to "+proxy.URL+"/git/"); advised == found {
			t.Errorf("%q:\n%s", path, out)
		}
	}
}

// updateBranch has the server bring a branch up to date with its base, and waits until it has.
func (g *liveGitea) updateBranch(repo gitprovider.RepoRef, number int, style string) {
	g.t.Helper()
	const patience = 40 * time.Second
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	for before := g.head(repo, number); g.head(repo, number) == before; <-time.After(200 * time.Millisecond) {
		if status, answer := g.call("ann", http.MethodPost, pullPath(repo, number, "update?style="+style),
			nil); ctx.Err() != nil {
			g.t.Fatalf("the branch is not updated: %d %.300s", status, answer)
		}
	}
}

// head returns the tip of the branch of a pull request.
func (g *liveGitea) head(repo gitprovider.RepoRef, number int) string {
	g.t.Helper()
	var pr struct {
		Head struct {
			Ref string `json:"ref"`
		} `json:"head"`
	}
	g.must(http.MethodGet, pullPath(repo, number), nil, &pr)
	var branch struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/branches/"+pr.Head.Ref, nil, &branch)
	return branch.Commit.ID
}
