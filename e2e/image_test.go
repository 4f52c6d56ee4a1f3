//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// image describes what the Dockerfile would build: files of this machine by the path that they have in the image, and
// settings.
type image struct {
	files       map[string]string
	env         map[string]string
	entry       []string
	healthCheck []string
	workDir     string
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must.Do(t, err)
	return string(text)
}

// theImage is built by the first test that needs it. Containers mount its files so that they cannot be written.
var theImage struct {
	sync.Mutex
	image
	folder string // which TestMain removes
}

// buildImage returns the image, which is not changed by its containers.
func buildImage(t *testing.T) image {
	t.Helper()
	theImage.Lock()
	defer theImage.Unlock()
	if theImage.files == nil {
		var err error
		if theImage.folder, err = os.MkdirTemp("", "claudeops-image-"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(theImage.folder, 0o755); err != nil { // #nosec G302: users of containers read it
			t.Fatal(err)
		}
		theImage.image = replayDockerfile(t, theImage.folder)
	}
	return theImage.image
}

// replayDockerfile builds as far as that goes without an engine: the binary is built by the Dockerfile's own command
// from what .dockerignore lets through, the CLI is the tests' own (a unit test holds that they are the same), and every
// COPY of the last stage is resolved. Base images and Debian's packages are this machine's.
func replayDockerfile(t *testing.T, folder string) image {
	t.Helper()
	stages, err := deploytest.ParseDockerfile(readFile(t, "../Dockerfile"))
	must.Do(t, err)
	context, out := filepath.Join(folder, "context"), filepath.Join(folder, "out")
	buildContext(t, context)
	compile(t, stages[0], context, out)
	made := map[string]string{"cli:/opt/claude/claude": theCLI(t)}
	for _, name := range []string{"claudeops", "claudeops-connect"} {
		made["build:/out/"+name] = filepath.Join(out, name)
	}
	final := stages[len(stages)-1]
	img := image{
		files: map[string]string{}, env: final.Env(), workDir: final.Last("WORKDIR").Args,
		entry: slices.Concat(final.Last("ENTRYPOINT").Words, final.Last("CMD").Words),
	}
	_, check, _ := strings.Cut(final.Last("HEALTHCHECK").Args, "CMD ")
	img.healthCheck = decode[[]string](t, check)
	for _, c := range final.Each("COPY") {
		words := c.Operands()
		source := filepath.Join(context, words[0])
		if from := c.Flag("from"); from != "" {
			source = made[from+":"+words[0]]
		}
		if _, err := os.Stat(source); err != nil {
			t.Fatalf("COPY %s: %v", c.Args, err)
		}
		img.files[words[1]] = source
	}
	return img
}

// buildContext copies to a folder what a build from a fresh clone is given.
func buildContext(t *testing.T, dir string) {
	t.Helper()
	ignored := deploytest.Ignore(readFile(t, "../.dockerignore"))
	got := run(t, program{path: "git", args: []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"},
		dir: "..",
		env: []string{path(), "HOME=/nonexistent", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
			"GIT_CONFIG_VALUE_0=*"}})
	if got.code != 0 {
		t.Fatalf("git ls-files: %s", got.stderr)
	}
	for _, name := range strings.Split(strings.TrimSuffix(got.stdout, "\x00"), "\x00") {
		if ignored(name) {
			continue
		}
		operationtest.WriteFiles(t, dir, map[string]string{name: readFile(t, filepath.Join("..", name))})
	}
}

// compile runs the last command of the build stage, with its environment, in the build's context. What it makes is put
// into the folder out.
func compile(t *testing.T, stage deploytest.Stage, context, out string) {
	t.Helper()
	command := strings.ReplaceAll(stage.Last("RUN").Args, "/out/", out+"/")
	// the modules are there: TestMain has built with them
	env := []string{path(), "HOME=" + os.Getenv("HOME"), "GOPROXY=off"}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		where := run(t, program{path: "go", args: []string{"env", name}, env: os.Environ()})
		env = append(env, name+"="+strings.TrimSpace(where.stdout))
	}
	for _, name := range slices.Sorted(maps.Keys(stage.Env())) {
		env = append(env, name+"="+stage.Env()[name])
	}
	if got := run(t, program{path: "sh", args: []string{"-c", command}, dir: context, env: env,
		may: 10 * time.Minute}); got.code != 0 {
		t.Fatalf("%s: %s", command, got.stderr)
	}
}

// imageUser is the user that the image's server becomes.
const imageUser = 10001

// twoUsers reports whether a container can have two users here, as an engine's has: where root runs the tests. Others
// can give it one, the server's, and agents have that user, too, under rules of Landlock.
func twoUsers() bool { return os.Geteuid() == 0 }

// users returns bubblewrap's options for the container's users: where there can be two, root with the service's
// capabilities, and otherwise the server's user alone.
func users(t *testing.T, s *deploytest.Service, dir string) []string {
	t.Helper()
	if !twoUsers() {
		id := strconv.Itoa(imageUser)
		return []string{"--unshare-all", "--unshare-user", "--uid", id, "--gid", id, "--cap-drop", "ALL"}
	}
	args := []string{"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup", "--cap-drop",
		"ALL"}
	for _, c := range s.CapAdd {
		args = append(args, "--cap-add", "CAP_"+c)
	}
	for _, m := range s.Volumes {
		source := filepath.Join(dir, filepath.Base(m.Source))
		if m.ReadOnly { // an operator's folder, that others may read
			if err := os.Chmod(source, 0o755); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			continue
		}
		if resolved, err := filepath.EvalSymlinks(source); err == nil {
			source = resolved
		}
		err := filepath.WalkDir(source, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, imageUser, imageUser))
		})
		if err = errors.Join(err, os.Chmod(source, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return args
}

// sandbox is the command line of a container of the image as the service has it: bubblewrap gives it namespaces of its
// own, the users, a root that cannot be written, and the service's mounts. Volumes and folders are below dir, by their
// source's name.
func sandbox(t *testing.T, img image, s *deploytest.Service, dir string) []string {
	t.Helper()
	args := append(users(t, s, dir), "--die-with-parent", "--clearenv")
	for _, parent := range []string{"/app", "/etc", "/home", "/run", "/run/secrets", "/usr", "/usr/local",
		"/usr/local/bin"} {
		args = append(args, "--dir", parent) // with the mode 0755; what bubblewrap makes by itself is its own user's alone
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/etc/ssl", "/etc/ssl", "--ro-bind",
		passwd(t, img), "/etc/passwd",
		"--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
	)
	for _, base := range []string{"/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share"} {
		args = append(args, "--ro-bind-try", base, base)
	}
	for _, target := range slices.Sorted(maps.Keys(img.files)) {
		args = append(args, "--ro-bind", img.files[target], target)
	}
	for _, m := range s.Volumes {
		how := "--bind"
		if m.ReadOnly {
			how = "--ro-bind"
		}
		args = append(args, how, filepath.Join(dir, filepath.Base(m.Source)), m.Target)
	}
	for _, m := range s.Tmpfs {
		target, options, _ := strings.Cut(m, ":")
		if twoUsers() && strings.Contains(options, "uid=") { // which bubblewrap cannot give to a file system
			home := t.TempDir()
			must.Do(t, errors.Join(os.Chown(home, imageUser, imageUser), os.Chmod(home, 0o700)))
			args = append(args, "--bind", home, target)
			continue
		}
		if _, mode, ok := strings.Cut(options, "mode="); ok && twoUsers() {
			args = append(args, "--perms", mode[:4])
		}
		if _, size, ok := strings.Cut(options, "size="); ok {
			args = append(args, "--size", bytesOf(t, size))
		}
		args = append(args, "--tmpfs", target)
	}
	for _, name := range s.Secrets {
		args = append(args, "--ro-bind", filepath.Join(dir, "secrets", name), "/run/secrets/"+name)
	}
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	maps.Copy(env, img.env)
	maps.Copy(env, s.Environment)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		args = append(args, "--setenv", name, env[name])
	}
	if s.ReadOnly {
		args = append(args, "--remount-ro", "/")
	}
	return append(args, "--chdir", img.workDir)
}

// bytesOf is a size such as 512m, with what stands behind it, as a number of bytes.
func bytesOf(t *testing.T, size string) string {
	t.Helper()
	size, _, _ = strings.Cut(size, ",")
	n, err := strconv.Atoi(strings.TrimSuffix(size, "m"))
	if err != nil || !strings.HasSuffix(size, "m") {
		t.Fatalf("%q is not a size in MiB", size)
	}
	return strconv.Itoa(n << 20)
}

// passwd returns useradd's file for the image's users.
func passwd(t *testing.T, img image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "passwd")
	lines := "root:x:0:0::/root:/bin/sh\n" + img.env["CLAUDEOPS_RUN_AS"] + ":x:10001:10001::" + img.env["HOME"] +
		":/usr/sbin/nologin\n"
	name, count, _ := strings.Cut(img.env["CLAUDEOPS_AGENT_USER"], "+")
	agents, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("the image's agents are %s", img.env["CLAUDEOPS_AGENT_USER"])
	}
	for n := 1; n <= agents; n++ {
		lines += fmt.Sprintf("%s-%d:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", name, n, 10010+n, 10010+n)
	}
	must.Do(t, os.WriteFile(file, []byte(lines), 0o644))
	return file
}

// commandOf is the command that a client's configuration starts claudeops with.
func commandOf(t *testing.T, config string) string {
	t.Helper()
	var c struct {
		Servers map[string]struct {
			Command string `json:"command"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatalf("%v in %s", err, config)
	}
	return c.Servers["claudeops"].Command
}

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
		code := must.Get(strconv.Atoi(out[m[4]:m[5]]))(t)
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
	must.Do(t, err)
	dir := w.folder()
	must.Do(t, os.Symlink(w.vars["CLAUDEOPS_LOCAL_ROOT"], filepath.Join(dir, "git")))
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
