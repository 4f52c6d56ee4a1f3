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

// Webhook is a kind of forge that sends webhooks, and the secret that it signs them with; without one they are refused.
type Webhook struct {
	Source webhook.Source
	Secret string
}

func (s *Server) hookRoutes() (out []route) {
	for _, h := range s.Webhooks {
		out = append(out, route{
			method: "POST", pattern: hooksPath + h.Source.Name, id: h.Source.Name + "Webhook",
			handle:  func(c *call) (answer, error) { return s.hook(c, h) },
			summary: "Hear from " + h.Source.Title + " that something happened to a pull request",
			description: "Signed with the secret that the operator configures (" + h.Source.Signatures[0].Header + "); no token is needed. What a delivery " +
				"says of a pull request is not believed: its provider is asked. 409 for a delivery that was taken before.",
			answers: map[int]any{http.StatusAccepted: HookAnswer{}, http.StatusOK: HookAnswer{}},
		})
	}
	return out
}

const hooksPath = "/webhooks/"

// hook answers a delivery and counts what became of it.
func (s *Server) hook(c *call, h Webhook) (answer, error) {
	status, said, err := s.deliver(c, h)
	result := said
	if err != nil {
		result = string(fault.CodeOf(err))
	}
	s.metrics.hooks.WithLabelValues(h.Source.Name, result).Inc()
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, value: HookAnswer{said}}, nil
}

// deliver reads, checks and hands on a delivery, in this order: nothing of it is looked at before its signature is right. A
// delivery that is rightly signed is never kept out by others that are not.
func (s *Server) deliver(c *call, h Webhook) (status int, said string, err error) {
	if h.Secret == "" {
		return 0, "", fault.New(fault.ProviderDisabled, "webhooks of this forge are off: %s_WEBHOOK_SECRET is not set, or is too short",
			strings.ToUpper(h.Source.Name))
	}
	from := s.Network.client(c.Request)
	if err := h.Source.Signed(c.Header); err != nil { // before its body is read
		return 0, "", s.hooks.wrong.count(from, err)
	}
	body, err := s.hookBody(c, from)
	if err != nil {
		return 0, "", err
	}
	if err := h.Source.Verify(c.Header, body, h.Secret); err != nil {
		return 0, "", s.hooks.wrong.count(from, err)
	}
	d, err := h.Source.Parse(c.Header, body)
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
	taken, err := s.Hooks.Accept(ctx, h.Source.Name, d)
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
