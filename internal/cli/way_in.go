package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
)

// wayIn makes sure that there is somebody who may come in, and returns the operator's token if the server has made one. It
// refuses settings that let others in, or nobody at all.
func (p *parts) wayIn(ctx context.Context) (operator string, err error) {
	w := p.cfg.Web
	for i, token := range w.Tokens {
		if len(token) < access.MinConfigured {
			p.log.Warn("a token of CLAUDEOPS_API_TOKENS is too short: it is never accepted", "position", i, "at_least", access.MinConfigured)
		}
	}
	local := p.listensLocally(ctx)
	if w.AnonymousRead && !local {
		return "", usageError{fmt.Errorf("other machines can reach %s, so nobody may read there without a token: leave --anonymous-read "+
			"(CLAUDEOPS_ANONYMOUS_READ) out, or listen on 127.0.0.1", w.Addr)}
	}
	if !local {
		p.log.Warn("other machines can reach the server, and it speaks plain HTTP: let a proxy in front of it speak TLS", "address", w.Addr)
	}
	if w.AnonymousRead {
		p.log.Warn("whoever reaches this address on this machine, an agent included, may read without a token", "address", w.Addr)
	}
	operator, err = p.operatorToken(ctx)
	if err != nil && waitsOut(err) { // nobody is let in meanwhile
		p.log.Warn("the records cannot be read yet, so it is not known who may come in", "error", fault.From(err).Message)
		return "", nil
	}
	if err != nil || operator != "" {
		return operator, err
	}
	admits, err := p.admitsSomebody(ctx)
	switch {
	case err != nil:
		return "", err
	case admits:
		return "", nil
	case local:
		p.log.Warn("no token is good, so nobody can come in: make one with `claudeops token create --name NAME --scopes propose,review,read`")
		return "", nil
	}
	return "", usageError{errors.New("no token is good, so nobody could come in, and the server does not start; make one with " +
		"`claudeops token create --name NAME --scopes propose,review,read`, or set CLAUDEOPS_API_TOKENS to at least " +
		fmt.Sprint(access.MinConfigured) + " characters")}
}

// waitsOut reports whether an error is one that may pass by itself, such as a database that is away for a while.
func waitsOut(err error) bool {
	var usage usageError
	return !errors.As(err, &usage) && fault.CodeOf(err) != fault.Misconfigured
}

// admitsSomebody reports whether a token is good, or a proxy names users.
func (p *parts) admitsSomebody(ctx context.Context) (bool, error) {
	usable := func(t string) bool { return len(t) >= access.MinConfigured }
	if p.cfg.Web.ProxyUserHeader != "" || slices.ContainsFunc(p.cfg.Web.Tokens, usable) {
		return true, nil
	}
	tokens, err := p.store.Tokens(ctx)
	return slices.ContainsFunc(tokens, func(t access.Token) bool { return t.RevokedAt.IsZero() }), err
}

// listensLocally reports whether the configured address is one of this machine alone.
func (p *parts) listensLocally(ctx context.Context) bool {
	host := p.cfg.Web.Host()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	local := host != "" && err == nil && len(addresses) > 0
	for _, ip := range addresses {
		local = local && ip.Unmap().IsLoopback()
	}
	return local
}
