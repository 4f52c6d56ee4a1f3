package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
	made, used, err := s.Access.UseCode(
		t.Context(),
		"code-"+id,
		oauthGrant(id, client),
		func(got access.Token) record.Attempt {
			return attempt("row-" + got.ID)
		},
	)
	wantEqual(t, []any{used, err}, []any{true, nil})
	return made
}

func TestClientsAreKeptAndTheOldestWithoutAGrantGoes(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for i := range 4 {
		c := oauthClient(fmt.Sprint("c", i), noon().Add(time.Duration(i)*time.Second))
		wantEqual(t, s.Access.InsertClient(t.Context(), c, 4), nil)
		got, found, err := s.Access.FindClient(t.Context(), c.ID)
		wantEqual(t, []any{found, err}, []any{true, nil})
		wantEqual(t, got, c)
	}
	granted(t, s, "1", "c0") // it has a token
	wantEqual(t, s.Access.InsertCode(t.Context(), oauthCode("waits", "c1"), noon()), nil)
	wantEqual(
		t,
		s.Access.InsertClient(t.Context(), oauthClient("c4", noon().Add(5*time.Second)), 4, attempt("registered")),
		nil,
	)
	for id, want := range map[string]bool{"c0": true, "c1": true, "c2": false, "c3": true, "c4": true} {
		_, found, err := s.Access.FindClient(t.Context(), id)
		wantEqual(t, []any{id, found, err}, []any{id, want, nil})
	}
	wantEqual(t, verify(t, s, "").Rows, int64(2))
}

func TestACodeIsKeptAndMadeATokenOfOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	c := oauthCode("code", "c")
	wantEqual(t, s.Access.InsertCode(t.Context(), c, noon(), attempt("allowed")), nil)
	got, found, err := s.Access.FindCode(t.Context(), "code")
	wantEqual(t, []any{found, err}, []any{true, nil})
	wantEqual(t, got, c)

	var made, rows atomic.Int64
	var all sync.WaitGroup
	for i := range 8 { // at once
		all.Go(func() {
			_, used, err := s.Access.UseCode(
				t.Context(),
				"code",
				oauthGrant(fmt.Sprint("t", i), "c"),
				func(access.Token) record.Attempt {
					rows.Add(1)
					return attempt(fmt.Sprint("row", i))
				},
			)
			if err != nil {
				t.Error(err)
			}
			if used {
				made.Add(1)
			}
		})
	}
	all.Wait()
	wantEqual(t, []int64{made.Load(), rows.Load(), verify(t, s, "").Rows}, []int64{1, 1, 2})
	tokens, err := s.Access.Tokens(t.Context())
	wantEqual(t, []any{len(tokens), err}, []any{1, nil})
	got, _, err = s.Access.FindCode(t.Context(), "code")
	wantEqual(t, []any{got.Token.ID, err}, []any{tokens[0].ID, nil})
	wantEqual(t, []any{tokens[0].Client, tokens[0].Grantor}, []any{"Claude", "grantor"})

	wantEqual(t, s.Access.InsertCode(t.Context(), oauthCode("later", "c"), noon().Add(time.Hour)), nil)
	_, found, err = s.Access.FindCode(t.Context(), "code")
	wantEqual(t, []any{found, err}, []any{false, nil}) // it is too old
}

func TestTwinsGetANumber(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	wantEqual(t, granted(t, s, "1", "c").Name, "ann by Claude")
	wantEqual(t, granted(t, s, "2", "c").Name, "ann by Claude 2")
	wantEqual(t, granted(t, s, "3", "c").Name, "ann by Claude 3")
	ended, err := s.Access.EndGrant(t.Context(), "2", attempt("ended"))
	wantEqual(t, []any{ended, err}, []any{true, nil})
	ended, err = s.Access.EndGrant(t.Context(), "2", attempt("again"))
	wantEqual(t, []any{ended, err}, []any{false, nil})
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
	wantEqual(
		t,
		[]bool{has("access-1", noon()), has("access-1", noon().Add(time.Hour)), has("", noon()), has("refresh-1", noon())},
		[]bool{true, false, false, false},
	)
	var rotated atomic.Int64
	var all sync.WaitGroup
	for i := range 8 { // at once
		all.Go(func() {
			yes, err := s.Access.Rotate(t.Context(), "1", "refresh-1", access.Keys{
				Refresh: fmt.Sprint("r", i), RefreshUntil: noon().Add(time.Hour), Access: fmt.Sprint("a", i),
				AccessUntil: noon().Add(2 * time.Hour)})
			if err != nil {
				t.Error(err)
			}
			if yes {
				rotated.Add(1)
			}
		})
	}
	all.Wait()
	wantEqual(t, rotated.Load(), int64(1))
	g, found, err := s.Access.FindGrant(t.Context(), "family-1")
	wantEqual(t, []any{found, err, g.ClientID}, []any{true, nil, "c"})
	wantEqual(t, []bool{has(g.Access, noon()), has("access-1", noon()), has("access-1", noon().Add(time.Hour))},
		[]bool{true, true, false})
	_, err = s.Access.EndGrant(t.Context(), "1")
	wantEqual(t, err, nil)
	yes, err := s.Access.Rotate(t.Context(), "1", g.Refresh, access.Keys{Refresh: "x", Access: "x"})
	wantEqual(t, []any{yes, err}, []any{false, nil})
}
