//go:build e2e && linux

package e2e

import (
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// elsewhere is another machine, as far as this one can play it: it has nothing of the server's but its address, the
// certificate of the proxy in front of it, and an agent's token.
type elsewhere struct {
	*world  // of the server
	front   front
	local   string // the server's address on its own machine
	secret  string
	address string // https://127.0.0.1:PORT/ops
	client  *world // of the agent, without a repository or a variable of the server's
}

// front is a real proxy with TLS in front of a server.
type front interface {
	start(t *testing.T)                   // and waits until it answers
	stop(t *testing.T)                    // with all connections through it
	address(path string) string           // of a path there
	authority() string                    // file of the certificate that a client needs
	log(t *testing.T, name string) string // what it has written to a log
}

// newElsewhere has nginx pass on all that settings say; SERVER there is the server's address.
func newElsewhere(t *testing.T, listen, settings string, more ...string) *elsewhere {
	t.Helper()
	return newElsewhereBehind(t, behindNginx(listen, settings), more...)
}

// newElsewhereBehind has a proxy in front of a server, whose address it is made with.
func newElsewhereBehind(t *testing.T, proxy func(t *testing.T, server string) front, more ...string) *elsewhere {
	t.Helper()
	// the tier is the token's
	e := &elsewhere{world: newWorld(t, "1"), client: &world{home: t.TempDir(), vars: map[string]string{}}}
	server := serve(t, e.world, append(more, "CLAUDEOPS_BASE_PATH=/ops", "CLAUDEOPS_MAX_TIER=2",
		"CLAUDEOPS_HOSTS="+publicName, "CLAUDEOPS_TRUSTED_PROXIES=127.0.0.1/32")...)
	e.secret, e.local = e.token(t, "--agent", "--tier", "2", "--name", "laptop"), server.url+"/ops"
	e.front = proxy(t, server.url)
	e.front.start(t)
	e.address = e.front.address("/ops")
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		e.client.vars[name] = e.front.authority()
	}
	e.client.vars["CLAUDEOPS_AGENT_TOKEN"] = e.secret
	return e
}

// printed returns the output of mcp-config for a client.
func (e *elsewhere) printed(t *testing.T, address string, args ...string) string {
	t.Helper()
	got := run(t, program{
		path: claudeops(t), args: append([]string{"mcp-config", "--url", address}, args...), dir: e.client.home,
		env: []string{path(), "HOME=" + e.client.home},
	})
	if got.code != 0 || strings.Contains(got.stdout, "cops_") {
		t.Fatalf("mcp-config: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// The real Claude CLI proposes by the address and a header.
func TestAnAgentElsewhereProposesThroughTheClaudeCLI(t *testing.T) {
	e := newElsewhere(t, "ssl", nginxDefaults)
	agent{world: e.client, config: func(string) string { return e.printed(t, e.address) }}.proposesOnce(t)
	e.assertProposed(t, quieterDiskBranch, quieterDisk())
	for _, log := range []string{"access.log", "error.log"} {
		if text := e.front.log(t, log); strings.Contains(text, "cops_") || log == "access.log" &&
			!strings.Contains(text, "POST /ops/mcp") {
			t.Errorf("nginx's %s: %s", log, text)
		}
	}
}

// The era without sessions passes the proxy, too; TestTheSDKsInBothEras has both without one.
func TestAnAgentElsewhereProposesThroughTheInspector(t *testing.T) {
	e, p := newElsewhere(t, "ssl", nginxDefaults), quieterDisk()
	got := run(t, program{
		path: installed(t, "node-linux-*/bin/node"), dir: e.client.home, env: e.client.environment(), args: []string{
			installed(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli", e.address + "/mcp",
			"--transport", "http", "--header", "Authorization: Bearer " + e.secret, "--protocol-era", "modern",
			"--format", "json", "-q", "--method", "tools/call", "--tool-name", "create_pr", "--tool-args-json", encode(t, p),
		},
	})
	if got.code != 0 {
		t.Fatalf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	result := decode[struct{ Result toolResult }](t, got.stdout).Result
	assertOpened(t, decode[answer](t, string(result.Structured)), p)
	e.assertProposed(t, quieterDiskBranch, p)
}

// Codex and Gemini propose with what mcp-config prints for them.
func TestOtherClientsProposeByAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []client{codex(), gemini()} {
		t.Run(c.name, func(t *testing.T) {
			e, p := newElsewhere(t, "ssl", nginxDefaults), quieterDisk()
			_, results, got := c.converse(t, e.client, e.printed(t, e.local, "--client", c.name),
				scripted(use("create_pr", p)))
			if len(results) == 0 || !strings.Contains(results[0].text, `"number":1`) {
				t.Errorf("results %+v (exit %d): %s%s", results, got.code, got.stdout, got.stderr)
			}
			e.assertProposed(t, quieterDiskBranch, p)
		})
	}
}

// TestTheConformanceSuiteByAddress runs the official suite, and holds the scenarios that need no fixtures of their own.
// The others fail: they call tools, resources and prompts of a server that is made for the suite (test_simple_text and
// so on), or ask for sampling, elicitation and completion, which this server has not. None is about an authorization
// server (0.1.16); signin_test.go has what real clients ask of ours.
func TestTheConformanceSuiteByAddress(t *testing.T) {
	e, node := newElsewhere(t, "ssl", nginxDefaults), installed(t, "node-linux-*/bin/node")
	suite := installed(t, "@modelcontextprotocol/conformance/dist/index.js")
	at := must.Get(url.Parse(e.local))(t)
	// the suite shows no token by itself
	showing := httptest.NewServer(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+e.secret)
		}})
	t.Cleanup(func() { showing.CloseClientConnections(); showing.Close() })
	got := run(t, program{
		path: node, dir: e.client.home, env: e.client.environment(),
		args: []string{suite, "server", "--url", showing.URL + at.Path + "/mcp"},
	})
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
		"server-sse-multiple-streams", "dns-rebinding-protection"} {
		if !strings.Contains(got.stdout, "\n✓ "+scenario+": ") {
			t.Errorf("%s fails\n%s%s", scenario, got.stdout, got.stderr)
		}
	}
}
