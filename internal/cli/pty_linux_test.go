package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// openTerminal makes a terminal: what a program writes to screen is read from keyboard, and the other way round.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	must.Do(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must.Do(t, err)
	return keyboard, screen
}

// At a terminal, the address that signs in stands below everything that the start has logged.
func TestServeSaysLastHowToSignIn(t *testing.T) {
	t.Parallel()
	keyboard, screen := openTerminal(t)
	cmd := exec.Command("claudeops", "serve")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "CLAUDEOPS_STATE_DIR="+t.TempDir(), "CLAUDEOPS_ADDR=127.0.0.1:0",
		"CLAUDEOPS_DOOR_SOCKET="+t.TempDir()+"/agents.sock", "GITEA_WEBHOOK_SECRET=short",
		"CLAUDEOPS_TOOLSETS=pr,"+strings.Repeat("x", 50<<10)) // the screen takes a while for it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	must.Do(t, cmd.Start())
	_ = screen.Close()
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	var shown []string
	lines := bufio.NewScanner(keyboard)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		shown = append(shown, line)
		if strings.Contains(line, "use the token in") { // the last of the start: what comes now is of the end
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	text := strings.Join(shown, "\n")
	_, after, found := strings.Cut(text, "Sign in within")
	if !found || strings.Count(text, "level=WARN") < 2 || strings.Contains(after, "level=WARN") ||
		strings.Contains(after, `"audit head" seq=1 `) || // what the end records has its heads below
		!strings.Contains(text, "agents with tokens are let in") {
		t.Errorf("it shows\n%s", strings.ReplaceAll(text, strings.Repeat("x", 50<<10), "x..."))
	}
}
