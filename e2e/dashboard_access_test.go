//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/must"
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

// axeCore is the script of axe-core.
func axeCore(t *testing.T) string {
	t.Helper()
	return readFile(t, installed(t, "axe-core/axe.min.js"))
}

// Rules of axe-core. Contrast takes most of the time, so lacking judges it.
const (
	butContrast = `resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}}`
	butColours  = `resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}, "link-in-text-block": {enabled: false}}`
)

// examine runs axe-core on the page that is shown, and looks whether its texts lie on each other.
func (d *dashboard) examine(about string) {
	d.Helper()
	d.run(executed(axeCore(d.T) + "; 0"))
	d.inspect(about)
}

// inspect is examine on a page that has axe-core.
func (d *dashboard) inspect(about string) {
	d.Helper()
	for _, v := range append(d.barriers(butContrast), d.lacking(about)...) {
		d.Errorf("%s: %s", about, v)
	}
	width, _ := d.value(`innerWidth`).(float64)
	if found := d.onEachOther(int64(width)); found != "" {
		d.Errorf("%s: %s", about, found)
	}
}

// barriers asks axe-core by the rules.
func (d *dashboard) barriers(rules string) (violations []barrier) {
	d.Helper()
	var found string
	d.run(evaluated(`axe.run(document, {preload: false, `+rules+`}).then((r) => JSON.stringify(r.violations))`, &found,
		chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		d.Fatalf("%v in %s", err, found)
	}
	return violations
}

// crossOriginPage is the script of a page that tries to read from the dashboard and to act in it as the person whose
// browser shows it. It lists in window.got what it got. A control of its own shows that the ways work where they may.
const crossOriginPage = `
window.got = [];
const control = new Set();
const note = (target, what) => target ? window.got.push(what + " of " + target) : control.add(what);
const within = (ms, set) => Promise.race([new Promise(set), new Promise((end) => setTimeout(end, ms))]);
const frame = (src, name) => {
  const f = document.createElement("iframe");
  if (src) f.src = src;
  if (name) f.name = name;
  document.body.append(f);
  return f;
};
async function attack(target) {
  const form = new URLSearchParams({ why: "attack", for: "2h" });
  for (const path of ["/audit", "/api/v1/me", "/api/v1/proposals"])
    await fetch(target + path, { credentials: "include" }).then((r) => note(target, "fetch " + path + " " + r.status), () => {});
  await fetch(target + "/pause", { method: "POST", credentials: "include", body: form })
    .then((r) => note(target, "post " + r.status), () => {});
  await fetch(target + "/pause", { method: "POST", mode: "no-cors", credentials: "include", body: form }).catch(() => {});
  await within(target ? 3000 : 300000, (end) => {
    const events = new EventSource(target + "/events", { withCredentials: true });
    events.onopen = () => { note(target, "events"); events.close(); end(); };
    events.onerror = () => { events.close(); end(); };
  });
  await within(target ? 3000 : 300000, (end) => {
    const script = document.createElement("script");
    script.src = target + "/api/v1/me";
    script.onload = () => { note(target, "script"); end(); };
    script.onerror = end;
    document.head.append(script);
  });
  await within(target ? 3000 : 300000, (end) => {
    const sink = frame("", "sink" + Math.random());
    const send = document.createElement("form");
    send.method = "post"; send.action = target + "/pause"; send.target = sink.name;
    for (const [name, value] of form) { const i = document.createElement("input"); i.name = name; i.value = value; send.append(i); }
    document.body.append(send);
    sink.onload = end;
    send.submit();
  });
  await within(target ? 3000 : 300000, (end) => { frame(target + "/policy").onload = end; });
}
addEventListener("load", async () => {
  await attack("");
  for (const target of targets) await attack(target);
  for (const what of ["fetch /audit 200", "post 200", "events", "script"]) if (!control.has(what)) window.got.push("the control lacks " + what);
  document.title = "tried";
});
`

// A program of this machine may listen at any port of loopback, and have a person open it there. It gets no login: not
// at another port, not at another name, not at localhost; it cannot plant one, and its page neither reads nor acts.
func TestTheLoginReachesNoOtherOrigin(t *testing.T) {
	d := newDashboard(t)
	own, err := url.Parse(d.url)
	if err != nil || d.url == d.api || !strings.HasSuffix(own.Hostname(), "-127-0-0-1.localhost") {
		t.Fatalf("the browser is at %s, %v", d.url, err)
	}
	seen := make(chan string, 100)
	thief := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			seen <- r.Host + ": " + r.Header.Get("Cookie")
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			return
		case "/policy":
			w.Header().Set("Content-Type", "text/html")
			return
		default:
			w.Header().Set("Content-Type", "text/javascript")
			return
		}
		for _, domain := range []string{"", "; Domain=localhost", "; Domain=" + own.Hostname()} {
			w.Header().Add("Set-Cookie", "claudeops_session=planted; Path=/"+domain)
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<title>trying</title><script>const targets=[%q,%q];%s</script>`, d.url, d.api, crossOriginPage)
	}), ReadHeaderTimeout: time.Minute}
	listener := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	go func() { _ = thief.Serve(listener) }()
	t.Cleanup(func() { _ = thief.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	other := strings.Repeat("a", 26) + "-127-0-0-1.localhost"
	for _, host := range []string{"127.0.0.1", "localhost", other, "evil.localhost"} {
		address := fmt.Sprintf("http://%s:%d/", host, port)
		d.goesTo(address + "?redirect_uri=" + url.QueryEscape(address))
		d.run(chromedp.Navigate(address))
		d.becomes(`document.title === "tried"`)
		if got := d.value(`window.got.join("; ")`); got != "" {
			t.Errorf("a page at %s got: %v", address, got)
		}
		// Frames of another site are in another process and say nothing here.
		if frames := d.framed(); !slices.Contains(frames, address+"policy") ||
			host == "127.0.0.1" && !slices.Contains(frames, "chrome-error://chromewebdata/") {
			t.Errorf("a page at %s shows in frames: %v", address, frames)
		}
		if got := <-seen; strings.Contains(got, "claudeops_session=") && !strings.Contains(got, "planted") {
			t.Errorf("%s got %s", address, got)
		}
	}
	d.run(chromedp.Navigate(d.url + "/audit"))
	d.becomes(`document.querySelector("#live") !== null`)
	if text := d.value(`document.querySelector("main").innerText`); strings.Contains(fmt.Sprint(text), "attack") ||
		d.value(`document.getElementById("live-paused").innerText.trim()`) != "" {
		t.Errorf("a page of another origin acted: %v", text)
	}
	tab := chromedp.FromContext(d.ctx)
	cookies, err := cdp.Call(d.ctx, tab.Browser, storage.GetCookies,
		storage.GetCookiesParams{BrowserContextID: tab.BrowserContextID})
	must.Do(t, err)
	logins := 0
	for _, c := range cookies.Cookies {
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

// framed returns the addresses that frames of the page show, of its own site; a frame that the browser refuses shows an
// error's address.
func (d *dashboard) framed() (addresses []string) {
	d.Helper()
	var tree page.GetFrameTreeResult
	d.run(into(protocol(page.GetFrameTree, cdp.Empty{}), &tree))
	for _, child := range tree.FrameTree.ChildFrames {
		addresses = append(addresses, child.Frame.URL)
	}
	return addresses
}

// A browser that cannot open names below localhost is told what it costs to stay, and stays if its person says so.
func TestABrowserWithoutANameOfItsOwnIsToldWhatThatCosts(t *testing.T) {
	d := newDashboard(t)
	unreachable := &network.BlockPattern{URLPattern: "http://*.localhost:*/*", Block: true}
	d.run(commanded(network.Enable, network.EnableParams{}),
		commanded(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{unreachable}}))
	d.goesTo("http://x.example/?redirect_uri=" + url.QueryEscape(d.url)) // the browser complains about it
	d.run(chromedp.Navigate(d.api+"/sign-in?next=/policy"), chromedp.SendKeys(chromedp.CSS("#token"), d.token))
	d.press("main form button")
	d.run(chromedp.WaitVisible(chromedp.CSS("#stay")))
	d.says("cannot open an address below localhost", "It costs this", "every program that listens at any port of this host")
	var origin string
	d.run(evaluated(`location.origin`, &origin))
	if d.value(`document.getElementById("go").hidden`) != true || origin != d.api {
		t.Errorf("the browser is at %s", origin)
	}
	d.press("#stay button")
	d.becomes(fmt.Sprintf(`location.href === %q`, d.api+"/policy"))
}

// Each state of the server is said where people look, by a word and not by a colour alone, and the rest of the page
// stays.
func TestDashboardSaysHowTheServerIs(t *testing.T) {
	for name, tt := range map[string]struct {
		env    []string
		shown  string // on the overview, in the end
		beside string // the navigation
		answer string // on the page Health: never another one than the overview gives
	}{
		"forge-down": {[]string{"GITEA_URL=http://127.0.0.1:1", "GITEA_TOKEN=x", "CLAUDEOPS_FORGE_PLAIN_HTTP=true"},
			"The forge gitea does not answer", "The forge gitea does not answer", "Pull requests are stopped: provider gitea."},
		"dry-run": {[]string{"CLAUDEOPS_DRY_RUN=true"}, "Waiting for you", "Dry run, tier 2",
			"No pull request is opened here"},
		"read-only": {[]string{"CLAUDEOPS_READ_ONLY=true"}, "Waiting for you", "Read-only",
			"No pull request is opened here"},
		"empty": {nil, "Nothing waits for you", "Opens changes, tier 2",
			"Nothing here would stop a pull request"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDashboard(t, tt.env...)
			d.follows("/")
			d.becomes(`document.querySelector("main").innerText.includes("` + tt.shown + `")`) // by itself
			d.becomes(`document.querySelector(".standing").innerText.includes("` + tt.beside + `")`)
			d.says("Why changes were refused", "Activity")
			if name != "read-only" { // which looks as a dry run does, with other words
				d.shoot("state-" + name)
			}
			d.run(sized(1280, 800), chromedp.Navigate(d.url+"/changes"))
			if strings.HasPrefix(tt.shown, "The forge") {
				d.says(tt.shown, "Nobody has proposed anything yet")
			}
			d.picture("state-" + name + "-changes")
			d.run(sized(1280, 800), chromedp.Navigate(d.url+"/doctor"))
			d.becomes(`document.querySelector("main").innerText.includes("` + tt.answer + `")`)
			if name == "forge-down" {
				d.shoot("state-" + name + "-health")
			}
		})
	}
}

// forgotten returns the browser's complaints, which quiet does not report any more.
func (d *dashboard) forgotten() (problems []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	problems, d.problems = d.problems, nil
	return problems
}

// A page whose session was ended elsewhere says so, and its content stays.
func TestDashboardSaysThatTheSessionHasEnded(t *testing.T) {
	d := newDashboard(t)
	d.history()
	d.follows("/changes")
	d.run(executed(`fetch("/sign-out", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise))
	d.refuses()
	d.becomes(statusIs + `"not live: sign in again"`)
	for _, problem := range d.forgotten() {
		if !strings.Contains(problem, "401") {
			t.Error(problem)
		}
	}
	d.says("Look at inodes", "Look at swap")
	d.run(chromedp.Navigate(d.url + "/changes"))
	d.says("Sign in", "Token")
}

// filled leaves open pull requests without a review on the record, from one number up to another, and two refusals.
func (d *dashboard) filled(from, to int) {
	d.Helper()
	d.leaves()
	ctx, root := d.Context(), d.world.vars["CLAUDEOPS_LOCAL_ROOT"]
	if local.RootIdentity(root) == "" { // what is recorded before a root has one is not of that root
		must.Do(d, os.WriteFile(filepath.Join(root, local.RootFile), []byte("0123456789abcdef\n"), 0o644))
	}
	s, err := store.Open(ctx, d.world.vars["CLAUDEOPS_STATE_DIR"], store.Options{Now: time.Now, NoSync: true,
		LocalRoot: func() string { return local.RootIdentity(root) }})
	must.Do(d, err)
	defer s.Close()
	for i := from; i < to; i++ {
		a := record.Attempt{
			Time: time.Now(), RequestID: fmt.Sprintf("filled-%06d", i), Door: record.DoorMCP, Caller: "claude", Tier: 2,
			Action: record.ActionCreate, Provider: "local", Owner: "filled", Repo: fmt.Sprintf("repo-%d", i%20), Base: "main",
			Title: fmt.Sprintf("Watch disk %d", i), Paths: []string{fmt.Sprintf("checks/disk-%d.md", i)},
			Digest: fmt.Sprint(i), Outcome: record.OutcomeOpened, PRNumber: i + 1,
			PRURL: fmt.Sprintf("https://git.example.org/%d", i+1),
		}
		p := record.Proposal{
			ID: a.RequestID, CreatedAt: a.Time, Door: a.Door, Caller: a.Caller, Tier: a.Tier, Provider: a.Provider,
			Owner: a.Owner, Repo: a.Repo, Base: a.Base, ChangeType: gitprovider.TypeCheck, Title: a.Title, Digest: a.Digest,
			Files: []gitprovider.FileChange{{Path: a.Paths[0], Action: gitprovider.ActionCreate, Content: "# Disk\n"}},
		}
		if _, err := s.Ledger.Reserve(ctx, p, record.Claim{Seen: 1 << 40}); err != nil {
			d.Fatal(err)
		}
		done := record.Progress{State: record.StateOpened, PRNumber: a.PRNumber, PRURL: a.PRURL}
		must.Do(d, s.Ledger.Finish(ctx, p.ID, done, a))
	}
	d.refuses()
	d.refuses()
}

// The five questions are answered on the first screen: what waits, what is broken, what was proposed, why it was
// refused, and what it cost.
func TestDashboardAnswersFiveQuestionsOnTheFirstScreen(t *testing.T) {
	d, filled := newDashboard(t), 0
	for _, open := range []int{20, 1000} {
		t.Run(fmt.Sprintf("%d open", open), func(t *testing.T) {
			d.filled(filled, open)
			filled = open
			d.run(sized(1280, 800), chromedp.Navigate(d.url+"/"))
			if got := d.value(`document.querySelector(".strip strong").innerText.replace(",", "")`); got != fmt.Sprint(open) {
				t.Errorf("%v wait", got)
			}
			for about, selector := range map[string]string{
				"what waits, in number": ".strip a:nth-child(1) strong", "what is broken": ".strip a:nth-child(2) strong",
				"what was refused": ".strip a:nth-child(3) strong", "what it cost": ".strip a:nth-child(4) strong",
				"how the server is": ".strip a:nth-child(5) strong", "the ninth that waits": "#waits li:nth-child(9) .btn",
				"what was proposed":  "#did li:nth-child(6)",
				"why it was refused": "[aria-labelledby=refusals] .bars dd:last-child",
			} {
				if got := d.value(`(() => {
					const box = document.querySelector("` + selector + `").getBoundingClientRect();
					return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
				})()`); got != true {
					t.Errorf("%s is not on the first screen", about)
				}
			}
		})
	}
}

// On the narrowest phone the acts of a change stand beside each other, each in one line, and what is new is in reach.
func TestDashboardFitsTheNarrowestPhone(t *testing.T) {
	d := newDashboard(t)
	d.history()
	d.signIn("/", "propose", "review", "read")
	d.run(sized(320, 640))
	d.run(chromedp.Navigate(d.url + "/pulls/local/demo/home-cluster/1"))
	const fit = `[...document.querySelectorAll(".bar .acts .btn")].filter((b) => b.offsetParent).map((b) => {
		const box = b.getBoundingClientRect();
		return box.height < 44 && b.scrollWidth <= b.clientWidth && box.left >= 0 && box.right <= innerWidth;
	}).join()`
	if got := d.value(fit); got != "true,true,true,true" {
		t.Errorf("the acts fit: %v", got)
	}
	d.act("approve", "") // which brings a button that merges
	if got := d.value(fit); got != "true,true,true,true,true" {
		t.Errorf("the acts of one that is approved fit: %v", got)
	}
	d.run(sized(390, 844))
	if got := d.value(fit); got != "true,true,true,true,true" {
		t.Errorf("the acts of one that is approved fit on a wider phone: %v", got)
	}
	d.run(sized(320, 640))
	d.follows("/changes")
	d.refreshes(func() { d.proposes("phone") })
	d.becomes(`document.querySelector("#fresh").innerText === "1 new, show"`)
	d.run(chromedp.Click(chromedp.CSS("#fresh button"))) // which fails where something covers it
	d.becomes(`document.querySelector("main").innerText.includes("Watch the phone")`)
}
