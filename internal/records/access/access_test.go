package access_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestScopesAreReadStrictly(t *testing.T) {
	for list, want := range map[string]string{
		"read": "read", "read,propose": "propose,read", " review , review": "review",
		"propose,review,read": "propose,review,read",
		"":                    "!", "admin": "!", "read,": "!", "READ": "!", "read propose": "!", "*": "!",
	} {
		got, err := access.ParseScopes(list)
		if want == "!" && (err == nil || got != nil) || want != "!" && (err != nil || got.String() != want) {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
}

func TestATokenIs256RandomBitsAndKeptAsAHash(t *testing.T) {
	secret, err := access.NewSecret(bytes.NewReader(make([]byte, 64)))
	if err != nil || secret != access.TokenPrefix+strings.Repeat("A", 43) {
		t.Errorf("got %q, %v", secret, err)
	}
	if hash := access.Hash(secret); len(hash) != 64 || strings.Contains(hash, "AAAA") {
		t.Errorf("hash %q", hash)
	}
	if _, err := access.NewSecret(iotest.ErrReader(errors.New("no entropy"))); err == nil {
		t.Error("a token was made without random bytes")
	}
	if _, err := access.NewSecret(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a token was made of too few random bytes")
	}
}

// memory holds one token and one session; err is the error of every call, if it is set.
type memory struct {
	token   access.Token
	session access.Login
	touched int
	err     error
}

func (m *memory) FindToken(_ context.Context, hash string) (access.Token, bool, error) {
	return m.token, m.token.Hash == hash, m.err
}
func (m *memory) FindAccess(context.Context, string, time.Time) (access.Token, bool, error) {
	return access.Token{}, false, m.err
}
func (m *memory) TouchToken(context.Context, string, time.Time) error { return m.err }
func (m *memory) UpdateLogin(_ context.Context, s access.Login) error {
	m.session = s
	return m.err
}
func (m *memory) Logins(context.Context) ([]access.Login, error) {
	return []access.Login{m.session}, m.err
}
func (m *memory) EndLogin(context.Context, string, ...record.Attempt) error {
	m.session = access.Login{}
	return m.err
}
func (m *memory) InsertLogin(_ context.Context, s access.Login, _, _ time.Time, _ ...record.Attempt) error {
	m.session = s
	return m.err
}
func (m *memory) FindLogin(_ context.Context, hash string) (access.Login, bool, error) {
	return m.session, m.session.Hash == hash, m.err
}
func (m *memory) TouchLogin(_ context.Context, _ string, at time.Time) error {
	m.touched++
	m.session.SeenAt = at
	return m.err
}
func (m *memory) DeleteLogin(context.Context, string) error {
	m.session = access.Login{}
	return m.err
}

func TestARecordThatCannotBeReadLetsNobodyIn(t *testing.T) {
	ctx, broken := context.Background(), fault.New(fault.Internal, "the disk is gone")
	m := &memory{token: access.Token{Name: "ann", Hash: access.Hash("cops_x"), MaxTier: 3, Scopes: access.AllScopes()},
		err: broken}
	g := gatekeeper(m, time.Now)
	if p, err := g.Bearer(ctx, "cops_x"); fault.CodeOf(err) != fault.Internal || len(p.Scopes) != 0 {
		t.Errorf("a token: %+v, %v", p, err)
	}
	if p, err := g.Login(ctx, "x"); fault.CodeOf(err) != fault.Internal || len(p.Scopes) != 0 {
		t.Errorf("a session: %+v, %v", p, err)
	}
	if id, _, err := g.SignIn(ctx, "cops_x", ""); id != "" || err == nil {
		t.Errorf("signing in: %q, %v", id, err)
	}
}

func TestASessionInUseIsWrittenOnceAMinute(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	m := &memory{token: access.Token{Name: "ann", Hash: access.Hash("cops_x"), MaxTier: 2, Scopes: access.AllScopes()}}
	g := gatekeeper(m, func() time.Time { return now })
	id, _, err := g.SignIn(context.Background(), "cops_x", "")
	if err != nil || m.session.Hash == id || m.session.TokenHash != m.token.Hash {
		t.Fatalf("%v, kept %+v", err, m.session)
	}
	for range 180 {
		now = now.Add(time.Second)
		must.Get(g.Login(context.Background(), id))(t)
	}
	if m.touched != 3 {
		t.Errorf("%d writes", m.touched)
	}
}

func gatekeeper(m *memory, now func() time.Time) *access.Gatekeeper {
	return access.NewGatekeeper(access.Options{Tokens: m, Logins: m, Now: now,
		Random: bytes.NewReader(bytes.Repeat([]byte{7}, 320))})
}

func TestAnAgentsTokenOpensTheDoorAloneAndNoOtherDoes(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	now := func() time.Time { return at }
	for name, test := range map[string]struct {
		change        func(*access.Token)
		bearer, agent bool
	}{
		"a person's":          {func(*access.Token) {}, true, false},
		"an agent's":          {func(k *access.Token) { k.Agent = true }, false, true},
		"a revoked one":       {func(k *access.Token) { k.Agent, k.RevokedAt = true, at.Add(-time.Second) }, false, false},
		"an expired one":      {func(k *access.Token) { k.Agent, k.ExpiresAt = true, at }, false, false},
		"one that will":       {func(k *access.Token) { k.Agent, k.ExpiresAt = true, at.Add(time.Second) }, false, true},
		"an expired person's": {func(k *access.Token) { k.ExpiresAt = at }, false, false},
	} {
		m := &memory{token: access.Token{Name: "ann", Hash: access.Hash("cops_x"), MaxTier: 2, Scopes: access.AllScopes()}}
		test.change(&m.token)
		g := gatekeeper(m, now)
		_, err := g.Bearer(t.Context(), "cops_x")
		if (err == nil) != test.bearer || err != nil && fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s, over REST: %v", name, err)
		}
		if _, _, err := g.SignIn(t.Context(), "cops_x", ""); (err == nil) != test.bearer {
			t.Errorf("%s, signing in: %v", name, err)
		}
		got, err := g.AgentToken(t.Context(), "cops_x")
		if (err == nil) != test.agent || err != nil && fault.CodeOf(err) != fault.Unauthenticated || err == nil &&
			got.MaxTier != 2 {
			t.Errorf("%s, at the door: %+v, %v", name, got, err)
		}
		if _, err := g.AgentToken(t.Context(), "cops_y"); err == nil {
			t.Errorf("%s: another secret is let in", name)
		}
	}
}

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
			must.Equal(t, fault.CodeOf(now.Still(was, access.Propose)), c.want)
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
			must.Equal(t, fault.CodeOf(g.StillAgent(t.Context(), was)), c.want)
		})
	}
}
