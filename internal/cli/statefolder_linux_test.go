package cli_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// nobody is the user of ordinary where the tests are root's.
const nobody = 65534

// ordinary starts claudeops as a user whom permissions hold, in a folder that it may use.
func ordinary(t *testing.T, state string, args ...string) *exec.Cmd {
	t.Helper()
	binary := must.Get(exec.LookPath("claudeops"))(t)
	file, err := os.Open(binary) // another user may not look into the folder of the binary
	must.Do(t, err)
	t.Cleanup(func() { _ = file.Close() })
	cmd := exec.Command("/proc/self/fd/3", args...)
	cmd.ExtraFiles = []*os.File{file}
	cmd.Env = []string{"CLAUDEOPS_STATE_DIR=" + state, "PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		must.Do(t, os.Chown(state, nobody, nobody))
	}
	return cmd
}

// state is a folder that every user can reach.
func state(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("/tmp", "claudeops-state-"))(t)
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
	return dir
}

func TestAServerNeedsAStateFolderThatItCanWrite(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{
		"an empty one":     {"version"},
		"one with records": {"token", "create", "--name", "ann", "--scopes", "read"},
	} {
		dir := state(t)
		if out, err := ordinary(t, dir, before...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s, %v", name, out, err)
		}
		must.Do(t, os.Chmod(dir, 0o500))
		out, err := ordinary(t, dir, "serve", "--addr", "127.0.0.1:0").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "[misconfigured]") ||
			!strings.Contains(string(out), "cannot be written") {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
}

func TestAServerWhoseStateFolderCanNoLongerBeWrittenIsNotReady(t *testing.T) {
	t.Parallel()
	dir := state(t)
	cmd := ordinary(t, dir, "serve", "--addr", "127.0.0.1:0")
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, address, found := strings.Cut(line, "http://")
	if err != nil || !found {
		t.Fatalf("it said %q, %v", line, err)
	}
	address = "http://" + address[:strings.Index(address, "/")]
	ready := func() (int, string) {
		answer, err := (&http.Client{Timeout: time.Minute}).Get(address + "/readyz")
		must.Do(t, err)
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if status, body := ready(); status != http.StatusOK {
		t.Errorf("at first: %d %s", status, body)
	}
	must.Do(t, os.Chmod(dir, 0o500))
	if status, body := ready(); status != http.StatusServiceUnavailable || !strings.Contains(body, "written") {
		t.Errorf("unwritable: %d %s", status, body)
	}
	must.Do(t, os.Chmod(dir, 0o700))
	if status, body := ready(); status != http.StatusOK {
		t.Errorf("mended: %d %s", status, body)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".writable-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
