package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Issued is the token response (RFC 6749, 5.1). Tokens are in no other answer, and stored only as hashes.
type Issued struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// Exchange answers what a program asks at the token endpoint. What it may not have is an *Error. id is that of the
// request.
func (s *Service) Exchange(ctx context.Context, id string, form url.Values, at ServerAddresses) (Issued, error) {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return Issued{}, wrong(errRequest, "a parameter is there twice")
		}
	}
	if !isTarget(form["resource"], at) {
		return Issued{}, wrong(errTarget, "resource must be "+at.Resource)
	}
	if form.Has("client_secret") {
		return Issued{}, wrong(errClient, "programs have no secret here")
	}
	_, known, err := s.Store().FindClient(ctx, form.Get("client_id"))
	switch {
	case err != nil:
		return Issued{}, err
	case !known:
		return Issued{}, wrong(errClient, "client_id is unknown: the program has neither registered here nor been let in, or so "+
			"long ago that it is forgotten; begin again")
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		return s.byCode(ctx, id, form)
	case "refresh_token":
		return s.byRefresh(ctx, id, form)
	}
	return Issued{}, wrong(errGrantType, "grant_type must be authorization_code or refresh_token")
}

// badCode returns the one answer for every invalid code, and badRefresh the one for every invalid refresh token.
func badCode() *Error {
	return wrong(errGrant, "the code is unknown, used or too old, or belongs to another request; begin again")
}

func badRefresh() *Error {
	return wrong(errGrant, "the refresh token is unknown, used, revoked or too old; ask the person again")
}

// byCode exchanges a code. One that comes a second time revokes what was given for it.
func (s *Service) byCode(ctx context.Context, id string, form url.Values) (Issued, error) {
	code := form.Get("code")
	if !isSecret(code) {
		return Issued{}, badCode()
	}
	hash := access.Hash(code)
	c, found, err := s.Store().FindCode(ctx, hash)
	switch {
	case err != nil:
		return Issued{}, err
	case !found:
		return Issued{}, badCode()
	case c.Token.ID != "":
		return Issued{}, s.reused(ctx, id, c.Token.ID, "a code came a second time", badCode())
	case !s.Now().Before(c.ExpiresAt) || c.ClientID != form.Get("client_id") || c.Redirect != form.Get("redirect_uri") ||
		!verifies(form.Get("code_verifier"), c.Challenge):
		return Issued{}, badCode()
	}
	return s.issueFor(ctx, id, hash, c)
}

// issueFor makes the token that a code stands for.
func (s *Service) issueFor(ctx context.Context, id, hash string, c access.Code) (Issued, error) {
	if _, err := s.Gatekeeper().Granted(ctx, c.Token); err != nil {
		return Issued{}, lost(err, badCode())
	}
	client, found, err := s.Store().FindClient(ctx, c.ClientID)
	if err == nil && !found {
		err = badCode()
	}
	if err != nil {
		return Issued{}, err
	}
	unused, err := s.secret() // the token itself is never used
	if err != nil {
		return Issued{}, err
	}
	family, err := access.NewSecret(s.Random)
	if err != nil {
		return Issued{}, err
	}
	now := s.Now()
	t := c.Token
	t.ID, t.Hash, t.Agent, t.Client = s.NewID(), access.Hash(unused), true, client.Name
	t.CreatedAt, t.ExpiresAt = now, now.Add(GrantLife)
	issued, keys, err := s.keys(family, t.ExpiresAt)
	if err != nil {
		return Issued{}, err
	}
	_, used, err := s.Store().UseCode(ctx, hash, access.Grant{Token: t, ClientID: c.ClientID, Keys: keys},
		func(t access.Token) record.Attempt {
			return s.auditRow(ActionGrant, id, t.Actor(), fmt.Sprintf("token %s (%s), of %s: at most tier %s, for %s, until %s",
				t.Name, t.ID, programLabel(client), t.MaxTier, limitsOf(t.Repos, t.DryRun), t.ExpiresAt.UTC().Format(time.RFC3339)))
		})
	if err == nil && !used { // another call with the code was faster
		if c, _, err = s.Store().FindCode(ctx, hash); err == nil {
			err = s.reused(ctx, id, c.Token.ID, "a code came a second time", badCode())
		}
	}
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// keys returns new keys of a family, none of which is valid beyond the end of the grant.
func (s *Service) keys(family string, end time.Time) (Issued, access.Keys, error) {
	shown, err := access.NewSecret(s.Random)
	if err != nil {
		return Issued{}, access.Keys{}, err
	}
	turn, err := s.secret()
	if err != nil {
		return Issued{}, access.Keys{}, err
	}
	now := s.Now()
	earlier := func(life time.Duration) time.Time {
		if at := now.Add(life); at.Before(end) {
			return at
		}
		return end
	}
	k := access.Keys{Family: access.Hash(family), Refresh: access.Hash(family + "." + turn),
		RefreshUntil: earlier(IdleLife), Access: access.Hash(shown), AccessUntil: earlier(AccessLife)}
	return Issued{Access: shown, Type: "Bearer", Expires: int(k.AccessUntil.Sub(now) / time.Second),
		Refresh: family + "." + turn, Scope: Scope}, k, nil
}

// byRefresh gives other keys for a refresh token. One that was used before ends the grant.
func (s *Service) byRefresh(ctx context.Context, id string, form url.Values) (Issued, error) {
	refresh := form.Get("refresh_token")
	family, g, found, err := s.grantOf(ctx, refresh)
	switch {
	case err != nil:
		return Issued{}, err
	case !found || g.ClientID != form.Get("client_id") || !g.Token.Good(s.Now()):
		return Issued{}, badRefresh()
	case subtle.ConstantTimeCompare([]byte(g.Refresh), []byte(access.Hash(refresh))) != 1:
		return Issued{}, s.reused(ctx, id, g.Token.ID, "a refresh token came that is not the last one", badRefresh())
	case !s.Now().Before(g.RefreshUntil):
		return Issued{}, badRefresh()
	}
	if scopes := strings.Fields(form.Get("scope")); len(scopes) > 0 && !slices.Contains(scopes, Scope) {
		return Issued{}, wrong(errScope, "the scope is "+Scope)
	}
	if _, err := s.Gatekeeper().Granted(ctx, g.Token); err != nil {
		return Issued{}, lost(err, badRefresh())
	}
	issued, keys, err := s.keys(family, g.Token.ExpiresAt)
	if err != nil {
		return Issued{}, err
	}
	rotated, err := s.Store().Rotate(ctx, g.Token.ID, g.Refresh, keys)
	if err == nil && !rotated { // another call with it was faster, or the token was revoked
		err = s.reused(ctx, id, g.Token.ID, "a refresh token came twice at once", badRefresh())
	}
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// grantOf returns the grant of a refresh token, whichever of its family it is.
func (s *Service) grantOf(ctx context.Context, refresh string) (family string, g access.Grant, found bool, err error) {
	family, turn, _ := strings.Cut(refresh, ".")
	random, ours := strings.CutPrefix(family, access.TokenPrefix)
	if !ours || !isSecret(random) || !isSecret(turn) {
		return "", access.Grant{}, false, nil
	}
	g, found, err = s.Store().FindGrant(ctx, access.Hash(family))
	return family, g, found, err
}

// reused ends a grant for which something came a second time: one of the two has stolen it.
func (s *Service) reused(ctx context.Context, id, token, what string, answer *Error) error {
	row := s.auditRow(ActionReuse, id, unknownClient(), what+": the token "+token+" is revoked")
	row.Code, row.Outcome = fault.Unauthenticated, record.OutcomeRefused
	if _, err := s.Store().EndGrant(context.WithoutCancel(ctx), token, row); err != nil {
		return err
	}
	return answer
}

// lost returns the answer where a person may not give any more what they gave; other errors stay.
func lost(err error, answer *Error) error {
	if fault.CodeOf(err) == fault.Unauthenticated {
		return answer
	}
	return err
}

// verifies reports whether a program has what it made the challenge of (RFC 7636).
func verifies(verifier, challenge string) bool {
	if !regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`).MatchString(verifier) {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// Revoke ends the grant that a program shows a token of (RFC 7009). An unknown token is not an error.
func (s *Service) Revoke(ctx context.Context, id string, form url.Values) error {
	shown := form.Get("token")
	if len(form["token"]) != 1 || len(form["client_id"]) > 1 {
		return wrong(errRequest, "token must be there, once")
	}
	_, g, found, err := s.grantOf(ctx, shown)
	if err == nil && !found {
		g, found, err = s.Store().GrantOfAccess(ctx, access.Hash(shown), s.Now())
	}
	if err != nil || !found || form.Has("client_id") && g.ClientID != form.Get("client_id") {
		return err
	}
	t := g.Token
	_, err = s.Store().EndGrant(ctx, t.ID, s.auditRow(ActionRevoke, id, t.Actor(),
		fmt.Sprintf("token %s (%s), by its program",
			t.Name, t.ID)))
	return err
}
