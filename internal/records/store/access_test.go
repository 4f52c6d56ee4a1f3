package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

func token(name string) access.Token {
	return access.Token{
		ID: "id-" + name, Name: name, Hash: access.Hash("cops_" + name), MaxTier: 2,
		Scopes: access.Scopes{access.Propose, access.Read}, CreatedAt: noon(),
	}
}

func TestTokensAreKeptFoundAndRevoked(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	exists, err := s.Access.AnyToken(ctx)
	wantEqual(t, exists || err != nil, false)
	wantEqual(t, s.Access.InsertToken(ctx, token("ci")), nil)
	found, ok, err := s.Access.FindToken(ctx, access.Hash("cops_ci"))
	wantEqual(t, ok && err == nil, true)
	wantEqual(t, found, token("ci"))
	_, ok, err = s.Access.FindToken(ctx, access.Hash("cops_other"))
	wantEqual(t, ok || err != nil, false)

	twin := token("ci")
	twin.ID, twin.Hash = "id-2", access.Hash("2")
	wantCode(t, s.Access.InsertToken(ctx, twin), fault.Conflict)
	wantCode(t, s.Access.RevokeToken(ctx, "nobody"), fault.NotFound)
	wantEqual(t, s.Access.RevokeToken(ctx, "ci"), nil)
	wantCode(t, s.Access.RevokeToken(ctx, "ci"), fault.NotFound)
	found, _, err = s.Access.FindToken(ctx, access.Hash("cops_ci"))
	wantEqual(t, err, nil)
	wantEqual(t, found.RevokedAt, noon())

	wantEqual(t, s.Access.InsertToken(ctx, twin), nil) // the name is free again
	wantEqual(t, s.Access.RevokeToken(ctx, "id-2"), nil)
	exists, err = s.Access.AnyToken(ctx)
	wantEqual(t, exists && err == nil, true) // revoked ones count
	all, err := s.Access.Tokens(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, len(all), 2)
}

func TestSessionsAreKeptTouchedAndPruned(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	insert := func(hash string, made, seen time.Time) {
		t.Helper()
		session := access.Login{Hash: hash, TokenHash: "t", CreatedAt: made, SeenAt: seen}
		wantEqual(t, s.Access.InsertLogin(ctx, session, noon().Add(-time.Hour), noon().Add(-time.Minute)), nil)
	}
	known := func(hash string) bool {
		t.Helper()
		_, ok, err := s.Access.FindLogin(ctx, hash)
		wantEqual(t, err, nil)
		return ok
	}
	insert("old", noon().Add(-2*time.Hour), noon())
	insert("idle", noon(), noon().Add(-2*time.Minute))
	insert("a", noon(), noon())
	wantEqual(t, []bool{known("old"), known("idle"), known("a"), known("none")}, []bool{false, false, true, false})

	wantEqual(t, s.Access.TouchLogin(ctx, "a", noon().Add(time.Second)), nil)
	got, _, err := s.Access.FindLogin(ctx, "a")
	wantEqual(t, err, nil)
	wantEqual(t, got, access.Login{Hash: "a", TokenHash: "t", CreatedAt: noon(), SeenAt: noon().Add(time.Second)})
	wantEqual(t, s.Access.DeleteLogin(ctx, "a"), nil)
	wantEqual(t, s.Access.DeleteLogin(ctx, "a"), nil)
	wantEqual(t, s.Access.TouchLogin(ctx, "a", noon()), nil)
	wantEqual(t, known("a"), false)
}

func TestAnIdempotencyKeyStandsForOneBodyOfOneCallerForItsLifetime(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), &clock{noon()}
	s := openWith(t, Options{Now: c.Now})
	take := func(caller, key, body string) (record.Reply, error) {
		return s.Replies.TakeKey(ctx, caller, key, body, 24*time.Hour)
	}
	must := func(caller, key, body string, want record.Reply) {
		t.Helper()
		got, err := take(caller, key, body)
		wantEqual(t, err, nil)
		wantEqual(t, got.Status, want.Status)
		wantEqual(t, string(got.Body), string(want.Body))
	}
	must("ann", "k", "b1", record.Reply{})
	must("ann", "k", "b1", record.Reply{}) // the first one was not answered yet, or failed
	wantEqual(t, s.Replies.KeepReply(ctx, "ann", "k", record.Reply{Status: 201, Body: []byte("made")}), nil)
	wantEqual(t, s.Replies.KeepReply(ctx, "ann", "k", record.Reply{Status: 200, Body: []byte("reused")}), nil)
	must("ann", "k", "b1", record.Reply{Status: 201, Body: []byte("made")})
	_, err := take("ann", "k", "b2")
	wantCode(t, err, fault.Conflict)
	must("joe", "k", "b2", record.Reply{})
	c.now = c.now.Add(24 * time.Hour)
	must("ann", "k", "b2", record.Reply{})
}

func TestAnAgentsTokenIsKeptAsItIsAndCountsForNobodysSignIn(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	k := token("laptop")
	k.Agent, k.Scopes, k.ExpiresAt = true, nil, noon().Add(24*time.Hour)
	k.DryRun, k.ReadOnly = true, true
	wantEqual(t, s.Access.InsertToken(ctx, k), nil)
	got, found, err := s.Access.FindToken(ctx, k.Hash)
	wantEqual(t, []any{err, found}, []any{nil, true})
	wantEqual(t, got, k)
	made, err := s.Access.AnyToken(ctx)
	wantEqual(t, []any{err, made}, []any{nil, false})
}
