package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/web/signin"
)

// signIn prepares the ways for people and programs to sign in at a server.
type signIn struct {
	web           config.Web
	first         access.FirstToken
	folderProblem string // why there is no folder for the first token; "" if there is one
	tokens        func(ctx context.Context) ([]access.Token, error)
	log           *slog.Logger
}

// NewSignIn makes what lets people and programs in at a server.
func NewSignIn(p *Parts) signIn {
	s := signIn{web: p.Cfg.Web, tokens: p.Store.Access.Tokens, log: p.Log}
	if p.Cfg.Records.Dir == "" {
		s.folderProblem = p.Cfg.Records.Problem
	}
	s.first = access.FirstToken{
		Folder: p.Cfg.Records.Dir, File: config.OperatorTokenFile,
		Read:     func() string { return config.OperatorToken(p.Cfg.Records.Dir) },
		AnyToken: p.Store.Access.AnyToken,
		Insert: func(ctx context.Context, t access.Token) error {
			return p.Store.Access.InsertToken(ctx, t, record.Attempt{
				Time: t.CreatedAt, RequestID: NewID(), Actor: record.Actor{Door: record.DoorCLI, System: record.SystemServe},
				Action:  "token.create",
				Outcome: record.OutcomeDone, Message: "made for the operator: " + credentials.TokenEntryOf(t).Describe(),
			})
		},
		Gatekeeper: p.access, Operator: User(), Learn: func(secret string) { p.Scanner.Learn(secret) }, Now: p.Store.Now,
		NewID:  NewID,
		Random: rand.Reader,
	}
	return s
}

// ensureOperator makes sure that someone can sign in, and returns the operator's token if the server has made one. It
// refuses settings that admit strangers, or no one at all.
func (s signIn) ensureOperator(ctx context.Context) (operator string, err error) {
	local := listensLocally(ctx, s.web.Host())
	if err := s.warnSettings(local); err != nil {
		return "", err
	}
	operator, err = s.OperatorToken(ctx)
	if err != nil && isTransient(err) { // all are refused meanwhile
		s.log.Warn("the records cannot be read yet, so it is not known who may come in", "error", fault.From(err).Message)
		return "", nil
	}
	if err != nil || operator != "" {
		return operator, err
	}
	admits, err := s.admitsSomebody(ctx)
	switch {
	case err != nil:
		return "", err
	case admits:
		return "", nil
	case local:
		s.log.Warn("there is no valid token, so nobody can sign in: make one with `claudeops token create --name NAME --scopes " +
			"propose,review,read`")
		return "", nil
	}
	return "", Usage(fmt.Errorf("there is no valid token, so nobody could sign in and the server does not start; make one with "+
		"`claudeops token create --name NAME --scopes propose,review,read`, or set CLAUDEOPS_API_TOKENS to at least %d characters",
		access.MinConfigured))
}

// warnSettings says what the settings let others do. local: only this machine can connect.
func (s signIn) warnSettings(local bool) error {
	for i, token := range s.web.Tokens {
		if len(token) < access.MinConfigured {
			s.log.Warn("a token of CLAUDEOPS_API_TOKENS is too short: it is never accepted", "position", i, "at_least",
				access.MinConfigured)
		}
	}
	if s.web.AnonymousRead && !local {
		return Usage(
			fmt.Errorf("other machines can reach %s, so nobody may read there without a token: leave --anonymous-read "+
				"(CLAUDEOPS_ANONYMOUS_READ) out, or listen on 127.0.0.1", s.web.Addr))
	}
	if !local {
		s.log.Warn("other machines can reach the server, and it speaks plain HTTP: let a proxy in front of it speak TLS",
			"address", s.web.Addr)
	}
	if s.web.AnonymousRead {
		s.log.Warn("everybody on this machine, an agent included, may read at this address without a token", "address",
			s.web.Addr)
	}
	return nil
}

// OperatorToken returns the token that the server has made for its operator; "" where tokens are configured or a proxy
// names users.
func (s signIn) OperatorToken(ctx context.Context) (string, error) {
	if len(s.web.Tokens) > 0 || s.web.ProxyUserHeader != "" {
		return "", nil
	}
	if s.folderProblem == "" {
		return s.first.Secret(ctx)
	}
	if known, err := s.first.AnyToken(ctx); err != nil || known {
		return "", err
	}
	return "", Usage(errors.New(s.folderProblem + "; or set CLAUDEOPS_API_TOKENS"))
}

// isTransient reports whether an error is one that may pass by itself, such as a database that is away for a while.
func isTransient(err error) bool {
	var usage UsageError
	return !errors.As(err, &usage) && fault.CodeOf(err) != fault.Misconfigured
}

// admitsSomebody reports whether a token is good, or a proxy names users.
func (s signIn) admitsSomebody(ctx context.Context) (bool, error) {
	if s.web.ProxyUserHeader != "" || access.UsableSecret(s.web.Tokens) || len(s.web.SignIn) > 0 {
		return true, nil
	}
	tokens, err := s.tokens(ctx)
	return access.AnyGood(tokens, time.Now()), err
}

// welcome says how the operator signs in. On an address of this machine alone it is one click; elsewhere the address of
// the server is not known here, and who reads the log may be many.
func (s signIn) welcome(ctx context.Context, secret string, at net.Addr) (string, error) {
	if secret == "" {
		return "Sign in with a token; `claudeops token create` makes one.\n", nil
	}
	if !loopbackAddr(at) {
		return fmt.Sprintf("Sign in with the token in %s\n", s.first.Path()), nil
	}
	code, err := s.first.Gatekeeper.OneTimeCode(ctx, secret)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"Sign in within %d minutes, once, at http://%s%s/sign-in?code=%s\nLater, and for programs, use the token in %s\n",
		int(access.CodeLife.Minutes()), reachable(at), s.web.BasePath, code, s.first.Path()), nil
}

// listensLocally reports whether the host to listen on is one of this machine alone.
func listensLocally(ctx context.Context, host string) bool {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	local := host != "" && err == nil && len(addresses) > 0
	for _, ip := range addresses {
		local = local && ip.Unmap().IsLoopback()
	}
	return local
}

// newIdentities makes the providers by which people sign in. They are asked nothing before somebody does.
func newIdentities(p *Parts) (out []*identity.Provider) {
	pool := transport.NewPool(http.ProxyFromEnvironment)
	for _, s := range p.Cfg.Web.SignIn {
		out = append(out, identity.New(s, identity.Options{Over: pool, Redirect: p.Cfg.Web.PublicURL + signin.CallbackPath,
			Now: p.Store.Now, Secret: func() string { return p.secrets.Client(s.Name) }}))
	}
	return out
}

// newDirectory returns the gatekeeper's directory of people; the zero value where sign-in by a provider is not
// configured.
func newDirectory(p *Parts) access.Directory {
	if len(p.identities) == 0 {
		return access.Directory{}
	}
	named := func(name, issuer string) *identity.Provider {
		for _, provider := range p.identities {
			if provider.Name() == name && provider.Issuer() == issuer {
				return provider
			}
		}
		return nil
	}
	return access.Directory{
		People: p.Store.Access, Key: p.grantKey,
		Look: func(ctx context.Context, was identity.Person, g identity.Grant) (identity.Person, identity.Grant, error) {
			provider := named(was.Provider, was.Issuer)
			if provider == nil {
				return identity.Person{}, g, fault.New(fault.Unauthenticated, "people do not sign in by %s any more", was.Provider)
			}
			return provider.Look(ctx, was, g)
		},
		Role: func(issuer string, who policy.Known) policy.Role {
			if named(who.Provider, issuer) == nil {
				return ""
			}
			return p.Rules.Now().roleOf(who)
		},
		Record: func(ctx context.Context, a record.Attempt) error { return p.Store.Ledger.Record(ctx, a, nil) },
		NewID:  NewID,
	}
}

// identityNames returns the names of the providers by which people sign in.
func identityNames(p *Parts) (out []string) {
	for _, provider := range p.identities {
		out = append(out, provider.Name())
	}
	return out
}
