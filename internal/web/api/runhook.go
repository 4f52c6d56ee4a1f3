package api

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// RunHooks start sessions for other programs; *session.Hooks is one. Errors are faults.
type RunHooks interface {
	// Authorize returns the template of a hook whose token is shown; unauthenticated for a wrong name or token.
	Authorize(name, token string) (policy.Hook, error)
	Run(ctx context.Context, hook policy.Hook, body []byte) (session.HookRun, error)
	// RunForge starts a session for what happened at an issue of a forge, if the policy lets it.
	RunForge(ctx context.Context, provider string, asked forge.StartRequest) (session.HookRun, error)
}

// runHooks takes the calls of hooks of the policy.
type runHooks struct {
	hooks  RunHooks
	guard  *httpx.Guard
	places *hookPlaces
	wrong  *httpx.Failures
}

// maxRunHook bounds the body of a call, in bytes.
const maxRunHook = 256 << 10

func newRunHooks(o Options) *runHooks {
	return &runHooks{o.Webhooks.Runs, o.Guard, &hookPlaces{by: map[netip.Addr]int{}},
		httpx.NewFailures(o.Env.Now, wrongHooksEach, 0, "too many calls of hooks with a wrong token (correct it)")}
}

func (h *runHooks) routes() []httpx.Route {
	return []httpx.Route{{
		Method: "POST", Pattern: "/hooks/run/{name}", Handle: h.run,
		Body: &httpx.BodyLimit{Bytes: maxRunHook, Advice: "send fewer alerts at once", Within: httpx.OpenBodyTime},
		Doc: httpx.Doc{
			ID: "runHook", Summary: "Start a session for alerts, by a hook of the policy",
			Description: "The hook has a token of its own (`Authorization: Bearer`). The body is what Alertmanager or Grafana " +
				"sends, or any JSON object. 202 for a session that was started; 503 while another one runs.",
			Answers: map[int]any{http.StatusAccepted: session.HookRun{}, http.StatusOK: session.HookRun{},
				http.StatusServiceUnavailable: session.HookRun{}},
		},
	}}
}

// run starts a session. Nothing of the body is read before the token is right, and a right one is never kept out by
// wrong ones.
func (h *runHooks) run(req *httpx.Request) (httpx.Response, error) {
	if h.hooks == nil {
		return httpx.Response{}, fault.New(fault.NotFound, "this server has no hooks")
	}
	from := h.guard.Client(req.Request)
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	hook, err := h.hooks.Authorize(req.PathValue("name"), strings.TrimSpace(token))
	if err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			err = h.wrong.Count(from, err)
		}
		return httpx.Response{}, err
	}
	leave, err := h.places.acquireSlot(from)
	if err != nil {
		return httpx.Response{}, err
	}
	body, err := httpx.ReadBody(req, "application/json")
	leave()
	if err != nil {
		return httpx.Response{}, err
	}
	ran, err := h.hooks.Run(req.Context(), hook, body)
	if err != nil {
		return httpx.Response{}, err
	}
	switch ran.Status {
	case session.HookStarted:
		return httpx.Response{Status: http.StatusAccepted, Value: ran}, nil
	case session.HookBusy:
		return httpx.Response{Status: http.StatusServiceUnavailable, Value: ran,
			Header: http.Header{"Retry-After": {"60"}}}, nil
	}
	return httpx.Response{Value: ran}, nil
}
