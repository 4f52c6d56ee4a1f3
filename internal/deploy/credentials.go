package deploy

import (
	"context"
	"os"
	"runtime"
	"slices"

	"github.com/claudeops/claudeops/internal/secretfile"
)

// credentialHelper lets git look up what to sign in with in a file whose path is in the environment, for the scheme and the host (with its
// port) that ask for it, and for no others. Git is not let change the file, as it would when a server refuses a token.
const credentialHelper = `!f() { test "$1" = get && git credential-store --file="$CLAUDEOPS_GIT_CREDENTIALS" get; }; f`

// credentialsVariable tells the helper where the file is.
const credentialsVariable = "CLAUDEOPS_GIT_CREDENTIALS="

// learnStored has learn told the secrets of the file of credentials, and later those that it comes to hold.
func (g *Git) learnStored(learn func(secrets ...string)) {
	if g.credentials != "" && learn != nil {
		g.stored = secretfile.New(g.credentials, "", func(text string) { learn(secretfile.InAddresses(text)...) })
	}
}

// remote is runWith for what speaks to another repository: git may sign in there. The token is neither among the arguments nor in the
// environment of git, nor written anywhere.
func (g *Git) remote(ctx context.Context, env []string, dir string, args ...string) (out []byte, failure string, err error) {
	if g.credentials == "" {
		return g.runWith(ctx, env, dir, nil, args...)
	}
	info, err := os.Stat(g.credentials)
	switch {
	case err != nil:
		return nil, "the file of git's credentials cannot be read: " + reason(err), nil
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, "the file of git's credentials " + g.credentials + " may be read by others than its owner; chmod 600 mends it", nil
	}
	if g.stored != nil {
		_ = g.stored.Value() // what is new in it is kept out of texts from now on
	}
	env = append(slices.Clone(env), credentialsVariable+g.credentials)
	return g.runWith(ctx, env, dir, nil, append([]string{"-c", "credential.helper=" + credentialHelper}, args...)...)
}
