package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every command keeps the tokens in its environment from other processes of its user: the kernel gives the file to root
// (proc_pid_environ(5)).
func TestACommandConcealsItsEnvironment(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pr", "create", "--from", "-"}, {"mcp-server"},
		{"policy", "check", "--paths-from", "-"}} {
		binary, err := exec.LookPath("claudeops")
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(binary) // another user may not look into the folder of the binary
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/fd/3", args...)
		cmd.ExtraFiles = []*os.File{file}
		cmd.Env = []string{"GITHUB_TOKEN=tok-7f3a9c2e51d84b60", "CLAUDEOPS_STATE_DIR=" + t.TempDir()}
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		user := uint32(os.Getuid()) //nolint:gosec // an id
		if user == 0 {
			user = 65534
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var info syscall.Stat_t
		concealed := false
		for end := time.Now().Add(time.Minute); !concealed && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "environ"), &info); err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				t.Fatalf("%v ended instead of reading its input: %s, %v", args, stat, err)
			}
			concealed = info.Uid != user
		}
		if !concealed {
			t.Errorf("%v: the environment belongs to user %d, who runs it", args, info.Uid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = file.Close()
	}
}
