//go:build e2e && linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// talk is a server with open pipes.
type talk struct {
	cmd   *exec.Cmd
	in    func(line string)
	lines *bufio.Scanner
}

// newTalk starts a server and shakes hands.
func newTalk(t *testing.T, dir string, env []string) talk {
	t.Helper()
	s := talkTo(t, command(t, program{path: claudeops(t), args: []string{"mcp-server"}, dir: dir, env: env}))
	s.in(initialize)
	assertPure(t, s.line(t), []int{1})
	s.in(initialized)
	return s
}

// talkTo starts a server whose lines may be long.
func talkTo(t *testing.T, cmd *exec.Cmd) talk {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	launch(t, cmd)
	write := func(line string) {
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(out)
	const longest = 8 << 20
	lines.Buffer(nil, longest)
	return talk{cmd, write, lines}
}

func (s talk) line(t *testing.T) string {
	t.Helper()
	if !s.lines.Scan() {
		t.Fatalf("the server closed stdout: %v", s.lines.Err())
	}
	return s.lines.Text() + "\n"
}

// rest returns the server's remaining output.
func (s talk) rest() []string {
	var out []string
	for s.lines.Scan() {
		out = append(out, s.lines.Text()+"\n")
	}
	return out
}

// stopAsClaudeCode sends SIGINT and, 100 ms later, SIGTERM, and leaves stdin open (Claude Code 2.1.329).
func stopAsClaudeCode(p *os.Process) {
	_ = p.Signal(syscall.SIGINT) // an error says that the process has ended, which is the purpose of the signals
	time.AfterFunc(100*time.Millisecond, func() { _ = p.Signal(syscall.SIGTERM) })
}

func TestSignalsEndAnIdleServer(t *testing.T) {
	tests := []struct {
		name string
		stop func(*os.Process)
	}{
		{"SIGINT, then SIGTERM", stopAsClaudeCode},
		{"SIGINT and SIGTERM at once", func(p *os.Process) { _, _ = p.Signal(syscall.SIGINT), p.Signal(syscall.SIGTERM) }},
		{"SIGTERM alone", func(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			s := newTalk(t, home, []string{"HOME=" + home})
			test.stop(s.cmd.Process)
			if rest := s.rest(); len(rest) > 0 {
				t.Errorf("written after the signal: %q", rest)
			}
			if code := exitCode(t, s.cmd); code != 0 {
				t.Errorf("exit %d, want 0", code)
			}
		})
	}
}

func TestSignalsLetAProposalFinish(t *testing.T) {
	w, p := newWorld(t, "2"), quieterDisk()
	s := newTalk(t, w.home, w.environment())
	s.in(strings.Replace(createPR(t, p), `"params":{`, `"params":{"_meta":{"progressToken":"p"},`, 1))
	if first := s.line(t); !strings.Contains(first, `"notifications/progress"`) {
		t.Fatalf("not the proposal's progress: %s", first)
	}
	stopAsClaudeCode(s.cmd.Process)
	rest := s.rest()
	if code := exitCode(t, s.cmd); code != 0 || len(rest) == 0 {
		t.Fatalf("exit %d after %q", code, rest)
	}
	messages := assertPure(t, rest[len(rest)-1], []int{2})
	assertOpened(t, decode[answer](t, string(decode[toolResult](t, string(messages[0].Result)).Structured)), p)
	w.assertProposed(t, quieterDiskBranch, p)
}
