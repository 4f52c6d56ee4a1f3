//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// text returns the text of the page.
func (d *dashboard) text() (s string) {
	d.Helper()
	d.run(into(chromedp.Text(chromedp.CSS("main")), &s))
	return s
}

// press submits a form by its button and waits for the page that follows.
func (d *dashboard) press(button string) {
	d.Helper()
	d.leads(button, chromedp.Click(chromedp.CSS(button)))
}

// leads does what leads to another page, and waits for that.
func (d *dashboard) leads(about string, action step) {
	d.Helper()
	if err := d.patiently(func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, action)
		return err
	}); err != nil {
		d.Fatalf("%s: %v", about, err)
	}
}

func (d *dashboard) says(texts ...string) {
	d.Helper()
	got := d.text()
	for _, want := range texts {
		if !strings.Contains(got, want) {
			d.Errorf("the page does not say %q:\n%s", want, got)
		}
	}
	d.quiet("after an action")
}

// act opens the sheet of an act, through the menu if the act has no button of its own, fills it in and sends it.
func (d *dashboard) act(verb, text string) {
	d.Helper()
	button, sheet := fmt.Sprintf(`.bar [popovertarget="do-%s"]`, verb), "#do-"+verb
	var inBar int
	d.run(evaluated(fmt.Sprintf("document.querySelectorAll(%q).length", button), &inBar))
	if inBar == 0 {
		button = fmt.Sprintf(`#more [popovertarget="do-%s"]`, verb)
		d.run(chromedp.Click(chromedp.CSS(`[popovertarget="more"]`)))
	}
	d.run(chromedp.Click(chromedp.CSS(button)), chromedp.WaitVisible(chromedp.CSS(sheet)))
	if text != "" {
		d.run(chromedp.SendKeys(chromedp.CSS(sheet+" textarea"), text))
	}
	d.press(sheet + ` button[name="action"]`)
}

// annsToken makes a token for ann.
func (w *world) annsToken(t *testing.T, scopes ...string) string {
	t.Helper()
	return w.token(t, "--name", "ann", "--max-tier", "2", "--scopes", strings.Join(scopes, ","))
}

// signIn makes a token for a person, and gives it to the form, which leads to the page at the path.
func (d *dashboard) signIn(path string, scopes ...string) {
	d.Helper()
	d.token = d.world.annsToken(d.T, scopes...)
	d.run(chromedp.Navigate(d.url+"/sign-in?next="+url.QueryEscape(path)),
		chromedp.SendKeys(chromedp.CSS("#token"), d.token))
	d.press("main form button")
}

func TestDashboardActionsWithoutJavaScript(t *testing.T) {
	d := newDashboard(t)
	d.history()
	dryRun := d.idOf("dry_run")
	d.run(withoutScripts(true))
	d.signIn("/", "propose", "review", "read")
	d.run(chromedp.Navigate(d.url + "/proposals/" + dryRun))
	d.says("This was a dry run")
	d.press(`form[action$="/promote"] button`)
	d.says("ann opened the dry run", "#2")

	for _, step := range [][2]string{
		{"comment", "Your comment is recorded."}, {"approve", "You have approved it."}, {"line", "Your comment is recorded."},
		{"merge", "You have merged it."},
	} {
		switch step[0] {
		case "line":
			d.run(chromedp.Click(chromedp.CSS(`#f1n1`)), chromedp.WaitVisible(chromedp.CSS("#line-comment")),
				chromedp.SendKeys(chromedp.CSS("#line-comment"), "A good title."))
			d.press(`#line-form button`)
			d.says(step[1], "A good title.")
			if got := d.value(`(() => { const r = document.querySelector("#f1n1").getBoundingClientRect()
				return r.top >= 0 && r.bottom <= innerHeight })()`); got != true {
				t.Error("the line that was commented on is out of view")
			}
			continue
		case "comment":
			d.act("comment", "Looks good.")
		default:
			d.act(step[0], "")
		}
		d.says(step[1])
		if step[0] == "comment" {
			d.says("Looks good.", "commented")
		}
	}
	d.says("ann merged")
	if got := d.world.git(t, "", "show", "main:checks/swap.md"); !strings.HasPrefix(got, "# Swap") {
		t.Errorf("main holds %q", got)
	}

	d.run(chromedp.Navigate(d.url + "/pulls/local/demo/home-cluster/1"))
	d.act("request-changes", "Not now.")
	d.says("You have asked for changes.", "With the agent")
	d.act("close", "")
	d.says("You have closed it.", "ann closed")

	d.run(chromedp.Navigate(d.url+"/policy"), chromedp.SendKeys(chromedp.CSS("#path"), "Dockerfile"))
	d.press(".filter button")
	d.says("may not change Dockerfile")
	d.run(chromedp.Navigate(d.url + "/audit"))
	d.says("The record is whole", "Merged", "Closed")
}

// Over plain HTTP and at another name than loopback's, a browser sends neither Sec-Fetch-Site nor, under the policy
// no-referrer, its origin: forms work all the same.
func TestDashboardSignInOverPlainHTTPAtAnotherName(t *testing.T) {
	const token = "a-token-for-end-to-end"
	d := newDashboard(t, "CLAUDEOPS_HOSTS="+foreignHost, "CLAUDEOPS_API_TOKENS="+token)
	d.run(chromedp.Navigate(strings.Replace(d.api, "127.0.0.1", foreignHost, 1) + "/audit"))
	var h1, at string
	d.run(into(chromedp.Text(chromedp.CSS("h1")), &h1), chromedp.SendKeys(chromedp.CSS("#token"), token))
	if h1 != "Sign in" {
		t.Fatalf("asked for the audit, got %q", h1)
	}
	d.press("main form button")
	d.run(into(chromedp.Text(chromedp.CSS("h1")), &h1), into(chromedp.Location(), &at))
	if h1 != "Records" || !strings.HasSuffix(at, "/audit") {
		t.Errorf("signed in, got %q at %s", h1, at)
	}
	d.run(chromedp.Click(chromedp.CSS(".standing button")))
	d.press("#you form button")
	d.run(into(chromedp.Text(chromedp.CSS("h1")), &h1))
	if h1 != "Sign in" {
		t.Errorf("signed out, got %q", h1)
	}
}

// waitingAgent is a CLI that says something, waits until the file beside it exists, says something else, and goes on
// until it is ended.
const waitingAgent = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I am <b>looking</b>."},{"type":"tool_use","name":"Read","input":{"file_path":"/repos/a"}}]}}'
while [ ! -e "$0.go" ]; do sleep 0.1; done
echo '{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"The disk is full."}]}}'
while :; do sleep 1; done
`

// starts starts a session, with a note unless it is empty, which leads to its page.
func (d *dashboard) starts(note string) {
	d.Helper()
	d.run(chromedp.Navigate(d.url+"/sessions"), chromedp.Click(chromedp.CSS(`button[popovertarget="start"]`)))
	if note != "" {
		d.run(chromedp.SendKeys(chromedp.CSS("#note"), note))
	}
	d.press(`form[action="/sessions"][method="post"] button:not([type])`)
}

// The page of a session follows it, and keeps what is open, focused and marked; so does the list of sessions.
func TestDashboardFollowsASessionAndStopsIt(t *testing.T) {
	agent := fakeCLI(t, waitingAgent)
	d := newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+agent)
	d.signIn("/sessions", "read", "operate")
	d.starts("Look at the disk.")
	d.becomes(statusIs + `"live"`)
	d.run(executed(`window.marker = "still the same page"`))
	d.becomes(`document.querySelector("main").innerText.includes("I am <b>looking</b>.")`)
	d.becomes(`document.querySelector(".talk details") !== null`)
	d.run(executed(`
		window.fold = document.querySelector(".talk details");
		window.fold.open = true;
		window.fold.querySelector("summary").focus();
		getSelection().selectAllChildren([...document.querySelectorAll(".talk .prose p")].find((p) => p.innerText.includes("looking")));`))
	must.Do(t, os.WriteFile(agent+".go", nil, 0o600))
	d.becomes(
		`document.querySelector("main").innerText.includes("The disk is full.") && document.querySelector("main").innerText.includes("2, with 1 tool call")`)
	if got := d.value(`window.marker`); got != "still the same page" {
		t.Errorf("the page was loaded again: %v", got)
	}
	if got := d.value(`[window.fold.open, document.activeElement === window.fold.querySelector("summary"),
		getSelection().toString()].join()`); got != "true,true,I am <b>looking</b>." {
		t.Errorf("open, focused, marked: %v", got)
	}
	d.run(executed(`window.fold.open = false; document.activeElement.blur(); getSelection().removeAllRanges()`))
	d.shoot("session-runs")
	d.press(`form[action$="/stop"] button`)
	d.becomes(`document.querySelector("main").innerText.includes("A person stopped it")`)
	d.says("Stopped", "Look at the disk.", "Read")
	d.follows("/sessions")
	d.says("Tier 1, by ann", "Stopped")
	d.picture("sessions")
	d.run(executed(`window.link = document.querySelector("#live-rows a"); window.link.focus()`))
	d.refreshes(d.refuses)
	if got := d.value(`document.activeElement === window.link`); got != true {
		t.Error("the list of sessions lost the focus")
	}
}

// shoot keeps pictures of the page, and fails if it is wider than the window or axe-core finds a barrier, at a desk and
// on a phone, where it is in dark colours. The window is as at a desk afterwards.
func (d *dashboard) shoot(name string) {
	d.Helper()
	d.picture(name)
	d.run(executed(axeCore(d.T) + "; 0"))
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"dark", 390}, {"light", 1200}} {
		d.run(lookedAt(look.scheme, look.width, 800))
		d.inspect(fmt.Sprintf("%s, %s, %d wide", name, look.scheme, look.width))
	}
}

// connected is a row of `claudeops connections list --json`.
type connected struct {
	ID, Session, Token, Peer string
	Tier                     int
}

// The real CLI is connected to a session that `claudeops run` runs; another process sees it and cuts it off. What the
// agent asks afterwards is not done, and it cannot connect again.
func TestAnAgentOfASessionIsCutOffFromAnotherProcess(t *testing.T) {
	o := newOperator(t)
	reached, release := make(chan struct{}), newGate()
	var after []seenResult
	stub := newSessionStub(t, func(_ string, results []seenResult) reply {
		switch len(results) {
		case 0:
			return use("list_prs", ofRepository())
		case 1:
			close(reached)
			<-release.closed
			return use("create_pr", quieterDisk())
		case 2:
			return use("create_pr", quieterDisk())
		}
		after = results
		return say("done")
	})
	t.Cleanup(release.open) // without it the model would wait for ever
	cmd := command(t, program{path: claudeops(t), args: []string{"run", "--json", "--tier", "2"}, dir: t.TempDir(),
		env: o.environment(stub.URL)})
	var stdout strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	launch(t, cmd)
	<-reached
	people := func(args ...string) outcome {
		return run(t, program{path: claudeops(t), args: append(args, "--json"), dir: t.TempDir(),
			env: o.environment(stub.URL)})
	}
	var list struct{ Items []connected }
	for len(list.Items) == 0 { // it is recorded a moment after it came in
		list = decode[struct{ Items []connected }](t, people("connections", "list").stdout)
	}
	c := list.Items[0]
	if len(list.Items) != 1 || c.Tier != 2 || c.Session == "" || c.Token != "" || !strings.HasPrefix(c.Peer, "pid ") {
		t.Errorf("connected: %+v", list.Items)
	}
	var pid int
	if _, err := fmt.Sscanf(c.Peer, "pid %d,", &pid); err != nil ||
		!strings.Contains(proc(pid, "cmdline"), "claudeops-connect") {
		t.Errorf("%q is not our connector: %q", c.Peer, proc(pid, "cmdline"))
	}
	if got := people("connections", "cut", c.ID); got.code != 0 || !strings.Contains(got.stdout, `"ended": true`) {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if got := people("connections", "cut", c.ID); got.code == 0 || !strings.Contains(got.stdout, "not_found") {
		t.Errorf("twice: exit %d: %s", got.code, got.stdout)
	}
	release.open()
	exitCode(t, cmd)
	got := decode[sessions](t, stdout.String())
	if len(got.Sessions) != 1 || got.Sessions[0].ID != c.Session || got.Sessions[0].Counts.Opened != 0 {
		t.Errorf("recorded %+v", got.Sessions)
	}
	for i, result := range after {
		if i > 0 && !result.isError {
			t.Errorf("call %d after the cut was answered: %s", i, result.text)
		}
	}
	if len(after) != 3 {
		t.Errorf("%d results", len(after))
	}
	if text := people("connections", "list").stdout; !strings.Contains(text, `"items": []`) {
		t.Errorf("connected at the end: %s", text)
	}
	audit := people("audit", "list").stdout
	if strings.Count(audit, `"connection.cut"`) != 2 || strings.Contains(audit, `"opened"`) {
		t.Errorf("the audit: %s", audit)
	}
}

// connectingAgent is a CLI that starts the MCP server of its configuration, as the real one does, and goes on until it
// is ended.
const connectingAgent = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
while [ $# -gt 0 ]; do [ "$1" = --mcp-config ] && config=$2; shift; done
address=$(tr -d '\n' < "$config" | sed 's/.*"\(unix:[^"]*\)".*/\1/')
server=$(tr -d '\n' < "$config" | sed 's/.*"command": *"\([^"]*\)".*/\1/')
sleep 1000 | "$server" --connect "$address" > /dev/null 2> /dev/null &
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
while :; do sleep 1; done
`

func TestDashboardShowsWhoIsConnectedAndCutsThemOff(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+fakeCLI(t, connectingAgent))
	d.signIn("/connections", "read", "operate")
	d.says("No agent is connected now", "claudeops mcp-config --connect")
	d.shoot("connections-none")
	d.starts("")
	d.run(chromedp.Navigate(d.url + "/connections"))
	d.becomes(`document.querySelector("main table") !== null`) // by itself, if need be
	d.says("Session ", "pid ")
	d.picture("connections")
	d.press(`main table a[href*="/connections/"]`)
	d.says("cannot connect again", "Cut it off")
	d.picture("connection")
	d.press(`form[action$="/cut"] button`)
	d.becomes(`document.querySelector("#fresh").innerText === "1 gone, show"`)
	d.run(chromedp.Click(chromedp.CSS("#fresh button")))
	d.becomes(`document.querySelector("main .empty, main .void") !== null`)
	d.run(chromedp.Navigate(d.url + "/audit"))
	d.says("Cut off an agent", "ann")
	d.run(chromedp.Navigate(d.url+"/sessions"), chromedp.Click(chromedp.CSS(`main tbody a`)),
		chromedp.WaitVisible(chromedp.CSS(`form[action$="/stop"] button`)))
	d.press(`form[action$="/stop"] button`) // it went on without us
	d.becomes(`document.querySelector("main").innerText.includes("A person stopped it")`)
}

// knock asks for a session at /mcp with an agent's token.
func (d *dashboard) knock(secret string) int {
	d.Helper()
	status, _ := exchange(d, &http.Client{Timeout: patience}, http.MethodPost, d.api+"/mcp", initialize, "Authorization",
		"Bearer "+secret, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	return status
}

// A person makes a token for an agent, which gets in with it until the token is revoked there.
func TestDashboardMakesAndRevokesATokenOfAnAgent(t *testing.T) {
	d := newDashboard(t)
	var secret, lines, address, history string
	d.run(
		chromedp.Navigate(d.url+"/tokens"), chromedp.Click(chromedp.CSS(`button[popovertarget="make"]`)),
		chromedp.SendKeys(chromedp.CSS("#name"), "laptop"), chromedp.SendKeys(chromedp.CSS("#repos"), "e2e/*"),
		chromedp.Click(chromedp.CSS(`label[for="dry-run"]`)),
		chromedp.Click(chromedp.CSS("#make .acts button:last-child")), chromedp.WaitVisible(chromedp.CSS("#secret")),
		into(chromedp.Text(chromedp.CSS("#secret")), &secret),
		into(chromedp.TextContent(chromedp.CSS(`section[aria-labelledby="lines"]`)), &lines),
		into(chromedp.Location(), &address),
	)
	secret = strings.TrimSpace(secret)
	if !strings.HasPrefix(secret, "cops_") || strings.Contains(address, secret) || strings.Contains(lines, secret) ||
		!strings.Contains(lines, d.api+"/mcp") {
		t.Fatalf("%s says %q", address, lines)
	}
	if status := d.knock(secret); status != http.StatusOK {
		t.Fatalf("the agent is answered %d", status)
	}
	d.run(
		chromedp.Navigate(d.url+"/tokens"), into(chromedp.TextContent(chromedp.CSS("body")), &history),
		chromedp.Click(chromedp.CSS(`button[popovertarget^="revoke-"]`)),
		chromedp.WaitVisible(chromedp.CSS("form.sheet:popover-open")),
		chromedp.Click(chromedp.CSS("form.sheet:popover-open button.no")),
		chromedp.WaitVisible(chromedp.CSS("p.done")),
		into(chromedp.Location(), &address),
	)
	if strings.Contains(history, secret) || !strings.Contains(history, "laptop") ||
		!strings.Contains(history, "e2e/* dry run") || strings.Contains(address, secret) {
		t.Errorf("%s, from a page that says %q", address, history)
	}
	if status := d.knock(secret); status != http.StatusUnauthorized {
		t.Errorf("an agent with a revoked token is answered %d", status)
	}
	d.quiet("making and revoking a token")
}
