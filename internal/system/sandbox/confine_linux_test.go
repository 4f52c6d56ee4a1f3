package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/testkit/testusers"
)

// TestMain runs what this binary is started as by the tests: a supervisor, its reaper, the helper, and what an agent's
// shell may try.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case processtree.ReaperCommand:
			os.Exit(processtree.Reap())
		case HelperCommand:
			os.Exit(Enter())
		case "supervise":
			os.Exit(supervise())
		case "claim":
			os.Exit(claimIn(os.Args[2], os.Args[3]))
		case "attack":
			os.Exit(attackAll(os.Args[2]))
		case "attack-one":
			os.Exit(attackOne(os.Args[2], os.Args[3]))
		}
	}
	supervisorID = users.First()
	agentID, claimedID = supervisorID+1, supervisorID+2
	os.Exit(m.Run())
}

// order is a test's request to a supervisor.
type order struct {
	Profile Profile
	Command []string
	Dir     string
	Targets targets
}

// told is a supervisor's report of a run.
type told struct {
	Out, Err string
	Code     int
	Left     []int
	Problem  string
}

// claimIn claims a user in a folder, and says which.
func claimIn(folder, user string) int {
	id, err := strconv.Atoi(user)
	u := Users{Folder: folder, Accounts: []Account{{Name: "agent", UID: id, GID: id}}}
	var c *Claim
	if err == nil {
		c, err = u.Claim()
	}
	if err == nil {
		err = u.Usable()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("claimed", c.Account.UID, len(c.Keeps()), c.Release())
	return 0
}

// supervise runs a command in a tree, confined, as claudeops does with an agent. Its memory and environment hold a
// secret, it holds a secret file open, and listens on an abstract socket.
func supervise() int {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Println(err)
		return 1
	}
	answer := superviseOne(o)
	_ = json.NewEncoder(os.Stdout).Encode(answer)
	return 0
}

func superviseOne(o order) (answer told) {
	runtime.LockOSThread() // a keyring is joined by one thread
	secret, err := os.Open(o.Targets.State + "/secret")
	if err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _ = secret.Close() }()
	listener, err := net.Listen("unix", "@"+o.Targets.Abstract)
	if err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _ = listener.Close() }()
	const ofSession, ofUser = -3, -4
	_, _ = unix.KeyctlJoinSessionKeyring("claudeops-attack") // not that of the user who runs the tests
	o.Targets.Key, o.Targets.UserKey = addKey(ofSession), addKey(ofUser)
	if o.Targets.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600); err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _, _ = unix.SysvShmCtl(o.Targets.Memory, unix.IPC_RMID, nil) }()
	o.Targets.Supervisor, o.Targets.File = os.Getpid(), int(secret.Fd())
	seen, _ := json.Marshal(o.Targets)
	if err := os.WriteFile(o.Targets.File0, seen, 0o644); err != nil { //nolint:gosec // another user reads it
		return told{Problem: err.Error()}
	}
	out, outEnd, _ := os.Pipe()
	errs, errEnd, _ := os.Pipe()
	command, err := o.Profile.Wrap(processtree.Command{
		Path: o.Command[0], Args: o.Command, Env: []string{"PATH=/usr/bin:/bin"}, Dir: o.Dir, Stdout: outEnd, Stderr: errEnd,
	})
	if err != nil {
		return told{Problem: err.Error()}
	}
	tree, err := processtree.Start(command, o.Profile.Options(processtree.Options{Grace: time.Second}))
	_, _ = outEnd.Close(), errEnd.Close()
	if err != nil {
		return told{Problem: err.Error()}
	}
	texts := make(chan string, 2)
	read := func(f *os.File) {
		text, _ := io.ReadAll(f)
		texts <- string(text)
	}
	go read(out)
	<-tree.Exited()
	end := tree.End()
	answer.Out = <-texts
	go read(errs)
	answer.Err = strings.TrimSpace(<-texts)
	answer.Code, answer.Left = end.Exit.Code, end.Remaining
	return answer
}

// Numbers of users of the tests, where they run as root; claimedID is the first of some. TestMain says which.
var (
	users                            testusers.Block
	supervisorID, agentID, claimedID int
)

func supervisorUser() *syscall.Credential {
	id := uint32(supervisorID) //nolint:gosec // more than 0
	return &syscall.Credential{Uid: id, Gid: id}
}

// world is a supervisor's files.
type world struct {
	targets
	dir, binary string
}

// newWorld makes them, as the user that the supervisor is run as.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir := publicFolder(t)
	w := &world{dir: dir, binary: filepath.Join(dir, "bin", "confine.test")}
	w.targets = targets{
		Abstract: filepath.Base(dir), State: dir + "/state", Secrets: dir + "/system/etc/secrets/token",
		Policy: dir + "/system/etc/policy.yaml",
		Other:  dir + "/other", Own: dir + "/own", File0: dir + "/targets.json",
	}
	for _, folder := range []string{"bin", "state", "other", "own", "system/etc/secrets"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, folder), 0o755)) //nolint:gosec // another user reads some
	}
	for _, name := range []string{"state/secret", "state/cut", "state/removed", "state/moved", "state/over", "state/modes",
		"other/ticket", "own/mine",
		"system/etc/secrets/token", "system/etc/policy.yaml", "targets.json"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "system/etc/hostname"), []byte("here\n"), 0o644)) //nolint:gosec // see above
	self, err := os.ReadFile("/proc/self/exe")
	must.Do(t, err)
	syscall.ForkLock.RLock() // see golang.org/issue/22315
	err = os.WriteFile(w.binary, self, 0o755)
	syscall.ForkLock.RUnlock()
	must.Do(t, err)
	if os.Getuid() == 0 {
		must.Do(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			must.Do(t, err)
			return os.Lchown(path, supervisorID, supervisorID)
		}))
	}
	must.Do(t, os.Chmod(w.File0, 0o644)) //nolint:gosec // see above
	must.Do(t, os.Chmod(w.State, 0o700)) //nolint:gosec // a folder
	must.Do(t, os.Chmod(w.Other, 0o700)) //nolint:gosec // a folder
	return w
}

// publicFolder is a folder that other users may find.
func publicFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "confine-")
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must.Do(t, os.Chmod(dir, 0o755)) //nolint:gosec // that is the point
	return dir
}

// run has a supervisor run a command, with the rights that claudeops would have: root's tests run it as another user,
// with the capabilities that are needed for agents with a user of their own.
func (w *world) run(t *testing.T, p Profile, command ...string) told {
	t.Helper()
	p.Hidden = append(p.Hidden, w.State, filepath.Dir(w.Secrets), w.Policy)
	p.Read = append(p.Read, "/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev", filepath.Join(w.dir, "bin"),
		filepath.Join(w.dir, "system"), w.File0)
	p.Write = append(p.Write, w.Own)
	p.Devices = append(p.Devices, "/dev/null")
	given, err := json.Marshal(order{Profile: p, Command: command, Dir: w.Own, Targets: w.targets})
	must.Do(t, err)
	cmd := exec.Command(w.binary, "supervise") //nolint:noctx // it ends by itself
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(given), []string{"SECRET=in-the-environment"}, "/"
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: supervisorUser()}
		if p.Boundary.Kind == User {
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}
		}
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the supervisor failed: %v: %s%s", err, out, errs.String())
	}
	var answer told
	if err := json.Unmarshal(out, &answer); err != nil || answer.Problem != "" {
		t.Fatalf("the supervisor said %s, %v: %s", out, err, errs.String())
	}
	if len(answer.Left) > 0 {
		t.Errorf("left: %v", answer.Left)
	}
	return answer
}

// attack tries all attacks and returns those that were done.
func (w *world) attack(t *testing.T, p Profile) (done, refused []string) {
	t.Helper()
	answer := w.run(t, p, w.binary, "attack", w.File0)
	if answer.Code != 0 || answer.Err != "" {
		t.Fatalf("the attacker ended with %d: %s", answer.Code, answer.Err)
	}
	for line := range strings.Lines(answer.Out) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if result == "done" {
			done = append(done, name)
		} else {
			refused = append(refused, name+" ("+result+")")
		}
	}
	if len(done)+len(refused) != len(attacks()) {
		t.Fatalf("of %d attacks %d came to an end: %s", len(attacks()), len(done)+len(refused), answer.Out)
	}
	slices.Sort(done)
	return done, refused
}

// listener returns a port that must not be reachable.
func listener(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// needsLandlock says, where the kernel has no Landlock that signals respect, what the tests need that try it. Those of
// e2e fail there.
func needsLandlock(t *testing.T) (abi int, there bool) {
	t.Helper()
	abi = landlockABI()
	if abi < abiScopes {
		t.Logf("this kernel has version %d of Landlock; what is tried here needs %d (Linux 6.12), with landlock among its "+
			"security modules", abi, abiScopes)
	}
	return min(abi, abiNewest), abi >= abiScopes
}

// needsRoot says how the tests are run that need root.
func needsRoot(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("a user of their own for agents needs root: go test -c -o /tmp/confine.test ./internal/system/sandbox && " +
			"sudo /tmp/confine.test; `make e2e` runs as root")
	}
	return os.Getuid() == 0
}

// profiles are those that can be tried here.
func profiles(t *testing.T) map[string]Profile {
	t.Helper()
	out := map[string]Profile{}
	abi, there := needsLandlock(t)
	if there {
		out["landlock"] = Profile{Boundary: Boundary{Kind: Landlock, ABI: abi}, Limits: DefaultLimits()}
	}
	if !needsRoot(t) {
		return out
	}
	out["user alone"] = ownUser(0)
	if there {
		out["user"] = ownUser(abi)
	}
	return out
}

func ownUser(abi int) Profile {
	return Profile{
		Boundary: Boundary{Kind: User, Account: "agent", ABI: abi},
		Account:  &Account{Name: "agent", UID: agentID, GID: agentID}, Limits: DefaultLimits(),
	}
}

// Without a boundary the attacks work, so that those that are refused are refused by the boundary.
func TestWithoutABoundaryTheAttacksWork(t *testing.T) {
	w := newWorld(t)
	w.Port = listener(t)
	done, refused := w.attack(t, Profile{Boundary: Boundary{Kind: None}})
	t.Logf("refused without a boundary: %q", refused)
	for _, name := range []string{
		"environment of the supervisor", "open files of the supervisor", "a signal", "a signal to the reaper",
		"a signal by its pidfd", "limits of the supervisor",
		"an abstract socket", "the state", "a secret in the system", "writing to the state", "a new file in the state",
		"cutting off", "removing", "moving away",
		"moving over", "changing modes", "changing modes by a link", "writing the policy", "another session",
		"a symbolic link", "a hard link", "a port", "a port by UDP", "a port once another connection was dissolved",
		"listening without a bind", "listening without a bind, on IPv6", "listening after a bind",
		"listening after a bind of no family", "listening after a connect of no family", "listening after a datagram",
		"accepting on a socket that was handed over", "accepting with flags on a socket that was handed over",
		"datagrams from anywhere",
		"memory that stays", "semaphores that stay", "messages that stay", "memory of the operator", "news of the kernel",
	} {
		if !slices.Contains(done, name) {
			t.Errorf("%s was refused, so the test of the boundaries proves nothing: %v", name, refused)
		}
	}
	refusalOf32Bits(t, refused, "SIGSEGV", "SIGILL") // of a machine without such calls
}

// refusalOf32Bits holds that system calls of 32 bits were refused, if they were, in one of the given ways.
func refusalOf32Bits(t *testing.T, refused []string, ways ...string) {
	t.Helper()
	for _, attack := range refused {
		in := func(way string) bool { return strings.Contains(attack, way) }
		if strings.HasPrefix(attack, in32Bits) && !slices.ContainsFunc(ways, in) {
			t.Errorf("refused otherwise than by %v: %s", ways, attack)
		}
	}
}

func TestABoundaryRefusesTheAttacks(t *testing.T) {
	for name, p := range profiles(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.giveTo(t, p.Account)
			if p.Boundary.ABI > 0 {
				w.Port, p.Ports, p.NoUDP = listener(t), []uint16{9}, true
			}
			done, refused := w.attack(t, p)
			refusalOf32Bits(t, refused, syscall.EPERM.Error(), "SIGSEGV", "SIGILL")
			if p.Boundary.ABI == 0 { // users do not keep it out: who listens looks at the peer's credentials
				done = slices.DeleteFunc(done, func(name string) bool { return name == "an abstract socket" })
			}
			if len(done) > 0 {
				t.Errorf("done: %v", done)
			}
		})
	}
}

// Where the kernel cannot limit TCP to ports, nothing can connect to an agent all the same: the filter stands alone.
func TestWithoutLandlockNobodyConnectsToAnAgent(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	w := newWorld(t)
	p := ownUser(0)
	w.giveTo(t, p.Account)
	w.Port, p.Ports, p.NoUDP = listener(t), []uint16{9}, true
	done, _ := w.attack(t, p)
	unlimited := []string{"a port", "a port once another connection was dissolved", "an abstract socket"}
	if !slices.Equal(done, unlimited) {
		t.Errorf("done: %q, want %q", done, unlimited)
	}
}

// giveTo gives the folder of a session to its user.
func (w *world) giveTo(t *testing.T, a *Account) {
	t.Helper()
	if a != nil {
		must.Do(t, os.Chown(w.Own, a.UID, a.GID))
		must.Do(t, os.Chown(w.Own+"/mine", a.UID, a.GID))
	}
}

func TestWhatIsPermittedWorks(t *testing.T) {
	const script = `set -e
cat "$1/../system/etc/hostname"
echo text > own.txt; mkdir -p a/b; mv own.txt a/b/; cat a/b/own.txt
echo x > /dev/null
if [ "$2" != landlock ]; then chmod 0700 a; fi
sleep 100 & kill $!
ulimit -c; umask; id -u; id -G
grep -E "^(NoNewPrivs|CapEff|CapPrm|CapBnd):" /proc/self/status
ls /proc/self/fd | wc -l
`
	for name, p := range profiles(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.giveTo(t, p.Account)
			answer := w.run(t, p, "/bin/sh", "-c", script, "sh", w.Own, name)
			if answer.Code != 0 {
				t.Fatalf("it ended with %d: %s%s", answer.Code, answer.Out, answer.Err)
			}
			for _, want := range []string{"here\n", "text\n", "\n0\n0077\n", "NoNewPrivs:\t1", "CapEff:\t0000000000000000",
				"CapPrm:\t0000000000000000"} {
				if !strings.Contains(answer.Out, want) {
					t.Errorf("it said %q, without %q", answer.Out, want)
				}
			}
			if p.Account != nil && !strings.Contains(answer.Out, fmt.Sprintf("\n%d\n%[1]d\n", agentID)) {
				t.Errorf("it runs as another: %q", answer.Out)
			}
		})
	}
}

// A separate user sees only keys that it has, so a key inherited from the starter of claudeops would be in the list.
func TestASessionHasAKeyringOfItsOwn(t *testing.T) {
	for name, p := range profiles(t) {
		if p.Account == nil { // keys that its user may see are listed for every process of it
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.giveTo(t, p.Account)
			answer := w.run(t, p, "/bin/sh", "-c", "if grep claudeops-attack /proc/keys; then exit 1; fi")
			if answer.Code != 0 {
				t.Errorf("it has the keys %s (%d, %s)", answer.Out, answer.Code, answer.Err)
			}
		})
	}
}

// What left its session, its group and its parent, ignores signals or multiplies ends with the tree all the same.
func TestNothingOutlivesAConfinedTree(t *testing.T) {
	scripts := map[string]string{
		"forked twice, deaf": `(setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 &) ; exit 0`,
		"many":               `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (setsid sh -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 &); done; exit 0`,
	}
	for kind, p := range profiles(t) {
		for name, script := range scripts {
			t.Run(kind+", "+name, func(t *testing.T) {
				w := newWorld(t)
				w.giveTo(t, p.Account)
				w.run(t, p, "/bin/sh", "-c", script) // it checks that nothing remains
				if left := inFolder(w.Own); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

// inFolder lists the processes that work in a folder.
func inFolder(dir string) (out []string) {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range found {
		if at, err := os.Readlink(link); err == nil && at == dir {
			out = append(out, link)
		}
	}
	return out
}

// An unavailable boundary does not permit starting without one.
func TestWhatCannotBeConfinedIsNotStarted(t *testing.T) {
	w := newWorld(t)
	mark := filepath.Join(w.Own, "started")
	impossible := map[string]Profile{
		"an unknown version":           {Boundary: Boundary{Kind: Landlock, ABI: abiNewest + 1}},
		"ports with too old a version": {Boundary: Boundary{Kind: Landlock, ABI: 3}, Ports: []uint16{443}},
	}
	if landlockABI() < abiNewest {
		impossible["a version that the kernel lacks"] = Profile{Boundary: Boundary{Kind: Landlock, ABI: abiNewest}}
	}
	if needsRoot(t) {
		p := ownUser(0)
		p.Account.UID = 0
		impossible["root"] = p
	}
	for name, p := range impossible {
		t.Run(name, func(t *testing.T) {
			answer := w.run(t, p, "/bin/sh", "-c", "touch "+mark)
			if _, err := os.Stat(mark); err == nil || answer.Code != ExitNotConfined ||
				!strings.Contains(answer.Err, "could not be confined") {
				t.Errorf("it ended with %d: %s, %v", answer.Code, answer.Err, err)
			}
		})
	}
}

func TestProcessesOfAUserAreBounded(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	w := newWorld(t)
	p := ownUser(0)
	p.Account.UID = 50_000 + os.Getpid()%10_000 // of this run alone: the kernel counts a user's processes everywhere
	w.giveTo(t, p.Account)
	p.Limits.Threads = 20
	answer := w.run(t, p, "/bin/sh", "-c", "i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i+1)); done; echo all")
	if strings.Contains(answer.Out, "all") || !strings.Contains(answer.Err, "fork") {
		t.Errorf("it said %q, %q", answer.Out, answer.Err)
	}
}
