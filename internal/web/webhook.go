package web

import (
	"context"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/webhook"
)

// hookTimeout is how long a delivery may take: Gitea waits 5 seconds for an answer by default, GitHub 10.
const hookTimeout = 4 * time.Second

// HookAnswer says what became of a delivery.
type HookAnswer struct {
	Status string `json:"status" enum:"taken,ignored,pong" doc:"taken: the provider is asked behind the answer"`
}

func (s *Server) hookRoutes() (out []route) {
	for _, h := range []struct{ source, forge, signature string }{
		{webhook.GitHub, "GitHub", "X-Hub-Signature-256"}, {webhook.Gitea, "Gitea or Forgejo", "X-Gitea-Signature"},
	} {
		out = append(out, route{
			method: "POST", pattern: hookPath(h.source), id: h.source + "Webhook",
			handle:  func(c *call) (answer, error) { return s.hook(c, h.source) },
			summary: "Hear from " + h.forge + " that something happened to a pull request",
			description: "Signed with the secret that the operator configures (" + h.signature + "); no token is needed. What a delivery " +
				"says of a pull request is not believed: its provider is asked. 409 for a delivery that was taken before.",
			answers: map[int]any{http.StatusAccepted: HookAnswer{}, http.StatusOK: HookAnswer{}},
		})
	}
	return out
}

func hookPath(source string) string { return "/webhooks/" + source }

// hook answers a delivery and counts what became of it.
func (s *Server) hook(c *call, source string) (answer, error) {
	status, said, err := s.deliver(c, source)
	result := said
	if err != nil {
		result = string(fault.CodeOf(err))
	}
	s.metrics.hooks.WithLabelValues(source, result).Inc()
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, value: HookAnswer{said}}, nil
}

// deliver reads, checks and hands on a delivery, in this order: nothing of it is looked at before its signature is right. A
// delivery that is rightly signed is never kept out by others that are not.
func (s *Server) deliver(c *call, source string) (status int, said string, err error) {
	secret := s.HookSecrets[source]
	if secret == "" {
		return 0, "", fault.New(fault.ProviderDisabled, "webhooks of this forge are off: %s_WEBHOOK_SECRET is not set, or is too short",
			strings.ToUpper(source))
	}
	from := s.Network.client(c.Request)
	if err := webhook.Signed(source, c.Header); err != nil { // before its body is read
		return 0, "", s.hooks.wrong.count(from, err)
	}
	body, err := s.hookBody(c, from)
	if err != nil {
		return 0, "", err
	}
	if err := webhook.Verify(source, c.Header, body, secret); err != nil {
		return 0, "", s.hooks.wrong.count(from, err)
	}
	d, err := webhook.Parse(source, c.Header, body)
	switch {
	case err != nil:
		return 0, "", err
	case d.Ping:
		return http.StatusOK, "pong", nil
	case !d.Concerns():
		return http.StatusAccepted, "ignored", nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), hookTimeout)
	defer cancel()
	taken, err := s.Hooks.Accept(ctx, source, d)
	if err != nil || !taken {
		return http.StatusAccepted, "ignored", err
	}
	return http.StatusAccepted, "taken", nil
}

// hookBody reads a body of JSON. Strangers can send bodies, so few are read at the same time, and fewer of one address.
func (s *Server) hookBody(c *call, from netip.Addr) ([]byte, error) {
	if given, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err == nil && given == "application/x-www-form-urlencoded" {
		return nil, unsupported("the delivery comes as a form; set the content type application/json in the webhook's settings at the forge")
	}
	leave, err := s.hooks.places.take(from)
	if err != nil {
		return nil, err
	}
	defer leave()
	return readBody(c, "application/json")
}
