//go:build linux

package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"
)

// server is an mcp-server with open pipes.
type server struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	calls int
}

// serve starts a server and shakes hands.
func (w *world) serve(t *testing.T) *server {
	t.Helper()
	cmd, cancel := w.prepare(t, "claudeops", "mcp-server")
	t.Cleanup(cancel)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, in: in, lines: bufio.NewScanner(out), calls: 1}
	t.Cleanup(s.end)
	fmt.Fprintln(in, initialize)
	if !s.lines.Scan() {
		t.Fatalf("no handshake: %v", s.lines.Err())
	}
	fmt.Fprintln(in, initialized)
	return s
}

// end closes the server's stdin and waits: it is done when it has answered everything.
func (s *server) end() {
	if s.cmd.ProcessState == nil {
		_ = s.in.Close()
		_ = s.cmd.Wait()
	}
}

// create calls create_pr and waits for the answer. It is for one caller at a time, from any goroutine.
func (s *server) create(r request) (answer, error) {
	s.calls++
	if _, err := fmt.Fprintln(s.in, callOf(s.calls, r)); err != nil {
		return answer{}, err
	}
	for s.lines.Scan() {
		var m message
		if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
			return answer{}, fmt.Errorf("not a message: %w: %s", err, s.lines.Bytes())
		}
		if m.ID != s.calls {
			continue // progress
		}
		var a answer
		if err := json.Unmarshal(m.Result.Structured, &a); err != nil {
			return answer{}, fmt.Errorf("not an answer: %w: %s", err, s.lines.Bytes())
		}
		return a, nil
	}
	return answer{}, fmt.Errorf("the server closed stdout: %w", s.lines.Err())
}
