package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
	wantEqual(t, must.Get(s.Access.AnyToken(ctx))(t), false)
	wantEqual(t, s.Access.InsertToken(ctx, token("ci")), nil)
	wantEqual(t, found(s.Access.FindToken(ctx, access.Hash("cops_ci")))(t), token("ci"))
	_, ok, err := s.Access.FindToken(ctx, access.Hash("cops_other"))
	wantEqual(t, ok || err != nil, false)

	twin := token("ci")
	twin.ID, twin.Hash = "id-2", access.Hash("2")
	wantCode(t, s.Access.InsertToken(ctx, twin), fault.Conflict)
	wantCode(t, s.Access.RevokeToken(ctx, "nobody"), fault.NotFound)
	wantEqual(t, s.Access.RevokeToken(ctx, "ci"), nil)
	wantCode(t, s.Access.RevokeToken(ctx, "ci"), fault.NotFound)
	wantEqual(t, found(s.Access.FindToken(ctx, access.Hash("cops_ci")))(t).RevokedAt, noon())

	wantEqual(t, s.Access.InsertToken(ctx, twin), nil) // the name is free again
	wantEqual(t, s.Access.RevokeToken(ctx, "id-2"), nil)
	wantEqual(t, must.Get(s.Access.AnyToken(ctx))(t), true) // revoked ones count
	wantEqual(t, len(must.Get(s.Access.Tokens(ctx))(t)), 2)
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
	wantEqual(t, found(s.Access.FindLogin(ctx, "a"))(t),
		access.Login{Hash: "a", TokenHash: "t", CreatedAt: noon(), SeenAt: noon().Add(time.Second)})
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
	want := func(caller, key, body string, want record.Reply) {
		t.Helper()
		got := must.Get(take(caller, key, body))(t)
		wantEqual(t, got.Status, want.Status)
		wantEqual(t, string(got.Body), string(want.Body))
	}
	want("ann", "k", "b1", record.Reply{})
	want("ann", "k", "b1", record.Reply{}) // the first one was not answered yet, or failed
	wantEqual(t, s.Replies.KeepReply(ctx, "ann", "k", record.Reply{Status: 201, Body: []byte("made")}), nil)
	wantEqual(t, s.Replies.KeepReply(ctx, "ann", "k", record.Reply{Status: 200, Body: []byte("reused")}), nil)
	want("ann", "k", "b1", record.Reply{Status: 201, Body: []byte("made")})
	_, err := take("ann", "k", "b2")
	wantCode(t, err, fault.Conflict)
	want("joe", "k", "b2", record.Reply{})
	c.now = c.now.Add(24 * time.Hour)
	want("ann", "k", "b2", record.Reply{})
}

func TestAnAgentsTokenIsKeptAsItIsAndCountsForNobodysSignIn(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	k := token("laptop")
	k.Agent, k.Scopes, k.ExpiresAt = true, nil, noon().Add(24*time.Hour)
	k.DryRun, k.ReadOnly = true, true
	wantEqual(t, s.Access.InsertToken(ctx, k), nil)
	wantEqual(t, found(s.Access.FindToken(ctx, k.Hash))(t), k)
	wantEqual(t, must.Get(s.Access.AnyToken(ctx))(t), false)
}

func oauthClient(id string, made time.Time) access.Client {
	return access.Client{
		ID:        id,
		Name:      "Claude <" + id + ">",
		Redirects: []string{"http://127.0.0.1/callback"},
		CreatedAt: made,
	}
}

func oauthCode(hash, client string) access.Code {
	return access.Code{
		Hash: hash, ClientID: client, Redirect: "http://127.0.0.1:5/callback", Challenge: "challenge",
		Token: access.Token{Name: "ann by Claude", MaxTier: 2, Agent: true, DryRun: true, Repos: []string{"a/b", "c/*"},
			Owner: access.Account{Issuer: "i", Subject: "s"}, Grantor: "grantor"},
		ExpiresAt: noon().Add(time.Minute),
	}
}

func oauthGrant(id, client string) access.Grant {
	t := token("ann by Claude")
	t.ID, t.Hash, t.Agent, t.Scopes, t.Client, t.Grantor = id, "hash-"+id, true, nil, "Claude", "grantor"
	return access.Grant{Token: t, ClientID: client, Keys: access.Keys{
		Family: "family-" + id, Refresh: "refresh-" + id, RefreshUntil: noon().Add(24 * time.Hour), Access: "access-" + id,
		AccessUntil: noon().Add(time.Hour),
	}}
}

// granted makes a grant of a client that has registered.
func granted(t *testing.T, s *Store, id, client string) access.Token {
	t.Helper()
	wantEqual(t, s.Access.InsertCode(t.Context(), oauthCode("code-"+id, client), noon()), nil)
	row := func(got access.Token) record.Attempt { return attempt("row-" + got.ID) }
	return found(s.Access.UseCode(t.Context(), "code-"+id, oauthGrant(id, client), row))(t)
}

func TestClientsAreKeptAndTheOldestWithoutAGrantGoes(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for i := range 4 {
		c := oauthClient(fmt.Sprint("c", i), noon().Add(time.Duration(i)*time.Second))
		wantEqual(t, s.Access.InsertClient(t.Context(), c, 4), nil)
		wantEqual(t, found(s.Access.FindClient(t.Context(), c.ID))(t), c)
	}
	granted(t, s, "1", "c0") // it has a token
	wantEqual(t, s.Access.InsertCode(t.Context(), oauthCode("waits", "c1"), noon()), nil)
	fifth := oauthClient("c4", noon().Add(5*time.Second))
	wantEqual(t, s.Access.InsertClient(t.Context(), fifth, 4, attempt("registered")), nil)
	for id, want := range map[string]bool{"c0": true, "c1": true, "c2": false, "c3": true, "c4": true} {
		_, found, err := s.Access.FindClient(t.Context(), id)
		wantEqual(t, []any{id, found, err}, []any{id, want, nil})
	}
	wantEqual(t, verify(t, s, "").Rows, int64(2))

	again := oauthClient("c4", noon().Add(time.Minute)) // as its document says by now
	again.Name, again.Redirects = "Another name", []string{"https://a.example/"}
	wantEqual(t, s.Access.InsertClient(t.Context(), again, 5), nil)
	wantEqual(t, found(s.Access.FindClient(t.Context(), "c4"))(t), again)
}

func TestACodeIsKeptAndMadeATokenOfOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	c := oauthCode("code", "c")
	wantEqual(t, s.Access.InsertCode(t.Context(), c, noon(), attempt("allowed")), nil)
	wantEqual(t, found(s.Access.FindCode(t.Context(), "code"))(t), c)

	var rows atomic.Int64
	made := together(t, 8, func(i int) (bool, error) {
		row := func(access.Token) record.Attempt {
			rows.Add(1)
			return attempt(fmt.Sprint("row", i))
		}
		_, used, err := s.Access.UseCode(t.Context(), "code", oauthGrant(fmt.Sprint("t", i), "c"), row)
		return used, err
	})
	wantEqual(t, []int64{made, rows.Load(), verify(t, s, "").Rows}, []int64{1, 1, 2})
	tokens := must.Get(s.Access.Tokens(t.Context()))(t)
	wantEqual(t, len(tokens), 1)
	wantEqual(t, found(s.Access.FindCode(t.Context(), "code"))(t).Token.ID, tokens[0].ID)
	wantEqual(t, []any{tokens[0].Client, tokens[0].ClientID, tokens[0].Grantor}, []any{"Claude", "c", "grantor"})

	wantEqual(t, s.Access.InsertCode(t.Context(), oauthCode("later", "c"), noon().Add(time.Hour)), nil)
	_, ok, err := s.Access.FindCode(t.Context(), "code")
	wantEqual(t, []any{ok, err}, []any{false, nil}) // it is too old
}

func TestTwinsGetANumber(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	wantEqual(t, granted(t, s, "1", "c").Name, "ann by Claude")
	wantEqual(t, granted(t, s, "2", "c").Name, "ann by Claude 2")
	wantEqual(t, granted(t, s, "3", "c").Name, "ann by Claude 3")
	wantEqual(t, must.Get(s.Access.EndGrant(t.Context(), "2", attempt("ended")))(t), true)
	wantEqual(t, must.Get(s.Access.EndGrant(t.Context(), "2", attempt("again")))(t), false)
	wantEqual(t, granted(t, s, "4", "c").Name, "ann by Claude 2")
}

func TestKeysOfAGrantAreGivenInPlaceOfTheLastOnesOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	granted(t, s, "1", "c")
	has := func(hash string, at time.Time) bool {
		t.Helper()
		got, found, err := s.Access.FindAccess(t.Context(), hash, at)
		wantEqual(t, []any{err, found && got.ID != "1"}, []any{nil, false})
		return found
	}
	wantEqual(t, []bool{has("access-1", noon()), has("access-1", noon().Add(time.Hour)), has("", noon()),
		has("refresh-1", noon())}, []bool{true, false, false, false})
	wantEqual(t, together(t, 8, func(i int) (bool, error) {
		return s.Access.Rotate(t.Context(), "1", "refresh-1", access.Keys{
			Refresh: fmt.Sprint("r", i), RefreshUntil: noon().Add(time.Hour), Access: fmt.Sprint("a", i),
			AccessUntil: noon().Add(2 * time.Hour)})
	}), int64(1))
	g := found(s.Access.FindGrant(t.Context(), "family-1"))(t)
	wantEqual(t, g.ClientID, "c")
	wantEqual(t, []bool{has(g.Access, noon()), has("access-1", noon()), has("access-1", noon().Add(time.Hour))},
		[]bool{true, true, false})
	must.Get(s.Access.EndGrant(t.Context(), "1"))(t)
	wantEqual(t, must.Get(s.Access.Rotate(t.Context(), "1", g.Refresh, access.Keys{Refresh: "x", Access: "x"}))(t), false)
}
