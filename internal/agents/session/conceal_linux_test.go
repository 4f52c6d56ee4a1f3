package session

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// The kernel gives the files below /proc of a process that conceals itself to root, whoever runs it (proc(5)).
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
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		var info syscall.Stat_t
		if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "environ"), &info); err != nil {
			t.Fatal(err)
		}
		if (info.Uid != user) != concealed {
			t.Errorf("%s: the environment belongs to user %d, the process is of %d", act, info.Uid, user)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
