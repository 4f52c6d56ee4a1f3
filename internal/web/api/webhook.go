package api

import (
	"context"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// hookTimeout limits the handling of a delivery: Gitea waits 5 seconds for an answer by default, GitHub 10.
const hookTimeout = 4 * time.Second

// HookAnswer is the result of a delivery.
type HookAnswer struct {
	Status  string `json:"status" enum:"taken,ignored,pong,started,known" doc:"taken: the provider is asked behind the answer; started: a session was, by a hook of the policy; known: the issue has started one within the hook's window"`
	Session string `json:"session,omitempty" doc:"The session that was started"`
}

// webhooks takes the deliveries of forges.
type webhooks struct {
	Webhooks
	guard   *httpx.Guard
	metrics *health.Metrics
	places  *hookPlaces
	wrong   *httpx.Failures
}

func newWebhooks(o Options) *webhooks {
	return &webhooks{o.Webhooks, o.Guard, o.Metrics, &hookPlaces{by: map[netip.Addr]int{}},
		httpx.NewFailures(o.Env.Now, wrongHooksEach, 0,
			"too many deliveries with a wrong signature (correct the secret)")}
}

func (h *webhooks) routes() (out []httpx.Route) {
	for _, s := range h.Senders {
		out = append(out, httpx.Route{
			Method: "POST", Pattern: "/webhooks/" + s.Source.Name,
			Handle: func(req *httpx.Request) (httpx.Response, error) { return h.receiveDelivery(req, s) },
			// GitHub may send deliveries of 25 MB; what it sends about a pull request is far below a mebibyte.
			Body: &httpx.BodyLimit{
				Bytes: 1 << 20, Advice: "events of pull requests are smaller, so that this one does not matter here",
				Within: httpx.OpenBodyTime,
			},
			Doc: httpx.Doc{
				ID: s.Source.Name + "Webhook", Summary: "Hear from " + s.Source.Title +
					" that something happened to a pull request or an issue",
				Description: "Signed with the secret that the operator configures (" + s.Source.Signatures[0].Header +
					"); no token is needed. What a delivery " +
					"says about a pull request is not trusted: its provider is asked. 409 for a delivery that was taken before.",
				Answers: map[int]any{http.StatusAccepted: HookAnswer{}, http.StatusOK: HookAnswer{}},
			},
		})
	}
	return out
}

// receiveDelivery answers a delivery and counts its result.
func (h *webhooks) receiveDelivery(req *httpx.Request, s Sender) (httpx.Response, error) {
	status, said, err := h.deliver(req, s)
	result := said.Status
	if err != nil {
		result = string(fault.CodeOf(err))
	}
	h.metrics.Delivery(s.Source.Name, result)
	if err != nil {
		return httpx.Response{}, err
	}
	return httpx.Response{Status: status, Value: said}, nil
}

// deliver reads, checks and hands on a delivery, in this order: nothing of it is looked at before its signature is
// right. A delivery that is rightly signed is never kept out by others that are not.
func (h *webhooks) deliver(req *httpx.Request, s Sender) (status int, said HookAnswer, err error) {
	secret := s.Secret()
	if secret == "" {
		return 0, said, fault.New(fault.ProviderDisabled,
			"webhooks of this forge are off: %s_WEBHOOK_SECRET is not set, or is too short",
			strings.ToUpper(s.Source.Name))
	}
	from := h.guard.Client(req.Request)
	if err := s.Source.Signed(req.Header); err != nil { // before its body is read
		return 0, said, h.wrong.Count(from, err)
	}
	body, err := h.hookBody(req, from)
	if err != nil {
		return 0, said, err
	}
	if err := s.Source.Verify(req.Header, body, secret); err != nil {
		return 0, said, h.wrong.Count(from, err)
	}
	d, err := s.Source.Parse(req.Header, body)
	switch {
	case err != nil:
		return 0, said, err
	case d.Ping:
		return http.StatusOK, HookAnswer{Status: "pong"}, nil
	case d.Start == nil && !d.Concerns():
		return http.StatusAccepted, HookAnswer{Status: "ignored"}, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), hookTimeout)
	defer cancel()
	if d.Start != nil {
		return h.startSession(ctx, s, *d.Start)
	}
	taken, err := h.Follower.Accept(ctx, s.Source.Name, d)
	if err != nil || !taken {
		return http.StatusAccepted, HookAnswer{Status: "ignored"}, err
	}
	return http.StatusAccepted, HookAnswer{Status: "taken"}, nil
}

// startSession starts a session for what happened at an issue.
func (h *webhooks) startSession(ctx context.Context, s Sender, asked forge.StartRequest) (int, HookAnswer, error) {
	if h.Runs == nil {
		return http.StatusAccepted, HookAnswer{Status: "ignored"}, nil
	}
	ran, err := h.Runs.RunForge(ctx, s.Source.Name, asked)
	return http.StatusAccepted, HookAnswer{Status: string(ran.Status), Session: ran.Session}, err
}

// hookBody reads a body of JSON. Strangers can send bodies, so few are read at the same time, and fewer of one address.
func (h *webhooks) hookBody(req *httpx.Request, from netip.Addr) ([]byte, error) {
	if given, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil &&
		given == "application/x-www-form-urlencoded" {
		return nil, httpx.Unsupported("the delivery comes as a form; set the content type application/json in the " +
			"webhook's settings at the forge")
	}
	leave, err := h.places.acquireSlot(from)
	if err != nil {
		return nil, err
	}
	defer leave()
	return httpx.ReadBody(req, "application/json")
}

// Bounds of deliveries whose bodies are in memory at the same time, in all and from one address, and of wrong
// signatures from one address a minute.
const (
	maxHooksAtOnce = 32
	maxHooksEach   = 8
	wrongHooksEach = 20
)

// hookPlaces are the places of deliveries that are being read.
type hookPlaces struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int
}

// acquireSlot takes a place; limit_reached if there is none.
func (p *hookPlaces) acquireSlot(from netip.Addr) (leave func(), err error) {
	from = httpx.Subscriber(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxHooksAtOnce || p.by[from] >= maxHooksEach {
		e := fault.New(fault.LimitReached,
			"too many deliveries arrive at the same time; the poll sees what this one is about")
		e.RetryAfter = time.Second
		return nil, e
	}
	p.all++
	p.by[from]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.by[from]--; p.by[from] == 0 {
			delete(p.by, from)
		}
	}, nil
}
