//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// lets signs in on the address that a program opens, and lets the program in at tier 2. The browser is left at the
// program's own address.
func (d *dashboard) lets(address, client string) {
	d.Helper()
	d.goesTo(address)
	d.run(network.ClearBrowserCookies(), chromedp.Navigate(address),
		chromedp.SendKeys("#token", d.token, chromedp.ByQuery))
	d.press(`main form[action$="/sign-in"] button`)
	d.becomes(`document.querySelector("#consent") !== null`)
	d.says(client, "a program on your computer", "operator", "Highest tier")
	d.quiet("the page that asks for consent")
	d.picture("consent")
	d.run(chromedp.SetValue("#tier", "2", chromedp.ByQuery))
	d.run(chromedp.Click(`button[formaction$="/allow"]`, chromedp.ByQuery))
}

// goesTo tells the pages of a program from ours, to which it sends the browser.
func (d *dashboard) goesTo(address string) {
	d.Helper()
	at, err := url.Parse(address)
	if err != nil {
		d.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.foreign = append(d.foreign, strings.TrimSuffix(at.Query().Get("redirect_uri"), "/callback"))
}

// The real Claude CLI, which knows the address alone, has its person let it in, and proposes.
func TestAPersonLetsTheClaudeCLIInByTheBrowser(t *testing.T) {
	d := newDashboard(t)
	client := &world{home: t.TempDir(), vars: map[string]string{}}
	opened := filepath.Join(client.home, "opened")
	browser := filepath.Join(client.home, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" >> "+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cli := installed(t, "@anthropic-ai/claude-code-linux-*/claude")
	env := client.environment("BROWSER="+browser, "TERM=xterm", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	if got := run(t, program{path: cli, dir: client.home, env: env, args: []string{"mcp", "add", "--transport", "http",
		"claudeops", d.api + "/mcp"}}); got.code != 0 {
		t.Fatalf("claude mcp add: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	// the CLI asks for a terminal; util-linux gives it one
	login := command(t, program{path: "/usr/bin/script", dir: client.home, env: env, may: browsing,
		args: []string{"-qfec", cli + " mcp login claudeops", filepath.Join(client.home, "typescript")}})
	typed, keep, err := os.Pipe() // nothing is typed
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	defer typed.Close()
	var said bytes.Buffer
	login.Stdin, login.Stdout = typed, &said
	launch(t, login)
	d.lets(waitForLine(t, opened), "Claude Code")
	if code := exitCode(t, login); code != 0 {
		t.Fatalf("claude mcp login: exit %d: %s", code, said.String())
	}
	config := fmt.Sprintf(`{"mcpServers":{"claudeops":{"type":"http","url":%q}}}`, d.api+"/mcp")
	agent{world: client, config: func(string) string { return config }}.proposesOnce(t)
	d.world.assertProposed(t, quieterDiskBranch, quieterDisk())

	d.run(chromedp.Navigate(d.url + "/tokens"))
	d.says("operator by Claude Code", "let in by consent", "Tier 2")
	d.run(chromedp.Click(`button[popovertarget^="revoke-"]`, chromedp.ByQuery),
		chromedp.Click("form.sheet:popover-open button.no", chromedp.ByQuery),
		chromedp.WaitVisible("p.done", chromedp.ByQuery))
	got := run(t, program{path: cli, dir: client.home, env: env, args: []string{"mcp", "list"}})
	if !strings.Contains(got.stdout, d.api) || strings.Contains(got.stdout, "Connected") {
		t.Errorf("it is cut off: %s%s", got.stdout, got.stderr)
	}
}

// waitForLine is the first line of a file that a program writes.
func waitForLine(t *testing.T, file string) string {
	t.Helper()
	for end := time.Now().Add(browsing / 2); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if line, _, whole := strings.Cut(string(text), "\n"); err == nil && whole {
			return line
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is written to %s: %v", file, err)
		}
	}
}

// The official SDK's client passes the whole flow, refused and allowed, and goes on when its access token is not valid.
func TestAPersonLetsTheSDKsClientIn(t *testing.T) {
	d := newDashboard(t)
	begin := func() (address string, rest io.Reader, wait func() int) {
		cmd := command(t, program{
			path: installed(t, "node-linux-*/bin/node"), dir: t.TempDir(), env: []string{path()}, may: browsing,
			args: []string{must(filepath.Abs("testdata/oauth-client.mjs")),
				filepath.Dir(installed(t, "@modelcontextprotocol/sdk/package.json")), d.api + "/mcp", "create_pr",
				encode(t, quieterDisk())},
		})
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errors bytes.Buffer
		cmd.Stderr = &errors
		launch(t, cmd)
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the client says %q, %v: %s", line, err, errors.String())
		}
		return strings.TrimSpace(line), lines, func() int {
			code := exitCode(t, cmd)
			if code != 0 {
				t.Errorf("the client says %s", errors.String())
			}
			return code
		}
	}
	address, rest, wait := begin()
	d.goesTo(address)
	d.run(chromedp.Navigate(address), chromedp.WaitVisible("#consent", chromedp.ByQuery),
		chromedp.Click("#consent button.quiet", chromedp.ByQuery))
	if text, err := io.ReadAll(rest); err != nil || !strings.Contains(string(text), "access_denied") || wait() != 0 {
		t.Fatalf("refused: %s, %v", text, err)
	}
	address, rest, wait = begin()
	d.lets(address, "An SDK's client")
	text, err := io.ReadAll(rest)
	if err != nil || wait() != 0 {
		t.Fatalf("%s, %v", text, err)
	}
	got := decode[struct{ First, Second answer }](t, string(text))
	assertOpened(t, got.First, quieterDisk())
	assertReused(t, got.Second)
	d.world.assertProposed(t, quieterDiskBranch, quieterDisk())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
