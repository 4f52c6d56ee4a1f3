//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// publishes is the address of the hosts of documents: one of the internet, so that the server asks it as it asks all.
// The test has a network of its own, where it is an address of loopback's interface.
const publishes = "9.9.9.9"

// inNetworkOfItsOwn marks the process of a test that has one.
const inNetworkOfItsOwn = "CLAUDEOPS_E2E_NETWORK"

// publisher stands for claude.ai and chatgpt.com, which no test asks.
type publisher struct {
	authority string // file with its certificate
	server    *http.Server
	mu        sync.Mutex
	asked     []string
}

func (p *publisher) asks() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// newPublisher publishes what the two hosts publish, as far as a server of authorization reads it.
func newPublisher(t *testing.T) *publisher {
	t.Helper()
	chain, key := certificate(t, t.TempDir(), "claude.ai", "chatgpt.com")
	p := &publisher{authority: chain}
	listener := must.Get(tls.Listen("tcp", net.JoinHostPort(publishes, "443"), &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{must.Get(tls.LoadX509KeyPair(chain, key))(t)}}))(t)
	names := map[string]string{"claude.ai/oauth/claude-code-client-metadata": "Claude Code",
		"chatgpt.com/oauth/codex/client.json": "Codex"}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		at := r.Host + r.URL.RequestURI()
		p.mu.Lock()
		p.asked = append(p.asked, at)
		p.mu.Unlock()
		if names[at] == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": "https://" + at, "client_name": names[at],
			"redirect_uris": []string{"http://localhost/callback", "http://127.0.0.1/callback"},
			"grant_types":   []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
			"token_endpoint_auth_method": "none"})
	})}
	go func() { _ = p.server.Serve(listener) }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

// The real clients come by the addresses of their documents, since the server says that it reads them. A person lets
// them in, and they are connected. The server is the program as it is, which refuses private addresses.
func TestTheRealClientsComeByTheirDocuments(t *testing.T) {
	if os.Getenv(inNetworkOfItsOwn) == "" {
		inNamespaces(t)
		return
	}
	p := newPublisher(t)
	t.Run("by their documents", func(t *testing.T) {
		d := newDashboard(t, "SSL_CERT_FILE="+p.authority)
		for _, c := range []struct{ name, program, domain, document string }{
			{"Claude Code", "claude", "claude.ai", "https://claude.ai/oauth/claude-code-client-metadata"},
			{"Codex", "codex", "chatgpt.com", "https://chatgpt.com/oauth/codex/client.json"},
		} {
			d.comesBy(newClient(t, d, c.program), c.name, c.document)
			d.run(chromedp.Navigate(d.url + "/tokens"))
			d.says("operator by "+c.name, "described by "+c.domain)
		}
	})
	if asked := p.asks(); len(asked) != 2 {
		t.Errorf("the hosts were asked for %v", asked)
	}
	_ = p.server.Close()
	for program, name := range map[string]string{"claude": "Claude Code", "codex": "Codex"} {
		t.Run(name+", where no host can be reached", func(t *testing.T) {
			d := newDashboard(t, "SSL_CERT_FILE="+p.authority)
			client := newClient(t, d, program)
			address, _ := client.login(d)
			d.goesTo(address)
			d.run(withoutCookies(), chromedp.Navigate(address), chromedp.SendKeys(chromedp.CSS("#token"), d.token))
			d.press(`main form[action$="/sign-in"] button`)
			d.becomes(`document.body.innerText.includes("may register itself")`)
			d.mu.Lock()
			d.problems = nil // it complains of the status
			d.mu.Unlock()
			d.comesBy(client, name, "")
		})
	}
	if asked := p.asks(); len(asked) != 2 {
		t.Errorf("the hosts were asked for %v", asked)
	}
}

// comesBy has a client sign in by the address of a document, "" for an id that it was given when it registered, and be
// let in.
func (d *dashboard) comesBy(c *realClient, name, document string) {
	d.Helper()
	address, wait := c.login(d)
	at, err := url.Parse(address)
	if id := at.Query().Get("client_id"); err != nil || document != "" && id != document ||
		document == "" && (id == "" || strings.Contains(id, "/")) {
		d.Fatalf("it comes with %s, %v", address, err)
	}
	d.lets(address, name)
	if said, code := wait(); code != 0 {
		d.Fatalf("%s: exit %d: %s", name, code, said)
	}
}

// inNamespaces runs the test again where the network and the names of hosts are its own. It needs root, as others do.
func inNamespaces(t *testing.T) {
	t.Helper()
	hosts := filepath.Join(t.TempDir(), "hosts")
	text := "127.0.0.1 localhost\n" + publishes + " claude.ai chatgpt.com\n"
	if err := os.WriteFile(hosts, []byte(text), 0o644); err != nil { // #nosec G306: every user reads it
		t.Fatal(err)
	}
	const prepare = `mount --bind "$1" /etc/hosts && ip link set lo up && ip address add ` + publishes + `/32 dev lo && ` +
		`shift && exec "$@"`
	cmd := command(t, program{path: must.Get(exec.LookPath("unshare"))(t), dir: must.Get(os.Getwd())(t),
		may: 2 * browsing, env: append(os.Environ(), inNetworkOfItsOwn+"=1", programs+"="+filepath.Dir(claudeops(t))),
		args: []string{"--net", "--mount", "/bin/sh", "-c", prepare, "sh", hosts, must.Get(os.Executable())(t),
			"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=30m"}})
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	launch(t, cmd)
	if code := exitCode(t, cmd); code != 0 || !strings.Contains(said.String(), "--- PASS: "+t.Name()+"/") {
		t.Errorf("exit %d: %s", code, said.String())
	}
}

// realClient is one of the real clients that has our server by its address alone.
type realClient struct {
	*world
	cli, opened string
	env         []string
	browserOf   bool // it opens the address that it prints
}

// newClient sets up claude or codex.
func newClient(t *testing.T, d *dashboard, name string) *realClient {
	t.Helper()
	c := &realClient{world: &world{home: t.TempDir(), vars: map[string]string{}}, browserOf: name == "claude"}
	c.opened = filepath.Join(c.home, "opened")
	browser := filepath.Join(c.home, "browser")
	c.env = c.environment("BROWSER="+browser, "TERM=xterm", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	config := filepath.Join(c.home, ".codex", "config.toml")
	must.Do(t, errors.Join(
		os.WriteFile(browser, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" >> "+c.opened+"\n"), 0o700),
		os.MkdirAll(filepath.Dir(config), 0o700),
		os.WriteFile(config, []byte(fmt.Sprintf("[mcp_servers.claudeops]\nurl = %q\n", d.api+"/mcp")), 0o600),
	))
	if name == "codex" {
		c.cli = installed(t, "@openai/codex-linux-*/vendor/*/bin/codex")
		return c
	}
	c.cli = theCLI(t)
	if got := run(t, program{path: c.cli, dir: c.home, env: c.env, args: []string{"mcp", "add", "--transport", "http",
		"claudeops", d.api + "/mcp"}}); got.code != 0 {
		t.Fatalf("claude mcp add: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return c
}

// login has the client begin to sign in. It returns the address that it opens, and what waits for its end.
func (c *realClient) login(d *dashboard) (address string, wait func() (said string, code int)) {
	d.Helper()
	must.Do(d, os.RemoveAll(c.opened))
	// the CLI asks for a terminal; util-linux gives it one
	login := command(d.T, program{path: "/usr/bin/script", dir: c.home, env: c.env, may: browsing,
		args: []string{"-qfec", c.cli + " mcp login claudeops", filepath.Join(c.home, "typescript")}})
	typed, keep, err := os.Pipe() // nothing is typed
	must.Do(d, err)
	d.Cleanup(func() { _ = keep.Close(); _ = typed.Close() })
	out, err := login.StdoutPipe()
	must.Do(d, err)
	login.Stdin = typed
	launch(d.T, login)
	printed, all := make(chan string, 1), make(chan string, 1)
	go func() {
		var text strings.Builder
		for lines := bufio.NewScanner(io.TeeReader(out, &text)); lines.Scan(); {
			at := regexp.MustCompile(`http://[^\s\x1b]*/oauth/authorize\?[^\s\x1b]+`).FindString(lines.Text())
			if at != "" && len(printed) == 0 {
				printed <- at
			}
		}
		close(printed)
		all <- text.String()
	}()
	if c.browserOf {
		address = waitForLine(d.T, c.opened)
	} else if address = <-printed; address == "" {
		d.Fatalf("it opens nothing: %s", <-all)
	}
	return address, func() (string, int) {
		text := <-all
		return text, exitCode(d.T, login)
	}
}
