package access

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// CodeLife is how long a one-time code is valid.
const CodeLife = 10 * time.Minute

// maxCodes limits the codes that are valid at the same time; a further one replaces the oldest.
const maxCodes = 16

// codes are the one-time codes that were given out and not used, in memory and only as hashes: a server that starts
// anew knows none.
type codes struct {
	now func() time.Time
	mu  sync.Mutex
	all []oneTimeCode
}

// oneTimeCode signs in once: as the holder of a token, or to a login that has begun.
type oneTimeCode struct {
	hash, tokenHash string
	login           string // session id; "" where the code is for a token
	until           time.Time
}

func newCodes(now func() time.Time) *codes { return &codes{now: now} }

func (c *codes) add(code oneTimeCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, code)
	c.all = c.all[max(0, len(c.all)-maxCodes):]
}

// take uses a code up; found is false for one that is unknown, used or too old.
func (c *codes) take(hash string) (code oneTimeCode, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	kept := c.all[:0]
	for _, one := range c.all { // all of them, so that the time tells nothing
		same := subtle.ConstantTimeCompare([]byte(one.hash), []byte(hash)) == 1
		good := now.Before(one.until)
		if same && good {
			code, found = one, true
		}
		if !same && good {
			kept = append(kept, one)
		}
	}
	c.all = kept
	return code, found
}

// OneTimeCode makes a code that signs a browser in as the holder of the token: once, and for CodeLife. Errors are those
// of Bearer.
func (g *Gatekeeper) OneTimeCode(ctx context.Context, secret string) (code string, err error) {
	p, err := g.Bearer(ctx, secret)
	if err != nil {
		return "", err
	}
	if code, err = newID(g.random); err != nil {
		return "", fault.From(err)
	}
	g.codes.add(oneTimeCode{hash: Hash(code), tokenHash: p.TokenHash, until: g.now().Add(CodeLife)})
	return code, nil
}

// HandOver makes a code that gives a login to the next host name of the same browser: once, and for CodeLife. The login
// ends with what it was begun by, as any other.
func (g *Gatekeeper) HandOver(id string) (code string, err error) {
	if code, err = newID(g.random); err != nil {
		return "", fault.From(err)
	}
	g.handed.add(oneTimeCode{hash: Hash(code), login: id, until: g.now().Add(CodeLife)})
	return code, nil
}

// SignInOnce uses a code up and makes a login for the holder of its token, or returns the login that it hands over;
// unauthenticated if it was used, is too old or was never given, or if the token was revoked.
func (g *Gatekeeper) SignInOnce(ctx context.Context, code, browser string) (id string, p Principal, err error) {
	if handed, found := g.handed.take(Hash(code)); found {
		p, err = g.Login(ctx, handed.login)
		return handed.login, p, err
	}
	good, found := g.codes.take(Hash(code))
	if found {
		p, found, err = g.holder(ctx, good.tokenHash)
	}
	switch {
	case err != nil:
		return "", Principal{}, err
	case !found:
		return "", Principal{}, fault.New(fault.Unauthenticated,
			"the one-time address was used already, or is too old: sign in with a token")
	}
	return g.begin(ctx, p, browser)
}
