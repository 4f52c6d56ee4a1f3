//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// company is the certified provider of OpenID Connect of npm, and a dashboard where its people sign in.
type company struct {
	*dashboard
	issuer string
}

func newCompany(t *testing.T) *company {
	t.Helper()
	ops := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	c := &company{issuer: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}
	script := must.Get(filepath.Abs("testdata/oidc-provider.mjs"))(t)
	cmd := command(t, program{
		path: installed(t, "node-linux-*/bin/node"), dir: t.TempDir(), env: []string{path()}, may: browsing,
		args: []string{script, filepath.Dir(installed(t, "oidc-provider/package.json")),
			c.issuer[strings.LastIndexByte(c.issuer, ':')+1:], ops},
	})
	out := must.Get(cmd.StdoutPipe())(t)
	launch(t, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the provider said %q, %v", line, err)
	}
	rules := policyOf(t, "roles:\n  viewer: [{provider: company, group: viewers}]\n"+
		"  reviewer: [{provider: company, group: reviewers}]\n  operator: [{provider: company, group: operators}]\n")
	c.dashboard = newDashboard(t, "CLAUDEOPS_ADDR="+strings.TrimPrefix(ops, "http://"), "CLAUDEOPS_PUBLIC_URL="+ops,
		rules,
		"CLAUDEOPS_SIGN_IN=company", "CLAUDEOPS_SIGN_IN_COMPANY_ISSUER="+c.issuer,
		"CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_ID=claudeops",
		"CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_SECRET=the-client-secret-of-tests",
		"CLAUDEOPS_SIGN_IN_COMPANY_SCOPES=profile groups offline_access",
		"CLAUDEOPS_SIGN_IN_COMPANY_TEXT=Continue with your company account")
	return c
}

// tell changes what the provider knows.
func (c *company) tell(what string, body any) {
	c.Helper()
	exchange(c, http.DefaultClient, http.MethodPost, c.issuer+"/test/"+what, encode(c.T, body))
}

// begin goes to the sign-in page of a fresh browser as somebody.
func (c *company) begin(subject string, groups ...string) {
	c.Helper()
	c.tell("person", map[string]any{"sub": subject, "preferred_username": subject + ".smith", "groups": groups})
	c.run(withoutCookies(), chromedp.Navigate(c.url+"/sign-in?next=/policy"))
}

// follow presses the button of the provider, and waits for a page of ours.
func (c *company) follow(wanted string) {
	c.Helper()
	c.run(chromedp.Click(chromedp.CSS(`a[href^="/sign-in/with/company"]`)))
	c.at(wanted)
}

// at waits until the browser is at an address; one without a host is of ours.
func (c *company) at(wanted string) {
	c.Helper()
	if strings.HasPrefix(wanted, "/") {
		wanted = c.url + wanted
	}
	script := fmt.Sprintf(`location.href.split("?")[0] === %q && document.readyState === "complete"`, wanted)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var there bool
		err := chromedp.Do(c.ctx, evaluated(script, &there)) // fails while the page gives way to the next
		if err == nil && there {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("the browser does not come to %s: %v, %v", wanted, err, c.value("location.href"))
		}
	}
}

// asked is the status of a request of the page.
func (c *company) asked(method, address, body string) int {
	c.Helper()
	var answer struct {
		Status int
		Body   string
	}
	c.run(evaluated(fmt.Sprintf(`fetch(%q, {method: %q, headers: {"Content-Type": "application/json"}, body: %s})
		.then((r) => r.text().then((text) => ({Status: r.status, Body: text})))`, address, method,
		map[bool]string{true: "undefined", false: fmt.Sprintf("%q", body)}[body == ""]), &answer, chromedp.EvalAwaitPromise))
	if answer.Status >= http.StatusBadRequest {
		c.Logf("%s %s: %d %s", method, address, answer.Status, answer.Body)
	}
	return answer.Status
}

func TestPeopleSignInByTheirCompany(t *testing.T) {
	c := newCompany(t)
	for i, role := range []string{"viewer", "reviewer", "operator"} {
		c.begin("person-"+role, role+"s")
		if i == 0 {
			c.picture("sign-in")
		}
		// by links and forms alone: the cookie of the login is strict, and comes with the page that goes on
		c.follow("/policy")
		var name string
		c.run(evaluated(`fetch("/api/v1/me").then((r) => r.json()).then((me) => me.name)`, &name, chromedp.EvalAwaitPromise))
		if name != "company:person-"+role+".smith" {
			t.Errorf("%s is %s", role, name)
		}
		want := map[string][3]int{"viewer": {200, 403, 403}, "reviewer": {200, 403, 403}, "operator": {200, 200, 201}}[role]
		got := [3]int{c.asked("GET", "/api/v1/audit", ""), c.asked("GET", "/api/v1/tokens", ""),
			c.asked("POST", "/api/v1/tokens", `{"name":"ci","scopes":["read"]}`)}
		if got != want {
			t.Errorf("%s: %v, want %v", role, got, want)
		}
	}
	c.run(chromedp.Navigate(c.url + "/logins"))
	c.picture("logins")
	if text := c.value(`document.querySelector("main").innerText`).(string); !strings.Contains(text,
		"company:person-operator.smith") || !strings.Contains(text, "company:person-viewer.smith") {
		t.Errorf("the list of logins has %s", text)
	}
	c.begin("nobody", "strangers")
	c.follow(c.api + "/sign-in/callback/company")
	c.picture("refused")
	if text := c.value(`document.querySelector("main").innerText`).(string); !strings.Contains(text, "no role here") ||
		!strings.Contains(text, "Continue with your company account") {
		t.Errorf("who has no role reads %s", text)
	}
}

func TestRightsEndWithTheCompanysWord(t *testing.T) {
	c := newCompany(t)
	token := func(name string) int {
		return c.asked("POST", "/api/v1/tokens", `{"name":"`+name+`","scopes":["read"]}`)
	}
	c.begin("ann", "operators")
	c.follow("/policy")
	if got := token("one"); got != 201 {
		t.Fatalf("%d", got)
	}
	c.tell("rotate", nil) // keys; the tokens are as they were
	if got := token("two"); got != 201 {
		t.Errorf("after the keys were rotated: %d", got)
	}
	c.begin("ann", "operators")
	c.follow("/policy")
	c.tell("person", map[string]any{"sub": "ann", "preferred_username": "ann.smith", "groups": []string{"viewers"}})
	if got := token("three"); got != 403 {
		t.Errorf("no operator any more: %d", got)
	}
	c.begin("ann", "operators")
	c.follow("/policy")
	c.tell("revoke", nil)
	if got := token("four"); got != 401 {
		t.Errorf("revoked: %d", got)
	}
	c.run(chromedp.Navigate(c.url + "/policy"))
	c.at("/sign-in")
}

func TestWhoSignsOutAtTheCompanyIsSignedOutHere(t *testing.T) {
	c := newCompany(t)
	c.begin("ann", "viewers")
	c.follow("/policy")
	c.run(chromedp.Navigate(c.issuer+"/session/end"), chromedp.Click(chromedp.CSS("#yes")))
	c.at(c.issuer + "/session/end/success")
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c.run(chromedp.Navigate(c.url + "/sign-in"))
		if c.asked("GET", "/api/v1/me", "") == 401 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the login outlives that at the provider")
		}
	}
}

func TestNobodyIsSignedInByWhatOthersSend(t *testing.T) {
	c := newCompany(t)
	c.begin("ann", "operators")
	c.run(chromedp.Navigate(c.url + "/sign-in/callback/company?code=stolen&state=stolen"))
	if text := c.value(`document.querySelector("main").innerText`).(string); !strings.Contains(text,
		"not begun in this browser") {
		t.Errorf("a callback from elsewhere: %s", text)
	}
	c.examine("a callback from elsewhere")
	if got := c.asked("GET", "/api/v1/me", ""); got != 401 {
		t.Errorf("%d", got)
	}
	c.run(chromedp.Navigate(c.url + "/sign-in/with/company?next=//evil.example/"))
	c.at("/")
	rows := c.asked("GET", "/api/v1/audit", "")
	if rows != 200 {
		t.Errorf("%d", rows)
	}
}

// picture keeps what the browser shows, where CLAUDEOPS_E2E_PICTURES names a folder.
func (c *company) picture(name string) {
	c.Helper()
	folder := os.Getenv("CLAUDEOPS_E2E_PICTURES")
	if folder == "" {
		return
	}
	var shot []byte
	c.run(into(chromedp.FullScreenshot(100), &shot))
	must.Do(c, os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o600))
}

// lets signs in on the address that a program opens, and lets the program in at tier 2. The browser is left at the
// program's own address.
func (d *dashboard) lets(address, client string) {
	d.Helper()
	d.goesTo(address)
	d.run(withoutCookies(), chromedp.Navigate(address),
		chromedp.SendKeys(chromedp.CSS("#token"), d.token))
	d.press(`main form[action$="/sign-in"] button`)
	d.becomes(`document.querySelector("#consent") !== null`)
	d.says(client, "a program on your computer", "operator", "Highest tier")
	d.quiet("the page that asks for consent")
	d.run(chromedp.SetValue(chromedp.CSS("#tier"), "2"))
	d.run(chromedp.Click(chromedp.CSS(`button[formaction$="/allow"]`)))
}

// goesTo tells the pages of a program from ours, to which it sends the browser.
func (d *dashboard) goesTo(address string) {
	d.Helper()
	at := must.Get(url.Parse(address))(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.foreign = append(d.foreign, strings.TrimSuffix(at.Query().Get("redirect_uri"), "/callback"))
}

// The real Claude CLI, which knows the address alone, registers, has its person let it in, and proposes.
func TestAPersonLetsTheClaudeCLIInByTheBrowser(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_CLIENT_DOCUMENTS=false")
	client := newClient(t, d, "claude")
	d.comesBy(client, "Claude Code", "")
	config := fmt.Sprintf(`{"mcpServers":{"claudeops":{"type":"http","url":%q}}}`, d.api+"/mcp")
	agent{world: client.world, config: func(string) string { return config }}.proposesOnce(t)
	d.world.assertProposed(t, quieterDiskBranch, quieterDisk())

	d.run(chromedp.Navigate(d.url + "/tokens"))
	d.says("operator by Claude Code", "let in by consent", "Tier 2")
	d.run(chromedp.Click(chromedp.CSS(`button[popovertarget^="revoke-"]`)),
		chromedp.Click(chromedp.CSS("form.sheet:popover-open button.no")),
		chromedp.WaitVisible(chromedp.CSS("p.done")))
	got := run(t, program{path: client.cli, dir: client.home, env: client.env, args: []string{"mcp", "list"}})
	if !strings.Contains(got.stdout, d.api) || strings.Contains(got.stdout, "Connected") {
		t.Errorf("it is cut off: %s%s", got.stdout, got.stderr)
	}
}

// waitForLine is the first line of a file that a program writes.
func waitForLine(t *testing.T, file string) string {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
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
			args: []string{must.Get(filepath.Abs("testdata/oauth-client.mjs"))(t),
				filepath.Dir(installed(t, "@modelcontextprotocol/sdk/package.json")), d.api + "/mcp", "create_pr",
				encode(t, quieterDisk())},
		})
		out := must.Get(cmd.StdoutPipe())(t)
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
	d.run(chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("#consent")),
		chromedp.Click(chromedp.CSS("#consent button.quiet")))
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
