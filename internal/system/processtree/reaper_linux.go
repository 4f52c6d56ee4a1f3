package processtree

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
	start   start
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
	if err := r.prepare(lines); err != nil {
		fmt.Fprintf(os.Stderr, "%s is started by claudeops itself, when a session begins (%s)\n", ReaperCommand, err)
		return 2
	}
	r.reports = json.NewEncoder(os.NewFile(reportsFile, "reports"))
	if err := r.run(); err != nil {
		r.tell(report{Problem: err.Error()})
		return 1
	}
	r.tell(report{Started: r.pid})
	asked := make(chan ending, 1)
	go r.wait()
	go follow(lines, asked)
	select {
	case <-r.outgrown():
		r.tooMany = true
		r.killAll(killBound)
		if status := r.known(); status != nil {
			r.tell(report{Status: status})
		}
		r.end(<-asked)
	case <-r.exited:
		r.tell(report{Status: r.known()})
		r.end(<-asked)
	case how := <-asked:
		r.end(how)
	}
	return 0
}

// prepare makes this process a subreaper that other processes of its user cannot inspect, and that only SIGKILL ends.
func (r *reaper) prepare(lines *bufio.Reader) error {
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

// run starts the command, in a session and a process group of its own, and gives up the files that are the command's.
// The command ends when the reaper is killed.
func (r *reaper) run() error {
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

// follow reads how the tree is to end.
func follow(lines *bufio.Reader, asked chan<- ending) {
	_, err := lines.ReadBytes('\n')
	asked <- ending{orphaned: err != nil}
}

// tell reports to the caller, if there is one still.
func (r *reaper) tell(what report) { _ = r.reports.Encode(what) }

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

// known returns the command's wait status; nil as long as it runs.
func (r *reaper) known() *uint32 {
	select {
	case <-r.exited:
		status := uint32(r.status)
		return &status
	default:
		return nil
	}
}

// end ends all that is below this process and reports it. It returns when nothing is left, however long that takes.
func (r *reaper) end(how ending) {
	if !r.terminateAll(how) && !r.killAll(killBound) {
		r.tell(report{Ended: &ended{Status: r.known(), TooMany: r.tooMany, Remaining: pids(descendants(os.Getpid()))}})
		for !r.killAll(killBound) {
		}
	}
	_ = RemoveGroup(r.start.Group) // the caller tries again
	r.tell(report{Ended: &ended{Status: r.known(), TooMany: r.tooMany}})
}
