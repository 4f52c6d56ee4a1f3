//go:build e2e && linux

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/testkit/must"
	product "github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// routesOfPages returns the routes of a dashboard that has every toolset, and people who sign in by a provider.
func routesOfPages(t *testing.T) []httpx.Route {
	t.Helper()
	guard := httpx.NewGuard(httpx.GuardOptions{Now: time.Now})
	acts := app.Acts(func() *app.Parts { return nil }) // none is called
	made, err := product.New(product.Options{
		Promote: acts[0], People: product.People{Acts: acts}, Guard: guard,
		SignIn: signin.New(signin.Options{Providers: []*identity.Provider{{}}, Guard: guard, Now: time.Now}),
		Programs: signin.NewAuthServer(signin.AuthServerOptions{Service: oauth.New(oauth.Options{}), Guard: guard,
			Now: time.Now}),
		Toolsets: product.Toolsets{
			Definitions: struct{ product.Definitions }{}, Packages: struct{ product.Packages }{},
			Scripts: struct{ product.Scripts }{}, Deployments: struct{ product.Deployments }{}, Propose: acts[0],
		},
		Env: httpx.Env{Now: time.Now},
	})
	must.Do(t, err)
	return made.Routes()
}

// everyPage makes a server with something on every page, and returns the addresses of them. It fails the test if a
// route of the dashboard leads to a page that is not among them. The last one ends the browser's login.
func everyPage(t *testing.T) (d *dashboard, addresses []string) {
	t.Helper()
	root := must.Get(filepath.Abs(".."))(t)
	d = newDashboard(t, "CLAUDEOPS_CLAUDE_BIN="+fakeCLI(t, wordyAgent), "CLAUDEOPS_MAX_COST_USD=2",
		"CLAUDEOPS_TOOLSETS=pr,definitions,packages,scripts,deploy",
		fmt.Sprintf(`CLAUDEOPS_SCRIPTS={"working_dir": %q, "agent_scripts_dir": "e2e/testdata/scripts"}`, root))
	addresses = d.history()
	d.odd()
	addresses = append(addresses, d.pagesOfAgents()...)
	addresses = append(addresses, d.pagesOfToolsets()...)
	d.run(chromedp.Navigate(d.url + "/pulls/local/demo/home-cluster/1"))
	d.act("comment", "Does this work on the *BSD* hosts?\n\n- `df -i` does")
	addresses = append(addresses, "/pulls/local/demo/home-cluster/1?view=read", "/pulls/local/demo/home-cluster/2",
		"/pulls/local/demo/home-cluster/3", "/pulls/local/demo/home-cluster/1/deployment",
		"/tokens", "/tokens/people", "/tokens/people?sort=-name", "/logins?sort=browser", d.linked("/logins", "/logins/"),
		"/audit/1", "/outcomes", "/outcomes?days=90&by=repository&sort=-refused", "/docs", "/docs/createPR",
		"/docs/types/CreateRequest", d.asksForConsent(), "/nothing", "/sign-in")
	addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == "/sign-in" }) // which comes last
	d.forgotten()                                                                            // of building it
	d.isWhole(addresses)
	return d, append(addresses, "/sign-in")
}

// pagesOfAgents leaves a session that has ended, and an agent that is connected.
func (d *dashboard) pagesOfAgents() []string {
	d.Helper()
	d.starts("")
	d.becomes(`document.querySelector(".answer") !== null`)
	var session string
	d.run(evaluated(`location.pathname`, &session))
	if status := d.knock(d.world.token(d.T, "--agent", "--name", "laptop", "--tier", "2")); status != http.StatusOK {
		d.Fatalf("an agent is not let in: %d", status)
	}
	return []string{session, "/sessions", "/sessions/schedule", "/connections", d.linked("/connections", "/connections/")}
}

// pagesOfToolsets leaves definitions, packages, a deployment from which its target has drifted, and a script that ran.
func (d *dashboard) pagesOfToolsets() []string {
	d.Helper()
	d.world.project(d.T, definitionsOfADemo())
	d.world.sharePackages(d.T)
	d.world.deployTwice(d.T)
	ran := d.runsScript()
	return []string{
		"/catalogue", "/catalogue?broken=1", "/catalogue/forks", "/catalogue/definitions/agent/child",
		"/catalogue/definitions/agent/orphan", "/catalogue/definitions/agent/fork", "/catalogue/packages",
		"/catalogue/package?name=%40ops%2Fbase", "/deployments", d.linked("/deployments", "/deployments/rollback?"),
		"/scripts", "/scripts/git_search", ran,
	}
}

// runsScript searches the folder checks of this repository by the script, and returns the address of the run.
func (d *dashboard) runsScript() string {
	d.Helper()
	d.run(chromedp.Navigate(d.url+"/scripts/git_search"), chromedp.SendKeys(chromedp.CSS("#arg-pattern"), "inode"),
		chromedp.SendKeys(chromedp.CSS("#arg-path"), "checks"))
	d.press(`form[action$="/run"] button`)
	return d.linked("/scripts/git_search", "/script-runs/")
}

// linked waits until a page has a link to an address that begins with a path, and returns the first.
func (d *dashboard) linked(page, path string) (address string) {
	d.Helper()
	link := fmt.Sprintf(`document.querySelector('main a[href^=%q]')`, path)
	d.loads(page, link+" !== null")
	d.run(evaluated(link+`.getAttribute("href")`, &address))
	return address
}

// asksForConsent registers a program, and returns the address to which it sends a person.
func (d *dashboard) asksForConsent() string {
	d.Helper()
	const back = "http://127.0.0.1:8123/callback"
	body := encode(d.T, map[string]any{"client_name": "Editor", "redirect_uris": []string{back},
		"token_endpoint_auth_method": "none"})
	_, text := exchange(d, http.DefaultClient, http.MethodPost, d.api+"/oauth/register", body, "Content-Type",
		"application/json")
	client := decode[struct {
		ID string `json:"client_id"`
	}](d.T, text)
	if client.ID == "" {
		d.Fatal(text)
	}
	return "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {back},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}, "state": {"s"}}.Encode()
}

// isWhole fails the test for each GET route that leads to a page of which there is no address.
func (d *dashboard) isWhole(addresses []string) {
	d.Helper()
	elsewhere := []string{
		"/sign-in",                     // the last address
		"/sign-in/callback/{provider}", // TestNobodyIsSignedInByWhatOthersSend: only a provider leads there
	}
	mux := http.NewServeMux()
	var patterns []string
	for _, r := range routesOfPages(d.T) {
		if r.Method == http.MethodGet {
			patterns = append(patterns, r.Pattern)
			mux.HandleFunc(r.Pattern, http.NotFound)
		}
	}
	seen := map[string]bool{}
	for _, address := range addresses {
		r := must.Get(http.NewRequestWithContext(d.Context(), http.MethodGet, d.api+address, http.NoBody))(d)
		_, pattern := mux.Handler(r)
		seen[pattern] = true
	}
	for _, pattern := range patterns {
		if !seen[pattern] && !slices.Contains(elsewhere, pattern) && d.isPage(pattern) {
			d.Errorf("no test looks at %s: add an address of it to everyPage", pattern)
		}
	}
}

// isPage asks for a route and reports whether a page may come from it: neither a redirect nor something for programs.
func (d *dashboard) isPage(pattern string) bool {
	d.Helper()
	files, err := pages.LoadAssets()
	must.Do(d, err)
	filled := strings.Replace(pattern, "/static/{name}", "/static/"+files.Style.Name, 1)
	filled = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(filled, "1")
	r := must.Get(http.NewRequestWithContext(d.Context(), http.MethodGet, d.api+filled, http.NoBody))(d)
	r.Header.Set("Authorization", "Bearer "+d.token)
	answer, err := http.DefaultTransport.RoundTrip(r)
	must.Do(d, err)
	_ = answer.Body.Close()
	redirects := answer.StatusCode/100 == 3 && !strings.HasPrefix(answer.Header.Get("Location"), "/sign-in")
	programs := answer.StatusCode < 300 && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
	return !redirects && !programs
}

// What is asked of each page.
const (
	isWhole      = "it has a title, a heading, its landmarks and the colours of its scheme"
	isQuiet      = "the browser says nothing of it"
	isAccessible = "it has no barrier"
	isApart      = "no text lies on another one, and it is as wide as the window"
	isReadBare   = "it is read without scripts"
)

// walk looks at pages, and keeps what is wrong with them.
type walk struct {
	*dashboard
	axe   string
	wrong map[string][]string // by what is asked
	texts map[string]string   // of pages with scripts
	known map[string]bool     // paths of pages that were looked at
}

func (w *walk) note(asked, format string, args ...any) {
	w.wrong[asked] = append(w.wrong[asked], fmt.Sprintf(format, args...))
}

// TestDashboardPages loads each page once, and asks all of it: in sizes on either side of each break of the styles, and
// in both schemes. Each page is asked for its contrast in light and in dark colours, at a desk and on a phone. What is
// no matter of colours is asked in the widest layout and in the narrowest one, which hides the most; of a page in
// another state, whose address differs by its query alone, at a desk.
func TestDashboardPages(t *testing.T) {
	d, addresses := everyPage(t)
	w := &walk{dashboard: d, axe: axeCore(t), wrong: map[string][]string{}, texts: map[string]string{},
		known: map[string]bool{}}
	last := len(addresses) - 1
	for i, address := range addresses[:last] {
		w.look(address, i)
	}
	w.bare(addresses[:ofHistory])
	w.run(withoutCookies())
	w.look(addresses[last], last)
	for _, asked := range []string{isWhole, isQuiet, isAccessible, isApart, isReadBare} {
		t.Run(asked, func(t *testing.T) {
			for _, what := range w.wrong[asked] {
				t.Error(what)
			}
		})
	}
}

// ofHistory is how many pages are those of history, which come first. They are read without scripts, too.
const ofHistory = 15

// look loads a page and asks all of it, but whether it is read without scripts. The next page begins in the colours and
// the size in which this one ends: that saves drawing both anew.
func (w *walk) look(address string, number int) {
	w.Helper()
	var text string
	schemes := []string{"light", "dark"}
	if number%2 == 1 {
		slices.Reverse(schemes)
	}
	w.run(lookedAt(schemes[0], 1280, 800), chromedp.Navigate(w.url+address),
		into(chromedp.Text(chromedp.CSS("main")), &text), executed(w.axe+"; 0"))
	path, _, _ := strings.Cut(address, "?")
	again := w.known[path]
	w.known[path], w.texts[address] = true, text
	w.frame(address, schemes[0])
	w.examined(address+", 1280 wide", w.barriers(butContrast))
	w.contrasted(address, schemes[0], 1280)
	for _, width := range []int64{1280, 1920, 1000, 768, 390} {
		w.apart(address, width)
	}
	w.contrasted(address, schemes[0], 390)
	w.run(coloured(schemes[1]))
	w.contrasted(address, schemes[1], 390)
	w.apart(address, 320)
	if !again {
		w.examined(address+", 320 wide", w.barriers(butColours))
	}
	w.run(sized(1280, 800))
	w.contrasted(address, schemes[1], 1280)
	w.frame(address, schemes[1])
	for _, problem := range w.forgotten() {
		if address != "/nothing" { // which the browser does not find
			w.note(isQuiet, "%s: %s", address, problem)
		}
	}
	w.whole(strings.Trim(strings.NewReplacer("/", "_", "?", "-", "=", "-", "&", "-").Replace(address), "_"))
}

// apart gives the page a width, and asks whether its texts are apart.
func (w *walk) apart(address string, width int64) {
	w.Helper()
	w.run(sized(width, 800))
	if found := w.onEachOther(width); found != "" {
		w.note(isApart, "%s, %d wide: %s", address, width, found)
	}
}

func (w *walk) contrasted(address, scheme string, width int64) {
	w.Helper()
	about := fmt.Sprintf("%s, %d wide, %s", address, width, scheme)
	w.examined(about, w.lacking(about))
}

func (w *walk) examined(about string, found []barrier) {
	w.Helper()
	for _, v := range found {
		w.note(isAccessible, "%s: %s", about, v)
	}
}

// frame asks what every page has.
func (w *walk) frame(address, scheme string) {
	w.Helper()
	var title, h1, background string
	var landmarks int
	w.run(into(chromedp.Title(), &title), into(chromedp.Text("h1"), &h1),
		evaluated(`document.querySelectorAll("main, nav[aria-label=Main], .skip").length`, &landmarks),
		evaluated(`getComputedStyle(document.body).backgroundColor`, &background))
	want := 3
	if address == "/sign-in" { // where nobody is signed in
		want = 2
	}
	if landmarks != want || h1 == "" || !strings.HasSuffix(title, "Claude Ops") {
		w.note(isWhole, "%s: title %q, heading %q, %d landmarks", address, title, h1, landmarks)
	}
	if (background == "rgb(247, 247, 248)") != (scheme == "light") {
		w.note(isWhole, "%s, %s: the background is %s", address, scheme, background)
	}
}

// bare loads pages again without scripts. The evaluation of a test is not the page's: a page that loses its scripts
// must still be read to its end.
func (w *walk) bare(addresses []string) {
	w.Helper()
	w.run(lookedAt("light", 1280, 800), withoutScripts(true))
	for _, address := range addresses {
		var text string
		w.run(chromedp.Navigate(w.url+address), into(chromedp.Text(chromedp.CSS("main")), &text))
		if with := len(w.texts[address]); len(text) < 50 || len(text) < with*9/10 {
			w.note(isReadBare, "%s: %d characters without scripts, %d with them", address, len(text), with)
		}
		for _, problem := range w.forgotten() {
			w.note(isReadBare, "%s: %s", address, problem)
		}
	}
	w.run(withoutScripts(false))
}
