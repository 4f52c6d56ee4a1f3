//go:build e2e && linux

package e2e

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// The other scenarios of the suite ask for fixture tools, or for what a server without resources and prompts lacks.
func TestConformanceSuite(t *testing.T) {
	w, node := newWorld(t, "2"), installed(t, "node-linux-*/bin/node")
	port := strconv.Itoa(bridge(t, w, node))
	suite := installed(t, "@modelcontextprotocol/conformance/dist/index.js")
	for _, scenario := range []string{"server-initialize", "ping", "tools-list"} {
		t.Run(scenario, func(t *testing.T) {
			got := run(t, program{
				path: node, dir: w.home, env: w.environment(),
				args: []string{suite, "server", "--url", "http://127.0.0.1:" + port + "/mcp", "--scenario", scenario},
			})
			if got.code != 0 {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// bridge serves mcp-server over HTTP on the loopback interface, as the suite takes a URL only, and returns the port.
func bridge(t *testing.T, w *world, node string) int {
	t.Helper()
	port := freePort(t)
	proxy := command(t, program{
		path: node, dir: w.home, env: w.environment(),
		args: []string{
			installed(t, "mcp-proxy/dist/bin/mcp-proxy.mjs"), "--host", "127.0.0.1", "--port", strconv.Itoa(port),
			"--server", "stream", "--", claudeops(t), "mcp-server",
		},
	})
	launch(t, proxy)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = c.Close()
			return port
		}
		time.Sleep(50 * time.Millisecond) // the proxy does not say when it listens
	}
	t.Fatal("mcp-proxy does not listen")
	return 0
}

// freePort returns a port that was free a moment ago: the proxy takes no listener, only a number.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
