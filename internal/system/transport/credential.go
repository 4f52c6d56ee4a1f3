package transport

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Credential gives the tokens that requests carry. It must be safe for concurrent use.
type Credential interface {
	// Token returns the token for a request of this use. Its error is a *fault.Error, and the request is not sent then.
	Token(ctx context.Context, use Use) (string, error)
	// Refused is called when the forge answered 401 to a token that Token gave for the use. It reports whether Token may
	// give another one now.
	Refused(use Use, token string) bool
}

// Use says what a request is for. A credential that makes its tokens to measure (githubapp) reads it; a token that is
// given in the configuration is the same for every use.
type Use struct {
	Owner, Repo string // the repository that the request is about
	Write       bool   // the request may change something
	Members     bool   // the request names teams of the owner
}

type useKey struct{}

// For notes in the context what the requests made with it are for.
func For(ctx context.Context, use Use) context.Context { return context.WithValue(ctx, useKey{}, use) }

// ForWrite notes that the requests made with the context may change something, beside what For has noted.
func ForWrite(ctx context.Context) context.Context {
	use := UseOf(ctx)
	use.Write = true
	return For(ctx, use)
}

// ForMembers notes that the requests made with the context name teams, beside what For has noted.
func ForMembers(ctx context.Context) context.Context {
	use := UseOf(ctx)
	use.Members = true
	return For(ctx, use)
}

// UseOf returns the use noted by For, ForWrite and ForMembers.
func UseOf(ctx context.Context) Use {
	use, _ := ctx.Value(useKey{}).(Use)
	return use
}

// fixed is a token that stays the same.
type fixed string

// Token implements Credential.
func (f fixed) Token(context.Context, Use) (string, error) { return string(f), nil }

// Refused implements Credential.
func (fixed) Refused(Use, string) bool { return false }

// Source is a secret that may be replaced while the process runs, such as a file (package secretfile).
type Source interface {
	// Value is the secret as it is now.
	Value() string
	// Reread looks again, also if nothing seems to have changed.
	Reread() string
}

// Replaceable returns the Credential of a token that may be replaced while the process runs.
func Replaceable(source Source) Credential { return replaceable{source} }

type replaceable struct{ source Source }

// Token implements Credential.
func (r replaceable) Token(context.Context, Use) (string, error) { return r.source.Value(), nil }

// Refused implements Credential.
func (r replaceable) Refused(_ Use, token string) bool { return r.source.Reread() != token }

// token returns the token for a request, "" for one that goes without.
func (t *Transport) token(c *call) (string, *failure) {
	if !c.toForge || t.opt.Credential == nil {
		return "", nil
	}
	ctx := c.req.Context()
	token, err := t.opt.Credential.Token(ctx, UseOf(ctx))
	if err != nil {
		return "", &failure{fault: t.Failure(err)}
	}
	if badToken(token) {
		return "", &failure{fault: malformedToken(t.opt.Variables.Token)}
	}
	t.scrub.learn(token)
	return token, nil
}

// badToken reports whether a token holds what no header may have.
func badToken(token string) bool {
	return strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func malformedToken(name string) *fault.Error {
	return fault.New(fault.ProviderDisabled,
		"%s holds a space, a line break or another character that no token has; correct it", name)
}

// renewToken reports whether a refused request is worth another try since the credential may give another token now. A
// request that was answered 401 has changed nothing, so this holds for writes, too.
func (t *Transport) renewToken(c *call) bool {
	if c.renewed || c.token == "" || t.opt.Credential == nil {
		return false
	}
	c.renewed = true
	return t.opt.Credential.Refused(UseOf(c.req.Context()), c.token)
}
