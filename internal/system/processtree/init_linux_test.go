package processtree

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// orphaned is a program under Init: it leaves an orphan, waits until that is gone, and ends when it is told to.
func orphaned() int {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	out, err := exec.Command("/bin/sh", "-c", `sh -c "exit 0" >/dev/null & echo $!`).Output()
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || convErr != nil || os.Getpid() == 1 {
		fmt.Println("no orphan:", err, convErr)
		return 1
	}
	for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; {
		if time.Now().After(deadline) {
			fmt.Println("a zombie is left")
			return 1
		}
	}
	fmt.Println("reaped")
	<-told
	return 7
}

func TestProcessOneReapsOrphansAndHandsSignalsOn(t *testing.T) {
	self, err := os.Executable()
	must.Do(t, err)
	cmd := exec.Command(self, "init")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	out, err := cmd.StdoutPipe()
	must.Do(t, err, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "reaped\n" {
		t.Errorf("it said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it ended with %d, %v", cmd.ProcessState.ExitCode(), err)
	}
}
