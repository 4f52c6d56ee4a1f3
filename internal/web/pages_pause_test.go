package web_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/admin"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// pausingWorld is a world whose server can pause, with an operator and a reader.
func pausingWorld(t *testing.T) (w *world, operator, reader edit) {
	t.Helper()
	var boss, looker string
	w = newWorld(t, func(w *world) {
		kernel := w.kernel()
		w.web.Acts = append(w.web.Acts, admin.PauseActs{
			Kernel: func() *operation.Kernel { return kernel },
			Store:  func() admin.PauseStore { return w.store.Pauses() }, Now: w.Now,
			Sleep: func(_ context.Context, d time.Duration) { w.advance(d) },
		}.Operations()...)
		boss = w.token("ann", gitprovider.TierRemediate, access.AllScopes()...)
		looker = w.token("ben", gitprovider.TierRemediate, access.Read)
	})
	return w, bearer(boss), bearer(looker)
}

func TestAPauseIsOnEachPageUntilItIsOver(t *testing.T) {
	t.Parallel()
	w, ann, ben := pausingWorld(t)
	w.page("/", 200, ann).has("Pause what agents do")
	w.page("/", 200, ben).lacks("Pause what agents do", "Everything is paused")
	w.refusedForm(w.submit("/pause", url.Values{"why": {"x"}}, ben), 403)
	w.refusedForm(w.submit("/pause", url.Values{"why": {" "}}, ann), 400)
	w.refusedForm(w.submit("/pause", url.Values{"why": {"x"}, "for": {"1s"}}, ann), 400)
	w.refusedForm(w.submit("/pause", url.Values{"why": {"x"}, "repo": {"joe"}}, ann), 400)
	if n := w.paused(); n != 0 {
		t.Fatalf("%d pauses after refusals", n)
	}
	w.leads(w.submit("/pause", url.Values{"why": {"The storage\nis <b>moved"}, "for": {"2h"}}, ann), "/")
	w.status(w.submit("/pause", url.Values{"why": {"Frozen"}, "repo": {"joe/infra"}}, ann), 303)
	for _, page := range []string{"/", "/changes", "/sessions", "/audit", "/policy"} {
		for _, who := range []edit{ann, ben} {
			w.page(page, 200, who).has("Everything is paused by ann", "until 20", "The storage is <b>moved",
				"joe/infra is paused by ann", "until somebody resumes: Frozen")
		}
	}
	w.page("/audit", 200, ann).has("Resume")
	w.page("/audit", 200, ben).lacks("Resume")
	w.want(w.do("POST", "/api/v1/prs", request(nil), ann), 503, fault.Paused)

	w.refusedForm(w.submit("/resume", url.Values{}, ben), 403)
	if a := w.submit("/resume", url.Values{"repo": {"joe/infra"}}, ann); a.StatusCode != 303 || w.paused() != 1 {
		t.Fatalf("%d %s, %d pauses", a.StatusCode, a.body, w.paused())
	}
	w.page("/audit", 200, ann).lacks("joe/infra is paused by")
	w.advance(2 * time.Hour)
	w.page("/audit", 200, ann).lacks("Everything is paused")
}

// TestAPauseIsTheSameThroughRESTAndThePage pauses and resumes through both: the rows of the audit are alike.
func TestAPauseIsTheSameThroughRESTAndThePage(t *testing.T) {
	t.Parallel()
	var first []string
	for door, do := range map[string]func(w *world, ann edit){
		"REST": func(w *world, ann edit) {
			w.want(w.do("POST", "/api/v1/pause", `{"why":"Frozen","repo":"joe/infra","for":"2h"}`, ann), 200, "")
			w.want(w.do("POST", "/api/v1/resume", `{"repo":"joe/other"}`, ann), 404, fault.NotFound)
			w.want(w.do("POST", "/api/v1/resume", `{}`, ann), 200, "")
		},
		"page": func(w *world, ann edit) {
			w.submit("/pause", url.Values{"why": {"Frozen"}, "repo": {"joe/infra"}, "for": {"2h"}}, ann)
			w.refusedForm(w.submit("/resume", url.Values{"repo": {"joe/other"}}, ann), 404)
			w.submit("/resume", url.Values{}, ann)
		},
	} {
		w, ann, _ := pausingWorld(t)
		do(w, ann)
		var rows []string
		for _, a := range w.attempts() {
			if a.Action == "pause" || a.Action == "resume" {
				rows = append(rows, a.Action+" "+string(a.Outcome)+" "+string(a.Code)+" "+a.Message)
			}
		}
		if len(rows) != 3 || w.paused() != 0 {
			t.Errorf("%s: %q, %d pauses", door, rows, w.paused())
		}
		if first == nil {
			first = rows
		} else if !slices.Equal(rows, first) {
			t.Errorf("%q\n%q", rows, first)
		}
	}
}

// refusedForm checks that a form was refused with a status.
func (w *world) refusedForm(a reply, status int) {
	w.Helper()
	if a.StatusCode != status {
		w.Errorf("%d, want %d: %s", a.StatusCode, status, a.body)
	}
}

// paused counts what is paused.
func (w *world) paused() int {
	w.Helper()
	last, err := w.store.Pauses().Pauses(context.Background())
	must.Do(w, err)
	return len(last)
}
