package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/ops/notify"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/tamper"
)

// TestMain builds claudeops once, without the race detector, which would take most of the scripts' time at each start,
// and puts it first on PATH.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == processtree.ReaperCommand { // of a session that a test runs in this process
		os.Exit(processtree.Reap())
	}
	if len(os.Args) == 2 && os.Args[1] == confine.HelperCommand { // of a script that a test runs in this process
		os.Exit(confine.Enter())
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
	build := exec.Command("go", "build", "-o", bin+"/", "../../cmd/claudeops", "../../cmd/claudeops-connect")
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

// TestScripts runs every command as its user would, as a process of its own, in testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "repository": repository, "bytes": writeBytes, "forge": forge(t),
			"serve": startServer, "fetch": fetch, "endserve": endServer, "tamper": tamperWithAudit, "newest": newestSnapshot,
			"page": runPage, "example": runExample,
		},
	})
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
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	return nil
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
