//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// BenchmarkConnection measures the wait of an agent's connector in this process: from its connection to the answer of
// tools/list.
func BenchmarkConnection(b *testing.B) {
	dir, err := os.MkdirTemp("", "bench") // that of b is too long for a socket
	must.Do(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state")}
	_, p := newProcess(b, env)
	d, err := p.Agents.Open(gateway.Spec{Rights: gateway.Rights{Session: "bench", Tier: 2, Toolsets: []string{"pr"}},
		Dir: dir})
	must.Do(b, err)
	b.Cleanup(func() { _ = d.Close() })
	d.Admit(func(int) bool { return true })
	ticket, err := stdioproxy.ReadTicket(d.TicketFile())
	must.Do(b, err)
	for b.Loop() {
		conn, err := stdioproxy.Dial(b.Context(), d.Address(), stdioproxy.Hello{Ticket: ticket})
		must.Do(b, err)
		answers := bufio.NewReader(conn)
		for id, method := range []string{"initialize", "tools/list"} {
			if _, err := fmt.Fprintf(conn,
				`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n",
				id, method); err != nil {
				b.Fatal(err)
			}
			if _, err := answers.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		_ = conn.Close()
	}
}
