package deploy

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
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
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return newGit(program, t.TempDir(), t.TempDir(), []string{"PATH=" + os.Getenv("PATH")})
}

func cached(t *testing.T, g *Git) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(g.cache, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
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
		if l := g.limits; l.file != change.MaxFileBytes || l.files != maxCommitFiles || l.bytes != maxCommitBytes ||
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
	for _, size := range []int64{change.MaxFileBytes, change.MaxFileBytes + 1} {
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
		if large := size > change.MaxFileBytes; err == nil || strings.Contains(err.Error(), "x has more than") != large {
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
		folder, err := g.Folder(t.Context(), s, commits[i])
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	if _, err := g.Folder(t.Context(), s, commits[3]); codeOf(err) != GitFailed ||
		!strings.Contains(err.Error(), "all of it was used in the last 15 minutes") {
		t.Errorf("all are in use: %v", err)
	}
	if left := cached(t, g); len(left) != 3 {
		t.Errorf("what is in use was removed, or what was refused is left: %v", left)
	}
	for i, ago := range map[int]time.Duration{0: time.Hour, 1: 3 * time.Hour, 2: 2 * time.Hour} {
		if err := os.Chtimes(folders[i], clock.Add(-ago), clock.Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Folder(t.Context(), s, commits[3]); err != nil {
		t.Fatal(err)
	}
	if change.Exists(folders[1]) || !change.Exists(folders[0]) || !change.Exists(folders[2]) {
		t.Errorf("the one that was used least recently goes: %v", cached(t, g))
	}
	if _, err := g.Folder(t.Context(), s, commits[0]); err != nil { // is used now
		t.Fatal(err)
	}
	if _, err := g.Folder(t.Context(), s, commits[4]); err != nil {
		t.Fatal(err)
	}
	if !change.Exists(folders[0]) || change.Exists(folders[2]) {
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
		if err := os.Chtimes(filepath.Join(g.cache, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Folder(t.Context(), s, commit); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"aa/.new-1": false, "aa/.new-2": true, ".checkout-1": false,
		".checkout-2": true} {
		if change.Exists(filepath.Join(g.cache, name)) != want {
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
	counting := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"git": "#!/bin/sh\ncase \"$*\" in *' fetch '*) echo fetch >>" + count + ";; esac\nexec " + g.git.Program +
			" \"$@\"\n",
	})
	g.git.Program = filepath.Join(counting, "git")
	if err := os.Chmod(g.git.Program, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
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
	url, _ := upstream(t)
	folder := t.TempDir()
	if err := os.Symlink(strings.TrimPrefix(url, "file://"), filepath.Join(folder, "repo")); err != nil {
		t.Fatal(err)
	}
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
				"bin/git":        "#!/bin/sh\n{ echo \"$@\"; env; } >> '" + seen + "'\nexec '" + b.settings.Git.Path + "' \"$@\"\n",
			})
			if err := os.Chmod(filepath.Join(b.dir, "bin/git"), 0o700); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
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
