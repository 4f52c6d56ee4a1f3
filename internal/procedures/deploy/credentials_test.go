package deploy

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s := &privateServer{}
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"},
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

// privateSetup has a module of a private repository. credentials are the lines of the file; none for no file.
func privateSetup(t *testing.T, s *privateServer, credentials ...string) Setup {
	t.Helper()
	setup := setup(t, gitModule(s.URL+"/repo/.git", ""))
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	setup.Git.git.Env = append(setup.Git.git.Env, "GIT_SSL_CAINFO="+authority)
	if credentials != nil {
		setup.Git.credentials = filepath.Join(t.TempDir(), "git credentials")
		if err := os.WriteFile(setup.Git.credentials, []byte(strings.Join(credentials, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return setup
}

func TestPrivateRepositoriesOverHTTPS(t *testing.T) {
	t.Parallel()
	url, _ := upstream(t)
	folder := t.TempDir()
	if err := os.Symlink(strings.TrimPrefix(url, "file://"), filepath.Join(folder, "repo")); err != nil {
		t.Fatal(err)
	}
	server := newPrivateServer(t, folder)
	own := strings.Replace(server.URL, "https://", "https://bot:"+gitToken+"@", 1)
	wrong := strings.Replace(server.URL, "https://", "https://bot:wrong-token@", 1)
	t.Run("with the token", func(t *testing.T) {
		s := privateSetup(t, server, "https://bot:other@example.org", own)
		before, err := os.ReadFile(s.Git.credentials)
		if err != nil {
			t.Fatal(err)
		}
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
		script := filepath.Join(t.TempDir(), "git")
		if err := os.WriteFile(script, []byte("#!/bin/sh\n{ echo \"$@\"; env; } >> '"+log+"'\nexec '"+s.Git.git.Program+"' \"$@\"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		s.Git.git.Program = script
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
			if err := os.WriteFile(s.Git.credentials, []byte(second+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = desiredTexts(t, s) // without the right one it fails, which does not matter here
			_, _ = desiredTexts(t, s)
		}
		if diff := cmp.Diff([]string{gitToken, "wrong-token"}, learned); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
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
		if err := os.Chmod(s.Git.credentials, 0o644); err != nil {
			t.Fatal(err)
		}
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
	url, commits := upstream(t)
	folder := t.TempDir()
	if err := os.Symlink(strings.TrimPrefix(url, "file://"), filepath.Join(folder, "repo")); err != nil {
		t.Fatal(err)
	}
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
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if strings.Contains(string(content), text) {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
