package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// slowWork is a command that does not go on before it is released.
type slowWork struct {
	says    string // while it is at work
	args    func() []string
	env     []string
	held    <-chan struct{} // gets a value when the first command has begun to wait
	release func()
}

// slowForge holds the requests of pr create.
func slowForge(t *testing.T) slowWork {
	t.Helper()
	held, released := make(chan struct{}, 10), make(chan struct{})
	forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case held <- struct{}{}:
		default:
		}
		<-released
		http.Error(w, `{"message":"no such repository"}`, http.StatusNotFound)
	}))
	t.Cleanup(forge.Close)
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release) // before the server is closed
	text := filepath.Join(t.TempDir(), "disk.md")
	must.Do(t, os.WriteFile(text, []byte("# Disk\n"), 0o600))
	return slowWork{
		says: "Propose a change as a pull request: ", held: held, release: release,
		args: func() []string {
			return []string{"pr", "create", "--repo", "joe/infra", "--title", "Check disks", "--body", "why", "--create",
				"checks/disk.md=" + text}
		},
		env: []string{"GITEA_URL=" + forge.URL, "GITEA_TOKEN=not-a-token-of-anybody", "CLAUDEOPS_FORGE_PLAIN_HTTP=true",
			"CLAUDEOPS_TIER=2"},
	}
}

// slowHeads lets audit verify wait for the heads that it compares with: each command for a pipe of its own.
func slowHeads(t *testing.T) slowWork {
	t.Helper()
	folder, made := t.TempDir(), 0
	pipe := func(i int) string { return filepath.Join(folder, fmt.Sprint(i)) }
	held := make(chan struct{}, 1)
	held <- struct{}{} // who waits for a pipe does not say so
	return slowWork{
		says: "Verifying the audit: ", held: held,
		args: func() []string {
			made++
			must.Do(t, unix.Mkfifo(pipe(made), 0o600))
			return []string{"audit", "verify", "--heads", pipe(made)}
		},
		release: func() {
			for i := range made {
				go func() { // waits until the command reads
					if writer, err := os.OpenFile(pipe(i+1), os.O_WRONLY, 0); err == nil {
						_ = writer.Close()
					}
				}()
			}
		},
	}
}

// What takes long says so at a terminal, and takes that away at the end. In a pipe it says nothing: the command in the
// pipe has waited for longer than the one at the terminal when that says so.
func TestWhatTakesLongSaysSoAtATerminalAlone(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T) slowWork{"pr create": slowForge, "audit verify": slowHeads} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := prepare(t)
			command := func() *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "claudeops", work.args()...)
				cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir(), "CLAUDEOPS_STATE_DIR="+t.TempDir()), work.env...)
				return cmd
			}
			var piped bytes.Buffer
			inPipe := command()
			inPipe.Stdout, inPipe.Stderr = &piped, &piped
			must.Do(t, inPipe.Start())
			<-work.held
			keyboard, screen := openTerminal(t)
			atTerminal := command()
			atTerminal.Stdin, atTerminal.Stdout, atTerminal.Stderr = screen, screen, screen
			must.Do(t, atTerminal.Start())
			_ = screen.Close()
			hung := time.AfterFunc(time.Minute, func() { _, _ = atTerminal.Process.Kill(), inPipe.Process.Kill() })
			defer hung.Stop()
			shown := readWhile(keyboard, work.says, work.release)
			_, _ = atTerminal.Process.Wait() // with an error of its own, which is not looked at
			_ = inPipe.Wait()
			_, after, found := strings.Cut(shown, work.says)
			if !found || !strings.Contains(after, "\r\x1b[K") {
				t.Errorf("at a terminal it shows %q", shown)
			}
			if text := piped.String(); text == "" || strings.Contains(text, work.says) || strings.Contains(text, "\x1b") {
				t.Errorf("in a pipe it says %q", text)
			}
		})
	}
}

// readWhile reads a terminal to its end, and does something when it shows a text.
func readWhile(keyboard *os.File, text string, do func()) string {
	var shown strings.Builder
	done := false
	for part := make([]byte, 4096); ; {
		n, err := keyboard.Read(part)
		shown.Write(part[:n])
		if !done && strings.Contains(shown.String(), text) {
			done = true
			do()
		}
		if err != nil {
			if !done {
				do()
			}
			return shown.String()
		}
	}
}
