package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/testkit/testusers"
)

var users testusers.Block

// usersOfTests returns users that no other run of tests uses.
func usersOfTests(t *testing.T, count int) sandbox.Users {
	t.Helper()
	u := sandbox.Users{Folder: filepath.Join(t.TempDir(), "claims")}
	for i := range count {
		first := users.First()
		u.Accounts = append(u.Accounts, sandbox.Account{Name: string(rune('a' + i)), UID: first + i, GID: first + i})
	}
	return u
}

// withUsers has the sessions of a world run as users of their own, who find the fake CLI, and can leave something in a
// folder.
func (w *world) withUsers(t *testing.T, users sandbox.Users) {
	t.Helper()
	self := must.Get(os.Open("/proc/self/exe"))(t)
	defer func() { _ = self.Close() }()
	claude := filepath.Join(w.dir, "bin", "claude")
	left := filepath.Join(w.dir, "left")
	if err := errors.Join(os.Mkdir(filepath.Dir(claude), 0o755), os.Mkdir(left, 0o700), os.Chmod(left, 0o1777), os.Chmod(filepath.Join(w.dir, "tmp"), 0o1777)); err != nil { //nolint:gosec // another user looks
		t.Fatal(err)
	}
	for at := w.dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	program, err := os.OpenFile(claude, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // as above
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(program, self)
	must.Do(t, errors.Join(err, program.Close()))
	w.withDoors(tells)
	users.Leavings = []string{left}
	s := &w.runner.Settings
	s.Claude.Binary = claude
	s.Claude.Env = slices.DeleteFunc(s.Claude.Env,
		func(variable string) bool { return strings.HasPrefix(variable, fakeArg+"=") })
	s.Claude.Env = append(s.Claude.Env, fakeArg+"="+left)
	s.Confinement = Confinement{Profile: sandbox.Profile{Boundary: sandbox.Boundary{Kind: sandbox.User, Account: "a to b"},
		Limits: sandbox.DefaultLimits()}, Users: users}
}

// mayHaveUsers says how the tests are run that need root.
func mayHaveUsers(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("users of their own for agents need root; `make e2e` runs as root")
	}
	return os.Getuid() == 0
}

func TestASessionRunsAsAUserOfItsOwnAndLeavesNothing(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	w := newWorld(t, "leaves-behind")
	users := usersOfTests(t, 2)
	w.withUsers(t, users)
	for _, name := range []string{"a", "b"} { // the one that rested longest
		ran, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1})
		if err != nil || len(ran) != 1 || ran[0].State != sessions.StateSucceeded || ran[0].Boundary.Account != name {
			t.Fatalf("%+v, %v: %s", ran, err, w.text())
		}
		if text := w.text(); !strings.Contains(text, " left\n") || strings.Contains(text, "denied") {
			t.Errorf("it said %s", text)
		}
		entries, err := os.ReadDir(filepath.Join(w.dir, "left"))
		if err != nil || len(entries) > 0 {
			t.Errorf("%s left %v, %v", name, entries, err)
		}
	}
	w.clean(t)
}

// Two supervisors know nothing of each other's state folders, and give agents different users all the same.
func TestSessionsOfTwoStateFoldersNeverShareAUser(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	for name, count := range map[string]int{"two users": 2, "one user": 1} {
		t.Run(name, func(t *testing.T) {
			users := usersOfTests(t, count)
			first, second := newWorld(t, "leaves-behind"), newWorld(t, "leaves-behind")
			first.withUsers(t, users)
			second.withUsers(t, users)
			var beside []sessions.Record
			var refused error
			ran, err := NewSupervisor(first.runner).Run(t.Context(),
				Spec{Tier: 1, Admit: func(ctx context.Context, _ string) error {
					beside, refused = NewSupervisor(second.runner).Run(ctx, Spec{Tier: 1})
					return nil
				}})
			if err != nil || len(ran) != 1 || ran[0].State != sessions.StateSucceeded {
				t.Fatalf("%+v, %v", ran, err)
			}
			if count == 1 {
				wantCode(t, refused, fault.Conflict, "no user is left for the agent", "CLAUDEOPS_AGENT_USER")
				if len(second.records) > 0 {
					t.Errorf("recorded %+v", second.records)
				}
				second.supervised(t, Spec{Tier: 1})
				return
			}
			if refused != nil || len(beside) != 1 || beside[0].State != sessions.StateSucceeded ||
				beside[0].Boundary.Account == ran[0].Boundary.Account {
				t.Errorf("%+v, %v, beside %+v", beside, refused, ran)
			}
		})
	}
}

// What a killed supervisor left of a user is gone before its user is used again.
func TestWhatAKilledSupervisorLeftOfAUserIsRemoved(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	w := newWorld(t, "leaves-behind")
	users := usersOfTests(t, 1)
	w.withUsers(t, users)
	a := users.Accounts[0]
	id := "01ABCDEFGHJKMNPQRSTVWXYZ01"
	folder := w.runner.Settings.Folders.sessionFolder(id)
	must.Do(t, a.As(func() error {
		return errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(filepath.Join(folder, "closed"), 0o000))
	}))
	l := must.Get(w.runner.Settings.Folders.takeLock())(t)
	// as a kill leaves it
	must.Do(t, errors.Join(l.writeContent(lockContent{Session: id, Folder: folder, UID: a.UID, GID: a.GID}),
		l.file.Close()))
	w.supervised(t, Spec{Tier: 1})
	w.clean(t)
}

// hidden lists what the agent of this world left, wherever it is.
func (w *world) hidden() []int {
	word := hiddenBy(w.dir)
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []int
	for _, name := range lines {
		line, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && strings.Contains(string(line), word) {
			out = append(out, pid)
		}
	}
	return out
}

func TestWhatAnAgentHidesIsGoneBeforeTheEndIsRecorded(t *testing.T) {
	for _, act := range []string{"hides", "hides-and-hangs"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, act)
			impatient(&w.runner.Settings)
			ctx, cancel := context.WithCancel(t.Context())
			var seen, left atomic.Int32
			w.saved = func(r sessions.Record) {
				if r.State != sessions.StateRunning {
					left.Add(int32(len(w.hidden()))) //nolint:gosec // a handful
				}
			}
			go func() {
				w.until(t, "hidden")
				for act != "hides" && seen.Load() == 0 {
					seen.Store(int32(len(w.hidden()))) //nolint:gosec // a handful
				}
				if act != "hides" {
					cancel()
				}
			}()
			ran, err := NewSupervisor(w.runner).Run(ctx, Spec{Tier: 1})
			cancel()
			if err != nil || len(ran) != 1 || strings.Contains(ran[0].Reason, "processes") {
				t.Errorf("%+v, %v", ran, err)
			}
			if left.Load() > 0 || len(w.hidden()) > 0 {
				t.Errorf("%d processes are left when the end is recorded, %v afterwards", left.Load(), w.hidden())
			}
			w.clean(t)
		})
	}
}

func TestTheNextSessionWaitsForWhatAKilledSupervisorLeft(t *testing.T) {
	w := newWorld(t, "good")
	cmd := exec.Command("/proc/self/exe", "supervise", w.dir, "hides-and-hangs") //nolint:gosec // this binary
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for said := ""; !strings.Contains(said, "hidden"); {
		if !lines.Scan() {
			t.Fatalf("the supervisor said %q", said)
		}
		said += lines.Text() + "\n"
	}
	for len(w.hidden()) == 0 { // it forks before it is the process to find
		time.Sleep(time.Millisecond)
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	var left atomic.Int32
	_, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1, Admit: func(context.Context, string) error {
		left.Store(int32(len(w.hidden()))) //nolint:gosec // a handful
		return nil
	}})
	if err != nil || left.Load() > 0 {
		t.Errorf("%v; %d processes were left when the next session began", err, left.Load())
	}
	w.clean(t)
}

func TestNoSessionStartsBesideProcessesOfTheLast(t *testing.T) {
	w := newWorld(t, "good")
	w.runner.Settings.Limits.Clear = 50 * time.Millisecond
	other, err := os.OpenFile(filepath.Join(w.runner.Settings.Folders.State, processLockName), os.O_RDWR|os.O_CREATE,
		0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil { // as the process above them does
		t.Fatal(err)
	}
	s := NewSupervisor(w.runner)
	_, err = s.Run(t.Context(), Spec{Tier: 1})
	wantCode(t, err, fault.Conflict, "processes of the last session")
	if len(w.records) > 0 {
		t.Errorf("recorded %+v", w.records)
	}
	_ = other.Close()
	must.Get(s.Run(t.Context(), Spec{Tier: 1}))(t)
}

func TestAKilledReaperFailsTheSession(t *testing.T) {
	w := newWorld(t, "kills-its-reaper")
	record, err := w.run(t, Spec{Tier: 1})
	if err != nil || record.State != sessions.StateFailed || !strings.Contains(record.Reason, "was killed") {
		t.Errorf("%+v, %v", record, err)
	}
}

// The kernel gives the files below /proc of a process that conceals itself to root, whatever user it runs as (proc(5)).
func TestAConcealedProcessKeepsItsEnvironmentFromItsUser(t *testing.T) {
	for act, concealed := range map[string]bool{"concealed": true, "open": false} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe") // another user may not look into the folder of the binary
		cmd.Args[0], cmd.Env = "claude", []string{fakeMode + "=" + act}
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		user := uint32(os.Getuid())
		if user == 0 {
			user = 65534
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		}
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		var info syscall.Stat_t
		must.Do(t, syscall.Stat(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "environ"), &info))
		if (info.Uid != user) != concealed {
			t.Errorf("%s: the environment belongs to user %d, the process is of %d", act, info.Uid, user)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
