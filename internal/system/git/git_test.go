//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == processtree.ReaperCommand {
		os.Exit(processtree.Reap())
	}
	os.Exit(m.Run())
}

// script is a program in place of git.
func script(t *testing.T, text string) *Runner {
	t.Helper()
	name := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return &Runner{Program: name}
}

// A thread that ends takes no git with it: the kernel asks git to end when the thread that started it does.
func TestGitOutlivesTheThreadsOfOthers(t *testing.T) {
	r := script(t, "read line; echo heard $line")
	var talks []*ObjectReader
	for range 8 {
		talk, err := r.OpenObjectReader(t.Context(), Call{}, Limits{Time: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		talks = append(talks, talk)
	}
	for range 50 {
		var ending sync.WaitGroup
		for range 8 {
			ending.Go(func() { _ = processtree.OnThread(func() error { return nil }) })
		}
		ending.Wait()
	}
	for _, talk := range talks {
		_, err := io.WriteString(talk.In, "it\n")
		answer, readErr := io.ReadAll(talk.Out)
		result, closeErr := talk.Close()
		if err := errors.Join(err, readErr, closeErr); err != nil || result.Code != 0 || string(answer) != "heard it\n" {
			t.Errorf("%q, %+v, %v", answer, result, err)
		}
	}
}

// TestEveryCallSeesTheseAlone lists what guards every call.
func TestEveryCallSeesTheseAlone(t *testing.T) {
	guarded := []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "credential.helper=", "protocol.allow=never",
		"protocol.ext.allow=never", "gc.auto=0", "maintenance.auto=false",
	}
	variables := []string{
		"LC_ALL=C", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true",
		"GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_CEILING_DIRECTORIES=/",
	}
	ssh := "GIT_SSH_COMMAND=ssh -o BatchMode=yes -o ConnectTimeout=3 -o ServerAliveInterval=3 -o ServerAliveCountMax=1"
	alone := []string{"PATH=/opt/bin:/usr/bin:/bin", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_ALLOW_PROTOCOL="}
	evil := []string{"LC_ALL=de", "GIT_CONFIG_GLOBAL=/evil", "GIT_CONFIG_NOSYSTEM=0", "GIT_ASKPASS=/evil",
		"GIT_ALLOW_PROTOCOL=ext", "GIT_NO_REPLACE_OBJECTS=0", "A=b"}
	remote := func(m Remote) Call {
		m.Silence = 3 * time.Second
		return Call{Args: []string{"fetch"}, Remote: &m}
	}
	reaching := func(protocols string, more ...string) []string {
		return append([]string{alone[0], alone[1], alone[2], "GIT_ALLOW_PROTOCOL=" + protocols, ssh}, more...)
	}
	slow := []string{"http.lowSpeedLimit=1", "http.lowSpeedTime=3"}
	for name, test := range map[string]struct {
		runner *Runner
		call   Call
		dir    string
		before []string // settings before those of every call
		after  []string
		env    []string
	}{
		"alone":           {call: Call{Args: []string{"init"}}, dir: "/", env: alone},
		"in a folder":     {call: Call{Dir: "/x", Args: []string{"init"}}, dir: "/x", env: alone},
		"in a repository": {call: Call{GitDir: "/r.git", Args: []string{"log"}}, dir: "/r.git", env: alone},
		"what the call adds": {call: Call{Config: []string{"core.hooksPath=/evil"}, Env: evil}, dir: "/",
			before: []string{"core.hooksPath=/evil"}, env: append([]string{"A=b"}, alone...)},
		"what the runner adds": {runner: &Runner{Home: "/home/joe",
			Env: append([]string{"PATH=/p", "SSH_AUTH_SOCK=/s"}, evil...)}, dir: "/",
			env: []string{"PATH=/p", "HOME=/home/joe", "SSH_AUTH_SOCK=/s", "A=b", "GIT_ALLOW_PROTOCOL="}},
		"https": {call: remote(Remote{URL: trust.Said("https://example.org/x")}), dir: "/", after: slow,
			env: reaching("https")},
		"http": {call: remote(Remote{URL: trust.Said("http://example.org/x")}), dir: "/", after: slow,
			env: reaching("http:https")},
		"ssh": {call: remote(Remote{URL: trust.Said("ssh://git@example.org/x")}), dir: "/", after: slow,
			env: reaching("ssh")},
		"git's short form of ssh": {call: remote(Remote{URL: trust.Said("git@example.org:x")}), dir: "/", after: slow,
			env: reaching("ssh")},
		"a path": {call: remote(Remote{URL: trust.Said("/srv/a:b")}), dir: "/", after: slow,
			env: reaching("file")},
		"another way": {call: remote(Remote{URL: trust.Said("ext://sh")}), dir: "/", after: slow,
			env: reaching("")},
		"to this address alone": {call: remote(Remote{URL: trust.Said("https://example.org/x"), Exact: true}), dir: "/",
			after: append(slices.Clone(slow), "http.followRedirects=false"), env: reaching("https")},
		"with a file of credentials": {
			call: remote(Remote{URL: trust.Said("https://example.org/x"), Credentials: "/c"}), dir: "/",
			after: append(slices.Clone(slow), "credential.helper="+credentialHelper),
			env:   reaching("https", "CLAUDEOPS_GIT_CREDENTIALS=/c"),
		},
		"with a token": {
			call:  remote(Remote{URL: trust.Said("https://joe@example.org:8443/x"), Token: "tok-en", Credentials: "/c"}),
			dir:   "/",
			after: append(slices.Clone(slow), "credential.https://example.org:8443.helper="+tokenHelper), env: reaching("https"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.runner
			if r == nil {
				r = &Runner{}
			}
			r.path = "/opt/bin/git"
			s, err := r.prepareCall(t.Context(), test.call)
			if err != nil {
				t.Fatal(err)
			}
			var args []string
			if test.call.GitDir != "" {
				args = append(args, "--git-dir="+test.call.GitDir)
			}
			for _, setting := range slices.Concat(test.before, guarded, test.after) {
				args = append(args, "-c", setting)
			}
			if diff := cmp.Diff(append(args, test.call.Args...), s.args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			want := slices.Concat(variables, test.env)
			slices.Sort(want)
			slices.Sort(s.env)
			if diff := cmp.Diff(want, s.env); diff != "" || s.dir != test.dir {
				t.Errorf("in %s, environment (-want +got):\n%s", s.dir, diff)
			}
		})
	}
}

// Only https, and this machine, gets a token.
func TestATokenGoesOverNoOpenConnection(t *testing.T) {
	r := &Runner{path: "/opt/bin/git"}
	for address, ok := range map[string]bool{
		"https://example.org/x": true, "http://127.0.0.1:3000/x": true, "http://localhost/x": true, "http://[::1]/x": true,
		"http://example.org/x": false, "http://127.0.0.1.example.org/x": false, "git://127.0.0.1/x": false,
		"ssh://git@example.org/x": false, "git@example.org:x": false, "/srv/x": false,
	} {
		_, err := r.prepareCall(t.Context(), Call{Remote: &Remote{URL: trust.Said(address), Token: "tok-en"}})
		if ok != (err == nil) || !ok && !errors.Is(err, errNotConfidential) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := r.prepareCall(t.Context(), Call{Remote: &Remote{URL: trust.Said("https://example.org/x"),
		Token: "a\nhost=evil"}}); err == nil {
		t.Error("a token of two lines says more than a token")
	}
}

func TestAPublicHostHasNoPrivateAddress(t *testing.T) {
	hosts := map[string][]string{
		"public.example": {"192.0.9.1", "2001:4860::1"}, "inner.example": {"10.0.0.1"},
		"both.example": {"192.0.9.1", "192.168.1.1"}, "mapped.example": {"::ffff:127.0.0.1"},
		"carrier.example": {"100.64.0.1"}, "link.example": {"169.254.169.254"}, "127.0.0.1": {"127.0.0.1"},
		"192.0.9.1": {"192.0.9.1"}, "::1": {"::1"}, "none.example": {},
	}
	lookup := func(_ context.Context, host string) (found []netip.Addr, err error) {
		list, ok := hosts[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		for _, text := range list {
			found = append(found, netip.MustParseAddr(text))
		}
		return found, nil
	}
	for address, want := range map[string]string{
		"https://public.example/x":      "http.curloptResolve=public.example:443:192.0.9.1,2001:4860::1",
		"http://public.example:8080/x":  "http.curloptResolve=public.example:8080:192.0.9.1,2001:4860::1",
		"https://192.0.9.1/x":           "",
		"ssh://git@public.example/x":    "",
		"git@public.example:x":          "",
		"/srv/x":                        "",
		"file:///srv/x":                 "",
		"https://inner.example/x":       "private",
		"https://both.example/x":        "private",
		"https://mapped.example/x":      "private",
		"https://carrier.example/x":     "private",
		"https://link.example/x":        "private",
		"http://127.0.0.1/x":            "private",
		"https://[::1]:8443/x":          "private",
		"ssh://git@inner.example:222/x": "private",
		"git@inner.example:x":           "private",
		"git://inner.example/x":         "private",
		"https://2130706433/x":          "not found",
		"git@alias:x":                   "not found",
	} {
		r := &Runner{path: "/opt/bin/git", Lookup: lookup}
		s, err := r.prepareCall(t.Context(), Call{Remote: &Remote{URL: trust.Said(address), Public: true}})
		var got string
		switch {
		case errors.Is(err, ErrPrivate):
			got = "private"
		case err != nil:
			got = "not found"
		default:
			if i := slices.IndexFunc(s.args,
				func(a string) bool { return strings.HasPrefix(a, "http.curloptResolve=") }); i >= 0 {
				got = s.args[i]
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
		if _, err := r.prepareCall(t.Context(), Call{Remote: &Remote{URL: trust.Said(address)}}); err != nil {
			t.Errorf("%s, where private is admitted: %v", address, err)
		}
	}
	proxied := &Runner{path: "/opt/bin/git", Lookup: lookup,
		Env: []string{"HTTPS_PROXY=http://proxy.example:3128", "NO_PROXY=inner.example"}}
	for address, ok := range map[string]bool{"https://behind.example/x": true, "https://inner.example/x": false,
		"http://inner.example/x": false} {
		if _, err := proxied.prepareCall(t.Context(),
			Call{Remote: &Remote{URL: trust.Said(address), Public: true}}); ok != (err == nil) {
			t.Errorf("%s, with a proxy: %v", address, err)
		}
	}
}

// Both ways of running end a git that prints without end.
func TestWhatGitPrintsIsBounded(t *testing.T) {
	for name, remote := range map[string]*Remote{"in a group": nil, "below the reaper": {URL: trust.Said("/x")}} {
		r := script(t, "exec yes")
		r.Reaped = true
		result, err := r.Run(t.Context(), Call{Remote: remote}, Limits{Output: 1 << 20})
		if !errors.Is(err, ErrTooMuch) || len(result.Out) != 1<<20 {
			t.Errorf("%s: %d bytes, %v", name, len(result.Out), err)
		}
		r = script(t, "yes | head -c 3000000 >&2; exit 3")
		r.Reaped = true
		result, err = r.Run(t.Context(), Call{Remote: remote}, Limits{Said: 1000})
		if err != nil || result.Code != 3 || len(result.Said) != 999 { // its last space is not kept
			t.Errorf("%s: code %d, %d bytes said, %v", name, result.Code, len(result.Said), err)
		}
	}
}

// runs reports whether a process is there and has not ended.
func runs(pid string) bool {
	state, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(state), ") Z ")
}

func TestACallEndsWithItsContext(t *testing.T) {
	cause := errors.New("enough")
	for name, remote := range map[string]*Remote{"in a group": nil, "below the reaper": {URL: trust.Said("/x")}} {
		started := filepath.Join(t.TempDir(), "started")
		r := script(t, "sleep 300 & echo $! > "+started+".new; mv "+started+".new "+started+"; wait")
		r.Reaped = true
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for {
				if _, err := os.Stat(started); err == nil || ctx.Err() != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			cancel(cause)
		}()
		if _, err := r.Run(ctx, Call{Remote: remote}, Limits{}); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
		child, err := os.ReadFile(started)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// a signal that was sent takes its time
		for until := time.Now().Add(time.Minute); runs(strings.TrimSpace(string(child))); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: the child %s of git runs still", name, child)
			}
		}
		if _, err := r.Run(t.Context(), Call{Remote: remote}, Limits{Time: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Run(ctx, Call{}, Limits{}); !errors.Is(err, cause) {
			t.Errorf("a context that has ended before: %v", err)
		}
	}
}

func TestWhatIsPrintedIsReadMeanwhile(t *testing.T) {
	enough := errors.New("enough")
	for name, test := range map[string]struct {
		script string
		read   func(io.Reader) error
		want   func(error) bool
	}{
		"all of it": {"echo one", nil, func(err error) bool { return err == nil }},
		"an error of the reader": {"exec yes", func(io.Reader) error { return enough },
			func(err error) bool { return errors.Is(err, enough) }},
		"a reader that stops soon": {"echo one; echo two", func(io.Reader) error { return nil },
			func(err error) bool { return err == nil }},
		"an error of git": {"echo half; echo fatal: words >&2; exit 3", nil, func(err error) bool {
			exit := (*ExitError)(nil)
			return errors.As(err, &exit) && exit.Code == 3 && err.Error() == "fatal: words"
		}},
		"no git": {"", nil, func(err error) bool { return errors.Is(err, ErrNotFound) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := script(t, test.script)
			if test.script == "" {
				r.Program += "-gone"
			}
			read := test.read
			if read == nil {
				read = func(out io.Reader) error { _, err := io.ReadAll(out); return err }
			}
			if err := r.Stream(t.Context(), Call{}, Limits{}, read); !test.want(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestATalk(t *testing.T) {
	r := script(t, `while read -r line; do echo "said $line"; done; echo words >&2; exit 4`)
	talk, err := r.OpenObjectReader(t.Context(), Call{}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		_, _ = fmt.Fprintln(talk.In, word)
		answer := make([]byte, len("said one\n"))
		if _, err := io.ReadFull(talk.Out, answer); err != nil || string(answer) != "said "+word+"\n" {
			t.Errorf("%q, %v", answer, err)
		}
	}
	if result, err := talk.Close(); err != nil || result.Code != 4 || result.Said != "words" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := r.OpenObjectReader(t.Context(), Call{Remote: &Remote{URL: trust.Said("/x")}}, Limits{}); err == nil {
		t.Error("talked to another repository")
	}
}

// Git is looked for once, and again when it is gone.
func TestAGitThatComesAndGoes(t *testing.T) {
	first, second := script(t, "echo first"), script(t, "echo second")
	r := &Runner{}
	says := func(want string) {
		t.Helper()
		if result, err := r.Run(t.Context(), Call{}, Limits{}); err != nil || string(result.Out) != want+"\n" {
			t.Errorf("%q, %v; want %s", result.Out, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := r.Run(t.Context(), Call{}, Limits{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no git: %v", err)
	}
	t.Setenv("PATH", filepath.Dir(first.Program))
	says("first")
	t.Setenv("PATH", filepath.Dir(second.Program))
	says("first")
	if err := os.Remove(first.Program); err != nil {
		t.Fatal(err)
	}
	_, _ = r.Run(t.Context(), Call{}, Limits{}) // finds that it is gone
	says("second")
}

// An id means its own commit, whatever refs/replace says, which another repository may have sent.
func TestNoObjectIsReplaced(t *testing.T) {
	r, dir := &Runner{}, t.TempDir()
	run := func(env []string, args ...string) string {
		t.Helper()
		result, err := r.Run(t.Context(), Call{Dir: dir,
			Env:  append(env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"),
			Args: args}, Limits{})
		if err != nil || result.Code != 0 {
			t.Fatalf("%v: %v %s", args, err, result.Said)
		}
		return strings.TrimSpace(string(result.Out))
	}
	run(nil, "init", "--quiet", "--bare")
	tree := run(nil, "hash-object", "-t", "tree", "-w", "/dev/null")
	good, bad := run(nil, "commit-tree", "-m", "good", tree), run(nil, "commit-tree", "-m", "bad", tree)
	run(nil, "update-ref", "refs/replace/"+good, bad)
	if said := run(nil, "log", "-1", "--format=%s", good); said != "good" {
		t.Errorf("%s is %s", good, said)
	}
}
