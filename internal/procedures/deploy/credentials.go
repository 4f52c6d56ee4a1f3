package deploy

import (
	"context"
	"errors"
	"runtime"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// learnStored has learn told the secrets of the file of credentials, and later those that it comes to hold.
func (g *Git) learnStored(learn func(secrets ...string)) {
	if g.credentials != "" && learn != nil {
		g.stored = secretfile.New(g.credentials, "", func(text string) { learn(secretfile.InAddresses(text)...) })
	}
}

// remote is call for commands that access another repository: git may sign in there, with the token of a source that
// the operator has admitted, or with what the file of credentials has for the host. Neither is among the arguments nor
// in the environment of git, nor written anywhere.
func (g *Git) remote(ctx context.Context, s *GitSource, c sysgit.Call) (out []byte, failure string, err error) {
	fetching(ctx, s.URL)
	c.Remote = &sysgit.Remote{URL: s.named, Exact: s.exact, Public: s.public, Silence: g.limits.silence}
	if g.token != nil {
		c.Remote.Token = g.token(s.URL)
	}
	if c.Remote.Token != "" || g.credentials == "" {
		return g.call(ctx, c)
	}
	info, err := files.Stat(g.credentials)
	switch {
	case err != nil:
		return nil, "the file of git's credentials cannot be read: " + reason(err), nil
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, "the file of git's credentials " + g.credentials +
			" may be read by others than its owner; chmod 600 mends it", nil
	}
	if g.stored != nil {
		_ = g.stored.Value() // what is new in it is kept out of texts from now on
	}
	c.Remote.Credentials = g.credentials
	return g.call(ctx, c)
}

// remoteFailed returns the error of a call to another repository that could not be made, or did not end:
// E_SOURCE_NOT_ALLOWED if the operator admits no private address of it.
func remoteFailed(s *GitSource, what string, err error) *Error {
	if !errors.Is(err, sysgit.ErrPrivate) {
		return gitFailed(s, "%s: %s", what, err).Because(err)
	}
	refused := notNamed(s.URL,
		"the repository %s is not read: %s, which its source does not admit; claudeops sources allow --private does",
		shown(s.URL), err)
	if origin, err := sources.OriginOf(s.URL); err == nil {
		refused = refused.With("allow", "claudeops sources allow "+origin+" --private")
	}
	return refused
}
