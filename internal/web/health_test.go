package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/views"
)

// twoForges is a world with the providers fake and second enabled, and gitea disabled.
func twoForges(t *testing.T, log io.Writer) (w *world, second *forgetest.Fake) {
	t.Helper()
	second = forgetest.NewFake()
	second.SetName("second")
	return newWorld(t, func(w *world) {
		w.web.Providers.Registry = gitprovider.NewRegistry([]gitprovider.Registration{
			{Name: "fake", Provider: w.fake}, {Name: "gitea", Disabled: "GITEA_TOKEN is not set"},
			{Name: "second", Provider: second},
		}, nil, "", nil)
		w.web.Env.Log = slog.New(slog.NewTextHandler(log, nil))
	}), second
}

func TestReadinessNamesEachProviderAndFailsForThemOnlyIfAskedTo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  *fault.Error
		code fault.Code // "" for ready
	}{
		"all answer":  {nil, ""},
		"one is down": {fault.New(fault.UpstreamError, "git.example.org failed (503)"), fault.UpstreamError},
		"one refuses our token": {fault.New(fault.ProviderDisabled, "GITEA_TOKEN %s was refused", ownToken),
			fault.ProviderDisabled},
		"one limits us": {fault.New(fault.RateLimited, "no more"), fault.RateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w, second := twoForges(t, &log)
			if tt.err != nil {
				second.Script.FailBefore(forgetest.MethodPing, tt.err)
			}
			w.want(w.get("/readyz"), 200, "")
			if w.fake.Script.Reads()+second.Script.Reads() != 0 {
				t.Error("providers were asked without being asked about")
			}
			a := w.get("/readyz?providers=1")
			if tt.code == "" {
				w.want(a, 200, "")
				w.says(a, `"providers":[{"name":"fake","state":"ok"},{"name":"gitea","state":"disabled"},`+
					`{"name":"second","state":"ok"}]`)
				return
			}
			w.want(a, 503, tt.code)
			w.says(a, `"fake is ok, gitea is disabled, second is down"`,
				fmt.Sprintf(`"violations":[{"code":%q,"rule":"second",`, tt.code), "!"+ownToken, "!"+tt.err.Message)
			if !strings.Contains(log.String(), "provider=second") || strings.Contains(log.String(), ownToken) {
				t.Errorf("the log has %s", &log)
			}
			w.want(w.get("/readyz"), 200, "")
			if w.fake.Script.Writes()+second.Script.Writes() != 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestProvidersAreAskedOnceForManyCallersAndAgainAfterHalfAMinute(t *testing.T) {
	t.Parallel()
	w, second := twoForges(t, io.Discard)
	w.build()
	entered, release := second.Script.Block(forgetest.MethodPing)
	go func() { <-entered; release() }()
	atOnce(20, func(int) { w.status(w.get("/readyz?providers=1"), 200) })
	asked := func(want int) {
		t.Helper()
		if a, b := w.fake.Script.Count(forgetest.MethodPing), second.Script.Count(forgetest.MethodPing); a != want ||
			b != want {
			t.Errorf("asked %d and %d times, want %d", a, b, want)
		}
	}
	asked(1)
	w.advance(29 * time.Second)
	w.want(w.get("/readyz?providers=1"), 200, "")
	asked(1)
	w.advance(time.Second)
	second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "down"))
	w.want(w.get("/readyz?providers=1"), 503, fault.UpstreamError)
	w.want(w.get("/readyz?providers=1"), 503, fault.UpstreamError)
	asked(2)
}

func TestProvidersThatHangCostTwoSecondsAltogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, second := twoForges(t, io.Discard)
		w.build()
		_, releaseFirst := w.fake.Script.Block(forgetest.MethodPing)
		_, releaseSecond := second.Script.Block(forgetest.MethodPing)
		defer releaseFirst()
		defer releaseSecond()
		began := time.Now()
		w.want(w.get("/readyz?providers=1"), 503, fault.Timeout)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestACallerWhoGoesAwayDoesNotMakeProvidersLookDown(t *testing.T) {
	t.Parallel()
	w, second := twoForges(t, io.Discard)
	w.build()
	entered, release := second.Script.Block(forgetest.MethodPing)
	ctx, leave := context.WithCancel(t.Context())
	gone := func(r *http.Request) { *r = *r.WithContext(ctx) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.get("/readyz?providers=1", gone)
	}()
	<-entered
	leave()
	release()
	<-done
	w.want(w.get("/readyz?providers=1"), 200, "")
	if n := second.Script.Count(forgetest.MethodPing); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestWithoutAProviderOrRecordsNothingIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.web.Providers.Registry = gitprovider.NewRegistry([]gitprovider.Registration{{Name: "gitea",
			Disabled: "GITEA_TOKEN is not set"}}, nil, "", nil)
	})
	w.want(w.get("/readyz"), 200, "")
	w.want(w.get("/readyz?providers=1"), 503, fault.ProviderDisabled)
	must.Do(t, w.store.Close())
	w.want(w.get("/readyz?providers=1"), 503, fault.Internal)
}

func TestReadinessNamesNoProviderToStrangers(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"all answer": false, "one is down": true} {
		t.Run(name, func(t *testing.T) {
			w, second := twoForges(t, io.Discard)
			reader := bearer(w.token("prober", 1, "read"))
			proposer := bearer(w.token("ci", 1, "propose"))
			w.person = ""
			want, code := 200, fault.Code("")
			if down {
				second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.RateLimited, "no more"))
				want, code = 503, fault.UpstreamError
			}
			for _, edits := range [][]edit{nil, {proposer}} { // who has no token, and who lacks the scope
				a := w.get("/readyz?providers=1", edits...)
				w.want(a, want, code)
				w.says(a, "!fake", "!gitea", "!second", "!rate_limited")
			}
			w.says(w.get("/readyz?providers=1", reader), "second")
			w.want(w.get("/readyz?providers=1", bearer("wrong")), 401, fault.Unauthenticated)
		})
	}
}

// unreadable are attempts whose records cannot be read.
type unreadable struct {
	attempts
	why error
}

func (u unreadable) Ping(context.Context) error { return u.why }

func TestAServerThatIsNotReadySaysToAnybodyWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for want, why := range map[string]error{
		"the server waits for the database; the log": fault.New(fault.UpstreamError, "db.example.org is away").Awaits("the database"),
		"cannot be read or written; the log":         fault.New(fault.Internal, "db.example.org is damaged"),
	} {
		w := newWorld(t, func(w *world) {
			w.strangers = true
			w.web.Records.Attempts = unreadable{attempts{w.store.History, w.store}, why}
		})
		a := w.get("/readyz")
		w.want(a, 503, fault.Internal)
		w.says(a, want, "!example.org")
	}
}

func TestGoodProbesAreNoLinesOfTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(w *world) { w.web.Env.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		w.want(w.get(path), 200, "")
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	w.get("/api/v1/me")
	w.get("/readyz?providers=nonsense")
	for _, route := range []string{"/api/v1/me", "/readyz"} {
		if !strings.Contains(log.String(), route) {
			t.Errorf("%s is missing in %s", route, log.String())
		}
	}
}

// scriptedAudit answers verifications from a list and remembers what was asked.
type scriptedAudit struct {
	views.Audit
	answers []record.AuditReport
	err     error
	asked   []string
}

func (a *scriptedAudit) next() (record.AuditReport, error) {
	if a.err != nil {
		return record.AuditReport{}, a.err
	}
	r := a.answers[0]
	a.answers = a.answers[1:]
	return r, nil
}

func (a *scriptedAudit) Verify(_ context.Context, expect string) (record.AuditReport, error) {
	a.asked = append(a.asked, "whole "+expect)
	return a.next()
}

func (a *scriptedAudit) VerifyAfter(_ context.Context, known record.AuditReport) (record.AuditReport, error) {
	a.asked = append(a.asked, fmt.Sprintf("after %d", known.HeadSeq))
	return a.next()
}

func TestTheAuditIsVerifiedFromWhereTheLastTimeEndedAndWholeOnceADay(t *testing.T) {
	t.Parallel()
	sound := func(seq int64) record.AuditReport {
		return record.AuditReport{Rows: seq, HeadSeq: seq, Head: fmt.Sprintf("head-%d", seq)}
	}
	broken := record.AuditReport{Rows: 2, HeadSeq: 2, Head: "head-2", Problem: "rows were cut off"}
	audit := &scriptedAudit{answers: []record.AuditReport{sound(3), sound(5), sound(6), broken, broken, sound(7),
		sound(8)}}
	w := newWorld(t, func(w *world) { audit.Audit = w.web.Records.Audit; w.web.Records.Audit = audit })
	for i, want := range []string{"whole", "whole", "whole", "broken", "broken", "whole", "whole"} {
		if i == 2 {
			w.advance(20 * time.Hour)
		}
		w.advance(5 * time.Minute)
		w.verify()
		w.page("/audit", 200).has("The record is " + want)
	}
	want := "whole |after 3|after 5|after 6|whole head-6|whole head-6|after 7"
	if got := strings.Join(audit.asked, "|"); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	audit.answers = []record.AuditReport{sound(8)}
	w.advance(24 * time.Hour)
	w.verify()
	if last := audit.asked[len(audit.asked)-1]; last != "whole head-8" {
		t.Errorf("after a day: %s", last)
	}
	audit.err = fault.Wrap(errors.New("x"), fault.Internal, "the disk is gone")
	w.advance(5 * time.Minute)
	w.verify()
	w.page("/", 200).has("The records could not be verified", "The disk is gone.")
}

func TestNoPageVerifies(t *testing.T) {
	t.Parallel()
	audit := &scriptedAudit{}
	w := newWorld(t, func(w *world) { audit.Audit = w.web.Records.Audit; w.web.Records.Audit = audit })
	w.page("/", 200)
	w.page("/audit", 200).has("The record is being verified")
	if len(audit.asked) != 0 {
		t.Errorf("asked %q", audit.asked)
	}
	audit.answers = []record.AuditReport{{Problem: "row 1 was altered", FirstBad: 1}}
	w.want(w.get("/api/v1/audit/verify"), 200, "") // somebody who asks gets a real one
	w.page("/audit", 200).has("The record is broken", "row 1 was altered")
}

func TestAForgeThatDoesNotServeUsTakesOneRowAndTheRestStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  *fault.Error
		says string
	}{
		"down":          {fault.New(fault.UpstreamError, "it failed (503)"), "The forge second does not answer"},
		"silent":        {fault.New(fault.Timeout, "no answer"), "The forge second does not answer"},
		"token refused": {fault.New(fault.ProviderDisabled, "refused (401)"), "The forge second refuses our token"},
		"too often":     {fault.New(fault.RateLimited, "no more"), "The forge second asks us to wait"},
	} {
		t.Run(name, func(t *testing.T) {
			w, second := twoForges(t, io.Discard)
			w.get("/readyz?providers=1")
			w.page("/", 200).lacks("The forge second")
			second.Script.FailBefore(forgetest.MethodPing, tt.err)
			w.advance(time.Minute)
			w.get("/readyz?providers=1")
			for _, page := range []string{"/", "/changes", "/doctor?ask=forges", "/doctor"} {
				w.page(page, 200).has(tt.says)
			}
			w.advance(time.Minute)
			w.get("/readyz?providers=1")
			w.page("/changes", 200).lacks("The forge second")
		})
	}
}

func TestTheButtonOfEachPartOfTheHealthLeadsToAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	names := []string{"policy", "tier", "switches", "local root", "default provider",
		"sessions", "sign-in by x",
		"connector", "secrets"}
	w.web.Rules.Doctor = func(context.Context) (parts []doctor.Finding) {
		for _, name := range names {
			parts = append(parts, doctor.Finding{Name: name, Status: doctor.Warning, Detail: "look"})
		}
		return parts
	}
	w.build()
	d, buttons := w.page("/doctor", 200), 0
	for _, a := range d.within(d.find("main")[0]).find("a") {
		if attr(a, "class") == "btn btn-s" {
			w.page(attr(a, "href"), 200)
			buttons++
		}
	}
	if buttons < len(names)-1 {
		t.Errorf("%d buttons for %d parts", buttons, len(names))
	}
}

// Looking at pages shows it, too: it causes a check of the forges, and waits for none.
func TestLookingAtPagesHasTheForgesAsked(t *testing.T) {
	t.Parallel()
	w, second := twoForges(t, io.Discard)
	second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
	eventually(t, func() bool { return strings.Contains(w.page("/", 200).text, "The forge second does not answer") })
	w.page("/audit", 200).has("The forge second does not answer") // beside the navigation
}

// Page, frame, REST, probe and metrics read one health: where one says that a forge is down, none says that all is
// well.
func TestEveryWayInSaysTheSameOfTheHealth(t *testing.T) {
	w, second := twoForges(t, io.Discard)
	w.verify()
	w.want(w.get("/healthz?detail=1"), 200, "")
	for _, down := range []bool{false, true, false} {
		if down { // for one call, which is remembered for half a minute
			second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
		}
		w.advance(time.Minute)
		began := w.Now().UTC().Format(time.RFC3339)
		detail, rest := w.get("/healthz?detail=1"), w.get("/api/v1/health")
		health, _ := detail.json["health"].(map[string]any)
		if fmt.Sprint(health["findings"]) != fmt.Sprint(rest.json["findings"]) || rest.json["can_open"] != !down {
			t.Errorf("down %t: the probe says %s, REST %s", down, detail.body, rest.body)
		}
		part := ""
		for _, f := range rest.json["findings"].([]any) {
			if f := f.(map[string]any); f["name"] == "provider second" {
				part = fmt.Sprint(f["status"], " ", f["stops"], " ", f["since"])
			}
		}
		want := map[bool]string{true: "problem proposals at second " + began, false: "ok <nil> "}[down]
		if !strings.HasPrefix(part, want) {
			t.Errorf("down %t: REST says %q, want %q", down, part, want)
		}
		if down {
			w.measures(`claudeops_health_part{blocks="true",part="provider second",status="problem"} 1`,
				`!claudeops_health_part{blocks="false",part="provider second",status="ok"} 1`, "!claudeops_can_open 1")
		} else {
			w.measures(`claudeops_health_part{blocks="false",part="provider second",status="ok"} 1`,
				`!claudeops_health_part{blocks="true",part="provider second",status="problem"} 1`, "claudeops_can_open 1")
		}
		for _, page := range []string{"/", "/audit", "/doctor"} {
			shown := w.page(page, 200).text
			if strings.Contains(shown, "The forge second does not answer") != down ||
				strings.Contains(shown, "Healthy") == down ||
				down && (strings.Contains(shown, "Nothing here would stop") || strings.Contains(shown, "Server health Good")) {
				t.Errorf("down %t: %s says %s", down, page, shown)
			}
		}
	}
	w = newWorld(t, strangers)
	w.says(w.status(w.get("/healthz?detail=1"), 200), "!findings")
}

// randomParts returns parts in random states. What the operator holds back stops every pull request.
func randomParts(r *rand.Rand) (out []doctor.Finding) {
	for _, name := range []string{"tier", "policy", "git", "sessions", "secrets", "server"} {
		f := doctor.Finding{Name: name, Detail: "as it is",
			Status: []string{doctor.OK, doctor.OK, doctor.Off, doctor.Warning, doctor.Held, doctor.Problem}[r.IntN(6)]}
		if f.Blocks = f.Status == doctor.Held || f.Status == doctor.Problem && r.IntN(2) == 0; f.Blocks {
			f.Stops = "every proposal"
		}
		if r.IntN(3) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// shownParts returns the parts of the page Health by their titles, each with the word for its status.
func shownParts(d document) map[string]string {
	out := map[string]string{}
	for _, li := range d.within(d.find("main")[0]).find("li") {
		title, word := "", ""
		for n := range li.Descendants() {
			switch {
			case n.Type != html.ElementNode:
			case n.Data == "strong" && attr(n, "class") == "t":
				title = n.FirstChild.Data
			case strings.HasPrefix(attr(n, "class"), "sig "):
				word = attr(n, "title")
			}
		}
		if title != "" { // else it is a link to a page
			out[title] = word
		}
	}
	return out
}

// Whatever the parts are like, every way in says the same of each, and all agree whether a pull request can be opened.
func TestNoTwoWaysInDisagreeAboutTheHealth(t *testing.T) {
	t.Parallel()
	w, second := twoForges(t, io.Discard)
	audit := &scriptedAudit{Audit: w.web.Records.Audit}
	var found []doctor.Finding
	w.web.Records.Audit = audit
	w.web.Rules.Doctor = func(context.Context) []doctor.Finding { return slices.Clone(found) }
	w.build()
	r := rand.New(rand.NewPCG(39, 8))
	for round := range 40 {
		found = randomParts(r)
		state := map[bool]string{true: doctor.Problem, false: doctor.OK}
		down, broken := r.IntN(3) == 0, r.IntN(3) == 0
		if down {
			second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
		}
		audit.answers = []record.AuditReport{{Rows: 1, Problem: map[bool]string{true: "row 1 was altered"}[broken]}}
		w.advance(time.Minute)
		w.verify()
		want := append(slices.Clone(found), doctor.Finding{Name: "provider fake", Status: doctor.OK},
			doctor.Finding{Name: "provider second", Status: state[down], Blocks: down},
			doctor.Finding{Name: doctor.RecordsPart, Status: state[broken]})
		w.sameHealth(fmt.Sprintf("round %d", round), want)
	}
}

// sameHealth asks every way in about the health.
func (w *world) sameHealth(round string, want []doctor.Finding) {
	w.Helper()
	var rest struct {
		CanOpen  bool             `json:"can_open"`
		Findings []doctor.Finding `json:"findings"`
	}
	detail, answer, metrics := w.get("/healthz?detail=1"), w.get("/api/v1/health"), string(w.get("/metrics").body)
	must.Do(w, json.Unmarshal(answer.body, &rest))
	health, _ := detail.json["health"].(map[string]any)
	if fmt.Sprint(health["findings"]) != fmt.Sprint(answer.json["findings"]) || health["can_open"] != rest.CanOpen {
		w.Errorf("%s: the probe says %s, REST %s", round, detail.body, answer.body)
	}
	shown, words := shownParts(w.page("/doctor", 200)), map[string]string{doctor.OK: "In order", doctor.Off: "Off",
		doctor.Warning: "Mind", doctor.Held: "Held back", doctor.Problem: "Broken"}
	blocked, problems, held := false, 0, false
	for _, part := range want {
		at := slices.IndexFunc(rest.Findings, func(f doctor.Finding) bool { return f.Name == part.Name })
		if at < 0 {
			w.Fatalf("%s: REST lacks %s: %s", round, part.Name, answer.body)
		}
		got, title := rest.Findings[at], part.Name
		if part.Status == doctor.Problem {
			problems, title = problems+1, got.Headline()
		}
		blocked, held = blocked || part.Blocks, held || part.Status == doctor.Held
		line := fmt.Sprintf("claudeops_health_part{blocks=\"%t\",part=%q,status=%q} 1\n", part.Blocks, part.Name, part.Status)
		if got.Status != part.Status || got.Blocks != part.Blocks || !strings.Contains(metrics, line) ||
			shown[title] != words[part.Status] {
			w.Errorf("%s: of %+v REST says %+v, the page %q; metrics have it: %t", round, part, got, shown[title],
				strings.Contains(metrics, line))
		}
	}
	n := strings.Count(metrics, "claudeops_health_part{")
	if n != len(want) || len(rest.Findings) != n || len(shown) != n {
		w.Errorf("%s: %d parts in metrics, %d of REST, %d on the page, want %d", round, n, len(rest.Findings), len(shown),
			len(want))
	}
	if rest.CanOpen == blocked || strings.Contains(metrics, "\nclaudeops_can_open 1\n") == blocked {
		w.Errorf("%s: blocked %t, and REST says %s", round, blocked, answer.body)
	}
	w.sameWords(round, blocked, held, problems)
}

// sameWords reads what pages say of all parts together.
func (w *world) sameWords(round string, blocked, held bool, problems int) {
	w.Helper()
	page := w.page("/doctor", 200).text
	for _, text := range []string{"Nothing here would stop a pull request", "Pull requests can be opened"} {
		if strings.Contains(page, text) && blocked {
			w.Errorf("%s: pull requests are stopped, and the page says %q", round, text)
		}
	}
	if strings.Contains(page, "Nothing here would stop a pull request") != (!blocked && problems == 0) {
		w.Errorf("%s: blocked %t with %d problems, and the page says %.300s", round, blocked, problems, page)
	}
	for _, path := range []string{"/", "/audit"} {
		d := w.page(path, 200)
		if strings.Contains(d.text, "Healthy") != (problems == 0) || strings.Contains(d.text, "Opens changes") == held {
			w.Errorf("%s: %d problems, held %t, and %s says %s", round, problems, held, path, d.text)
		}
		d.each(func(n *html.Node) {
			if attr(n, "id") == "live-health" && (attr(n.FirstChild, "class") == "dot good") != (problems == 0) {
				w.Errorf("%s: %d problems, and the lamp of %s is %q", round, problems, path, attr(n.FirstChild, "class"))
			}
		})
	}
	if overview := w.page("/", 200).text; strings.Contains(overview, "Server health Good") != (problems == 0) {
		w.Errorf("%s: %d problems, and the overview says %s", round, problems, overview)
	}
}
