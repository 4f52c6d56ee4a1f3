package dashboard

import (
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/admin"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// pausePages have the forms that pause and resume. The overview shows the one, and while something is paused every page
// the other.
type pausePages struct {
	*renderer
	pause, resume operation.Operation
}

func newPausePages(r *renderer, acts []operation.Operation) *pausePages {
	return &pausePages{r, operation.Named(acts, admin.ActPause), operation.Named(acts, admin.ActResume)}
}

// routes returns none for a server that is made without the acts.
func (h *pausePages) routes() []httpx.Route {
	if h.pause.Handle == nil {
		return nil
	}
	form := &httpx.BodyLimit{Bytes: 8 << 10, Advice: "say less"}
	return []httpx.Route{
		{Method: "POST", Pattern: "/pause", Scope: access.Operate, Page: true, Body: form, Refused: rejected(h.pause),
			Handle: h.sendPause},
		{Method: "POST", Pattern: "/resume", Scope: access.Operate, Page: true, Body: form, Refused: rejected(h.resume),
			Handle: h.sendResume},
	}
}

func (h *pausePages) sendPause(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, h.pause.Reject(req.Context(), req.Call(nil), err)
	}
	_, err = callOperation(req, h.pause, admin.PauseRequest{
		Why: strings.Join(strings.Fields(form.Get("why")), " "), Repo: strings.TrimSpace(form.Get("repo")),
		For:          form.Get("for"),
		StopSessions: form.Get("stop_sessions") == "yes",
	})
	return h.goTo("/"), err
}

func (h *pausePages) sendResume(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, h.resume.Reject(req.Context(), req.Call(nil), err)
	}
	_, err = callOperation(req, h.resume, admin.ResumeRequest{Repo: form.Get("repo")})
	return h.goTo("/"), err
}

// paused lists what is paused, for the line on every page. Where that cannot be read, the page says so by itself.
func (h *renderer) paused(req *httpx.Request) (out []pages.Pause) {
	if h.pauses == nil {
		return nil
	}
	last, err := h.pauses.Pauses(req.Context())
	if err != nil {
		return nil
	}
	for _, p := range last {
		row := pages.Pause{What: "Everything", By: p.By, Why: p.Why, Since: p.Since, Until: p.Until}
		if p.Owner != "" {
			row.What, row.Repo = p.Scope(), p.Scope()
		}
		out = append(out, row)
	}
	return out
}
