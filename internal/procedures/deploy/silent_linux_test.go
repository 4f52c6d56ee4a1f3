package deploy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// silent is a server that accepts and says nothing. accepted has an entry for each connection.
func silent(t *testing.T) (address string, accepted chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	accepted = make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			accepted <- c
		}
	}()
	return l.Addr().String(), accepted
}

// speaking are the processes whose arguments have a text.
func speaking(t *testing.T, text string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.Do(t, err)
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, name+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

const patience = time.Minute // far more than any of it takes

func silentGit(t *testing.T) *Git {
	t.Helper()
	g := testGit(t)
	g.limits.ask, g.limits.fetch = time.Second, time.Second
	return g
}

// A server that accepts and says nothing costs its time limit and no more; no git and no helper of git is left.
func TestASilentServerEndsTheCall(t *testing.T) {
	t.Parallel()
	address, _ := silent(t)
	for _, reaped := range []bool{true, false} {
		for _, scheme := range []string{"http", "git"} {
			g := silentGit(t)
			g.git.Reaped = reaped
			s := (&GitSource{URL: scheme + "://" + address + "/x", Ref: "main"}).operators()
			for what, f := range map[string]func() error{
				"asked":   func() error { _, err := g.resolve(t.Context(), s); return err },
				"fetched": func() error { _, err := g.Folder(t.Context(), s, strings.Repeat("a", 40)); return err },
			} {
				began := time.Now()
				if err := f(); codeOf(err) != GitFailed || !strings.Contains(err.Error(), "did not answer to the end within 1s") {
					t.Errorf("%s, %s: %v", scheme, what, err)
				}
				if took := time.Since(began); took > patience {
					t.Errorf("%s, %s: took %s", scheme, what, took)
				}
				if left := speaking(t, address); len(left) > 0 {
					t.Errorf("%s, %s (reaped %t): left: %v", scheme, what, reaped, left)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(g.cache, "*", "*")); len(left) > 0 {
				t.Errorf("left in the cache: %v", left)
			}
		}
	}
}

// A call that its caller gives up ends at once.
func TestACallThatIsGivenUpEndsGit(t *testing.T) {
	t.Parallel()
	address, accepted := silent(t)
	for _, reaped := range []bool{true, false} {
		g := silentGit(t)
		g.git.Reaped, g.limits.ask = reaped, time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-accepted; cancel() }()
		_, err := g.resolve(ctx, (&GitSource{URL: "http://" + address + "/x", Ref: "main"}).operators())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if left := speaking(t, address); len(left) > 0 {
			t.Errorf("reaped %t: left: %v", reaped, left)
		}
		cancel()
	}
}

func TestNoGitOutlivesAKilledServer(t *testing.T) {
	t.Parallel()
	address, accepted := silent(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DEPLOY_ASK_UNTIL_KILLED=http://"+address+"/x")
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	select {
	case <-accepted:
	case <-time.After(patience):
		t.Error("nobody asked")
	}
	if len(speaking(t, address)) == 0 {
		t.Error("no git runs")
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := speaking(t, address)
		if len(left) == 0 {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("left: %v", left)
		}
	}
}

// The configuration of the repository in which this process was started takes no part, whatever it says.
func TestTheProjectsGitConfigurationTakesNoPart(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	ran := filepath.Join(dir, "ran")
	git(t, dir, "config", "core.sshCommand", "touch "+ran+"; false")
	git(t, dir, "config", "core.gitProxy", "touch "+ran+" #")
	git(t, dir, "config", "core.fsmonitor", "touch "+ran+" #")
	address, _ := silent(t)
	t.Chdir(dir)
	for _, url := range []string{"ssh://git@" + address + "/x", "git://" + address + "/x"} {
		g := silentGit(t)
		s := (&GitSource{URL: url, Ref: "main"}).operators()
		if _, err := g.resolve(t.Context(), s); codeOf(err) != GitFailed {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := g.Folder(t.Context(), s, strings.Repeat("a", 40)); codeOf(err) != GitFailed {
			t.Errorf("%s: %v", url, err)
		}
	}
	if fileset.Exists(ran) {
		t.Error("a program ran that the project's configuration names")
	}
}
