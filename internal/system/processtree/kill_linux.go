package processtree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/osthread"
)

// killBound limits how long the reaper tries to kill a tree before it reports what remains.
const killBound = 10 * time.Second

// killAll kills the processes of the tree until none is left, and reports whether that came within the bound. They are
// all stopped before the first is killed, so that none starts another in place of one that has gone.
func (r *reaper) killAll(bound time.Duration) bool {
	end := time.NewTimer(bound)
	defer end.Stop()
	const singly = 10 // rounds
	round := 0
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		_ = killGroup(r.start.Group) // what it does not reach is found below this process
		stopAll()
		signalAll(syscall.SIGKILL)
		if round++; r.start.UID != 0 && round > singly {
			_ = KillUser(r.start.UID) // in one step, so that what multiplies is caught as well; it may end others of that user
		}
		select {
		case <-r.empty:
			return true
		case <-end.C:
			return false
		case <-time.After(pause):
		}
	}
}

// stopAll stops the processes below this one, those too that are started meanwhile. Those that keep being started
// faster are left to the next round.
func stopAll() {
	const rounds = 100
	stopped := map[[2]any]bool{}
	for range rounds {
		fresh := false
		for _, p := range descendants(os.Getpid()) {
			key := [2]any{p.pid, p.started}
			if !stopped[key] {
				stopped[key], fresh = true, true
				_ = p.signal(syscall.SIGSTOP)
			}
		}
		if !fresh {
			return
		}
	}
}

// EndUser kills every process of a user, as KillUser does, and returns when none is left. An error names what remains
// after 5 seconds.
func EndUser(uid int) error {
	const bound = 5 * time.Second
	end := time.Now().Add(bound)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if err := KillUser(uid); err != nil {
			return err
		}
		left := pids(ofUser(uid))
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes of user %d cannot be ended: %v", uid, left)
		}
		time.Sleep(pause)
	}
}

// ofUser lists the processes that run as a user, as far as this one may see them.
func ofUser(uid int) (out []process) {
	for _, p := range processes() {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "status"))
		if err != nil || p.ended() {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if ids, is := strings.CutPrefix(line, "Uid:"); is && slices.Contains(strings.Fields(ids), strconv.Itoa(uid)) {
				out = append(out, p)
			}
		}
	}
	return out
}

// KillUser kills every process of a user, in one step of the kernel: kill(2) with -1, called as that user. This process
// must be one that may switch users, and the user another than its own.
func KillUser(uid int) error {
	if uid <= 0 || uid == os.Geteuid() || uid == os.Getuid() {
		return errors.New("this user's processes are not killed as a whole")
	}
	return osthread.Do(func() error {
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			return e
		}
		// A process that keeps the right to signal others would reach them all.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return err
		}
		if now, _, _ := unix.RawSyscall(unix.SYS_GETEUID, 0, 0, 0); int(now) != uid {
			return errors.New("the thread did not become the user")
		}
		if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	})
}
