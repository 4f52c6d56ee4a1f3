//go:build e2e && linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// dashboard is a server with some history, and a browser.
type dashboard struct {
	*testing.T
	world *world
	url   string          // the browser's own
	api   string          // that programs use
	ctx   context.Context // of the browser
	token string          // that requests to the API carry

	mu       sync.Mutex
	problems []string // what the browser complained about
	foreign  []string // addresses of pages that are not ours, whose problems are not either
}

// browsing limits how long a server and a browser may be needed, on a machine that is busy with other work.
const browsing = 30 * time.Minute

// served is a running `claudeops serve`.
type served struct {
	url  string
	once string // the address that signs a browser in; "" if the tests configure tokens
}

// serve starts `claudeops serve`.
func serve(t *testing.T, w *world, more ...string) served {
	t.Helper()
	return serveAs(t, w, os.Getuid(), more...)
}

// serveAs starts it as a user.
func serveAs(t *testing.T, w *world, uid int, more ...string) served {
	t.Helper()
	cmd := command(t, program{
		path: "claudeops", args: []string{"serve"}, dir: w.home,
		env: w.environment(append([]string{"CLAUDEOPS_ADDR=127.0.0.1:0"}, more...)...),
		may: browsing,
	})
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	out := must.Get(cmd.StdoutPipe())(t)
	launch(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(first)
	if err != nil || found == "" {
		t.Fatalf("the server said %q, %v", first, err)
	}
	second, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the server said %q, %v", second, err)
	}
	return served{url: found, once: regexp.MustCompile(`http://\S+/sign-in\?code=\S+`).FindString(second)}
}

// operatorToken is the token that the server has made.
func (w *world) operatorToken(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(readFile(t, filepath.Join(w.vars["CLAUDEOPS_STATE_DIR"], "operator-token")))
}

func newDashboard(t *testing.T, more ...string) *dashboard {
	t.Helper()
	d := &dashboard{T: t, world: newWorld(t, "2")}
	server := serve(t, d.world, more...)
	d.url, d.api = server.url, server.url
	browser, err := theBrowser()
	must.Do(t, err)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, browsing)
	t.Cleanup(cancel)
	d.ctx = ctx
	// opens the tab, which ends with the context of the first call
	err = chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if !d.isForeign(e.Entry.URL) {
				d.complain("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
			}
		case *cdpruntime.EventExceptionThrown:
			d.complain("exception: %s", e.ExceptionDetails.Text)
		case *cdpruntime.EventConsoleAPICalled:
			d.complain("console.%s", e.Type)
		case *page.EventJavascriptDialogOpening:
			d.complain("a dialog: %s", e.Message)
		}
	})
	if err == nil {
		err = chromedp.Do(ctx, commanded(log.Enable, cdp.Empty{}))
	}
	must.Do(t, err)
	if server.once != "" { // as its operator does, who follows the address and presses nothing
		d.token = d.world.operatorToken(t)
		d.run(chromedp.Navigate(server.once), chromedp.WaitVisible(chromedp.CSS("#live")),
			evaluated(`location.origin`, &d.url)) // its own
		d.quiet("signing in")
	}
	return d
}

func (d *dashboard) complain(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// isForeign reports whether an address is one of pages that are not ours.
func (d *dashboard) isForeign(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.foreign, func(f string) bool { return strings.HasPrefix(address, f) })
}

// quiet fails the test if the browser complained since it was asked last.
func (d *dashboard) quiet(about string) {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.problems {
		d.Errorf("%s: the browser says %s", about, p)
	}
	d.problems = nil
}

func (d *dashboard) run(actions ...step) {
	d.Helper()
	var err error
	for _, action := range actions { // one by one: what was done is not done again
		if err = d.evaluate(action); err != nil {
			break
		}
	}
	if err != nil {
		var at, main string
		_ = chromedp.Do(d.ctx, into(chromedp.Location(), &at), evaluated(`document.body.innerText`, &main))
		d.Fatalf("%v; the page %s says %s", err, at, main)
	}
}

// propose makes a proposal over REST and returns the answer.
func (d *dashboard) propose(url string, change map[string]any) (status int, answer map[string]any) {
	d.Helper()
	body := map[string]any{"repo_owner": "demo", "repo_name": "home-cluster", "title": "Look at inodes", "body": "why"}
	maps.Copy(body, change)
	headers := []string{"Content-Type", "application/json"}
	if d.token != "" {
		headers = append(headers, "Authorization", "Bearer "+d.token)
	}
	status, text := exchange(d, http.DefaultClient, http.MethodPost, url+"/api/v1/prs", encode(d.T, body), headers...)
	return status, decode[map[string]any](d.T, text)
}

// leaves leaves the page that is shown, which would follow each record that a test makes.
func (d *dashboard) leaves() {
	d.Helper()
	d.run(chromedp.Navigate("about:blank"))
}

const hostileBody = "## Observed\n\nInodes ran out. <script>alert(1)</script> [click](javascript:alert(1)) " +
	"![x](http://192.0.2.1/x.png)\n\n" +
	"```sh\ndf -i\n```\n\n- one\n- two\n"

func file(path, action, content string) map[string]any {
	return map[string]any{"path": path, "action": action, "content": content}
}

// history leaves something of each kind on the record, and returns the addresses of the pages that show it.
func (d *dashboard) history() []string {
	d.Helper()
	d.leaves()
	dry := serve(d.T, d.world, "CLAUDEOPS_DRY_RUN=true").url
	long := strings.Repeat("verylongword", 200) + "\n"
	for _, p := range []struct {
		url    string
		want   int
		change map[string]any
	}{
		{d.api, 201, map[string]any{"title": "Look at inodes <img src=x onerror=alert(1)>", "body": hostileBody,
			"files": []any{file("checks/inodes.md", "create", "# Inodes\n\n"+long),
				file("checks/disk.md", "update", "# Disk\n\nWarn at 80 %.\n")}}},
		{dry, 200, map[string]any{"title": "Look at swap",
			"files": []any{file("checks/swap.md", "create", "# Swap\n\n"+long)}}},
		{d.api, 403, map[string]any{"files": []any{file("Dockerfile", "create", "x"), file("a/../b.md", "create", "x")}}},
	} {
		if status, answer := d.propose(p.url, p.change); status != p.want {
			d.Fatalf("%d: %v", status, answer)
		}
	}
	var ids []string
	for _, outcome := range []string{"opened", "dry_run", "refused"} {
		ids = append(ids, d.idOf(outcome))
	}
	return []string{
		"/", "/?show=all", "/changes", "/changes?tab=refused&gate=scope", "/proposals/" + ids[0] + "?as=proposed",
		"/proposals/" + ids[0] + "?as=proposed&view=split",
		"/proposals/" + ids[1], "/proposals/" + ids[2], "/doctor?ask=forges", "/pulls/local/demo/home-cluster/1",
		"/pulls/local/demo/home-cluster/1?view=split", "/policy", "/policy?tier=2&path=Dockerfile", "/audit", "/doctor",
		"/sign-in",
	}
}

// idOf is the id of the newest attempt with the outcome.
func (d *dashboard) idOf(outcome string) string {
	d.Helper()
	list := decode[struct{ Proposals []struct{ ID string } }](d.T,
		fetched(d.T, d.api+"/api/v1/proposals?limit=1&outcome="+outcome, d.token))
	if len(list.Proposals) != 1 {
		d.Fatal(list)
	}
	return list.Proposals[0].ID
}

// looks are the sizes of windows that a page is looked at in: of a desk and of a phone.
var looks = []struct{ width, height int64 }{{1280, 800}, {390, 844}}

// picture keeps what a person sees of the page without scrolling, light and dark, at a desk and on a phone, in the
// folder that CLAUDEOPS_PICTURES names, if it is set: `make screenshots` sets it. The window is at the desk's size
// afterwards.
func (d *dashboard) picture(name string) {
	d.Helper()
	folder := os.Getenv("CLAUDEOPS_PICTURES")
	if folder == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, look := range looks {
			var shot page.CaptureScreenshotResult
			d.run(lookedAt(scheme, look.width, look.height), into(protocol(page.CaptureScreenshot, page.CaptureScreenshotParams{
				Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(70)),
			}), &shot))
			file := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.webp", name, scheme, look.width))
			if err := os.WriteFile(file, shot.Data, 0o644); err != nil { // #nosec G306: part of the sources
				d.Fatal(err)
			}
		}
	}
	d.run(lookedAt("light", 1280, 800))
}

// pictures keeps one of each page that needs no world of its own, if pictures are wanted.
func (d *dashboard) pictures() {
	d.Helper()
	if os.Getenv("CLAUDEOPS_PICTURES") == "" {
		return
	}
	d.run(chromedp.Navigate(d.url + d.runsScript()))
	d.becomes(`document.querySelector("#stdout") !== null`)
	d.picture("script-run")
	for name, address := range map[string]string{
		"overview": "/", "changes": "/changes", "waiting": "/changes?tab=waiting",
		"change": "/pulls/local/demo/home-cluster/1", "refused": "/proposals/" + d.idOf("refused"),
		"dry-run": "/proposals/" + d.idOf("dry_run"), "schedule": "/sessions/schedule", "agent-tokens": "/tokens",
		"scripts": "/scripts", "script": "/scripts/git_search", "records": "/audit", "record": "/audit/1",
		"policy": "/policy?tier=2&path=Dockerfile", "health": "/doctor?ask=forges", "tokens": "/tokens/people",
		"browsers": "/logins", "browser": d.linked("/logins", "/logins/"), "outcomes": "/outcomes",
		"consent":   d.asksForConsent(),
		"not-found": "/nothing", "api": "/docs", "operation": "/docs/createPR",
	} {
		d.run(chromedp.Navigate(d.url + address))
		d.picture(name)
	}
	d.run(withoutCookies(), chromedp.Navigate(d.url+"/sign-in"))
	d.picture("sign-in")
	d.run(chromedp.SendKeys(chromedp.CSS("#token"), d.token))
	d.press("main form button")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = nil // the browser complains of the page that does not exist
}

// lookedAt is a window of a size, where people like a scheme of colours.
func lookedAt(scheme string, width, height int64) step {
	return chromedp.Steps(
		sized(width, height),
		coloured(scheme),
	)
}
