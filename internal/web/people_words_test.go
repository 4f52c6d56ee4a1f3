package web_test

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// Who has to sign in again is led back to the change, and what they wrote is in its form.
func TestWhatWasWrittenOutlivesTheSignIn(t *testing.T) {
	t.Parallel()
	w := reviewing(t, &reviewer{}, nil)
	const at = "/pulls/fake/joe/infra/1"
	gone := header("Cookie", "claudeops_session="+strings.Repeat("x", 43))
	for _, one := range []struct {
		name string
		form url.Values
		back []string // of the address that follows signing in
	}{
		{"a comment", url.Values{"action": {"comment"}, "comment": {"Mind the ümlaut & the rest"}},
			[]string{"say=comment", "words=Mind+the"}},
		{"side by side", url.Values{"action": {"approve"}, "comment": {"good"}, "view": {"split"}, "part": {"2"}},
			[]string{"say=approve", "view=split", "part=2"}},
		{"too long", url.Values{"action": {"comment"}, "comment": {strings.Repeat("word ", 500)}}, nil},
		{"unknown", url.Values{"action": {"push"}, "comment": {"x"}}, nil},
	} {
		page := w.read(w.submit(at+"/review", one.form, gone), one.name, 401)
		page.has("Your sign-in has ended", strings.TrimSpace(one.form.Get("comment")))
		next := page.fields().Get("next")
		if !strings.HasPrefix(next, at) || one.back == nil && next != at {
			t.Errorf("%s: goes on at %q", one.name, next)
		}
		for _, want := range one.back {
			if !strings.Contains(next, want) {
				t.Errorf("%s: %q lacks %s", one.name, next, want)
			}
		}
	}
	w.page(at+"?say=comment&words=Mind+the+rest", 200).has("Nothing was sent", "Mind the rest")
	w.page(at+"?say=merge&words=x", 200, with(w.signIn(w.token("eve", 2, "read")))).has("You may look")
}

// A refusal by a cooldown is lifted where it is shown, by who may review.
func TestACooldownIsLiftedWhereTheRefusalIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.web.Providers.Reviewer = &reviewer{world: w}
	w.record(record.Attempt{
		Time: w.Now(), RequestID: "cooling", Action: record.ActionCreate, Door: record.DoorMCP, Provider: "fake",
		Owner: "joe", Repo: "infra", Title: "Again", Outcome: record.OutcomeRefused, Code: fault.CooldownActive, PRNumber: 4,
		Message: "#4 (file:///srv/x#pr-4), which changed `a.md`, was closed without merging; it may be proposed again in 71h59m59s",
	})
	const said = "#4, which changed `a.md`, was closed without merging; it may be proposed again in 71 h 59 min."
	page := w.page("/proposals/cooling", 200)
	page.has("Refused, nothing was written", said)
	page.lacks("Lift it", "file://", "71h")
	ann := w.signIn(w.token("ann", gitprovider.TierRemediate, "read", "review"))
	page = w.page("/proposals/cooling", 200, with(ann))
	page.has("Lift it")
	for _, f := range page.find("form") {
		if attr(f, "action") == "/pulls/fake/joe/infra/4/review" {
			return
		}
	}
	t.Error("there is no form that lifts it")
}

// A change says what is wrong with its own forge alone, and how to try again.
func TestAChangeShowsTheTroubleOfItsOwnForge(t *testing.T) {
	w, second := twoForges(t, io.Discard)
	w.verify()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	second.Script.FailBefore(forgetest.MethodPing, fault.New(fault.UpstreamError, "it failed (503)"))
	w.advance(time.Minute)
	w.want(w.get("/healthz?detail=1"), 200, "")
	w.page("/changes", 200).has("The forge second does not answer, for now.")
	page := w.page("/pulls/fake/joe/infra/1", 200)
	page.lacks("The forge second does not answer, for", "Try again")
}

// A person who may only look reads what they may not do, also where the server stands below a path.
func TestWhoMayOnlyLookReadsWhatTheyMayNotDo(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/ops"} {
		w := newWorld(t, func(w *world) { w.web.Network.BasePath = base })
		eve := bearer(w.token("eve", gitprovider.TierInvestigate, "read"))
		w.page(base+"/tokens", 403, eve).has("You may look, but not manage tokens.", "scope operate")
	}
}
