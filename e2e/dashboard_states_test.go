//go:build e2e && linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Each state of the server is said where people look, by a word and not by a colour alone, and the rest of the page
// stays.
func TestDashboardSaysHowTheServerIs(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"invalid username, password or token"}`, http.StatusUnauthorized)
	}))
	t.Cleanup(refuses.Close)
	forge := func(url string) []string {
		return []string{"GITEA_URL=" + url, "GITEA_TOKEN=not-a-token-of-anybody", "CLAUDEOPS_FORGE_PLAIN_HTTP=true"}
	}
	for name, tt := range map[string]struct {
		env    []string
		shown  string // on the overview, in the end
		beside string // the navigation
		answer string // on the page Health: never another one than the overview gives
	}{
		"forge-down": {forge("http://127.0.0.1:1"), "The forge gitea does not answer",
			"The forge gitea does not answer", "Pull requests are stopped: provider gitea."},
		"token-refused": {forge(refuses.URL), "The forge gitea refuses our token",
			"The forge gitea refuses our token", "Pull requests are stopped: provider gitea."},
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
			d.shoot("state-" + name)
			d.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false), chromedp.Navigate(d.url+"/changes"))
			if strings.HasPrefix(tt.shown, "The forge") {
				d.says(tt.shown, "Nobody has proposed anything yet")
			}
			d.shoot("state-" + name + "-changes")
			d.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false), chromedp.Navigate(d.url+"/doctor"))
			d.becomes(`document.querySelector("main").innerText.includes("` + tt.answer + `")`)
			d.shoot("state-" + name + "-health")
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
	d.run(chromedp.Evaluate(`fetch("/sign-out", {method: "POST"}).then(() => true)`, nil, awaited))
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

// filled leaves open pull requests without a review on the record, and a refusal beside each tenth.
func (d *dashboard) filled(open int) {
	d.Helper()
	ctx := d.Context()
	s, err := store.Open(ctx, d.world.vars["CLAUDEOPS_STATE_DIR"], store.Options{Now: time.Now})
	if err != nil {
		d.Fatal(err)
	}
	defer s.Close()
	for i := range open {
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
		if err := s.Ledger.Finish(ctx, p.ID, done, a); err != nil {
			d.Fatal(err)
		}
		if i%10 == 0 {
			d.refuses()
		}
	}
}

// The five questions are answered on the first screen: what waits, what is broken, what was proposed, why it was
// refused, and what it cost.
func TestDashboardAnswersFiveQuestionsOnTheFirstScreen(t *testing.T) {
	for _, open := range []int{20, 2000} {
		t.Run(fmt.Sprintf("%d open", open), func(t *testing.T) {
			d := newDashboard(t)
			d.filled(open)
			d.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false), chromedp.Navigate(d.url+"/"))
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
	d.run(emulation.SetDeviceMetricsOverride(320, 640, 1, true))
	d.run(chromedp.Navigate(d.url + "/pulls/local/demo/home-cluster/1"))
	if got := d.value(`[...document.querySelectorAll(".bar .acts .btn")].filter((b) => b.offsetParent).map((b) => {
		const box = b.getBoundingClientRect();
		return box.height < 44 && b.scrollWidth <= b.clientWidth && box.left >= 0 && box.right <= innerWidth;
	}).join()`); got != "true,true,true" {
		t.Errorf("the acts fit: %v", got)
	}
	d.follows("/changes")
	d.refreshes(func() { d.proposes("phone") })
	d.becomes(`document.querySelector("#fresh").innerText === "1 new, show"`)
	d.run(chromedp.Click("#fresh button", chromedp.ByQuery)) // which fails where something covers it
	d.becomes(`document.querySelector("main").innerText.includes("Watch the phone")`)
}
