package cli_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/commands"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/testkit/tamper"
)

// TestMain builds claudeops once, without the race detector, which would take most of the scripts' time at each start,
// and puts it first on PATH. It is the program of package commands, which can also run the commands of others.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == processtree.ReaperCommand { // of a session that a test runs in this process
		os.Exit(processtree.Reap())
	}
	if len(os.Args) == 2 && os.Args[1] == sandbox.HelperCommand { // of a script that a test runs in this process
		os.Exit(sandbox.Enter())
	}
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], "http://127.0.0.1:") { // BROWSER of a script
		os.Exit(browse(os.Args[1]))
	}
	os.Exit(testMain(m))
}

// browse opens an address as a person who presses the button of each page.
func browse(address string) int {
	answer, err := http.Get(address)
	if err != nil {
		return complain(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return complain(err)
	}
	form := regexp.MustCompile(`(?s)action="([^"]+)">.*name="manifest" value="([^"]+)"`).FindStringSubmatch(string(page))
	if form == nil { // a page without a form
		return 0
	}
	done, err := http.PostForm(html.UnescapeString(form[1]), url.Values{"manifest": {html.UnescapeString(form[2])}})
	if err != nil {
		return complain(err)
	}
	defer done.Body.Close()
	return 0
}

func testMain(m *testing.M) int {
	bin, err := os.MkdirTemp("", "claudeops-cli-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(bin) }()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+"/", "../testkit/commands/claudeops",
		"../testkit/commands/ask", "../../cmd/claudeops-connect")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return complain(err)
	}
	if err := os.Setenv(scratch, bin); err != nil {
		return complain(err)
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return complain(err)
	}
	return m.Run()
}

// scratch is the variable that names a folder which is removed after the tests.
const scratch = "CLAUDEOPS_TEST_SCRATCH"

func complain(err error) int {
	fmt.Fprintf(os.Stderr, "cli: %v\n", err)
	return 1
}

// TestScripts runs every command as its user would, in testdata/script. What starts or serves other processes is a
// process of its own; the rest is run by a few (package commands), since most commands take less than a start.
func TestScripts(t *testing.T) {
	t.Parallel()
	asking := startWorkers(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", asking+string(os.PathListSeparator)+env.Getenv("PATH"))
			return setUp(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "repository": repository, "bytes": writeBytes, "forge": forge(t),
			"serve": startServer, "fetch": fetch, "endserve": endServer, "tamper": tamperWithAudit, "newest": newestSnapshot,
			"page": runPage, "example": runExample, "checkers": exampleCheckers,
		},
	})
}

// startWorkers starts the processes that run the commands of scripts: one for each script that runs at the same time,
// and one for the other end of a pipe. It returns the folder of the program that hands them over.
func startWorkers(t *testing.T) (folder string) {
	t.Helper()
	bin := os.Getenv(scratch)
	folder, err := os.MkdirTemp(bin, "ask-") // of a short path, as sockets need
	if err == nil {
		err = os.Link(filepath.Join(bin, "ask"), filepath.Join(folder, "claudeops"))
	}
	must.Do(t, err)
	for number := range runtime.GOMAXPROCS(0) + 1 {
		worker := exec.CommandContext(t.Context(), filepath.Join(bin, "claudeops"), commands.Worker,
			commands.Socket(folder, number))
		worker.Stderr = os.Stderr
		ready, err := worker.StdoutPipe()
		if err == nil {
			err = worker.Start()
		}
		must.Do(t, err)
		t.Cleanup(func() {
			_ = worker.Process.Kill()
			_ = worker.Wait()
		})
		if _, err := io.ReadFull(ready, make([]byte, len(commands.Ready))); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// newestSnapshot puts the id of the newest snapshot of deployments into a variable: newest VARIABLE.
func newestSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(filepath.Join(ts.Getenv("AGENTPACK_HOME"), "state", "snapshots", "*.json"))
	if neg || len(args) != 1 || err != nil || len(found) == 0 {
		ts.Fatalf("usage: newest VARIABLE, after a deployment: %v", err)
	}
	ts.Setenv(args[0], strings.TrimSuffix(filepath.Base(slices.Max(found)), ".json"))
}

// tamperWithAudit removes rows of the audit by their numbers and hashes the rest anew: tamper DATABASE [SEQ...].
func tamperWithAudit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: tamper DATABASE [SEQ...]")
	}
	var remove []int64
	for _, arg := range args[1:] {
		seq, err := strconv.ParseInt(arg, 10, 64)
		ts.Check(err)
		remove = append(remove, seq)
	}
	ts.Check(tamper.Rewrite(ts.MkAbs(args[0]), remove...))
}

// setUp gives each script an environment in which only claudeops's own variables are set.
func setUp(env *testscript.Env) error {
	env.Setenv("CLAUDEOPS_LOCAL_ROOT", filepath.Join(env.WorkDir, "root"))
	env.Setenv("CLAUDEOPS_STATE_DIR", filepath.Join(env.WorkDir, "state"))
	env.Setenv("CLAUDEOPS_REPOS_DIR", filepath.Join(env.WorkDir, "repos"))
	env.Setenv("CLAUDEOPS_TIER", "2")
	env.Setenv("CLAUDEOPS_BOUNDARY", "none") // agents of scripts write where the scripts look
	env.Setenv("USER", "boss")               // says nothing
	env.Setenv("ME", app.User().String())
	env.Setenv("SCRATCH", os.Getenv(scratch))
	env.Values[serveKey{}] = &servedProcess{}
	env.Setenv("WEBHOOK", webhook(env))
	env.Setenv("GOGC", os.Getenv("GOGC")) // as make test sets it: most processes end before collecting pays
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	return errors.Join(writeProgramsAnew(env.WorkDir), giveState(env.WorkDir))
}

// emptyState is a state folder with records in which nothing is. Most of what a first command does is to make them.
var emptyState = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(os.Getenv(scratch), "empty-state")
	s := store.New(folder, store.Options{})
	return folder, errors.Join(s.Ping(context.Background()), s.Close())
})

// giveState gives a script a copy of emptyState, unless the script begins where there are no records, and shows how
// they come to be, or what commands say without them.
func giveState(dir string) error {
	name := strings.TrimPrefix(filepath.Base(dir), "script-")
	if slices.Contains([]string{"audit", "backup", "doctor", "first_steps", "front", "init", "init_asks", "modes",
		"pages_tutorials", "prune", "state"}, name) {
		return nil
	}
	folder, err := emptyState()
	if err != nil {
		return err
	}
	state := filepath.Join(dir, "state")
	return errors.Join(os.CopyFS(state, os.DirFS(folder)), os.Chmod(state, 0o700))
}

// writeProgramsAnew replaces the programs of a script by the same in new files. A process that another script started
// while they were written has inherited the old ones, opened for writing, and the system would refuse to run these
// (ETXTBSY, golang.org/issue/22315). None is started meanwhile.
func writeProgramsAnew(dir string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte("#!")) {
			return err
		}
		return errors.Join(os.Remove(path), os.WriteFile(path, text, info.Mode().Perm()))
	})
}

// webhook serves a receiver that writes each delivery to the file "deliveries", as "EVENT BODY" lines, and refuses
// those whose signature under the secret "a-secret" is wrong.
func webhook(env *testscript.Env) string {
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("a-secret"))
		fmt.Fprintf(mac, "%s.%s", r.Header.Get(notify.HeaderTimestamp), body)
		if err != nil || r.Header.Get(notify.HeaderSignature) != fmt.Sprintf("v1=%x", mac.Sum(nil)) {
			http.Error(w, "not signed", http.StatusForbidden)
			return
		}
		f, err := os.OpenFile(filepath.Join(env.WorkDir, "deliveries"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		fmt.Fprintf(f, "%s %s\n", r.Header.Get(notify.HeaderEvent), body)
	}))
	env.Defer(server.Close)
	return server.URL
}

// exits runs a command and checks its exit code: exits CODE COMMAND ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		got = codeIn(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// codeIn finds the code in testscript's own error text, "exit status N".
func codeIn(err error) int {
	code, convErr := strconv.Atoi(strings.TrimPrefix(err.Error(), "exit status "))
	if convErr != nil {
		return -1
	}
	return code
}

// repository makes a bare repository below the local root with the files of a folder as its first commit:
// repository OWNER/NAME [FOLDER]
func repository(ts *testscript.TestScript, _ bool, args []string) {
	dir := filepath.Join(ts.Getenv("CLAUDEOPS_LOCAL_ROOT"), args[0]+".git")
	ts.Check(os.MkdirAll(dir, 0o755))
	git := func(args ...string) { ts.Check(ts.Exec("git", append([]string{"--git-dir", dir}, args...)...)) }
	git("init", "--quiet", "--template=", "--bare", "--initial-branch=main")
	if len(args) < 2 {
		return
	}
	git("-c", "core.bare=false", "--work-tree", ts.MkAbs(args[1]), "add", "--all")
	git("-c", "core.bare=false", "--work-tree", ts.MkAbs(args[1]), "-c", "user.name=ann", "-c",
		"user.email=ann@example.org", "commit", "--quiet", "-m", "first")
	ts.Check(os.Remove(filepath.Join(dir, "index")))
}

// forge starts a fake forge with one repository, and configures the script for it: forge gitea|github [LIMIT...], or
// forge github app. The repository's name is in REPO. Limits are the only scopes that the token has (gitea), or
// permissions that a fine-grained one lacks (github). With app there is no token, but a browser.
func forge(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		files := []memhost.File{{Path: "README.md", Content: "# Infra\n"}, {Path: "checks/disk.md", Content: "# Disk\n"}}
		switch args[0] {
		case "gitea":
			server := fakegitea.New(t)
			if len(args) > 1 {
				server.SetScopes(args[1:]...)
			}
			ts.Setenv("GITEA_URL", server.URL())
			ts.Setenv("GITEA_TOKEN", server.Token())
			ts.Setenv("REPO", server.AddRepo(files...).String())
		case "github":
			server := fakegithub.New(t)
			ts.Setenv("GITHUB_API_URL", server.URL())
			if len(args) > 1 && args[1] == "app" { // is made by the script, in its browser
				ts.Setenv("BROWSER", os.Args[0])
				ts.Setenv("REPO", server.AddRepo(files...).String())
				return
			}
			ts.Setenv("GITHUB_TOKEN", server.Token())
			repo := server.AddRepo(files...)
			ts.Setenv("REPO", repo.String())
			if len(args) > 1 {
				server.Configure(repo, func(s *fakegithub.Settings) { s.Token.FineGrained, s.Token.NotGranted = true, args[1:] })
			}
		default:
			ts.Fatalf("usage: forge gitea|github [LIMIT...], or forge github app")
		}
	}
}

// writeBytes writes a file from Go string escapes: bytes FILE "escaped\x00text" [COUNT]
func writeBytes(ts *testscript.TestScript, _ bool, args []string) {
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	if len(args) > 2 {
		count, err := strconv.Atoi(args[2])
		ts.Check(err)
		text = strings.Repeat(text, count)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), fmt.Append(nil, text), 0o600))
}

// servedProcess is the server that a script has started. Its address is in SERVED.
type servedProcess struct{ cmd *exec.Cmd }

// serveKey is where a script's environment keeps its server.
type serveKey struct{}

// startServer runs a server until endserve, and waits until it listens: serve COMMAND ARG...
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve COMMAND ARG...")
	}
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs("served.err"))
	ts.Check(err)
	stdout, writer, err := os.Pipe()
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), path, args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), writer, stderr
	for _, name := range []string{"PATH", "HOME", "CLAUDEOPS_LOCAL_ROOT", "CLAUDEOPS_STATE_DIR", "CLAUDEOPS_REPOS_DIR",
		"CLAUDEOPS_TIER",
		"CLAUDEOPS_ADDR", "CLAUDEOPS_TOOLSETS", "CLAUDEOPS_MAX_TIER", "CLAUDEOPS_DOOR_SOCKET", "CLAUDEOPS_BOUNDARY",
		"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ts.Check(writer.Close())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	line := make([]byte, 4096)
	n, err := stdout.Read(line) // blocks until it says where it listens, or ends
	if err != nil && !errors.Is(err, io.EOF) {
		ts.Fatalf("%v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("served.out"), line[:n], 0o600))
	url := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if url == "" {
		ts.Fatalf("it does not say where it listens: %q", line[:n])
	}
	ts.Setenv("SERVED", strings.TrimSuffix(url, "/"))
	ts.Value(serveKey{}).(*servedProcess).cmd = cmd
}

// fetch asks the server, and prints what it answers: fetch METHOD PATH [BODY-FILE] [token=FILE]. A body is JSON, or a
// form if the file's name ends in .form; from a form it goes on to where that leads.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fetch METHOD PATH [BODY-FILE] [token=FILE]")
	}
	var body io.Reader
	token, contentType := "", "application/json"
	for _, arg := range args[2:] {
		if name, isToken := strings.CutPrefix(arg, "token="); isToken {
			token = strings.TrimSpace(ts.ReadFile(name))
		} else {
			body = strings.NewReader(strings.TrimSpace(ts.ReadFile(arg)))
			if strings.HasSuffix(arg, ".form") {
				contentType = "application/x-www-form-urlencoded"
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, args[0], ts.Getenv("SERVED")+args[1], body)
	ts.Check(err)
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// endServer tells the server to end as an operator does, and fails unless it ends well.
func endServer(ts *testscript.TestScript, _ bool, _ []string) {
	cmd := ts.Value(serveKey{}).(*servedProcess).cmd
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(cmd.Wait())
}

// notRun are the beginnings of lines that no script runs from the page, and why. TestCommandsOfPagesExist looks up
// those of claudeops in its tree of commands all the same.
func notRun() map[string]string {
	const (
		network  = "needs the network"
		system   = "changes the system, as root"
		engine   = "needs a container engine; internal/testkit/deploytest and e2e hold what it uses"
		stays    = "stays until Ctrl-C; serve.txtar starts it"
		stdio    = "speaks MCP until its client goes; mcpserver.txtar and toolsets.txtar start it"
		client   = "needs the agent's program; e2e starts it"
		makefile = "CI runs it, or what it runs"
	)
	return map[string]string{
		"git clone https://github.com/": network, "cosign ": network, "--certificate-": network, "sha256sum ": network,
		"docker ":      engine,
		"--build-arg ": engine, "--random-password": engine, "--scopes write:repository": engine, "kubectl ": engine,
		"cp .env.example .env ": engine, "deploy/secrets.sh ": engine, "mkdir -p repos ": engine,
		"cp -r deploy/kubernetes": engine, "$EDITOR ": engine,
		"sudo ": system, "-E CLAUDEOPS_STATE_DIR=": system, "make ": makefile, "GITHUB_TOKEN=... ": network,
		"claude ": client, "export ANTHROPIC_BASE_URL": client,
		"eval \"$(claudeops mcp-config --client gemini": client, "claudeops serve": stays,
		"claudeops demo --life": "runs for long; e2e plays it", "tar -xzf claudeops_VERSION": "needs a release; deploy/packages/archives.sh unpacks one",
		"claudeops mcp-server": stdio,
		"CLAUDEOPS_TOOLSETS=pr,definitions claudeops mcp-server": stdio,
		"CLAUDEOPS_TOOLSETS=pr,scripts claudeops mcp-server":     stdio,
	}
}

// reasonOf finds the reason of a line that is not run in a list, by its beginning; "" for one that is.
func reasonOf(line string, list map[string]string) (beginning, why string) {
	for beginning, why := range list {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), beginning) {
			return beginning, why
		}
	}
	return "", ""
}

// whyNotRun is the reason of a line of a page.
func whyNotRun(line string) (beginning, why string) { return reasonOf(line, notRun()) }

// filledIn replaces what readers have a value of their own for: OLD=>NEW.
func filledIn(ts *testscript.TestScript, text string, replacements []string) string {
	for _, arg := range replacements {
		old, replacement, ok := strings.Cut(arg, "=>")
		if !ok || old == "" || !strings.Contains(text, old) {
			ts.Fatalf("%q is not in\n%s", old, text)
		}
		text = strings.ReplaceAll(text, old, replacement)
	}
	return text
}

// blocksOf are the blocks of commands of a page.
func blocksOf(page string) (out []string, err error) {
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	for _, m := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(m[1], "#!") { // a file, and no commands
			out = append(out, m[1])
		}
	}
	return out, err
}

// runPage runs a block of a page as a reader does, by bash, without the lines of notRun: page PAGE TEXT [OLD=>NEW...].
// TEXT is of that block alone; OLD is a placeholder for which readers have a value of their own.
func runPage(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: page PAGE TEXT [OLD=>NEW...]")
	}
	blocks, err := blocksOf(args[0])
	ts.Check(err)
	var found []string
	for _, block := range blocks {
		if strings.Contains(block, args[1]) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		ts.Fatalf("%d blocks of %s have %q", len(found), args[0], args[1])
	}
	lines := slices.DeleteFunc(strings.Split(found[0], "\n"), func(line string) bool {
		_, why := whyNotRun(line)
		return why != ""
	})
	text := filledIn(ts, strings.Join(lines, "\n"), args[2:])
	if err := ts.Exec("bash", "-euc", text); (err != nil) != neg {
		ts.Fatalf("%v, of\n%s", err, text)
	}
}

// exampleNotRun are examples of commands that no script runs as they stand, and why.
func exampleNotRun() map[string]string {
	const (
		network = "needs the forge that it names; init.txtar and init_asks.txtar do the same"
		asks    = "asks at a terminal; deploy.txtar answers beforehand"
		running = "needs an agent or a browser that is there now; agent_connections_test.go and sessions.txtar have them"
		merged  = "needs a configuration in a repository; deploy_propose.txtar has one"
		fetched = "needs a registry of definitions with forks and plugins; internal/procedures/definitions has one"
	)
	return map[string]string{
		"claudeops init": network, "claudeops demo": "runs for long; make demo and e2e play it",
		"claudeops serve": "stays until Ctrl-C; serve.txtar starts it", "claudeops deploy apply\n": asks,
		"claudeops session stop": running, "claudeops connections cut": running, "claudeops login end": running,
		"claudeops deploy propose": merged, "claudeops deploy update": merged,
		"claudeops definitions fork ": fetched, "claudeops definitions plugin info": fetched,
		"claudeops definitions config get": fetched,
	}
}

// examplesOf are the lines of a command's example, each with a line break at its end.
func examplesOf(cmd *cobra.Command) (lines []string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(cmd.Example, "\\\n", ""), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line+"\n")
		}
	}
	return lines
}

func whyExampleNotRun(line string) (beginning, why string) { return reasonOf(line, exampleNotRun()) }

// runExample runs the example that the help of a command shows, by bash: example COMMAND [OLD=>NEW...]. OLD is a
// placeholder for which readers have a value of their own.
func runExample(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: example COMMAND [OLD=>NEW...]")
	}
	cmd, _, err := cli.Command().Find(strings.Fields(args[0]))
	ts.Check(err)
	text := ""
	for _, line := range examplesOf(cmd) {
		if _, why := whyExampleNotRun(line); why == "" {
			text += line
		}
	}
	text = filledIn(ts, text, args[1:])
	if err := ts.Exec("bash", "-euxc", text); err != nil {
		ts.Fatalf("%v, of\n%s", err, text)
	}
}

// Every example of every command is run by a script of testdata/script, or stands in exampleNotRun.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	script := must.Get(os.ReadFile("testdata/script/examples.txtar"))(t)
	run, used, lines := map[string]bool{}, map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`(?m)^example '([^']+)'`).FindAllStringSubmatch(string(script), -1) {
		run[m[1]] = true
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			visit(below)
		}
		for _, line := range examplesOf(cmd) {
			lines++
			if beginning, why := whyExampleNotRun(line); why != "" {
				used[beginning] = true
			} else if path := strings.TrimPrefix(cmd.CommandPath(), "claudeops "); !run[path] {
				t.Errorf("examples.txtar has no example '%s', which shows %s", path, line)
			}
		}
	}
	visit(cli.Command())
	checkNotRun(t, exampleNotRun(), used, lines)
}

// checkNotRun checks that there is a line for each reason not to run one, and that lines were found at all.
func checkNotRun(t *testing.T, list map[string]string, used map[string]bool, lines int) {
	t.Helper()
	for beginning, why := range list {
		if !used[beginning] {
			t.Errorf("no line begins with %q, which is not run: %s", beginning, why)
		}
	}
	if lines < 100 {
		t.Errorf("only %d lines were found", lines)
	}
}

// Every command that the tutorials, the guides and README show is run by a script of testdata/script, from the page, or
// stands in notRun.
func TestEveryCommandOfThePagesIsRun(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text := must.Get(os.ReadFile(name))(t)
		all.Write(text)
	}
	runs := regexp.MustCompile(`(?m)^(?:! )?page (\S+) (?:'([^']+)'|(\S+))`).FindAllStringSubmatch(all.String(), -1)
	used, lines := map[string]bool{}, 0
	for _, page := range pagesWithCommands(t) {
		for _, block := range must.Get(blocksOf(page))(t) {
			isRun := slices.ContainsFunc(runs, func(run []string) bool {
				return run[1] == page && strings.Contains(block, run[2]+run[3])
			})
			for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
				lines++
				if beginning, why := whyNotRun(line); why != "" {
					used[beginning] = true
				} else if !isRun && strings.TrimSpace(line) != "" {
					t.Errorf("%s: no script of testdata/script runs %q; add `page %s ...`, or a reason to notRun", page, line, page)
				}
			}
		}
	}
	checkNotRun(t, notRun(), used, lines)
}

func pagesWithCommands(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	for _, folder := range []string{"tutorials", "guides"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range found {
			out = append(out, "docs/"+folder+"/"+filepath.Base(path))
		}
	}
	return out
}

// buildCheckers builds the checkers of examples/checkers into a folder.
var buildCheckers = sync.OnceValues(func() (folder string, err error) {
	folder = filepath.Join(os.Getenv(scratch), "checkers")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", folder+"/", "../../examples/checkers/shell",
		"../../examples/checkers/model").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return folder, err
})

// exampleCheckers builds the checkers of the examples, sets CHECKERS to their folder, and starts a model that says what
// a file holds: checkers FILE.
func exampleCheckers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: checkers FILE")
	}
	folder, err := buildCheckers()
	ts.Check(err)
	answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": ts.ReadFile(args[0])}}}})
	ts.Check(err)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/chat/completions" || !strings.Contains(string(asked), "rm -rf /srv/data") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(answer)
	}))
	ts.Defer(model.Close)
	ts.Setenv("CHECKERS", folder)
	ts.Setenv("CHECKER_MODEL_URL", model.URL+"/v1")
	ts.Setenv("CHECKER_MODEL", "stub")
}
