package health

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// TestTheAgeOfALookCountsFromItsBeginning has something break while doctor looks: the finding is as old as the look's
// beginning, and is looked for anew after doctorAge from there.
func TestTheAgeOfALookCountsFromItsBeginning(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	began, state, looks := now, doctor.OK, 0
	c := New(Options{
		Doctor: func(context.Context) []doctor.Finding {
			looks++
			found := []doctor.Finding{{Name: "git", Status: state}}
			state = doctor.Problem
			now = now.Add(doctorAge)
			return found
		},
		Registry: gitprovider.NewRegistry(nil, nil, "", nil),
		Env: httpx.Env{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
			Redact: func(text string) string { return text }},
	})
	if h := c.Now(t.Context()); !h.At.Equal(began) || len(h.Of(doctor.Problem)) != 0 {
		t.Fatalf("the first look is of %s, want %s: %+v", h.At, began, h.Parts)
	}
	h, err := c.Check(t.Context())
	if err != nil || looks != 2 || len(h.Of(doctor.Problem)) != 1 {
		t.Fatalf("what broke during the first look is not found after %d looks: %+v, %v", looks, h.Parts, err)
	}
}
