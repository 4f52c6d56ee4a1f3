package processtree

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The reaper's files beside its standard ones.
const (
	ordersFile = 3 + iota
	reportsFile
)

// reaper stands above a tree. Its own process starts the command and nothing else.
type reaper struct {
	start   startOrder
	reports *json.Encoder
	pid     int             // of the command
	exited  chan struct{}   // closed when the command has ended
	status  unix.WaitStatus // then
	empty   chan struct{}   // closed when nothing is left below this process
	tooMany bool            // the tree was ended because of its size
}

// Reap runs the reaper; see ReaperCommand. It returns the exit code of its process.
func Reap() int {
	orders := os.NewFile(ordersFile, "orders")
	lines := bufio.NewReader(orders)
	r := &reaper{exited: make(chan struct{}), empty: make(chan struct{})}
	if err := r.becomeSubreaper(lines); err != nil {
		fmt.Fprintf(os.Stderr, "%s is started by claudeops itself, when a session begins (%s)\n", ReaperCommand, err)
		return 2
	}
	r.reports = json.NewEncoder(os.NewFile(reportsFile, "reports"))
	if err := r.startCommand(); err != nil {
		r.sendReport(report{Problem: err.Error()})
		return 1
	}
	r.sendReport(report{Started: r.pid})
	asked := make(chan ending, 1)
	go r.wait()
	go readEnding(lines, asked)
	select {
	case <-r.outgrown():
		r.tooMany = true
		r.killAll(killBound)
		if status := r.waitStatus(); status != nil {
			r.sendReport(report{Status: status})
		}
		r.terminateTree(<-asked)
	case <-r.exited:
		r.sendReport(report{Status: r.waitStatus()})
		r.terminateTree(<-asked)
	case how := <-asked:
		r.terminateTree(how)
	}
	return 0
}

// becomeSubreaper makes this process a subreaper that other processes of its user cannot inspect, and that only SIGKILL
// ends.
func (r *reaper) becomeSubreaper(lines *bufio.Reader) error {
	// Caught and not ignored: what is ignored stays ignored in the command.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(first, &r.start); err != nil {
		return err
	}
	closeOnExec()
	return errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
	)
}

// closeOnExec keeps the command from inheriting what this process has beside the standard files.
func closeOnExec() {
	if unix.CloseRange(ordersFile, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil { // since Linux 5.11
		return
	}
	const most = 1024
	for fd := ordersFile; fd < most; fd++ {
		unix.CloseOnExec(fd)
	}
}

// startCommand starts the command, in a session and a process group of its own, and gives up the files that are the
// command's. The command ends when the reaper is killed.
func (r *reaper) startCommand() error {
	// in a session a process may wake all others (SIGCONT)
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if r.start.Group != "" {
		folder, err := os.Open(r.start.Group)
		if err != nil {
			return err
		}
		defer func() { _ = folder.Close() }()
		attr.UseCgroupFD, attr.CgroupFD = true, int(folder.Fd())
	}
	files := []uintptr{0, 1, 2}
	if r.start.Extra != nil {
		extra, err := inMemory(r.start.Extra)
		if err != nil {
			return err
		}
		defer func() { _ = extra.Close() }()
		files = append(files, extra.Fd())
	}
	r.limit()
	pid, err := r.spawn(&syscall.ProcAttr{Dir: r.start.Dir, Env: r.start.Env, Files: files, Sys: attr})
	if err != nil {
		return err
	}
	r.pid = pid
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range ordersFile {
		if err == nil {
			err = unix.Dup3(null, fd, 0)
		}
		if err != nil {
			_ = unix.Close(fd) // a file that stays open here would never end for its reader
		}
	}
	return nil
}

// spawn starts the command in its control group. Where a filter forbids clone3(2), which starts it there (systemd's
// RestrictNamespaces= does, since no filter can see what clone3 is asked for), this process goes into the group itself
// for the moment of the start, so that the command begins there all the same.
func (r *reaper) spawn(attr *syscall.ProcAttr) (pid int, err error) {
	pid, err = syscall.ForkExec(r.start.Path, r.start.Args, attr)
	if !attr.Sys.UseCgroupFD || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return pid, err
	}
	back, err := ownGroup()
	if err != nil {
		return 0, err
	}
	if err := enterGroup(r.start.Group); err != nil {
		return 0, err
	}
	attr.Sys.UseCgroupFD = false
	pid, err = syscall.ForkExec(r.start.Path, r.start.Args, attr)
	return pid, errors.Join(err, enterGroup(back)) // an error ends this process, and the command with it
}

// inMemory returns a file with the text, at its beginning.
func inMemory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("extra", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "extra")
	_, err = f.Write(text)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// wait collects every process that ends below this one, until the kernel reports that there is no child any more. A
// process whose parent has ended is a child of ours by then.
func (r *reaper) wait() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			close(r.empty)
			return
		case pid == r.pid:
			r.status = status
			close(r.exited)
		}
	}
}

// ending says how a tree is to end.
type ending struct {
	orphaned bool // the caller has ended itself
}

// readEnding reads how the tree is to end.
func readEnding(lines *bufio.Reader, asked chan<- ending) {
	_, err := lines.ReadBytes('\n')
	asked <- ending{orphaned: err != nil}
}

// sendReport reports to the caller, if there is one still.
func (r *reaper) sendReport(what report) { _ = r.reports.Encode(what) }

// threadsEach is the number of threads per process that the kernel's own limits allow for: they count threads.
const threadsEach = 8

// limit has the kernel bound the tree before its size is seen here, since what multiplies is faster than looking: by
// the control group where there is one, and for users other than root by the number of threads that the user may have
// (RLIMIT_NPROC).
func (r *reaper) limit() {
	most := uint64(threadsEach) * uint64(r.start.Most) //nolint:gosec // it is not negative
	if r.start.Bound > 0 {
		most = uint64(r.start.Bound)
	}
	if most == 0 {
		return
	}
	if r.start.Group != "" {
		_ = os.WriteFile(filepath.Join(r.start.Group, "pids.max"), []byte(strconv.FormatUint(most, 10)), 0) //nolint:gosec // the controller may be off
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	var running, total uint64
	if fields := strings.Fields(string(text)); len(fields) > 3 {
		if _, err := fmt.Sscanf(fields[3], "%d/%d", &running, &total); err == nil {
			bound := total + most // of all users, since counting those of one takes long
			_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: bound, Max: bound})
		}
	}
}

// outgrown sends when the tree has more processes than it may.
func (r *reaper) outgrown() <-chan struct{} {
	const often, share = 100 * time.Millisecond, 20 // looking may take a twentieth of a processor
	over := make(chan struct{}, 1)
	if r.start.Most == 0 {
		return over
	}
	go func() {
		for {
			began := time.Now()
			if len(descendants(os.Getpid())) > r.start.Most {
				over <- struct{}{}
				return
			}
			time.Sleep(max(often, share*time.Since(began)))
		}
	}()
	return over
}

// waitStatus returns the command's wait status; nil as long as it runs.
func (r *reaper) waitStatus() *uint32 {
	select {
	case <-r.exited:
		status := uint32(r.status)
		return &status
	default:
		return nil
	}
}

// terminateTree ends all that is below this process and reports it. It returns when nothing is left, however long that
// takes.
func (r *reaper) terminateTree(how ending) {
	if !r.terminateAll(how) && !r.killAll(killBound) {
		r.sendReport(report{Ended: &treeResult{Status: r.waitStatus(), TooMany: r.tooMany,
			Remaining: pids(descendants(os.Getpid()))}})
		for !r.killAll(killBound) {
		}
	}
	_ = RemoveGroup(r.start.Group) // the caller tries again
	r.sendReport(report{Ended: &treeResult{Status: r.waitStatus(), TooMany: r.tooMany}})
}

// How long the reaper waits before it checks again whether what it waits for has happened: ever longer.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// terminateAll asks all processes of the tree to end (SIGTERM), and reports whether they have done so within the grace.
func (r *reaper) terminateAll(how ending) bool {
	grace := time.NewTimer(r.start.Grace)
	defer grace.Stop()
	if how.orphaned {
		r.killCommand() // its output is not read any more; its children may finish their work
	}
	signalAll(syscall.SIGTERM)
	exited := r.exited
	if r.waitStatus() != nil {
		exited = nil
	}
	for {
		select {
		case <-r.empty:
			return true
		case <-exited:
			exited = nil
			signalAll(syscall.SIGTERM) // what it started meanwhile
		case <-grace.C:
			return false
		}
	}
}

// killCommand kills the command, unless it has ended.
func (r *reaper) killCommand() {
	for _, p := range descendants(os.Getpid()) {
		if p.pid == r.pid && p.parent == os.Getpid() {
			_ = p.signal(syscall.SIGKILL) // it has ended meanwhile
		}
	}
}

// signalAll sends a signal to all that runs below this process.
func signalAll(s syscall.Signal) {
	for _, p := range descendants(os.Getpid()) {
		_ = p.signal(s) // what has ended meanwhile is fine; what may not be signalled remains, and is reported
	}
}

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
		if err != nil || p.isZombie() {
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
	return OnThread(func() error {
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
