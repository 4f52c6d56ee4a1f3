//go:build e2e && linux

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// rig is a container of the image with an operator who runs sessions in it, and a forge.
type rig struct {
	forge
	*container
	args  []string // by which another container is started over the same volumes
	world *world
	env   map[string]string // what `docker compose exec -e` adds
}

const modelKey = "dummy-key-of-the-model"

func markKey() string { return strings.Repeat("0123456789abcdef", 4) }

// newRig starts the container. change edits the service; nil leaves it as compose.yaml has it.
func newRig(t *testing.T, img image, newForge func(*testing.T, *world) forge, change func(*deploytest.Service)) *rig {
	t.Helper()
	w := newWorld(t, "1")
	f := newForge(t, w)
	service := composed(t, w, f.dotEnv())
	writeSecrets(t, filepath.Join(w.folder(), "secrets"), f.secrets())
	writeSecrets(t, filepath.Join(w.folder(), "secrets"), map[string]string{
		"claudeops_webhook_secret": webhookSecret, "claudeops_mark_key": markKey(),
	})
	w.vars["CLAUDEOPS_MARK_KEY"] = markKey()
	if change != nil {
		change(service)
	}
	// the model and the Gitea are on this machine's loopback
	args := append(sandbox(t, img, service, w.folder()), "--share-net")
	return &rig{
		forge: f, container: startContainer(t, args), args: args, world: w,
		env: map[string]string{"ANTHROPIC_API_KEY": modelKey, "CLAUDEOPS_MAX_TIER": "2"},
	}
}

// proposal is quieterDisk for the forge's repository.
func (r *rig) proposal() proposal {
	p := quieterDisk()
	p.Owner, p.Name = r.repo()
	return p
}

func (r *rig) ofRepository() map[string]any {
	owner, name := r.repo()
	return map[string]any{"repo_owner": owner, "repo_name": name}
}

func (r *rig) environment(url string) (out []string) {
	for name, value := range r.env {
		out = append(out, name+"="+value)
	}
	return append(out, "ANTHROPIC_BASE_URL="+url)
}

// tokens are the secrets of the operator that no agent may see.
func (r *rig) tokens() []string {
	out := []string{webhookSecret, forgeToken, markKey()}
	for _, value := range r.secrets() {
		out = append(out, value)
	}
	return out
}

// told is the result of a command that runs sessions.
type told struct {
	outcome
	sessions []recorded
	seen     []messagesRequest
}

// run runs a session to its end, and checks that it left nothing behind and disclosed no token.
func (r *rig) run(t *testing.T, m sessionModel, args ...string) told {
	t.Helper()
	stub := newSessionStub(t, m)
	got := told{outcome: r.exec(t, r.environment(stub.URL),
		append([]string{"/app/claudeops", "run", "--json"}, args...)...)}
	got.seen = stub.requests(t)
	got.sessions = decode[sessions](t, got.stdout).Sessions
	r.assertDiscreet(t, got)
	r.assertNothingLeft(t)
	return got
}

func (r *rig) assertDiscreet(t *testing.T, got told) {
	t.Helper()
	text := got.stdout + got.stderr
	for _, seen := range got.seen {
		text += seen.everything()
	}
	for _, token := range append(r.tokens(), modelKey) {
		if strings.Contains(text, token) {
			t.Errorf("%s got out", token)
		}
	}
}

// home is where the server's user has its home, as far as the container's shell may look into it.
func (r *rig) home() string {
	if twoUsers() {
		return "/tmp" // which is looked at as well
	}
	return "/home/claudeops"
}

// assertNothingLeft holds that no process and no temporary file outlives a session.
func (r *rig) assertNothingLeft(t *testing.T) {
	t.Helper()
	if got := r.exec(t, nil, "find", "/tmp", r.home(), "-path", "/tmp/*", "-o", "-name",
		"*claudeops*session*"); got.stdout != "" || got.code != 0 {
		t.Errorf("left on disk: %s%s", got.stdout, got.stderr)
	}
	for _, pid := range r.running("") {
		t.Errorf("left running: %s", proc(pid, "cmdline"))
	}
}

// attempt is an entry of the audit.
type attempt struct {
	Action  string `json:"action"`
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
	Tier    int    `json:"tier"`
}

// audited returns the proposals that the audit has, oldest first, and holds that it verifies.
func (r *rig) audited(t *testing.T) []attempt {
	t.Helper()
	r.does(t, "audit", "verify")
	all := decode[struct {
		Items []attempt `json:"items"`
	}](t, r.does(t, "audit", "list", "--json")).Items
	all = slices.DeleteFunc(all, func(a attempt) bool { return a.Action != "create_pr" })
	slices.Reverse(all)
	return all
}

// assertAudited holds that the audit has exactly these proposals, each as outcome or outcome:code.
func (r *rig) assertAudited(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, a := range r.audited(t) {
		entry := a.Outcome
		if a.Code != "" {
			entry += ":" + a.Code
		}
		got = append(got, entry)
	}
	if !slices.Equal(got, want) {
		t.Errorf("audited are %v, want %v", got, want)
	}
}

// assertEmpty holds that there is no branch beside main and no pull request.
func (r *rig) assertEmpty(t *testing.T) {
	t.Helper()
	if branches, prs := r.branches(t), r.opened(t, r.container); len(branches) > 0 || prs > 0 {
		t.Errorf("there are branches %v and %d pull requests, want none", branches, prs)
	}
}

// one is the only session of a run that ended in the state.
func (g told) one(t *testing.T, state string) recorded {
	t.Helper()
	if code := map[bool]int{true: 0, false: 1}[state == "succeeded"]; len(g.sessions) != 1 || g.code != code {
		t.Fatalf("exit %d with %d sessions:\n%s%s", g.code, len(g.sessions), g.stdout, g.stderr)
	}
	s := g.sessions[0]
	if s.State != state {
		t.Fatalf("the session ended as %s: %s, want %s", s.State, s.Reason, state)
	}
	return s
}

func handoffPattern() *regexp.Regexp {
	return regexp.MustCompile(`write the handoff to (/tmp/claudeops-session-[0-9A-Z]{26}/handoff/handoff\.json)`)
}

// forge is where a session's pull requests are: local repositories, or a Gitea.
type forge interface {
	// dotEnv returns the operator's settings for it in .env.
	dotEnv() map[string]string
	// secrets are the contents of files in secrets/, by name.
	secrets() map[string]string
	// repo is the repository as owner and name.
	repo() (owner, name string)
	// review is a person who asks for changes to the first pull request.
	review(t *testing.T, c *container, comment string)
	// branches are those beside main.
	branches(t *testing.T) []string
	// opened counts the pull requests that there are.
	opened(t *testing.T, c *container) int
	// hold lets the next write of a proposal wait. writing returns when that of the session waits; write lets it go on.
	hold(t *testing.T, w *world) (writing func(underway), write func())
	// assertProposed holds that the branch is the only one and changes exactly what the proposal says.
	assertProposed(t *testing.T, branch string, p proposal)
}

// forges makes a forge of each kind.
func forges() map[string]func(*testing.T, *world) forge {
	return map[string]func(*testing.T, *world) forge{
		"local": func(_ *testing.T, w *world) forge { return localForge{w} },
		"gitea": newGiteaForge,
	}
}

// localForge is the repository of a world, which the container has below /git.
type localForge struct{ *world }

func (localForge) dotEnv() map[string]string {
	return map[string]string{"CLAUDEOPS_LOCAL_ROOT": "/git"}
}
func (localForge) secrets() map[string]string { return nil }
func (localForge) repo() (string, string)     { return "demo", "home-cluster" }

func (localForge) review(t *testing.T, c *container, comment string) {
	t.Helper()
	c.does(t, "review", "request-changes", "1", "--repo", "demo/home-cluster", "--comment", comment)
}

func (localForge) opened(t *testing.T, c *container) int {
	t.Helper()
	return len(listed(t, c, "demo", "home-cluster"))
}

// hold keeps the turn at the repository (flock(2) on its folder), for which every writer waits. A proposal has reserved
// its files by then, and is known to be worked on.
func (localForge) hold(t *testing.T, w *world) (writing func(underway), write func()) {
	t.Helper()
	folder := must.Get(os.Open(w.repo))(t)
	write = sync.OnceFunc(func() { _ = folder.Close() })
	t.Cleanup(write)
	must.Do(t, syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	return func(u underway) {
		for !w.isWorkedOn(t) {
			u.assertNotDone(t)
		}
	}, write
}

// isWorkedOn reports whether a process has a proposal in hand, as `pr resume` of another one says. That is this test's
// user, who must not be the one who makes the records.
func (w *world) isWorkedOn(t *testing.T) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.vars["CLAUDEOPS_STATE_DIR"], "claudeops.db")); err != nil {
		return false
	}
	return strings.Contains(w.does(t, "pr", "resume", "--json"), `"live": true`)
}

// listed returns the list that the command line prints.
func listed(t *testing.T, c *container, owner, name string) []any {
	t.Helper()
	return decode[struct {
		PRs []any `json:"items"`
	}](t, c.does(t, "pr", "list", "--repo", owner+"/"+name, "--json")).PRs
}

// giteaForge is the fake Gitea on the loopback interface that the container shares. The server's token there is that of
// an account of its own, which may write to the repository.
type giteaForge struct {
	*fakegitea.Server
	ref   gitprovider.RepoRef
	world *memhost.World
	token string
}

func newGiteaForge(t *testing.T, _ *world) forge {
	s := fakegitea.New(t)
	var files []memhost.File
	for _, name := range slices.Sorted(maps.Keys(seed())) {
		files = append(files, memhost.File{Path: name, Content: seed()[name]})
	}
	const login = "claude-ops-1f0c93b7d2"
	g := giteaForge{Server: s, ref: s.AddRepo(files...), token: s.TokenOf(login)}
	g.world = s.Host().World(t, g.ref, nil)
	s.Configure(g.ref, func(set *fakegitea.Settings) { set.Collaborators = map[string]string{login: "write"} })
	return g
}

func (g giteaForge) dotEnv() map[string]string {
	return map[string]string{"GITEA_URL": g.URL(), "CLAUDEOPS_FORGE_PLAIN_HTTP": "true"}
}

func (g giteaForge) secrets() map[string]string { return map[string]string{"gitea_token": g.token} }

func (g giteaForge) repo() (string, string) { return g.ref.Owner, g.ref.Name }

func (g giteaForge) review(_ *testing.T, _ *container, comment string) {
	g.world.Review(1, "ann", gitprovider.ReviewChangesRequested, comment)
}

func (g giteaForge) hold(t *testing.T, _ *world) (writing func(underway), write func()) {
	t.Helper()
	reached, let := newGate(), newGate()
	t.Cleanup(let.open)
	g.Configure(g.ref, func(set *fakegitea.Settings) {
		set.Delays.BeforeRefUpdate = func() {
			reached.open()
			<-let.closed
		}
	})
	return func(u underway) { u.reached(t, reached.closed) }, let.open
}

func (g giteaForge) branches(*testing.T) []string {
	all := slices.Sorted(maps.Keys(g.world.Branches()))
	return slices.DeleteFunc(all, func(b string) bool { return b == memhost.MainBranch })
}

func (g giteaForge) opened(*testing.T, *container) (n int) {
	g.Host().Locked(func() { n = len(g.Host().Repo(g.ref).List(func(*memhost.PR) bool { return true })) })
	return n
}

func (g giteaForge) assertProposed(t *testing.T, branch string, p proposal) {
	t.Helper()
	if got := g.branches(t); !slices.Equal(got, []string{branch}) {
		t.Fatalf("branches beside main are %v, want only %s", got, branch)
	}
	tips := g.world.Branches()
	if got := g.world.Parents(tips[branch]); !slices.Equal(got, []string{tips[memhost.MainBranch]}) {
		t.Errorf("%s stands on %v, want one commit on main", branch, got)
	}
	want := seed()
	for _, f := range p.Files {
		want[f.Path] = f.Content
	}
	got := map[string]string{}
	for _, f := range g.world.Files(tips[branch]) {
		got[f.Path] = f.Content
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", branch, got, want)
	}
}

// writeSecrets fills the files that deploy/secrets.sh made.
func writeSecrets(t *testing.T, folder string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(value+"\n"), 0o644))
	}
}
