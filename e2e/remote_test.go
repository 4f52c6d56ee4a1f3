//go:build e2e && linux

package e2e

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere is another machine, as far as this one can play it: it has nothing of the server's but an address over TLS, the certificate of its
// authority and an agent's token.
type elsewhere struct {
	*world         // of the server
	address string // https://127.0.0.1:PORT/ops
	token   string // file
	client  *world // of the agent, without a repository or a variable of the server's
}

func newElsewhere(t *testing.T) elsewhere {
	t.Helper()
	e := elsewhere{world: newWorld(t, "1"), client: &world{home: t.TempDir(), vars: map[string]string{}}} // the tier is the token's
	server := serve(t, e.world, "CLAUDEOPS_BASE_PATH=/ops", "CLAUDEOPS_MAX_TIER=2")
	at, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.SetXForwarded()
	}})
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	made := run(t, program{
		path: claudeops(t), args: []string{"token", "create", "--agent", "--tier", "2", "--name", "laptop"}, dir: e.home, env: e.environment(),
	})
	if made.code != 0 {
		t.Fatal(made.stderr)
	}
	e.address, e.token = proxy.URL+"/ops", filepath.Join(e.client.home, "token")
	authority := filepath.Join(e.client.home, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	for file, text := range map[string]string{e.token: made.stdout, authority: string(certificate)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.client.vars["SSL_CERT_FILE"] = authority
	return e
}

func TestAnAgentElsewhereProposesThroughTheClaudeCLI(t *testing.T) {
	e := newElsewhere(t)
	printed := run(t, program{
		path: claudeops(t), args: []string{"mcp-config", "--connect", e.address, "--ticket-file", e.token}, dir: e.client.home, env: e.client.environment(),
	})
	if printed.code != 0 || strings.Contains(printed.stdout, "cops_") || strings.Contains(printed.stdout, "CLAUDEOPS_") {
		t.Fatalf("mcp-config: exit %d\n%s%s", printed.code, printed.stdout, printed.stderr)
	}
	agent{world: e.client, config: func(string) string { return printed.stdout }}.proposesOnce(t)
	e.assertProposed(t, quieterDiskBranch, quieterDisk())
}

func TestAnAgentElsewhereProposesThroughTheInspector(t *testing.T) {
	e, p := newElsewhere(t), quieterDisk()
	starter := filepath.Join(e.client.home, "start") // the Inspector takes flags behind the command for its own
	writeProgram(t, starter, "#!/bin/sh\nexec '"+claudeops(t)+"' mcp-server --connect '"+e.address+"' --ticket-file '"+e.token+"'\n")
	got := run(t, program{
		path: installed(t, "node-linux-*/bin/node"), dir: e.client.home, env: e.client.environment(), args: []string{
			installed(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli",
			starter, "--protocol-era", "legacy", "--format", "json", "-q", "--method", "tools/call",
			"--tool-name", "create_pr", "--tool-args-json", encode(t, p), "-e", "SSL_CERT_FILE=" + e.client.vars["SSL_CERT_FILE"],
		},
	})
	if got.code != 0 {
		t.Fatalf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	result := decode[struct{ Result toolResult }](t, got.stdout).Result
	assertOpened(t, decode[answer](t, string(result.Structured)), p)
	e.assertProposed(t, quieterDiskBranch, p)
}

func TestACertificateThatNobodyVouchesForEndsTheConnector(t *testing.T) {
	e := newElsewhere(t)
	for name, c := range map[string]struct {
		address string
		more    []string
		said    string
	}{
		"an unknown authority": {e.address, nil, "certificate"},
		"another name":         {strings.Replace(e.address, "127.0.0.1", "localhost", 1), []string{"SSL_CERT_FILE=" + e.client.vars["SSL_CERT_FILE"]}, "certificate"},
		"no TLS elsewhere":     {"http://ops.example.org", nil, "use https://"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, program{
				path: claudeops(t), args: []string{"mcp-server", "--connect", c.address, "--ticket-file", e.token}, dir: e.client.home,
				env: append([]string{path(), "HOME=" + e.client.home}, c.more...), stdin: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"),
			})
			if got.code < 2 || !strings.Contains(got.stderr, c.said) || strings.Contains(got.stderr, "cops_") {
				t.Errorf("exit %d, %s", got.code, got.stderr)
			}
		})
	}
	e.assertUntouched(t)
}
