//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// text returns the text of the page.
func (d *dashboard) text() (s string) {
	d.Helper()
	d.run(chromedp.Text("main", &s, chromedp.ByQuery))
	return s
}

// press submits a form by its button and waits for the page that follows.
func (d *dashboard) press(button string) {
	d.Helper()
	d.leads(button, chromedp.Click(button, chromedp.ByQuery))
}

// leads does what leads to another page, and waits for that.
func (d *dashboard) leads(about string, action chromedp.Action) {
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
	d.run(chromedp.Evaluate(fmt.Sprintf("document.querySelectorAll(%q).length", button), &inBar))
	if inBar == 0 {
		button = fmt.Sprintf(`#more [popovertarget="do-%s"]`, verb)
		d.run(chromedp.Click(`[popovertarget="more"]`, chromedp.ByQuery))
	}
	d.run(chromedp.Click(button, chromedp.ByQuery), chromedp.WaitVisible(sheet, chromedp.ByQuery))
	if text != "" {
		d.run(chromedp.SendKeys(sheet+" textarea", text, chromedp.ByQuery))
	}
	d.press(sheet + ` button[name="action"]`)
}

// signIn makes a token for a person, and gives it to the form, which leads to the page at the path.
func (d *dashboard) signIn(path string, scopes ...string) {
	d.Helper()
	made := run(d.T, program{
		path: claudeops(d.T), args: []string{"token", "create", "--name", "ann", "--max-tier", "2", "--scopes",
			strings.Join(scopes, ",")},
		env: d.world.environment(),
	})
	if made.code != 0 {
		d.Fatalf("exit %d: %s", made.code, made.stderr)
	}
	d.token = strings.TrimSpace(made.stdout)
	d.run(chromedp.Navigate(d.url+"/sign-in?next="+url.QueryEscape(path)),
		chromedp.SendKeys("#token", d.token, chromedp.ByQuery))
	d.press("main form button")
}

func TestDashboardActionsWithoutJavaScript(t *testing.T) {
	d := newDashboard(t)
	d.history()
	dryRun := d.idOf("dry_run")
	d.run(emulation.SetScriptExecutionDisabled(true))
	d.signIn("/", "propose", "review", "read")
	d.run(chromedp.Navigate(d.url + "/proposals/" + dryRun))
	d.says("This was a dry run")
	d.press(`form[action$="/promote"] button`)
	d.says("Opened from a dry run by ann", "#2")

	for _, step := range [][2]string{
		{"comment", "Your comment is recorded."}, {"approve", "You have approved it."}, {"line", "Your comment is recorded."},
		{"merge", "You have merged it."},
	} {
		switch step[0] {
		case "line":
			d.run(chromedp.Click(`#f1n1`, chromedp.ByQuery), chromedp.WaitVisible("#line-comment", chromedp.ByQuery),
				chromedp.SendKeys("#line-comment", "A good title.", chromedp.ByQuery))
			d.press(`#line-form button`)
			d.says(step[1], "A good title.")
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
	d.says("Merged by ann")
	if got := d.world.git(t, "", "show", "main:checks/swap.md"); !strings.HasPrefix(got, "# Swap") {
		t.Errorf("main holds %q", got)
	}

	d.run(chromedp.Navigate(d.url + "/pulls/local/demo/home-cluster/1"))
	d.act("request-changes", "Not now.")
	d.says("You have asked for changes.", "With the agent")
	d.act("close", "")
	d.says("You have closed it.", "Closed by ann")

	d.run(chromedp.Navigate(d.url+"/policy"), chromedp.SendKeys("#path", "Dockerfile", chromedp.ByQuery))
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
	d.run(chromedp.Text("h1", &h1, chromedp.ByQuery), chromedp.SendKeys("#token", token, chromedp.ByQuery))
	if h1 != "Sign in" {
		t.Fatalf("asked for the audit, got %q", h1)
	}
	d.press("main form button")
	d.run(chromedp.Text("h1", &h1, chromedp.ByQuery), chromedp.Location(&at))
	if h1 != "Records" || !strings.HasSuffix(at, "/audit") {
		t.Errorf("signed in, got %q at %s", h1, at)
	}
	d.run(chromedp.Click(".standing button", chromedp.ByQuery))
	d.press("#you form button")
	d.run(chromedp.Text("h1", &h1, chromedp.ByQuery))
	if h1 != "Sign in" {
		t.Errorf("signed out, got %q", h1)
	}
}
