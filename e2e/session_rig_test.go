//go:build e2e && linux

package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/deploytest"
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

// told is what came of a command that runs sessions.
type told struct {
	outcome
	sessions []recorded
	seen     []messagesRequest
}

// run runs a session to its end, and holds that it left nothing behind and told nobody a token.
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
	if got := r.exec(t, nil, "/app/claudeops", "audit", "verify"); got.code != 0 {
		t.Errorf("audit verify: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	got := r.exec(t, nil, "/app/claudeops", "audit", "list", "--json")
	if got.code != 0 {
		t.Fatalf("audit list: exit %d\n%s", got.code, got.stderr)
	}
	all := decode[struct {
		Items []attempt `json:"items"`
	}](t, got.stdout).Items
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
