package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// Names below localhost lead a browser to both addresses of loopback, so that a program at the other one would be shown
// its login.
func TestBothAddressesOfLoopbackAreListenedAt(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "[::1]", "[::1]:0": "127.0.0.1", "0.0.0.0:0": "[::1]", ":0": "", "localhost:0": "",
	} {
		all, own, err := listen(t.Context(), addr)
		if err != nil {
			if strings.Contains(addr, "::1") { // a machine without IPv6
				continue
			}
			t.Fatal(err)
		}
		if own != (httpx.Own{Names: true}) {
			t.Errorf("%s: %+v", addr, own)
		}
		_, port, _ := net.SplitHostPort(all[0].Addr().String())
		if _, err := net.Listen("tcp", want+":"+port); want != "" && err == nil { //nolint:noctx // it must fail
			t.Errorf("%s: another program may listen at %s", addr, want)
		}
		must.Do(t, closeAll(all))
	}
}

func TestWhereAnotherProgramHasTheOtherAddressBrowsersAreToldSo(t *testing.T) {
	for first, second := range map[string]string{"[::1]": "127.0.0.1", "127.0.0.1": "[::1]"} {
		taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", first+":0")
		if err != nil {
			continue // a machine without IPv6
		}
		_, port, _ := net.SplitHostPort(taken.Addr().String())
		all, own, err := listen(t.Context(), second+":"+port)
		for range portAttempts { // the port may be another program's at the second address
			if !errors.Is(err, syscall.EADDRINUSE) {
				break
			}
			must.Do(t, taken.Close())
			taken = must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", first+":0"))(t)
			_, port, _ = net.SplitHostPort(taken.Addr().String())
			all, own, err = listen(t.Context(), second+":"+port)
		}
		if err != nil || len(all) != 1 || own.Names || !strings.Contains(own.Why, first+":"+port) {
			t.Errorf("%s: %d listeners, %+v, %v", second, len(all), own, err)
		}
		must.Do(t, closeAll(append(all, taken)))
	}
	all, own, err := listen(t.Context(), "127.0.0.2:0") // names below localhost do not lead there
	if err == nil && (own.Names || !strings.Contains(own.Why, "listens at 127.0.0.2") || len(all) != 1) {
		t.Errorf("%+v", own)
	}
	must.Do(t, closeAll(all))
}

// With PostgreSQL nothing else makes the folder of the key and of sessions.
func TestTheStateFolderOfAServerWithADatabase(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		parents bool
		problem string // of what it says; "" if it can be written afterwards
	}{
		"it is there":                     {".", false, ""},
		"it is not there yet":             {"state", false, ""},
		"nor are the folders above it":    {"home/local/state", true, ""},
		"a folder above it was mistyped":  {"missing/state", false, "the folder above it does not exist"},
		"a file has its name":             {"file", false, "cannot be written"},
		"a file has the name above it":    {"file/state", true, "cannot be written"},
		"the server needs none (no path)": {"", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			s := stateFolderOf(config.Config{Records: config.Records{DatabaseURL: "postgres://db.example.org/ops",
				Dir: filepath.Join(dir, c.path), DirDefault: c.parents}})
			if c.path == "" {
				s.path = ""
			}
			for range 2 {
				err := s.writable()
				if (err == nil) != (c.problem == "") {
					t.Fatalf("got %v", err)
				}
				if (WaitsFor(err) != "") != (c.path == "missing/state") {
					t.Errorf("it waits for %q: %v", WaitsFor(err), err)
				}
				if err != nil && (fault.CodeOf(err) != fault.Misconfigured || !strings.Contains(err.Error(), c.problem) ||
					!strings.Contains(err.Error(), s.path) || strings.Contains(err.Error(), "room")) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// A disk that is full, read-only or broken at a start may be mended by then.
func TestWhatADiskMayWaitFor(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC: "room on the disk", syscall.EDQUOT: "room on the disk", syscall.EROFS: "cannot be written",
		syscall.EIO: "cannot be written", syscall.EACCES: "",
	} {
		got := stateFolder{path: "/state"}.unusable(&fs.PathError{Op: "mkdir", Path: "/state", Err: err})
		exit := fault.ExitMachine
		if want == "" {
			exit = fault.ExitUsage
		}
		if waits := WaitsFor(got); !strings.Contains(waits, want) || (waits == "") != (want == "") ||
			fault.From(got).ExitCode() != exit || strings.Contains(waits, "/state") {
			t.Errorf("%v: it waits for %q, exit code %d", err, waits, fault.From(got).ExitCode())
		}
	}
}

// started is a start of which the clock stands still.
func started(wait time.Duration, sleep func()) (*startWait, *[]string) {
	var told []string
	now := time.Unix(0, 0)
	return &startWait{until: now.Add(wait), now: func() time.Time { return now },
		sleep:  func(context.Context, time.Duration) { now = now.Add(startRetry); sleep() },
		report: func(waitsFor string, _ error) { told = append(told, waitsFor) }}, &told
}

func TestAStartWaitsForTheMachineAndNoLongerThanItMay(t *testing.T) {
	busy := func() error { return UsageError{Err: errors.New("in use"), WaitsFor: "its address"} }
	for name, c := range map[string]struct {
		fail  func(n int) error
		tries int
		fails bool
	}{
		"nothing is wrong":   {func(int) error { return nil }, 1, false},
		"settings are wrong": {func(int) error { return Usage(errors.New("no address")) }, 1, true},
		"it comes in time":   {func(n int) error { return map[bool]error{true: busy()}[n < 3] }, 3, false},
		"it does not come":   {func(int) error { return busy() }, 6, true},
		"another one than the first": {func(n int) error {
			return []error{busy(), fault.New(fault.Internal, "x")}[n/3]
		}, 3, true},
	} {
		tries := 0
		s, told := started(5*startRetry, func() {})
		err := s.wait(t.Context(), func() error {
			tries++
			return c.fail(tries)
		})
		if tries != c.tries || (err != nil) != c.fails || len(*told) != min(tries-1, 1) {
			t.Errorf("%s: %d tries, %v, told %q", name, tries, err, *told)
		}
	}
}

func TestWhileAServerWaitsItsProbesSayForWhat(t *testing.T) {
	listener := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	ask := func(path string) (int, string) {
		answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + listener.Addr().String() + path)
		must.Do(t, err)
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	missing := fault.New(fault.Misconfigured, "/secret/place is missing").Awaits("the folder above the state folder")
	there := false
	s, _ := started(time.Hour, func() {
		for _, base := range []string{"", "/ops"} {
			if status, text := ask(base + "/healthz"); status != 200 || !strings.Contains(text, "ok") {
				t.Errorf("%s/healthz: %d %s", base, status, text)
			}
			if status, text := ask(base + "/readyz"); status != 503 || !strings.Contains(text, "waits for the folder above") ||
				strings.Contains(text, "secret") {
				t.Errorf("%s/readyz: %d %s", base, status, text)
			}
		}
		there = true
	})
	err := s.waitBehind(t.Context(), config.Web{BasePath: "/ops"}, []net.Listener{listener}, func() error {
		return map[bool]error{false: missing}[there]
	})
	if err != nil || !there {
		t.Fatal(there, err)
	}
	go func() { // the listener serves on
		_ = http.Serve(listener, http.NotFoundHandler()) //nolint:gosec // of a test
	}()
	if status, _ := ask("/"); status != http.StatusNotFound {
		t.Errorf("afterwards: %d", status)
	}
}

// The environment file may hold the forge's token: it stays out of reach where an operator opens the folder that it is
// in to agents (CLAUDEOPS_AGENT_READ).
func TestTheEnvironmentFileIsHiddenFromAgents(t *testing.T) {
	const path = "/home/joe/.config/claudeops/environment"
	if hidden := hiddenFromAgents(config.Config{EnvironmentFile: path}); !slices.Contains(hidden, path) {
		t.Errorf("only %q are hidden", hidden)
	}
}

// Connections of the same rights share what serves them. Those of other rights must not, while all are open: each is
// refused by its own.
func TestConnectionsOfOtherRightsShareNothing(t *testing.T) {
	state := t.TempDir()
	lookup := func(name string) (string, bool) {
		value, is := map[string]string{"CLAUDEOPS_STATE_DIR": state}[name]
		return value, is
	}
	a := New(func() Options {
		return Options{Lookup: lookup, Environment: lookup, Out: io.Discard,
			Sources: func() (config.Sources, error) { return config.Environment(lookup), nil },
			Logger:  func(LogForm, config.Config) *slog.Logger { return slog.New(slog.DiscardHandler) }}
	})
	p := a.Wire(Needs{})
	defer func() {
		if err := p.Store.Close(); err != nil {
			t.Error(err)
		}
	}()
	servers := &agentServers{program: a, parts: p}
	toolsets := []string{"pr"}
	observes := gateway.Rights{Tier: gitprovider.TierObserve, Toolsets: toolsets}
	reads := gateway.Rights{Tier: gitprovider.TierInvestigate, ReadOnly: true, Toolsets: toolsets}
	proposes := gateway.Rights{Tier: gitprovider.TierInvestigate, Toolsets: toolsets}
	first, second := connectAgent(t, servers, proposes), connectAgent(t, servers, observes)
	third := connectAgent(t, servers, reads)
	for range 2 {
		if answer := first(); strings.Contains(answer, "tier_denied") || strings.Contains(answer, "read_only") {
			t.Errorf("an agent that may propose is told %s", answer)
		}
		must.Contain(t, second(), "tier_denied")
		must.Contain(t, third(), "read_only")
	}
	connectAgent(t, servers, proposes)
	if kinds := len(servers.servers.held); kinds != 3 {
		t.Errorf("%d servers for three kinds of rights", kinds)
	}
}

// connectAgent opens a connection with rights until the test ends. It returns what proposes a change there, and gives
// the line that answers.
func connectAgent(t *testing.T, servers *agentServers, r gateway.Rights) (propose func() string) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- servers.serve(t.Context(), r, gateway.Client{In: in, Out: out}) }()
	answers := bufio.NewScanner(fromServer)
	answers.Buffer(nil, 1<<20)
	ask := func(line string) string {
		if _, err := io.WriteString(toServer, line+"\n"); err != nil || !answers.Scan() {
			t.Fatal(err, answers.Err())
		}
		return answers.Text()
	}
	t.Cleanup(func() {
		_ = toServer.Close()
		go func() { _, _ = io.Copy(io.Discard, fromServer) }()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = out.Close()
	})
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}`)
	return func() string {
		return ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_pr","arguments":{"repo_owner":"o",` +
			`"repo_name":"r","title":"Look at disks","body":"why","change_type":"check","files":[{"path":"checks/a.md",` +
			`"action":"create","content":"a"}]}}}`)
	}
}

// Memory goes back once, at the first quiet look after work that needed much.
func TestABurstIsOverAtTheFirstQuietLook(t *testing.T) {
	t.Parallel()
	const small, large = burstBytes / 8, burstBytes
	w, total, over := burstWatch{}, uint64(0), []int{}
	for at, grown := range []uint64{small, large, large, small, small, 0, large, 0} {
		total += grown
		if w.isOver(total) {
			over = append(over, at)
		}
	}
	if want := []int{3, 7}; !slices.Equal(over, want) {
		t.Errorf("bursts are over at looks %d, want %d", over, want)
	}
}

func TestASmallHeapGrowsByMoreThanAThird(t *testing.T) {
	t.Parallel()
	for mib, want := range map[uint64]int{0: 400, 1: 400, 8: 200, 9: 175, 16: 100, 40: 35, 64: 35, 4096: 35} {
		if got := growthOf(mib << 20); got != want {
			t.Errorf("a heap of %d MiB grows by %d %%, want %d", mib, got, want)
		}
	}
}

// Each policy that a guide shows is one that the program reads. Some leave out the version, which is always the same.
func TestThePoliciesOfTheGuidesAreRead(t *testing.T) {
	t.Parallel()
	pages := must.Get(filepath.Glob("../../docs/guides/*.md"))(t)
	read := map[string]policy.Policy{} // the last one of each page
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			shown := block[1]
			if !strings.Contains("\n"+shown, "\nscope:") {
				continue
			}
			if !strings.HasPrefix(shown, "version:") {
				shown = "version: 1\n" + shown
			}
			p, err := policy.Parse("policy.yaml", []byte(shown), fileKinds()...)
			if err != nil {
				t.Errorf("%s: %v", page, err)
			}
			read[filepath.Base(page)] = p
		}
	}
	if _, is := read["policy.md"]; !is {
		t.Error("the guide to the policy shows none")
	}
	manifests := read["procedures.md"].Scope.At(gitprovider.TierRemediate)
	for path, allowed := range map[string]bool{"apps/mail/values.yaml": true, "apps/mail/secret.yaml": false,
		".github/workflows/x.yaml": false} {
		if got := manifests.Check(path).Allowed; got != allowed {
			t.Errorf("%s: allowed %t by the policy for manifests", path, got)
		}
	}
}

// The socket of the front desk is for the user who runs the server, however many others can reach it. Of that user's
// processes it is for those that can read the state folder: an agent within a boundary cannot.
func TestOnlyTheUserOfTheServerGetsAnAddressToSignIn(t *testing.T) {
	own := gateway.Peer{Known: true, UID: os.Getuid()}
	for name, c := range map[string]struct {
		peer gateway.Peer
		err  error
		key  string
	}{
		"another user":                         {peer: gateway.Peer{Known: true, UID: os.Getuid() + 1}, key: "right"},
		"a user that the kernel does not name": {key: "right"},
		"a failed question":                    {own, errors.New("gone"), "right"},
		"who cannot read the key":              {peer: own},
		"who guesses the key":                  {peer: own, key: "wrong"},
	} {
		d := desk{key: "right", peer: func(net.Conn) (gateway.Peer, error) { return c.peer, c.err }}
		if answer, err := d.signInAddress(t.Context(), nil, c.key); fault.CodeOf(err) != fault.Unauthenticated ||
			answer.URL != "" {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

// A server that starts removes what killed ones have left, and nothing of a server that lives or is about to listen.
func TestWhatKilledServersHaveLeftIsRemoved(t *testing.T) {
	parent, err := os.MkdirTemp("", "d") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	long := time.Now().Add(-2 * deskSettled)
	leave := func(name string, lives bool, at time.Time) {
		folder := filepath.Join(parent, name)
		must.Do(t, os.Mkdir(folder, 0o700))
		listener := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, "socket")}))(t)
		listener.SetUnlinkOnClose(false)
		if t.Cleanup(func() { _ = listener.Close() }); !lives {
			_ = listener.Close()
		}
		must.Do(t, errors.Join(os.Chtimes(filepath.Join(folder, "socket"), at, at), os.Chtimes(folder, at, at)))
	}
	leave(deskPrefix+"killed", false, long)
	leave(deskPrefix+"lives", true, long)
	leave(deskPrefix+"starts", false, time.Now())
	leave("other", false, long)
	full := filepath.Join(parent, deskPrefix+"full")
	must.Do(t, errors.Join(os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "socket"), nil, 0o600),
		os.Chtimes(filepath.Join(full, "socket"), long, long), os.Chtimes(full, long, long)))
	must.Do(t, os.Symlink("other", filepath.Join(parent, deskPrefix+"link")))
	removeDeadFolders(t.Context(), parent)
	entries, err := os.ReadDir(parent)
	var left []string
	for _, entry := range entries {
		left = append(left, strings.TrimPrefix(entry.Name(), deskPrefix))
	}
	want := []string{"full", "link", "lives", "starts", "other"}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("there are %v, %v, want %v", left, err, want)
	}
}
