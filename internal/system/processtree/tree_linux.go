package processtree

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Tree is a started command with all its descendants.
type Tree struct {
	options Options
	group   int // process group of the command, and its id
	reaper  *exec.Cmd
	orders  *os.File
	gone    chan struct{}   // closed when the reaper's process has ended
	exited  chan struct{}   // closed when the command has ended or the reaper is lost
	ended   chan treeResult // then closed
	status  *uint32         // the command's, when exited is closed; nil if it is not known
}

// Start starts the command under a reaper, which is this program, called again with ReaperCommand.
func Start(c Command, o Options) (*Tree, error) {
	orders, orderEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orders.Close(), orderEnd.Close())
	}
	t := &Tree{
		options: o, orders: orderEnd,
		gone: make(chan struct{}), exited: make(chan struct{}), ended: make(chan treeResult, 2),
	}
	t.reaper = exec.Command("/proc/self/exe") //nolint:noctx // its life is that of the tree
	t.reaper.Args = []string{"claudeops", ReaperCommand}
	t.reaper.Dir, t.reaper.Env = "/", []string{}
	t.reaper.Stdin = c.Stdin
	if c.Stdout != nil {
		t.reaper.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		t.reaper.Stderr = c.Stderr
	}
	t.reaper.ExtraFiles = append([]*os.File{orders, reportEnd}, o.Keep...) // as ordersFile and so on
	t.reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = t.reaper.Start()
	closeErr := errors.Join(orders.Close(), reportEnd.Close())
	if err = errors.Join(err, closeErr); err != nil {
		return nil, errors.Join(err, orderEnd.Close(), reports.Close())
	}
	go func() {
		defer close(t.gone)
		_ = t.reaper.Wait() // its reports say what there is to say
	}()
	return t, t.startInReaper(c, reports)
}

// startInReaper has the reaper start the command.
func (t *Tree) startInReaper(c Command, reports *os.File) error {
	said := json.NewDecoder(bufio.NewReader(reports))
	var first report
	err := t.sendOrder(startOrder{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Group: t.options.Group, Grace: t.options.Grace,
		Most:  t.options.MostProcesses,
		Extra: c.Extra, UID: t.options.UID, Bound: t.options.MostThreads,
	})
	if err == nil {
		err = said.Decode(&first)
	}
	lost := err != nil
	if !lost && first.Started == 0 {
		err = errors.New(first.Problem)
	}
	if err != nil {
		_ = t.reaper.Process.Kill()
		<-t.gone
		if lost { // it may have started the command before
			t.sweep()
			err = fmt.Errorf("the process that keeps its processes together was killed, or ended: %w", err)
		}
		return errors.Join(err, t.orders.Close(), reports.Close())
	}
	t.group = first.Started
	go t.listen(said, reports)
	return nil
}

// listen takes note of what the reaper reports.
func (t *Tree) listen(said *json.Decoder, reports *os.File) {
	exited := false
	exit := func(status *uint32) {
		if !exited {
			t.status, exited = status, true
			close(t.exited)
		}
	}
	defer func() {
		exit(nil)
		close(t.ended)
		_ = reports.Close()
	}()
	for {
		var r report
		if said.Decode(&r) != nil {
			return
		}
		if r.Status != nil {
			exit(r.Status)
		}
		if r.Ended != nil {
			exit(r.Ended.Status)
			select {
			case t.ended <- *r.Ended:
			default: // the answer is not needed any more
			}
		}
	}
}

// Exited returns a channel that is closed when the command has ended, however it did. Other processes of the tree may
// still run.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// End ends all processes of the tree and returns when none is left: they are asked (SIGTERM), and killed after
// Options.Grace. It returns sooner if the kernel
// does not let one go within 10 seconds; see End.Remaining. It may be called once.
func (t *Tree) End() End {
	_ = t.sendOrder(order{}) // a reaper that is gone is found out below
	said, ok := t.awaitReport()
	if !ok {
		_ = t.reaper.Process.Kill()
		<-t.gone
	}
	_ = t.orders.Close()
	end := End{ReaperLost: !ok, Remaining: said.Remaining, TooMany: said.TooMany}
	if !ok {
		end.Remaining = t.sweep()
	} else if len(said.Remaining) == 0 {
		<-t.gone
	}
	if len(end.Remaining) == 0 {
		_ = RemoveGroup(t.options.Group) // a group that cannot be removed is empty, and does no harm
	}
	end.Exit = exitOf(t.status)
	return end
}

// awaitReport waits for the reaper's report of the end. It is woken again and again, in case that somebody stopped it.
func (t *Tree) awaitReport() (treeResult, bool) {
	const margin = 30 * time.Second
	bound := time.NewTimer(t.options.Grace + killBound + margin)
	defer bound.Stop()
	wake := time.NewTicker(time.Second)
	defer wake.Stop()
	for {
		_ = t.reaper.Process.Signal(syscall.SIGCONT)
		select {
		case said, ok := <-t.ended:
			return said, ok
		case <-wake.C:
		case <-bound.C:
			return treeResult{}, false
		}
	}
}

// sweep kills what can be found of a tree whose reaper is lost, and returns what it could not kill.
func (t *Tree) sweep() []int {
	const rounds, pause = 100, 20 * time.Millisecond
	for range rounds {
		_ = killGroup(t.options.Group)
		found := markedOrGrouped(t.options.Mark, t.group)
		if len(found) == 0 {
			return nil
		}
		for _, p := range found {
			_ = p.signal(syscall.SIGKILL)
		}
		time.Sleep(pause)
	}
	return pids(markedOrGrouped(t.options.Mark, t.group))
}

// sendOrder writes a line to the reaper.
func (t *Tree) sendOrder(what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = t.orders.Write(append(line, '\n'))
	return err
}

// exitOf reads a wait status.
func exitOf(status *uint32) Exit {
	if status == nil {
		return Exit{Code: -1, Text: "its end was not seen"}
	}
	switch s := syscall.WaitStatus(*status); {
	case s.Signaled():
		return Exit{Code: -1, Text: "signal: " + s.Signal().String()}
	case s.ExitStatus() != 0:
		return Exit{Code: s.ExitStatus(), Text: fmt.Sprintf("exit status %d", s.ExitStatus())}
	}
	return Exit{}
}

// Contains reports whether a process has come of the command, however far, and runs still. One whose parent has ended
// counts, too. It says nothing of processes that the command talks to.
func (t *Tree) Contains(pid int) bool {
	const furthest = 10_000 // a circle, made by ids that were used again, ends
	for range furthest {
		p, ok := readProcess(pid)
		switch {
		case !ok || p.isZombie() || pid == os.Getpid():
			return false
		case p.parent == t.reaper.Process.Pid:
			return true
		}
		pid = p.parent
	}
	return false
}

// Listener names the process that listens on a TCP port of this machine, such as "process 812 (python3)"; "" if it
// cannot be seen. It needs the right to look into that process: other users' processes are seen by root alone.
func Listener(port int) string {
	sockets := listening(port)
	for _, p := range processes() {
		folder := filepath.Join("/proc", strconv.Itoa(p.pid))
		entries, err := os.ReadDir(filepath.Join(folder, "fd"))
		if err != nil {
			continue
		}
		for _, entry := range entries {
			target, err := os.Readlink(filepath.Join(folder, "fd", entry.Name()))
			if err == nil && slices.Contains(sockets, target) {
				name, _ := os.ReadFile(filepath.Join(folder, "comm"))
				return fmt.Sprintf("process %d (%s)", p.pid, strings.TrimSpace(string(name)))
			}
		}
	}
	return ""
}

// listening returns the sockets that listen on a port, as links in /proc/PID/fd name them (proc_net(5)).
func listening(port int) (sockets []string) {
	const (
		local, state, inode = 1, 3, 9 // columns
		listens             = "0A"
	)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			columns := strings.Fields(line)
			if len(columns) > inode && columns[state] == listens &&
				strings.HasSuffix(columns[local], fmt.Sprintf(":%04X", port)) {
				sockets = append(sockets, "socket:["+columns[inode]+"]")
			}
		}
	}
	return sockets
}

// Conceal keeps other processes of this user, the agent's commands among them, from reading this process's environment
// and memory in /proc. It does not keep root from it.
func Conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
