//go:build e2e && linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
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
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
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

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	toolsList   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// createPR is a call with id 2.
func createPR(t *testing.T, p proposal) string {
	t.Helper()
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_pr","arguments":` + encode(t, p) + `}}`
}

// message is a JSON-RPC response.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
}

// A shell's printf writes everything, closes the pipe and waits: nothing that was asked may stay unanswered.
func TestOneShotAnswersEverythingAndExits(t *testing.T) {
	tests := []struct {
		name, input string
		ids         []int
	}{
		{"with a newline at the end", initialize + "\n" + initialized + "\n" + toolsList + "\n", []int{1, 2}},
		{"without a newline at the end", initialize + "\n" + initialized + "\n" + toolsList, []int{1, 2}},
		{"with no input at all", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			got := run(t, program{
				path: claudeops(t), args: []string{"mcp-server"}, dir: home, env: []string{"HOME=" + home},
				stdin: strings.NewReader(test.input),
			})
			if got.code != 0 {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			assertPure(t, got.stdout, test.ids)
			assertLogsAreJSON(t, got.stderr)
			if written, err := os.ReadDir(home); err != nil || len(written) > 0 {
				t.Errorf("listing the tools wrote to the home folder: %v, %v", written, err)
			}
		})
	}
}

// assertPure holds that stdout is one JSON-RPC response per line, with these ids in this order, and nothing else.
func assertPure(t *testing.T, stdout string, ids []int) []message {
	t.Helper()
	var out []message
	for line := range strings.Lines(stdout) {
		m := decode[message](t, line)
		if m.Version != "2.0" || len(m.Result) == 0 || !strings.HasSuffix(line, "\n") {
			t.Errorf("not a response on a line of its own: %q", line)
		}
		out = append(out, m)
	}
	var got []int
	for _, m := range out {
		got = append(got, m.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Fatalf("answers to %v, want %v\n%s", got, ids, stdout)
	}
	return out
}

func assertLogsAreJSON(t *testing.T, stderr string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("stderr holds a line that is not a JSON log: %q", line)
		}
	}
}
