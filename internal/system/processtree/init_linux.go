package processtree

import (
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Init makes a process that is process 1, as in a container, the init of that container: it runs this program again as
// its child, with the environment, hands signals on to it, and waits for every process that loses its parent, so that
// none stays as a zombie. exit is the child's exit code, 128 and the number of the signal if one ended it. is is false
// for any other process, which goes on.
func Init(env []string) (exit int, is bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, false // it does without
	}
	go func() {
		for s := range signals {
			_ = child.Signal(s) // one that has ended needs none
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, true // there is no child, not even the one that was started
		case pid == child.Pid && status.Signaled():
			return 128 + int(status.Signal()), true
		case pid == child.Pid:
			return status.ExitStatus(), true
		}
	}
}
