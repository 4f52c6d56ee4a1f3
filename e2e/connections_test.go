//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// connected is a row of `claudeops connections list --json`.
type connected struct {
	ID, Session, Token, Peer string
	Tier                     int
}

// The real CLI is connected to a session that `claudeops run` runs; another process sees it and cuts it off. What the
// agent asks afterwards is not done, and it cannot connect again.
func TestAnAgentOfASessionIsCutOffFromAnotherProcess(t *testing.T) {
	o := newOperator(t)
	reached, release := make(chan struct{}), make(chan struct{})
	var after []seenResult
	stub := newSessionStub(t, func(_ string, results []seenResult) reply {
		switch len(results) {
		case 0:
			return use("list_prs", ofRepository())
		case 1:
			close(reached)
			<-release
			return use("create_pr", quieterDisk())
		case 2:
			return use("create_pr", quieterDisk())
		}
		after = results
		return say("done")
	})
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
	close(release)
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
	agent := filepath.Join(t.TempDir(), "claude")
	writeProgram(t, agent, connectingAgent)
	d := newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+agent)
	d.signIn("/connections", "read", "operate")
	d.says("No agent is connected now", "claudeops mcp-config --connect")
	d.shoot("connections-none")
	d.run(chromedp.Navigate(d.url+"/sessions"), chromedp.Click(`button[popovertarget="start"]`, chromedp.ByQuery))
	d.press(`form[action="/sessions"][method="post"] button:not([type])`)
	d.run(chromedp.Navigate(d.url + "/connections"))
	d.becomes(`document.querySelector("main table") !== null`) // by itself, if need be
	d.says("Session ", "pid ")
	d.shoot("connections")
	d.press(`main table a[href*="/connections/"]`)
	d.says("cannot connect again", "Cut it off")
	d.shoot("connection")
	d.press(`form[action$="/cut"] button`)
	d.becomes(`document.querySelector("#fresh").innerText === "1 gone, show"`)
	d.run(chromedp.Click("#fresh button", chromedp.ByQuery))
	d.becomes(`document.querySelector("main .empty, main .void") !== null`)
	d.run(chromedp.Navigate(d.url + "/audit"))
	d.says("Cut off an agent", "ann")
	d.run(chromedp.Navigate(d.url+"/sessions"), chromedp.Click(`main table a`, chromedp.ByQuery),
		chromedp.WaitVisible(`form[action$="/stop"] button`, chromedp.ByQuery))
	d.press(`form[action$="/stop"] button`) // it went on without us
	d.becomes(`document.querySelector("main").innerText.includes("A person stopped it")`)
}
