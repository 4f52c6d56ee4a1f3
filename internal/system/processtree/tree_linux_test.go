package processtree

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// escapes are scripts that try to leave something behind. $0 is the word by which the test finds their processes; each
// says "ready" when they run.
func escapes() map[string]string {
	const wait = `sh -c 'while :; do sleep 1; done' $0`
	return map[string]string{
		"a child in the background":       wait + ` & echo ready; wait`,
		"a child of a command that ended": wait + ` & echo ready`,
		"nohup":                           `nohup ` + wait + ` >/dev/null 2>&1 & echo ready`,
		"a session of its own":            `setsid ` + wait + ` & echo ready`,
		"an empty environment":            `env -i setsid ` + wait + ` & echo ready`,
		"forked twice, nothing inherited": `(env -i setsid sh -c "(exec ` + wait +
			` </dev/null >/dev/null 2>&1 &)" $0 &); echo ready`,
		"deaf to signals": `setsid sh -c 'trap "" TERM HUP INT QUIT USR1 USR2; while :; do sleep 1; done' $0 & echo ready`,
		"deaf, in a command that is deaf": `trap "" TERM HUP INT; setsid ` + wait +
			` & echo ready; while :; do sleep 1; done`,
		"stopped": wait + ` & kill -STOP $!; echo ready`,
		"many": `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do setsid ` + wait +
			` & done; echo ready`,
		"a chain of parents that end": `f() { if [ $1 -gt 0 ]; then (f $(($1-1)) &) ; else env -i setsid ` + wait +
			` & fi; }; f 20; echo ready`,
		"forks for ever, deaf": `setsid sh -c 'trap "" TERM; while :; do sh -c "sleep 0.1" $0 & sh -c "sleep 0.1" $0; done' $0 >/dev/null 2>&1 & echo ready; wait`,
		"each starts the next and ends": `cat >next <<'X'` + "\ntrap '' TERM\nsleep 0.02\nsetsid sh ./next $1 &\nX\n" +
			`setsid sh ./next $0 & echo ready`,
		"two that start each other again": `cat >twin <<'X'` +
			"\ntrap '' TERM\nwhile :; do env -i PATH=$PATH setsid sh -c 'trap \"\" TERM; sleep 0.2' $1; done\nX\n" +
			`setsid sh ./twin $0 & setsid sh ./twin $0 & echo ready`,
	}
}

func TestNothingOutlivesTheEnd(t *testing.T) {
	for name, script := range escapes() {
		for _, grouped := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in a control group"}[grouped], func(t *testing.T) {
				t.Parallel()
				o := Options{Grace: 200 * time.Millisecond}
				if grouped {
					if o.Group = tryGroup(t); o.Group == "" {
						return
					}
				}
				s := begin(t, script, o)
				end := s.tree.End()
				if end.ReaperLost || len(end.Remaining) > 0 {
					t.Errorf("ended as %+v", end)
				}
				s.assertGone(t)
			})
		}
	}
}

// tryGroup makes a control group; "" where that is not possible, as in most containers.
func tryGroup(t *testing.T) string {
	t.Helper()
	group, err := MakeGroup("claudeops-test-" + rand.Text())
	if err != nil {
		t.Logf("no control group here: %v", err)
		return ""
	}
	t.Cleanup(func() {
		if _, err := os.Stat(group); err == nil {
			t.Errorf("the control group %s is left", group)
			_ = RemoveGroup(group)
		}
	})
	return group
}

// shell is a tree with a shell script.
type shell struct {
	tree *Tree
	word string
	dir  string
	out  *os.File
}

// begin starts a script and waits until it says that it is ready.
func begin(t *testing.T, script string, o Options) *shell {
	t.Helper()
	s := &shell{word: "word-" + rand.Text(), dir: t.TempDir()}
	out, end, err := os.Pipe()
	must.Do(t, err)
	o.Mark = "MARK=" + s.word
	s.tree, err = Start(Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script, s.word}, Env: []string{"PATH=/usr/bin:/bin", o.Mark}, Dir: s.dir,
		Stdin: strings.NewReader("asked"), Stdout: end, Stderr: end,
	}, o)
	_ = end.Close()
	must.Do(t, err)
	t.Cleanup(func() { _ = out.Close() })
	s.out = out
	said := make([]byte, 5)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "ready" {
		t.Fatalf("the script said %q, %v", said, err)
	}
	return s
}

func (s *shell) assertGone(t *testing.T) {
	t.Helper()
	for _, pid := range named(s.word) {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		t.Errorf("process %d is left: %q", pid, line)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestTheCommandIsStartedAsItWasAsked(t *testing.T) {
	t.Parallel()
	lock, err := os.CreateTemp(t.TempDir(), "lock")
	must.Do(t, err)
	s := begin(t, `echo ready; cat; pwd; ls -l /proc/self/fd | grep -c -- '->'; grep SigIgn /proc/self/status; exit 7`,
		Options{Grace: time.Minute, Keep: []*os.File{lock}})
	<-s.tree.Exited()
	end := s.tree.End()
	if end.Exit != (Exit{7, "exit status 7"}) || end.ReaperLost {
		t.Errorf("ended as %+v", end)
	}
	said, _ := io.ReadAll(s.out)
	if got := strings.Fields(string(said)); len(got) != 4 || got[0] != "asked"+s.dir || got[1] != "4" ||
		signalSet(t, got[3])&^ignored(t) != 0 {
		t.Errorf(
			"it sees %q; want its input, its folder, four files (one is the folder that is listed) and no ignored signal "+
				"but those that this process was started with (%x)", said, ignored(t))
	}
}

// ignored is the set of signals that this process ignores, as the kernel shows it. The tests may be started with some:
// make leaves one of the C library's own signals ignored, nohup that of a lost terminal.
func ignored(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must.Do(t, err)
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	return signalSet(t, strings.Fields(rest)[0])
}

// signalSet reads a set of signals as the kernel writes it.
func signalSet(t *testing.T, text string) uint64 {
	t.Helper()
	set, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Error(err)
	}
	return set
}

func TestACommandThatCannotBeStartedLeavesNothing(t *testing.T) {
	t.Parallel()
	_, err := Start(Command{Path: "/nowhere/claude", Args: []string{"claude"}, Dir: "/"}, Options{})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Command{Path: "/bin/sh", Args: []string{"sh"}, Dir: "/"}, Options{Group: "/nowhere"}); err == nil {
		t.Error("a group that is not there was accepted")
	}
}

func TestWhatIsAskedMayFinish(t *testing.T) {
	t.Parallel()
	s := begin(t,
		`(trap 'sleep 0.3; echo done >finished; exit' TERM; echo ready; while :; do sleep 0.05; done) & wait; wait`,
		Options{Grace: time.Hour})
	s.tree.End()
	if _, err := os.Stat(filepath.Join(s.dir, "finished")); err != nil {
		t.Error(err)
	}
	s.assertGone(t)
}

func TestAReaperThatIsStoppedGoesOn(t *testing.T) {
	t.Parallel()
	s := begin(t, escapes()["an empty environment"], Options{Grace: time.Minute})
	must.Do(t, s.tree.reaper.Process.Signal(syscall.SIGSTOP))
	if end := s.tree.End(); end.ReaperLost || len(end.Remaining) > 0 {
		t.Errorf("ended as %+v", end)
	}
	s.assertGone(t)
}

func TestAReaperThatIsKilledIsNoticedAndWhatCanBeFoundIsEnded(t *testing.T) {
	t.Parallel()
	s := begin(t, `setsid sh -c 'trap "" TERM; while :; do sleep 1; done' $0 & echo ready; wait`,
		Options{Grace: time.Minute})
	_ = s.tree.reaper.Process.Kill()
	<-s.tree.Exited()
	if end := s.tree.End(); !end.ReaperLost || len(end.Remaining) > 0 || end.Exit.Code != -1 {
		t.Errorf("ended as %+v", end)
	}
	s.assertGone(t)
}

func TestAControlGroupEndsWhatAKilledReaperLeft(t *testing.T) {
	t.Parallel()
	group := tryGroup(t)
	if group == "" {
		return
	}
	s := begin(t, escapes()["forked twice, nothing inherited"], Options{Grace: time.Minute, Group: group})
	until(t, "the script forks", func() bool { return len(named(s.word)) > 0 })
	_ = s.tree.reaper.Process.Kill()
	if end := s.tree.End(); !end.ReaperLost || len(end.Remaining) > 0 {
		t.Errorf("ended as %+v", end)
	}
	until(t, "the processes end", func() bool { return len(named(s.word)) == 0 })
}

// A unit of systemd with RestrictNamespaces= has a filter that forbids clone3(2), by which a command is started in its
// control group.
func TestACommandStartsInItsControlGroupWithoutClone3(t *testing.T) {
	t.Parallel()
	group := tryGroup(t)
	if group == "" {
		return
	}
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		runtime.LockOSThread() // and never unlocked: the thread ends with its filter
		forbidClone3(t)
		out, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Error(err)
			return
		}
		tree, err := Start(Command{Path: "/bin/cat", Args: []string{"cat", "/proc/self/cgroup"}, Dir: "/", Stdout: out},
			Options{Group: group, Grace: time.Minute})
		if err != nil {
			t.Errorf("not started: %v", err)
			return
		}
		<-tree.Exited()
		if end := tree.End(); end.Exit.Code != 0 || end.ReaperLost {
			t.Errorf("ended as %+v", end)
		}
		text, err := os.ReadFile(out.Name())
		if err != nil || !strings.Contains(string(text), filepath.Base(group)) {
			t.Errorf("the command was in %s, %v", text, err)
		}
	}()
	<-begun
}

// forbidClone3 has the kernel refuse clone3(2) to this thread, and to what it starts, as if there were none.
func forbidClone3(t *testing.T) {
	t.Helper()
	const load, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_RET | unix.BPF_K
	const equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the system call
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0,
		0); err != nil {
		t.Error(err)
	}
}

func TestAGroupInsideOfTheGroupGoesToo(t *testing.T) {
	t.Parallel()
	group := tryGroup(t)
	if group == "" {
		return
	}
	s := begin(t, `mkdir -p `+group+`/a/b && echo $$ >`+group+
		`/a/b/cgroup.procs && setsid sh -c 'trap "" TERM; while :; do sleep 1; done' $0 & sleep 0.2; echo ready`,
		Options{Grace: 100 * time.Millisecond, Group: group})
	s.tree.End()
	s.assertGone(t)
}

func TestGroupsAreFoundBelowTheirMountPoint(t *testing.T) {
	const mounts = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime " +
		"shared:4 - cgroup2 cgroup2 rw\n"
	const part = "41 31 0:38 /system.slice/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for _, test := range []struct{ mounts, group, want string }{
		{mounts, "/", "/sys/fs/cgroup/unified"},
		{mounts, "/user.slice/x", "/sys/fs/cgroup/unified/user.slice/x"},
		{part, "/system.slice/a/b", "/sys/fs/cgroup/b"},
		{part, "/system.slice/other", ""},
		{part, "/../..", ""},
		{"garbage\n1 2 3\n", "/", ""},
	} {
		if got, err := groupFolder(test.mounts, test.group); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q in %q: %q, %v", test.group, test.mounts, got, err)
		}
	}
}
