package access_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
)

func TestACallerIsComparedWithWhoTheyWere(t *testing.T) {
	was := access.Principal{
		Actor:   access.Token{ID: "1", Name: "ci"}.Actor(),
		Ceiling: 2,
		Scopes:  access.Scopes{access.Read, access.Propose},
	}
	for name, c := range map[string]struct {
		change func(*access.Principal)
		want   fault.Code
	}{
		"the same":              {func(*access.Principal) {}, ""},
		"more":                  {func(p *access.Principal) { p.Ceiling, p.Scopes = 3, access.AllScopes() }, ""},
		"a lower tier":          {func(p *access.Principal) { p.Ceiling = 1 }, fault.TierDenied},
		"without the scope":     {func(p *access.Principal) { p.Scopes = access.Scopes{access.Read} }, fault.Forbidden},
		"without another scope": {func(p *access.Principal) { p.Scopes = access.Scopes{access.Propose} }, ""},
		"somebody else meanwhile": {func(p *access.Principal) { p.Actor = access.Token{ID: "2", Name: "ci"}.Actor() },
			fault.Unauthenticated},
		"another way, as the same": {func(p *access.Principal) { p.Via = access.ViaLogin }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := was
			c.change(&now)
			if got := fault.CodeOf(now.Still(was, access.Propose)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnAgentsTokenIsAskedAgain(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	was := access.Token{ID: "1", Name: "laptop", Hash: access.Hash("secret"), MaxTier: 2, Agent: true}
	for name, c := range map[string]struct {
		change func(*access.Token)
		want   fault.Code
	}{
		"the same":     {func(*access.Token) {}, ""},
		"revoked":      {func(t *access.Token) { t.RevokedAt = now }, fault.Unauthenticated},
		"expired":      {func(t *access.Token) { t.ExpiresAt = now }, fault.Unauthenticated},
		"a person's":   {func(t *access.Token) { t.Agent = false }, fault.Unauthenticated},
		"gone":         {func(t *access.Token) { t.Hash = access.Hash("another") }, fault.Unauthenticated},
		"a lower tier": {func(t *access.Token) { t.MaxTier = 1 }, fault.TierDenied},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{token: was}
			c.change(&m.token)
			g := access.NewGatekeeper(access.Options{Tokens: m, Logins: m, Now: func() time.Time { return now },
				Random: &bytes.Buffer{}})
			if got := fault.CodeOf(g.StillAgent(t.Context(), was)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
