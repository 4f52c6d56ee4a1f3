//go:build e2e && linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// barrier is axe-core's report of a violated rule.
type barrier struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func (v barrier) String() string {
	text := fmt.Sprintf("%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, n := range v.Nodes {
		text += fmt.Sprintf("\n    %.200s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " "))
	}
	return text
}

// examine runs axe-core on the page that is shown.
func (d *dashboard) examine(about, axe string) {
	d.Helper()
	var found string
	d.run(chromedp.Evaluate(axe+"; 0", nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`, &found, awaited))
	var violations []barrier
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		d.Fatalf("%s: %v in %s", about, err, found)
	}
	for _, v := range violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			d.Errorf("%s: %s", about, v)
		} else {
			d.Logf("%s: %s", about, v)
		}
	}
}

func TestDashboardIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1200} {
			t.Run(fmt.Sprintf("%s %d", scheme, width), func(t *testing.T) {
				d := newDashboard(t)
				addresses := append(d.history(), "/tokens", "/tokens/people", "/nothing", "/docs")
				d.run(
					emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
						Value: scheme}}),
				)
				for _, address := range addresses {
					d.run(chromedp.Navigate(d.url + address))
					d.examine(address, string(axe))
				}
			})
		}
	}
}

// The evaluation of a test is not the page's: a page that loses its scripts must still be read to its end.
func TestDashboardIsReadWithoutJavaScript(t *testing.T) {
	d := newDashboard(t)
	addresses := d.history()
	shown := func() map[string]string {
		pages := map[string]string{}
		for _, address := range addresses {
			var main string
			d.run(chromedp.Navigate(d.url+address), chromedp.Text("main", &main, chromedp.ByQuery))
			pages[address] = main
		}
		return pages
	}
	with := shown()
	d.quiet("with scripts")
	d.run(emulation.SetScriptExecutionDisabled(true))
	for address, text := range shown() {
		if len(text) < 50 || len(text) < len(with[address])*9/10 {
			t.Errorf("%s: %d characters without scripts, %d with them", address, len(text), len(with[address]))
		}
	}
	d.quiet("without scripts")
}

func TestDashboardByKeyboard(t *testing.T) {
	d := newDashboard(t)
	d.history()
	d.run(chromedp.Navigate(d.url + "/changes"))
	var order []string
	for range 17 {
		d.run(chromedp.KeyEvent(kb.Tab))
		name, _ := d.value(`document.activeElement.textContent.trim() || document.activeElement.id`).(string)
		order = append(order, name)
	}
	// as it is seen
	const want = "Skip to content, Claude Ops, Overview, Changes, Agents, Records, Settings, Healthy, OYou are " +
		"operator, Ask the forges now, All 3, Waiting for you 2, With the agent 0, Refused 1, Merged 0, Closed 0, q"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("the focus goes %s; want %s", got, want)
	}
	d.run(chromedp.Navigate(d.url+"/changes"), chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.getBoundingClientRect().left >= 0`); got != true {
		t.Error("the link to the content is not seen when it has the focus")
	}
	d.run(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if got := d.value(`document.activeElement.textContent.trim()`); got != "Ask the forges now" {
		t.Errorf("after skipping, the focus goes to %v", got)
	}
}

// A program of this machine may listen at any port of loopback, and have a person open it there. It gets no login: not
// at another port, not at another name, not at localhost; and it cannot plant one.
func TestTheLoginReachesNoOtherOrigin(t *testing.T) {
	d := newDashboard(t)
	own, err := url.Parse(d.url)
	if err != nil || d.url == d.api || !strings.HasSuffix(own.Hostname(), "-127-0-0-1.localhost") {
		t.Fatalf("the browser is at %s, %v", d.url, err)
	}
	seen := make(chan string, 100)
	thief := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Host + ": " + r.Header.Get("Cookie")
		for _, domain := range []string{"", "; Domain=localhost", "; Domain=" + own.Hostname()} {
			w.Header().Add("Set-Cookie", "claudeops_session=planted; Path=/"+domain)
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<title>stolen</title><script>fetch(%q,{mode:"no-cors",credentials:"include"}).catch(()=>0)</script>`,
			d.api+"/api/v1/me")
	}), ReadHeaderTimeout: time.Minute}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = thief.Serve(listener) }()
	t.Cleanup(func() { _ = thief.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	other := strings.Repeat("a", 26) + "-127-0-0-1.localhost"
	for _, host := range []string{"127.0.0.1", "localhost", other, "evil.localhost"} {
		address := fmt.Sprintf("http://%s:%d/", host, port)
		d.goesTo(address + "?redirect_uri=" + url.QueryEscape(address))
		d.run(chromedp.Navigate(address))
		d.becomes(`document.title === "stolen"`)
		if got := <-seen; strings.Contains(got, "claudeops_session=") && !strings.Contains(got, "planted") {
			t.Errorf("%s got %s", address, got)
		}
	}
	d.run(chromedp.Navigate(d.url + "/audit"))
	d.becomes(`document.querySelector("#live") !== null`)
	var cookies []*network.Cookie
	d.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = storage.GetCookies().Do(ctx)
		return err
	}))
	logins := 0
	for _, c := range cookies {
		if c.Value == "planted" {
			continue
		}
		if logins++; c.Domain != own.Hostname() || !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict {
			t.Errorf("a cookie %s of %s", c.Name, c.Domain)
		}
	}
	if logins != 1 {
		t.Errorf("%d cookies", logins)
	}

	// The address that the server printed leads this browser to its own again.
	d.run(chromedp.Navigate(d.api + "/policy"))
	d.becomes(fmt.Sprintf(`location.href === %q`, d.url+"/policy"))
}

// A browser that cannot open names below localhost is told what it costs to stay, and stays if its person says so.
func TestABrowserWithoutANameOfItsOwnIsToldWhatThatCosts(t *testing.T) {
	d := newDashboard(t)
	unreachable := &network.BlockPattern{URLPattern: "http://*.localhost:*/*", Block: true}
	d.run(network.Enable(), network.SetBlockedURLs().WithURLPatterns([]*network.BlockPattern{unreachable}))
	d.goesTo("http://x.example/?redirect_uri=" + url.QueryEscape(d.url)) // the browser complains about it
	d.run(chromedp.Navigate(d.api+"/sign-in?next=/policy"), chromedp.SendKeys("#token", d.token, chromedp.ByQuery))
	d.press("main form button")
	d.run(chromedp.WaitVisible("#stay", chromedp.ByQuery))
	d.says("cannot open an address below localhost", "It costs this", "every program that listens at any port of this host")
	var origin string
	d.run(chromedp.Evaluate(`location.origin`, &origin))
	if d.value(`document.getElementById("go").hidden`) != true || origin != d.api {
		t.Errorf("the browser is at %s", origin)
	}
	d.press("#stay button")
	d.becomes(fmt.Sprintf(`location.href === %q`, d.api+"/policy"))
}
