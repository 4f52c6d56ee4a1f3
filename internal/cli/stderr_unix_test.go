//go:build unix

package cli_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// A client that does not read the server's log gets its answers all the same, and the server ends when it is told to.
func TestAServerWhoseLogNobodyReadsServes(t *testing.T) {
	t.Parallel()
	unread, log, err := os.Pipe()
	must.Do(t, err)
	defer func() { _ = unread.Close() }()
	cmd := exec.Command("claudeops", "mcp-server")
	cmd.Env = append(os.Environ(), "CLAUDEOPS_STATE_DIR="+t.TempDir(), "HOME="+t.TempDir(),
		"CLAUDEOPS_TOOLSETS="+strings.Repeat("x", 100<<10)) // a warning that no pipe holds
	cmd.Stderr = log
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	_ = log.Close()
	hung := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	if _, err := io.WriteString(in,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(answer, `"id":1`) {
		t.Errorf("answered %.300q, %v", answer, err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
