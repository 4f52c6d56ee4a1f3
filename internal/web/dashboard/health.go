package dashboard

import (
	"context"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// healthPath is the address of the page Health.
const healthPath = "/doctor"

// standing returns the state of the server, shown beside the navigation.
func (h *renderer) standing(ctx context.Context) pages.ServerStatus {
	now := h.health.Now(ctx)
	s := pages.ServerStatus{Mode: "Opens changes, tier " + h.settings.Tier.String()}
	s.Health, s.Tone = now.Headline()
	for _, f := range now.Of(doctor.Problem) {
		if name, is := strings.CutPrefix(f.Name, "provider "); is {
			p := healthPart{f}
			s.Down = append(s.Down, pages.UnavailableForge{Provider: name, Title: f.Headline(),
				Why:   p.Detail() + " " + p.Stopped(),
				Since: p.Moment()})
		}
	}
	switch {
	case h.settings.Rules().ReadOnly != "":
		s.Mode, s.Held = "Read-only", true
	case h.settings.Rules().DryRun:
		s.Mode, s.Held = "Dry run, tier "+h.settings.Tier.String(), true
	case len(now.Of(doctor.Held)) > 0:
		s.Mode, s.Held = "Opens no changes, tier "+h.settings.Tier.String(), true
	}
	return s
}

// healthPart is a part of the server's health as pages show it.
type healthPart struct{ doctor.Finding }

// Key implements pages.Part: it is the whole.
func (p healthPart) Key() any { return p }

// Word describes its status.
func (p healthPart) Word() views.Word { return views.Part(p.Status) }

// Title says what is wrong, or else is its name.
func (p healthPart) Title() string {
	if p.Status == doctor.Problem {
		return p.Headline()
	}
	return p.Name
}

// Detail describes its state, as a sentence.
func (p healthPart) Detail() string { return views.Sentence(p.Finding.Detail) }

// Stopped says what it stops, as a sentence; "" for nothing.
func (p healthPart) Stopped() string {
	if p.Stops == "" || p.Status == doctor.OK {
		return ""
	}
	return "It stops " + p.Stops + "."
}

// Remedy says what to do, as a sentence; "" for nothing.
func (p healthPart) Remedy() string { return views.Sentence(p.Do) }

// Moment returns the time since when it is so; zero where that is not known.
func (p healthPart) Moment() time.Time {
	if p.Since == nil {
		return time.Time{}
	}
	return *p.Since
}

// button leads to a page on which a person acts on something, or sees more of it.
type button struct{ Text, To string }

// Button returns the part's button; nil for none. Its address is without the base.
func (p healthPart) Button() *button {
	name, _, _ := strings.Cut(p.Name, " ")
	switch name {
	case doctor.RecordsPart:
		return &button{"See the records", auditPath}
	case "provider", "local":
		return &button{"Ask the forges", askForgesPath}
	case "policy", "tier", "switches", "default":
		return &button{"See the policy", "/policy"}
	case "sessions":
		return &button{"See the schedule", sessionsPath + "/schedule"}
	case "sign-in":
		return &button{"See who is signed in", "/logins"}
	case "connector":
		return &button{"See who is connected", "/connections"}
	}
	return nil
}

// askForgesPath is the address of the page Health with what the forges have.
const askForgesPath = healthPath + "?ask=forges"

// healthParams says whether the forges are asked for their pull requests, too.
type healthParams struct {
	Ask string `json:"ask,omitempty" enum:"forges"`
}

// healthPage shows how the server is, part by part.
type healthPage struct {
	pages.Page
	Answer, Tone string
	Wrong, Fine  []healthPart
	At           time.Time
	Asked        *pullsRead // what the forges have; nil if they were not asked
}

func (h *healthPages) showHealth(req *httpx.Request, q healthParams) (httpx.Response, error) {
	now, err := h.health.Check(req.Context())
	if err != nil {
		return httpx.Response{}, err
	}
	view := healthPage{Page: h.frame(req, "Health", healthPath), At: now.At}
	if q.Ask != "" {
		read, err := h.readPulls(req)
		if err != nil {
			return httpx.Response{}, err
		}
		view.Asked = &read
	}
	for _, status := range []string{doctor.Problem, doctor.Held, doctor.Warning} {
		for _, f := range now.Of(status) {
			view.Wrong = append(view.Wrong, healthPart{f})
		}
	}
	for _, f := range now.Parts {
		if f.Status == doctor.OK || f.Status == doctor.Off {
			view.Fine = append(view.Fine, healthPart{f})
		}
	}
	view.Answer, view.Tone = now.Answer()
	return h.html("doctor", view)
}
