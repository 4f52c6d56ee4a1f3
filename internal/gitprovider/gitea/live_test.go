//go:build live

package gitea_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// TestLive holds the adapter against a real Gitea or Forgejo, one that may be thrown away: GITEA_URL is its address and
// GITEA_TOKEN a token of an administrator's, with all scopes. It makes and removes repositories of that
// administrator's, and, once, the users ann, bob and eve, in whose names it reviews and comments. Only eve may not
// write.
func TestLive(t *testing.T) {
	address, token := os.Getenv("GITEA_URL"), os.Getenv("GITEA_TOKEN")
	if address == "" || token == "" {
		t.Fatal("set GITEA_URL to the address of a Gitea that may be thrown away, and GITEA_TOKEN to a token of one of its " +
			"administrators")
	}
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal("GITEA_URL is not an address")
	}
	h := &live{base: base, token: token}
	var me struct {
		Login string `json:"login"`
	}
	h.must(t, "", http.MethodGet, "user", nil, &me)
	h.owner = me.Login
	for _, name := range []string{"ann", "bob", "eve"} {
		h.person(t, name)
	}
	providertest.Run(t, h)
}

// live makes repositories on the server.
type live struct {
	base  *url.URL
	token string
	owner string
}

// ManyPRs is more than the server's largest page.
func (h *live) ManyPRs() int { return 55 }

func (h *live) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	w := &liveWorld{t: t, live: h, name: "ad-live-" + strings.ToLower(rand.Text()), dir: t.TempDir()}
	h.must(t, "", http.MethodPost, "user/repos", map[string]any{
		"name": w.name, "default_branch": providertest.MainBranch, "auto_init": len(files) > 0,
	}, nil)
	t.Cleanup(func() { h.must(t, "", http.MethodDelete, "repos/"+h.owner+"/"+w.name, nil, nil) })
	for _, name := range []string{"ann", "bob"} {
		w.api("", http.MethodPut, "collaborators/"+name, map[string]any{"permission": "write"}, nil)
	}
	w.label(gitprovider.LabelOurs)
	w.git("", "init", "--quiet", "--bare", "--initial-branch="+providertest.MainBranch)
	if len(files) > 0 {
		w.pushGit(providertest.MainBranch, "", files)
	}
	w.provider = h.provider(t)
	return w
}

func (h *live) provider(t testing.TB) *gitea.Provider {
	client, err := transport.New(transport.Options{
		Name: gitea.Name, Variables: transport.Variables{Token: "GITEA_TOKEN"}, Base: h.base.JoinPath("api", "v1"),
		Token: h.token, Scheme: "token",
		UserAgent: "claudeops-test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return gitea.New(gitea.Options{Base: h.base, Client: client, CreateLabels: func() bool { return true }})
}

// person makes a user, if there is none of the name.
func (h *live) person(t testing.TB, name string) {
	if status, _ := h.call(t, "", http.MethodGet, "users/"+name, nil, nil); status == http.StatusOK {
		return
	}
	h.must(t, "", http.MethodPost, "admin/users", map[string]any{
		"username": name, "email": name + "@example.test", "password": rand.Text(), "must_change_password": false,
	}, nil)
}

// call is one request, in somebody's name if as is not empty.
func (h *live) call(t testing.TB, as, method, path string, body, into any) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method,
		strings.TrimSuffix(h.base.String(), "/")+"/api/v1/"+path, encode(t, body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+h.token)
	req.Header.Set("Content-Type", "application/json")
	if as != "" {
		req.Header.Set("Sudo", as)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil && resp.StatusCode < 300 {
		decode(t, answer, into)
	}
	return resp.StatusCode, string(answer)
}

func (h *live) must(t testing.TB, as, method, path string, body, into any) {
	t.Helper()
	if status, answer := h.call(t, as, method, path, body, into); status >= 300 {
		t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
	}
}

// liveWorld is one repository on the server, and people who use git and the API.
type liveWorld struct {
	t        testing.TB
	live     *live
	name     string
	dir      string // a bare clone
	provider gitprovider.Provider
}

func (w *liveWorld) Provider() gitprovider.Provider { return w.provider }

func (w *liveWorld) Ref() gitprovider.RepoRef {
	return gitprovider.RepoRef{Owner: w.live.owner, Name: w.name}
}

func (w *liveWorld) api(as, method, path string, body, into any) {
	w.t.Helper()
	w.live.must(w.t, as, method, "repos/"+w.Ref().String()+"/"+path, body, into)
}

// Push goes through the API where that can express the files: after a push by git the server takes seconds to notice.
func (w *liveWorld) Push(branch string, files ...providertest.File) (commit string) {
	w.t.Helper()
	branches := w.Branches()
	from := branches[branch]
	if from == "" {
		from = branches[providertest.MainBranch]
	}
	if slices.ContainsFunc(files, func(f providertest.File) bool { return f.Kind != "" || f.Executable }) {
		commit = w.pushGit(branch, from, files)
	} else {
		commit = w.pushAPI(branch, branches[branch] != "", from, files)
	}
	if branch == providertest.MainBranch {
		w.untilRechecked()
	}
	return commit
}

func (w *liveWorld) pushAPI(branch string, exists bool, from string, files []providertest.File) string {
	w.t.Helper()
	body := map[string]any{"branch": branch, "message": "pushed"}
	if !exists {
		body["branch"], body["new_branch"] = providertest.MainBranch, branch
	}
	var changes []map[string]any
	for _, f := range files {
		change := map[string]any{"operation": "create", "path": f.Path, "content": []byte(f.Content)}
		var old struct {
			SHA string `json:"sha"`
		}
		path := "repos/" + w.Ref().String() + "/contents/" + f.Path + "?ref=" + from
		if status, _ := w.live.call(w.t, "", http.MethodGet, path, nil, &old); status == http.StatusOK {
			change["operation"], change["sha"] = "update", old.SHA
		}
		changes = append(changes, change)
	}
	body["files"] = changes
	var made struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	w.api("", http.MethodPost, "contents", body, &made)
	return made.Commit.SHA
}

// untilRechecked waits until the server has found out anew which pull requests can be merged: each first shows the old
// answer for two seconds or, on a busy machine, some more, then false, and in the end the truth. Nothing shows when
// that is over, so this waits for the false and then for a while for a true.
func (w *liveWorld) untilRechecked() {
	w.t.Helper()
	var open []struct {
		Number int `json:"number"`
	}
	w.api("", http.MethodGet, "pulls?state=open", nil, &open)
	for _, pr := range open {
		shows := func(want bool) func() bool {
			return func() bool {
				var now struct {
					Mergeable bool `json:"mergeable"`
				}
				w.api("", http.MethodGet, fmt.Sprintf("pulls/%d", pr.Number), nil, &now)
				return now.Mergeable == want
			}
		}
		w.poll(40*time.Second, shows(false))
		w.poll(4*time.Second, shows(true))
	}
}

// poll looks every 100 ms until done says so or the time is over.
func (w *liveWorld) poll(atMost time.Duration, done func() bool) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(atMost); time.Now().Before(end) && !done(); {
		<-ticker.C
	}
}

func (w *liveWorld) DeleteBranch(branch string) {
	w.t.Helper()
	w.api("", http.MethodDelete, "branches/"+branch, nil, nil)
	// the server closes its pull request after a while
	w.poll(60*time.Second, func() bool { return !w.isHeadOfOpen(branch) })
}

func (w *liveWorld) isHeadOfOpen(branch string) bool {
	w.t.Helper()
	var open []struct {
		Head struct {
			Label string `json:"label"`
		} `json:"head"`
	}
	w.api("", http.MethodGet, "pulls?state=open", nil, &open)
	for _, pr := range open {
		if pr.Head.Label == branch {
			return true
		}
	}
	return false
}

// Merge tries for some seconds: the server refuses (405) while it is still finding out whether it can.
func (w *liveWorld) Merge(number int) {
	w.t.Helper()
	path := fmt.Sprintf("repos/%s/pulls/%d/merge", w.Ref(), number)
	status, answer := 0, ""
	w.poll(10*time.Second, func() bool {
		status, answer = w.live.call(w.t, "", http.MethodPost, path, map[string]any{"Do": "merge"}, nil)
		return status < 300
	})
	if status >= 300 {
		w.t.Fatalf("merge of #%d: %d %.300s", number, status, answer)
	}
}

// UpdateBranch implements providertest.BranchUpdater.
func (w *liveWorld) UpdateBranch(number int, rebase bool, files ...providertest.File) {
	w.t.Helper()
	style := "merge"
	if rebase {
		style = "rebase"
	}
	before := w.Branches()
	w.api("", http.MethodPost, fmt.Sprintf("pulls/%d/update?style=%s", number, style), nil, nil)
	w.poll(10*time.Second, func() bool { return !maps.Equal(before, w.Branches()) })
	if len(files) > 0 {
		w.t.Fatal("the server writes no files while it updates a branch")
	}
}

func (w *liveWorld) Close(number int) {
	w.t.Helper()
	w.api("", http.MethodPatch, fmt.Sprintf("pulls/%d", number), map[string]any{"state": "closed"}, nil)
}

func (w *liveWorld) SetBody(number int, body string) {
	w.t.Helper()
	w.api("", http.MethodPatch, fmt.Sprintf("pulls/%d", number), map[string]any{"body": body}, nil)
}

func (w *liveWorld) Review(number int, author string, state gitprovider.ReviewState, body string) {
	w.t.Helper()
	w.ReviewLines(number, author, state, body)
}

// ReviewLines implements providertest.LineReviewer.
func (w *liveWorld) ReviewLines(number int, author string, state gitprovider.ReviewState, body string,
	lines ...gitprovider.LineComment) {
	w.t.Helper()
	comments := []map[string]any{}
	for _, c := range lines {
		side := "new_position"
		if c.Before {
			side = "old_position"
		}
		comments = append(comments, map[string]any{"path": c.Path, "body": c.Body, side: c.Line})
	}
	event := map[gitprovider.ReviewState]string{
		gitprovider.ReviewApproved: "APPROVED", gitprovider.ReviewChangesRequested: "REQUEST_CHANGES",
		gitprovider.ReviewCommented: "COMMENT", gitprovider.ReviewPending: "PENDING",
	}[state]
	w.api(author, http.MethodPost, fmt.Sprintf("pulls/%d/reviews", number),
		map[string]any{"event": event, "body": body, "comments": comments}, nil)
}

// label gives the id of a label, which it makes if there is none.
func (w *liveWorld) label(name string) int64 {
	w.t.Helper()
	var have []struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	w.api("", http.MethodGet, "labels", nil, &have)
	for _, l := range have {
		if l.Name == name {
			return l.ID
		}
	}
	var made struct {
		ID int64 `json:"id"`
	}
	w.api("", http.MethodPost, "labels", map[string]any{"name": name, "color": "#00aabb"}, &made)
	return made.ID
}

func (w *liveWorld) OpenPR(head, title string, labels ...string) int {
	w.t.Helper()
	ids := []int64{}
	for _, name := range labels {
		ids = append(ids, w.label(name))
	}
	var made struct {
		Number int `json:"number"`
	}
	w.api("", http.MethodPost, "pulls", map[string]any{
		"head": head, "base": providertest.MainBranch, "title": title, "labels": ids,
	}, &made)
	return made.Number
}

func encode(t testing.TB, body any) io.Reader {
	t.Helper()
	if body == nil {
		return http.NoBody
	}
	out, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out)
}

func decode(t testing.TB, from []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(from, into); err != nil {
		t.Fatal(err)
	}
}

var _ providertest.Public = (*liveWorld)(nil)

// Comment implements providertest.Commenter.
func (w *liveWorld) Comment(number int, author, body string) {
	w.t.Helper()
	w.api(author, http.MethodPost, fmt.Sprintf("issues/%d/comments", number), map[string]any{"body": body}, nil)
}

// OpenFromFork implements providertest.Public.
func (w *liveWorld) OpenFromFork(branch, title string, labels []string, files ...providertest.File) int {
	w.t.Helper()
	const who = "eve"
	w.api(who, http.MethodPost, "forks", map[string]any{}, nil)
	fork := "repos/" + who + "/" + w.name
	w.t.Cleanup(func() { w.live.must(w.t, "", http.MethodDelete, fork, nil, nil) })
	var changes []map[string]any
	for _, f := range files {
		change := map[string]any{"operation": "create", "path": f.Path, "content": []byte(f.Content)}
		var old struct {
			SHA string `json:"sha"`
		}
		if status, _ := w.live.call(w.t, "", http.MethodGet, fork+"/contents/"+f.Path, nil, &old); status == http.StatusOK {
			change["operation"], change["sha"] = "update", old.SHA
		}
		changes = append(changes, change)
	}
	w.live.must(w.t, who, http.MethodPost, fork+"/contents", map[string]any{
		"branch": providertest.MainBranch, "new_branch": branch, "message": title, "files": changes,
	}, nil)
	var made struct {
		Number int `json:"number"`
	}
	w.api(who, http.MethodPost, "pulls", map[string]any{
		"head": who + ":" + branch, "base": providertest.MainBranch, "title": title,
	}, &made)
	if len(labels) > 0 {
		w.api("", http.MethodPost, fmt.Sprintf("issues/%d/labels", made.Number), map[string]any{"labels": labels}, nil)
	}
	return made.Number
}

// git runs git in the clone. The token travels in the environment, where no list of processes shows it.
func (w *liveWorld) git(stdin string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "GIT") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: token "+w.live.token)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

func (w *liveWorld) remote() string {
	return strings.TrimSuffix(w.live.base.String(), "/") + "/" + w.Ref().String() + ".git"
}

func (w *liveWorld) fetch() {
	w.t.Helper()
	w.git("", "fetch", "--quiet", "--prune", w.remote(), "+refs/*:refs/there/*")
}

// pushGit pushes by git, over whatever the branch has, and waits until the server's list of branches shows it.
func (w *liveWorld) pushGit(branch, from string, files []providertest.File) string {
	w.t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "commit refs/new\nmark :1\ncommitter Person <person@example.org> %d +0000\ndata 6\npushed\n",
		time.Now().Unix())
	if from != "" {
		w.fetch()
		fmt.Fprintf(&s, "from %s\n", from)
	}
	for _, f := range files {
		mode := "100644"
		switch {
		case f.Kind == gitprovider.KindSubmodule:
			fmt.Fprintf(&s, "M 160000 %s %s\n", strings.Repeat("ab", 20), f.Path)
			continue
		case f.Kind == gitprovider.KindSymlink:
			mode = "120000"
		case f.Executable:
			mode = "100755"
		}
		fmt.Fprintf(&s, "M %s inline %s\ndata %d\n%s\n", mode, f.Path, len(f.Content), f.Content)
	}
	s.WriteString("get-mark :1\n")
	commit := strings.TrimSpace(w.git(s.String(), "fast-import", "--quiet", "--force"))
	w.git("", "push", "--quiet", "--force", w.remote(), commit+":refs/heads/"+branch)
	w.poll(20*time.Second, func() bool {
		var branches []struct {
			Name   string `json:"name"`
			Commit struct {
				ID string `json:"id"`
			} `json:"commit"`
		}
		w.api("", http.MethodGet, "branches", nil, &branches)
		for _, b := range branches {
			if b.Name == branch && b.Commit.ID == commit {
				return true
			}
		}
		return false
	})
	return commit
}

func (w *liveWorld) Branches() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git("", "ls-remote", "--heads", w.remote())) {
		id, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[strings.TrimPrefix(ref, "refs/heads/")] = id
	}
	return out
}

func (w *liveWorld) Files(commit string) []providertest.File {
	w.t.Helper()
	w.fetch()
	var out []providertest.File
	for entry := range strings.SplitSeq(w.git("", "ls-tree", "-r", "-z", commit), "\x00") {
		info, path, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 {
			continue
		}
		f := providertest.File{Path: path, Kind: gitprovider.KindFile, Executable: fields[0] == "100755"}
		switch fields[0] {
		case "120000":
			f.Kind = gitprovider.KindSymlink
		case "160000":
			f.Kind = gitprovider.KindSubmodule
		}
		if f.Kind != gitprovider.KindSubmodule {
			f.Content = w.git("", "cat-file", "blob", fields[2])
		}
		out = append(out, f)
	}
	return out
}

func (w *liveWorld) Parents(commit string) []string {
	w.t.Helper()
	w.fetch()
	return strings.Fields(w.git("", "rev-list", "--parents", "-1", commit))[1:]
}

func (w *liveWorld) Message(commit string) string {
	w.t.Helper()
	w.fetch()
	return w.git("", "log", "-1", "--format=%B", commit)
}

// liveServer is the server of GITEA_URL, with the users ann and bob.
func liveServer(t *testing.T) *live {
	t.Helper()
	base, err := url.Parse(os.Getenv("GITEA_URL"))
	if err != nil || base.Host == "" {
		t.Fatal("GITEA_URL is not an address")
	}
	h := &live{base: base, token: os.Getenv("GITEA_TOKEN")}
	var me struct {
		Login string `json:"login"`
	}
	h.must(t, "", http.MethodGet, "user", nil, &me)
	h.owner = me.Login
	h.person(t, "ann")
	h.person(t, "bob")
	return h
}

// TestLiveRules holds what a person has set against what we do: signatures that a rule demands, a label that excludes
// ours, and comments one by one. The server must have no signing key, as a new one.
func TestLiveRules(t *testing.T) {
	h := liveServer(t)
	w, is := h.NewRepo(t, providertest.File{Path: "checks/disk.md", Content: strings.Repeat("a line\n", 30)}).(*liveWorld)
	if !is {
		t.Fatal("no world of a real server")
	}
	s, p := providertest.NewScene(t, w), h.provider(t)
	for _, name := range []string{"state/proposed", "state/approved"} {
		w.api("", http.MethodPost, "labels", map[string]any{"name": name, "color": "#00aabb", "exclusive": true}, nil)
	}
	pr := s.Propose(ourBranch, providertest.Update("checks/disk.md", strings.Repeat("another line\n", 30)))
	s.Must(p.Label(t.Context(), w.Ref(), pr.Number, []string{"state/approved"}))
	err := p.Label(t.Context(), w.Ref(), pr.Number, []string{"state/proposed"})
	wantCode(t, err, fault.Conflict)
	wantSays(t, err, "state/approved")

	const many = 25
	for i := range many { // "add single comment" makes a review of each
		w.api("ann", http.MethodPost, fmt.Sprintf("pulls/%d/reviews", pr.Number), map[string]any{"event": "COMMENT",
			"comments": []map[string]any{{"path": "checks/disk.md", "new_position": i + 1, "body": fmt.Sprint("line ", i+1)}},
		}, nil)
	}
	w.api("bob", http.MethodPost, fmt.Sprintf("issues/%d/comments", pr.Number), map[string]any{"body": "In general."}, nil)
	remarks, err := p.Remarks(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	lines, said := 0, false
	for _, r := range remarks {
		lines += len(r.Lines)
		said = said || r.Body == "In general."
	}
	if lines != many || !said {
		t.Errorf("%d comments on lines, and the conversation: %t", lines, said)
	}

	w.api("", http.MethodPost, "branch_protections", map[string]any{"rule_name": "**", "enable_push": true,
		"require_signed_commits": true}, nil)
	access, err := p.Examine(t.Context(), w.Ref(), "", nil)
	s.Must(err)
	s.Same("what would not be signed", access.Unsigned, "the commits of proposals")
	_, err = p.Commit(t.Context(), s.Request("claude-ops/check/signed",
		providertest.Update("checks/disk.md", "signed?\n")))
	wantCode(t, err, fault.RepoNotAllowed)
	wantSays(t, err, "SIGNING_KEY")
}

// TestLiveFilter holds that a file which the server stores as a pointer of LFS is refused for good. The server must
// have LFS (LFS_START_SERVER).
func TestLiveFilter(t *testing.T) {
	h := liveServer(t)
	w, is := h.NewRepo(t, providertest.File{Path: "checks/disk.md", Content: "a line\n"},
		providertest.File{Path: ".gitattributes", Content: "checks/*.md filter=lfs diff=lfs merge=lfs -text\n"}).(*liveWorld)
	if !is {
		t.Fatal("no world of a real server")
	}
	s, p := providertest.NewScene(t, w), h.provider(t)
	_, err := p.Commit(t.Context(), s.Request(ourBranch, providertest.Update("checks/disk.md", "another line\n")))
	wantCode(t, err, fault.ContentDenied)
	wantSays(t, err, "LFS")
	if tip := w.Branches()[ourBranch]; tip != "" {
		t.Errorf("the branch stays at %s", tip)
	}
}

// TestLiveBelowAPath holds that a server which a proxy serves below a path is found there.
func TestLiveBelowAPath(t *testing.T) {
	h := liveServer(t)
	proxy := httptest.NewServer(http.StripPrefix("/git", httputil.NewSingleHostReverseProxy(h.base)))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	err = (&live{base: at, token: h.token}).provider(t).Ping(t.Context())
	wantCode(t, err, fault.ProviderDisabled)
	wantSays(t, err, "set GITEA_URL to "+proxy.URL+"/git/")
	if err := (&live{base: at.JoinPath("git/"), token: h.token}).provider(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLiveFacts holds what the fake server is made after against a real one, beyond the contract: ids that outlast a
// name, archives, and reviews that were begun long before they were submitted.
func TestLiveFacts(t *testing.T) {
	h := liveServer(t)
	w, is := h.NewRepo(t, providertest.File{Path: "README.md", Content: "# Home\n"},
		providertest.File{Path: "checks/disk.md", Content: "old\n"}).(*liveWorld)
	if !is {
		t.Fatal("no world of a real server")
	}
	s := providertest.NewScene(t, w)
	pr := s.Propose(ourBranch, providertest.Update("checks/disk.md", "new\n"))
	reader := h.provider(t)
	change := func(fields map[string]any) {
		t.Helper()
		h.must(t, "", http.MethodPatch, "repos/"+w.Ref().String(), fields, nil)
	}

	// Begun, and not submitted: no notification is sent.
	var begun struct {
		ID int64 `json:"id"`
	}
	w.api("ann", http.MethodPost, fmt.Sprintf("pulls/%d/reviews", pr.Number), map[string]any{
		"event": "PENDING", "body": "Not yet.",
		"comments": []map[string]any{{"path": "checks/disk.md", "new_position": 1, "body": "Which disk?"}},
	}, &begun)
	remarks, err := reader.Remarks(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	s.Same("remarks before it is submitted", len(remarks), 0)
	s.Must(reader.Comment(t.Context(), w.Ref(), pr.Number, "Said in between."))
	w.api("ann", http.MethodPost, fmt.Sprintf("pulls/%d/reviews/%d", pr.Number, begun.ID),
		map[string]any{"event": "COMMENT", "body": "See the line."}, nil)
	remarks, err = reader.Remarks(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	if len(remarks) != 2 || remarks[0].ID == remarks[1].ID {
		t.Fatalf("the remarks are %+v", remarks)
	}
	for _, r := range remarks {
		if r.Author == "ann" && (len(r.Lines) != 1 || !r.Lines[0].At.IsZero() || r.Lines[0].Line != 1) {
			t.Errorf("ann's review is %+v", r)
		}
	}

	// A name passes, the id stays; the former name leads to the repository.
	before, err := reader.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref()})
	s.Must(err)
	former, name := w.Ref(), w.name+"-renamed"
	change(map[string]any{"name": name})
	w.name = name
	for _, ref := range []gitprovider.RepoRef{former, w.Ref()} {
		after, err := reader.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref})
		s.Must(err)
		s.Same("name", after.Repo.String(), w.Ref().String())
		s.Same("ids", []string{after.RepoID, after.Open[0].RepoID}, []string{before.RepoID, before.RepoID})
	}

	change(map[string]any{"archived": true})
	status, err := reader.Status(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	s.Same("archived", status.Archived, true)
	change(map[string]any{"archived": false})
}
