//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/deploytest"
)

// inside starts the entry point ("$@"), waits until it says where it listens, and reports what an operator, the engine
// and an agent would see. Whatever it may write, it tries to.
const inside = `set -eu
mkfifo /tmp/said
"$@" >/tmp/said 2>/tmp/log &
server=$!
exec 3</tmp/said
read -r said <&3 || { cat /tmp/log; exit 1; }
report() {
    name=$1; shift; code=0
    out=$("$@" 2>&1) || code=$?
    printf '### %s %s\n%s\n' "$name" "$code" "$out"
}
report said echo "$said"
report health HEALTHCHECK
report doctor /app/claudeops doctor
report mcp-config /app/claudeops mcp-config
report agent-config cat /app/.claude/mcp.json
report prompts ls /app/prompts
report cli claude --version
report user stat -c %u "/proc/$server"
as() {
    user=$1; shift
    if [ "$(id -u)" = 0 ]; then setpriv --reuid "$user" --regid "$user" --clear-groups "$@"; else "$@"; fi
}
for place in /app /usr/local/bin /etc /repos /run/secrets /run/claudeops-agents /; do
    report "write:$place" as 10001 sh -c ": >$place/x"
done
for place in /state /git /tmp "$HOME"; do
    report "write:$place" as 10001 sh -c ": >$place/x && rm $place/x"
done
for place in /state /git /run/secrets/claudeops_api_tokens "$HOME" "/proc/$server/environ"; do
    report "agent:$place" as 10011 sh -c "ls $place/. || cat $place"
done
report propose /app/claudeops mcp-server
kill -TERM "$server"
code=0; wait "$server" || code=$?
printf '### end %s\n' "$code"
`

// reported is inside's report of one thing.
type reported struct {
	code int
	text string
}

func reports(t *testing.T, out string) map[string]reported {
	t.Helper()
	all := map[string]reported{}
	marks := regexp.MustCompile(`(?m)^### (\S+) (\d+)\n`).FindAllStringSubmatchIndex(out, -1)
	for i, m := range marks {
		end := len(out)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		code, err := strconv.Atoi(out[m[4]:m[5]])
		if err != nil {
			t.Fatal(err)
		}
		all[out[m[2]:m[3]]] = reported{code, strings.TrimSpace(out[m[1]:end])}
	}
	return all
}

// newContainer is the image, and the command line of its container with the settings of .env, over a world's local
// repositories.
func newContainer(t *testing.T, w *world, dotEnv map[string]string) (image, []string) {
	t.Helper()
	img := buildImage(t)
	return img, sandbox(t, img, composed(t, w, dotEnv), w.folder())
}

// composed is the service of the compose file with the settings of .env. What it mounts is made in the world's folder.
func composed(t *testing.T, w *world, dotEnv map[string]string) *deploytest.Service {
	t.Helper()
	compose, err := deploytest.ParseCompose(readFile(t, "../compose.yaml"),
		func(name string) string { return dotEnv[name] })
	if err != nil {
		t.Fatal(err)
	}
	dir := w.folder()
	if err := os.Symlink(w.vars["CLAUDEOPS_LOCAL_ROOT"], filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, program{path: "../deploy/secrets.sh", args: []string{filepath.Join(dir, "secrets")},
		env: []string{path()}}); got.code != 0 {
		t.Fatalf("secrets.sh: %s", got.stderr)
	}
	return compose.Services["claudeops"]
}

// folder is where the world's folders are.
func (w *world) folder() string { return filepath.Dir(w.vars["CLAUDEOPS_LOCAL_ROOT"]) }

func TestTheImageServesAsComposeStartsIt(t *testing.T) {
	w := newWorld(t, "2")
	p := quieterDisk()
	request := initialize + "\n" + initialized + "\n" + createPR(t, p) + "\n"
	img, args := newContainer(t, w, map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_LOCAL_ROOT": "/git"})
	script := strings.Replace(inside, "HEALTHCHECK", strings.Join(img.healthCheck, " "), 1)
	args = append(args, "sh", "-c", script, "sh")
	got := run(t, program{path: "bwrap", args: append(args, img.entry...), env: []string{path()},
		stdin: strings.NewReader(request)})
	if got.code != 0 {
		t.Fatalf("the container ended with %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	seen := reports(t, got.stdout)
	for name, want := range map[string]string{
		"said": "(tier 2)", "health": "is ready", "doctor": "Nothing here would stop a pull request.",
		"mcp-config": "mcp-server",
		"prompts":    "tier1-observe.md", "cli": imageCLI(t), "user": "10001", "propose": `"number":1`, "end": "",
	} {
		if r, ok := seen[name]; !ok || r.code != 0 || !strings.Contains(r.text, want) {
			t.Errorf("%s: %+v, want %q", name, r, want)
		}
	}
	if text := seen["doctor"].text; twoUsers() &&
		(!strings.Contains(text, "user claudeops-agent-1 to claudeops-agent-16") || strings.Contains(text, "lacking")) {
		t.Errorf("the boundary of the image is none that lacks nothing: %s", text)
	}
	if own, agents := commandOf(t, seen["mcp-config"].text), commandOf(t,
		seen["agent-config"].text); own != "/app/claudeops" || agents != own {
		t.Errorf("the binary calls itself %s, the agent's configuration starts %s", own, agents)
	}
	for place, writable := range map[string]bool{
		"/app": false, "/usr/local/bin": false, "/etc": false, "/repos": false, "/run/secrets": false,
		"/run/claudeops-agents": false, "/": false,
		"/state": true, "/git": true, "/tmp": true, "/home/claudeops": true,
	} {
		if r, ok := seen["write:"+place]; !ok || (r.code == 0) != writable {
			t.Errorf("%s: writing ends with %+v, want writable %t", place, r, writable)
		}
	}
	for _, place := range []string{"/state", "/git", "/run/secrets/claudeops_api_tokens", "/home/claudeops"} {
		if r, ok := seen["agent:"+place]; !ok || twoUsers() && r.code == 0 {
			t.Errorf("the user of agents reads %s: %+v", place, r)
		}
	}
	w.assertProposed(t, quieterDiskBranch, p)
	token := strings.TrimSpace(readFile(t, filepath.Join(w.folder(), "secrets", "claudeops_api_tokens")))
	if len(token) != 64 || strings.Contains(got.stdout+got.stderr, token) {
		t.Errorf("the token has %d characters, or stands in what was printed", len(token))
	}
}

// The agent has in the image what it needs, and nothing of this machine: the CLI starts the server by the image's own
// configuration, which hands tier and places on, and its settings let it use the tools.
func TestTheAgentOfTheImageProposes(t *testing.T) {
	w, p := newWorld(t, "2"), quieterDisk()
	inImage := func(t *testing.T, args, more []string) program {
		_, container := newContainer(t, w, map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_LOCAL_ROOT": "/git"})
		container = append(container, "--share-net") // the stub of the model is on this machine's loopback
		for _, variable := range more {
			name, value, _ := strings.Cut(variable, "=")
			container = append(container, "--setenv", name, value)
		}
		container = append(append(container, "claude"), args...)
		return program{
			path: "bwrap", args: append(container, "--mcp-config", "/app/.claude/mcp.json", "--settings",
				"/app/.claude/settings.json"),
			env: []string{path()},
		}
	}
	c := agent{world: w, container: inImage}.converse(t, scripted(use("create_pr", p), use("list_prs", ofRepository())))
	c.connected(t)
	assertOpened(t, c.success(t, 0), p)
	assertListed(t, c.success(t, 1), p)
	w.assertProposed(t, quieterDiskBranch, p)
}

// imageCLI is the version of the CLI that the image's manifest asks for.
func imageCLI(t *testing.T) string {
	t.Helper()
	m := decode[struct {
		Dependencies map[string]string `json:"dependencies"`
	}](t, readFile(t, "../deploy/claude/package.json"))
	return fmt.Sprintf("%s (Claude Code)", m.Dependencies["@anthropic-ai/claude-code"])
}
