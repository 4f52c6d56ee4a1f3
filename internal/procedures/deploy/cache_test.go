package deploy

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// imported is a repository made by git fast-import, and the commit of its branch main.
func imported(t *testing.T, stream string) (s *GitSource, commit string) {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--bare", "-b", "main")
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return (&GitSource{URL: "file://" + filepath.ToSlash(dir), Ref: "main"}).operators(), git(t, dir, "rev-parse", "main")
}

// commitOf is a stream with files that all have one content.
func commitOf(content string, files int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "blob\nmark :1\ndata %d\n%s\ncommit refs/heads/main\ncommitter a <a@example.org> 0 +0000\ndata 0\n",
		len(content), content)
	for i := range files {
		fmt.Fprintf(&b, "M 100644 :1 d/%d.md\n", i)
	}
	return b.String() + "\n"
}

func testGit(t *testing.T) *Git {
	t.Helper()
	return newGit(gitProgram(t), t.TempDir(), t.TempDir(), gitEnv())
}

// folderOf is the folder with the files of a commit.
func folderOf(t *testing.T, g *Git, s *GitSource, commit string) string {
	t.Helper()
	folder, err := g.Folder(t.Context(), s, commit)
	must.Do(t, err)
	return folder
}

func cached(t *testing.T, g *Git) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(g.cache, "*", "*"))
	must.Do(t, err)
	return names
}

// What is too much is refused before a file of it is written, and nothing of it is left.
func TestARepositoryThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		want   string
	}{
		"as much as may be": {commitOf(strings.Repeat("x", 1000), 5), ""},
		"a large file":      {commitOf(strings.Repeat("x", 1001), 1), "d/0.md has more than 1000 bytes"},
		"many bytes":        {commitOf(strings.Repeat("x", 1000), 6), "it has more than 5000 bytes"},
		"many files":        {commitOf("x", 101), "it has more than 100 files"},
	} {
		g := testGit(t)
		if l := g.limits; l.file != fileset.MaxFileBytes || l.files != maxCommitFiles || l.bytes != maxCommitBytes ||
			l.cache != defaultCacheBytes {
			t.Fatalf("the limits of every day: %+v", l)
		}
		g.limits.file, g.limits.files, g.limits.bytes = 1000, 100, 5000
		s, commit := imported(t, c.stream)
		folder, err := g.Folder(t.Context(), s, commit)
		if c.want == "" {
			if info, statErr := os.Stat(filepath.Join(folder, "d", "0.md")); err != nil || statErr != nil ||
				info.Size() != 1000 {
				t.Errorf("%s: %v, %v", name, err, statErr)
			}
			continue
		}
		if codeOf(err) != GitFailed || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left := cached(t, g); len(left) > 0 {
			t.Errorf("%s: left: %v", name, left)
		}
	}
}

// A repository decides by its attributes what an archive of it has, so that the bounds are held while it is read, too.
func TestAnArchiveIsHeldToItsBounds(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{fileset.MaxFileBytes, fileset.MaxFileBytes + 1} {
		header := fmt.Sprintf("%-100s%-8s%-8s%-8s%011o ", "x", "0000644", "0000000", "0000000", size)
		block := append([]byte(header), bytes.Repeat([]byte{0}, 512-len(header))...)
		copy(block[136:], "00000000000 ")
		copy(block[148:], "        ")
		block[156] = '0'
		copy(block[257:], "ustar\x0000")
		sum := 0
		for i, b := range block {
			if b == ' ' && i < 100 && i > 0 {
				block[i], b = 0, 0
			}
			sum += int(b)
		}
		copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
		err := extract(bytes.NewReader(block), filepath.Join(t.TempDir(), "out"), defaultGitLimits())
		if large := size > fileset.MaxFileBytes; err == nil || strings.Contains(err.Error(), "x has more than") != large {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// What git writes while it fetches is bounded, too.
func TestAFetchThatSendsTooMuchIsEnded(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 8<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	s, commit := imported(t, commitOf(string(noise), 1))
	g := testGit(t)
	g.limits.scratch = 1 << 20
	if _, err := g.Folder(t.Context(), s, commit); codeOf(err) != GitFailed ||
		!strings.Contains(err.Error(), "it sends more than 1 MiB") {
		t.Errorf("%v", err)
	}
	if left := cached(t, g); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTheCacheStaysBelowItsCap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	var commits []string
	for i := range 5 {
		operationtest.WriteFiles(t, dir, map[string]string{"a.md": strings.Repeat(fmt.Sprint(i), 1<<20)})
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", "x")
		commits = append(commits, git(t, dir, "rev-parse", "HEAD"))
	}
	s := (&GitSource{URL: "file://" + filepath.ToSlash(dir), Ref: "main"}).operators()
	g := testGit(t)
	g.limits.cache = 3 << 20
	clock := time.Now()
	g.now = func() time.Time { return clock }
	var folders []string
	for i := range 3 {
		folders = append(folders, folderOf(t, g, s, commits[i]))
	}
	if _, err := g.Folder(t.Context(), s, commits[3]); codeOf(err) != GitFailed ||
		!strings.Contains(err.Error(), "all of it was used in the last 15 minutes") {
		t.Errorf("all are in use: %v", err)
	}
	if left := cached(t, g); len(left) != 3 {
		t.Errorf("what is in use was removed, or what was refused is left: %v", left)
	}
	for i, ago := range map[int]time.Duration{0: time.Hour, 1: 3 * time.Hour, 2: 2 * time.Hour} {
		must.Do(t, os.Chtimes(folders[i], clock.Add(-ago), clock.Add(-ago)))
	}
	folderOf(t, g, s, commits[3])
	if fileset.Exists(folders[1]) || !fileset.Exists(folders[0]) || !fileset.Exists(folders[2]) {
		t.Errorf("the one that was used least recently goes: %v", cached(t, g))
	}
	folderOf(t, g, s, commits[0]) // is used now
	folderOf(t, g, s, commits[4])
	if !fileset.Exists(folders[0]) || fileset.Exists(folders[2]) {
		t.Errorf("the next: %v", cached(t, g))
	}
	if size, err := files.Size(g.cache); err != nil || size > g.limits.cache {
		t.Errorf("%d bytes, %v", size, err)
	}
}

func TestWhatAKillLeftIsSwept(t *testing.T) {
	t.Parallel()
	s, commit := imported(t, commitOf("x", 1))
	g := testGit(t)
	old := time.Now().Add(-time.Hour)
	for name, at := range map[string]time.Time{"aa/.new-1": old, "aa/.new-2": time.Now(), ".checkout-1": old,
		".checkout-2": time.Now()} {
		operationtest.WriteFiles(t, filepath.Join(g.cache, name), map[string]string{"files/x": "x"})
		must.Do(t, os.Chtimes(filepath.Join(g.cache, name), at, at))
	}
	folderOf(t, g, s, commit)
	for name, want := range map[string]bool{"aa/.new-1": false, "aa/.new-2": true, ".checkout-1": false,
		".checkout-2": true} {
		if fileset.Exists(filepath.Join(g.cache, name)) != want {
			t.Errorf("%s is there: %t", name, !want)
		}
	}
}

// Concurrent requests for one commit fetch it once.
func TestACommitIsFetchedOnce(t *testing.T) {
	t.Parallel()
	s, commit := imported(t, commitOf("x", 1))
	g := testGit(t)
	count := filepath.Join(t.TempDir(), "count")
	counting := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{
		"git": "#!/bin/sh\ncase \"$*\" in *' fetch '*) echo fetch >>" + count + ";; esac\nexec " + g.git.Program +
			" \"$@\"\n",
	})
	g.git.Program = filepath.Join(counting, "git")
	done := make(chan error)
	for range 8 {
		go func() { _, err := g.Folder(t.Context(), s, commit); done <- err }()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(count); string(text) != "fetch\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A source of the operator's list says what git signs in with at its host, and whether the host may be private.
func TestGitUsesTheTokenOfASource(t *testing.T) {
	t.Parallel()
	folder, _, _ := privateUpstream(t)
	server, elsewhere, leading := newPrivateServer(t, folder), newPrivateServer(t, folder), newPrivateServer(t, folder)
	leading.redirect = elsewhere.URL
	for name, test := range map[string]struct {
		server   *privateServer
		source   sources.Source
		own      bool // the configuration is the operator's
		reaped   bool
		refused  Code // "" if the repository is read
		says     string
		signedIn bool
	}{
		"with a token": {server: server, source: sources.Source{TokenEnv: "TEAM", Private: true},
			signedIn: true},
		"with a token, below the reaper": {server: server, source: sources.Source{TokenEnv: "TEAM", Private: true},
			reaped: true, signedIn: true},
		"for the operator's own": {server: server, source: sources.Source{TokenEnv: "TEAM"}, own: true,
			reaped: true, signedIn: true},
		"with the token of a variable unset": {server: server, source: sources.Source{TokenEnv: "NONE", Private: true},
			refused: GitFailed},
		"without a token": {server: server, source: sources.Source{Private: true}, refused: GitFailed},
		"at a private address": {server: server, source: sources.Source{TokenEnv: "TEAM"},
			refused: SourceNotAllowed, says: "claudeops sources allow --private"},
		"at a server that leads on elsewhere": {server: leading, source: sources.Source{TokenEnv: "TEAM", Private: true},
			reaped: true, refused: GitFailed, signedIn: true},
	} {
		t.Run(name, func(t *testing.T) {
			trusting := privateSetup(t, test.server)
			b := newBench(t, nil)
			dir := "project/mine/"
			if test.own {
				dir = "agentpack/repo/"
			}
			seen := filepath.Join(t.TempDir(), "seen")
			operationtest.WriteFiles(t, b.dir, map[string]string{
				dir + configName: moduleOf(test.server.URL+"/repo/.git", ", subdir: prompts"),
			})
			operationtest.WriteExecutables(t, b.dir, map[string]string{
				"bin/git": "#!/bin/sh\n{ echo \"$@\"; env; } >> '" + seen + "'\nexec '" + b.settings.Git.Path + "' \"$@\"\n"})
			test.source.Origin = strings.ToLower(test.server.URL)
			b.door = record.DoorCLI
			b.settings.Git = GitCommand{
				Path: filepath.Join(b.dir, "bin/git"), Env: trusting.Git.git.Env, Reaped: test.reaped,
				Token: func(name string) string { return map[string]string{"TEAM": gitToken}[name] },
			}
			b.settings.Sources = func() sources.List { return sources.List{test.source} }
			test.server.got()
			elsewhere.got()
			question := `{"repo":"mine"}`
			if test.own {
				question = `{}`
			}
			out := b.ask(ToolDiff, question)
			text, _ := json.Marshal(out)
			switch {
			case test.refused == "" && (!out.OK || !strings.Contains(string(text), "two")):
				t.Errorf("%s", text)
			case test.refused != "" && (out.OK || out.Errors[0].Code != test.refused ||
				!strings.Contains(out.Errors[0].Message, test.says)):
				t.Errorf("%s", text)
			}
			if asked := test.server.got(); emptyPassword(asked) == test.signedIn || test.refused == SourceNotAllowed &&
				len(asked) > 0 {
				t.Errorf("signed in with %v", asked)
			}
			if asked := elsewhere.got(); len(asked) > 0 {
				t.Errorf("elsewhere signed in with %v", asked)
			}
			if way, err := os.ReadFile(seen); test.refused != SourceNotAllowed && err != nil ||
				strings.Contains(string(way)+string(text), gitToken) {
				t.Errorf("%v: the token is in the answer, in git's arguments or in its environment", err)
			}
			if left := filesWith(t, b.dir, gitToken); left != nil {
				t.Errorf("the token is in %v", left)
			}
		})
	}
}

// privateServer is git's own server over HTTPS, which wants a token. asked are the Authorization headers that it got.
type privateServer struct {
	*httptest.Server
	mu       sync.Mutex
	asked    []string
	redirect string // where to send those who have signed in; "" for nowhere
}

// got are the headers since it was asked before.
func (s *privateServer) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

const gitToken = "tok-en-0123456789"

func newPrivateServer(t *testing.T, folder string) *privateServer {
	t.Helper()
	s := &privateServer{}
	backend := &cgi.Handler{
		Path: gitProgram(t), Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}, InheritEnv: []string{"PATH"},
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if said := r.Header.Get("Authorization"); said != "" {
			s.asked = append(s.asked, said)
		}
		s.mu.Unlock()
		_, token, _ := r.BasicAuth()
		switch {
		case token != gitToken:
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
		case s.redirect != "":
			http.Redirect(w, r, s.redirect+r.URL.RequestURI(), http.StatusFound)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// privateUpstream is upstream's repository in a folder that a private server serves.
func privateUpstream(t *testing.T) (folder, url string, commits []string) {
	t.Helper()
	folder = t.TempDir()
	url, commits = upstream(t)
	must.Do(t, os.Symlink(strings.TrimPrefix(url, "file://"), filepath.Join(folder, "repo")))
	return folder, url, commits
}

// privateSetup has a module of a private repository. credentials are the lines of the file; none for no file.
func privateSetup(t *testing.T, s *privateServer, credentials ...string) Setup {
	t.Helper()
	setup := setup(t, gitModule(s.URL+"/repo/.git", ""))
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	must.Do(t, os.WriteFile(authority, certificate, 0o600))
	setup.Git.git.Env = append(setup.Git.git.Env, "GIT_SSL_CAINFO="+authority)
	if credentials != nil {
		setup.Git.credentials = filepath.Join(t.TempDir(), "git credentials")
		must.Do(t, os.WriteFile(setup.Git.credentials, []byte(strings.Join(credentials, "\n")+"\n"), 0o600))
	}
	return setup
}

func TestPrivateRepositoriesOverHTTPS(t *testing.T) {
	t.Parallel()
	folder, _, _ := privateUpstream(t)
	server := newPrivateServer(t, folder)
	own := strings.Replace(server.URL, "https://", "https://bot:"+gitToken+"@", 1)
	wrong := strings.Replace(server.URL, "https://", "https://bot:wrong-token@", 1)
	t.Run("with the token", func(t *testing.T) {
		s := privateSetup(t, server, "https://bot:other@example.org", own)
		before := operationtest.ReadFile(t, s.Git.credentials)
		got, err := desiredTexts(t, s)
		if diff := cmp.Diff(map[string]string{".github/prompts/ask.prompt.md": "two"}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		after, err := os.ReadFile(s.Git.credentials)
		if diff := cmp.Diff(string(before), string(after)); diff != "" || err != nil {
			t.Errorf("git has changed the file: %v %s", err, diff)
		}
		if left := filesWith(t, s.Home, gitToken); left != nil {
			t.Errorf("the token is in %v", left)
		}
	})
	t.Run("what lies on the way", func(t *testing.T) { // git's arguments and environment, as a stand-in of git sees them
		s := privateSetup(t, server, own)
		log := filepath.Join(t.TempDir(), "seen")
		s.Git.git.Program = filepath.Join(operationtest.WriteExecutables(t, t.TempDir(), map[string]string{
			"git": "#!/bin/sh\n{ echo \"$@\"; env; } >> '" + log + "'\nexec '" + s.Git.git.Program + "' \"$@\"\n"}), "git")
		if _, err := desiredTexts(t, s); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(log); err != nil || len(text) == 0 || strings.Contains(string(text), gitToken) {
			t.Errorf("%v: the token is in git's arguments or environment", err)
		}
	})
	t.Run("a token that is replaced meanwhile", func(t *testing.T) {
		s := privateSetup(t, server, own)
		var learned []string
		s.Git.learnStored(func(secrets ...string) { learned = append(learned, secrets...) })
		for _, second := range []string{own, wrong} {
			must.Do(t, os.WriteFile(s.Git.credentials, []byte(second+"\n"), 0o600))
			_, _ = desiredTexts(t, s) // without the right one it fails, which does not matter here
			_, _ = desiredTexts(t, s)
		}
		operationtest.Same(t, "what was learned", []string{gitToken, "wrong-token"}, learned)
	})
	for name, lines := range map[string][]string{
		"no file": nil, "a token of another host": {"https://bot:" + gitToken + "@example.org"},
		"one of another port":                {"https://bot:" + gitToken + "@127.0.0.1:1"},
		"one of a server without encryption": {strings.Replace(own, "https://", "http://", 1)}, "a wrong one": {wrong},
	} {
		t.Run(name, func(t *testing.T) {
			s := privateSetup(t, server, lines...)
			server.got()
			_, err := desiredTexts(t, s)
			if codeOf(err) != GitFailed || strings.Contains(err.Error(), "token") {
				t.Errorf("%v", err)
			}
			if asked := server.got(); name != "a wrong one" && strings.Contains(strings.Join(asked, ""), "Basic") &&
				!emptyPassword(asked) {
				t.Errorf("signed in with %v", asked)
			}
			if lines != nil {
				if text, err := os.ReadFile(s.Git.credentials); err != nil || string(text) != strings.Join(lines, "\n")+"\n" {
					t.Errorf("git has changed the file: %q, %v", text, err)
				}
			}
		})
	}
	t.Run("a file that others may read", func(t *testing.T) {
		s := privateSetup(t, server, own)
		must.Do(t, os.Chmod(s.Git.credentials, 0o644))
		if _, err := desiredTexts(t, s); codeOf(err) != GitFailed || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a server that sends those who have signed in elsewhere", func(t *testing.T) {
		elsewhere := newPrivateServer(t, folder)
		from := newPrivateServer(t, folder)
		from.redirect = elsewhere.URL
		s := privateSetup(t, from, strings.Replace(from.URL, "https://", "https://bot:"+gitToken+"@", 1))
		if _, err := desiredTexts(t, s); codeOf(err) != GitFailed {
			t.Errorf("%v", err)
		}
		if first, other := from.got(), elsewhere.got(); len(first) == 0 || !emptyPassword(other) {
			t.Errorf("the first got %v, the other %v", first, other)
		}
	})
}

// TestAPrivateCheckoutIsBroughtForward does what serve does after a merge.
func TestAPrivateCheckoutIsBroughtForward(t *testing.T) {
	t.Parallel()
	folder, url, commits := privateUpstream(t)
	server := newPrivateServer(t, folder)
	own := strings.Replace(server.URL, "https://", "https://bot:"+gitToken+"@", 1)
	private := privateSetup(t, server, own)
	b := newBench(t, nil)
	checkout := filepath.Join(b.dir, "agentpack", "repo")
	git(t, b.dir, "clone", "-q", url, checkout)
	git(t, checkout, "reset", "-q", "--hard", commits[0])
	git(t, checkout, "remote", "set-url", "origin", server.URL+"/repo/.git")
	b.settings.Git.Env = private.Git.git.Env
	if _, err := NewService(b.settings).Update(t.Context()); err == nil {
		t.Error("brought forward without a token")
	}
	b.settings.Git.Credentials = private.Git.credentials
	if c, err := NewService(b.settings).Update(t.Context()); err != nil || c.From != commits[0] || c.To != commits[1] {
		t.Errorf("%+v, %v", c, err)
	}
	if left := filesWith(t, b.dir, gitToken); left != nil {
		t.Errorf("the token is in %v", left)
	}
}

// emptyPassword reports whether no header signs in with anything.
func emptyPassword(headers []string) bool {
	for _, h := range headers {
		r := http.Request{Header: http.Header{"Authorization": {h}}}
		if user, password, ok := r.BasicAuth(); !ok || user+password != "" {
			return false
		}
	}
	return true
}

// filesWith lists the files below a folder that have a text.
func filesWith(t *testing.T, dir, text string) (out []string) {
	t.Helper()
	for name, content := range operationtest.ReadFiles(t, dir) {
		if strings.Contains(content, text) {
			out = append(out, name)
		}
	}
	return out
}
