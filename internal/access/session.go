package access

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// How long a session lives: without use, and in all.
const (
	SessionIdle = 12 * time.Hour
	SessionLife = 7 * 24 * time.Hour
)

// touchEvery is how exactly the last use of a session is kept: a page of many requests is one write.
const touchEvery = time.Minute

// Session is what is kept of a browser that signed in. What it may do is what its token may do at that moment.
type Session struct {
	Hash      string // of the id in the cookie
	TokenHash string
	CreatedAt time.Time
	SeenAt    time.Time
}

// Sessions is the memory of sessions. internal/store implements it; errors are faults.
type Sessions interface {
	// InsertSession keeps a session, and drops those that were made before madeBefore or not seen since seenBefore.
	InsertSession(ctx context.Context, s Session, madeBefore, seenBefore time.Time) error
	FindSession(ctx context.Context, hash string) (s Session, found bool, err error)
	// TouchSession notes when the session was seen. One that is gone stays gone.
	TouchSession(ctx context.Context, hash string, at time.Time) error
	// DeleteSession forgets a session. One that is gone is no error.
	DeleteSession(ctx context.Context, hash string) error
}

// SignIn makes a session for the holder of a token. The id is for the browser alone. Errors are those of Bearer.
func (g *Gatekeeper) SignIn(ctx context.Context, secret string) (id string, p Principal, err error) {
	p, err = g.Bearer(ctx, secret)
	if err != nil {
		return "", Principal{}, err
	}
	return g.begin(ctx, p)
}

// begin makes a session for a caller who has shown a token.
func (g *Gatekeeper) begin(ctx context.Context, p Principal) (id string, _ Principal, err error) {
	id, err = newID(g.random)
	if err != nil {
		return "", Principal{}, fault.From(err)
	}
	now := g.now()
	session := Session{Hash: Hash(id), TokenHash: p.TokenHash, CreatedAt: now, SeenAt: now}
	if err := g.sessions.InsertSession(ctx, session, now.Add(-SessionLife), now.Add(-SessionIdle)); err != nil {
		return "", Principal{}, err
	}
	p.Via = ViaSession
	return id, p, nil
}

// errSignedOut is the one answer to a session id that is no good.
func errSignedOut() error {
	return fault.New(fault.Unauthenticated, "the session has ended; sign in again")
}

// Session recognises the browser with the session id; unauthenticated if the session has ended, or its token was revoked.
func (g *Gatekeeper) Session(ctx context.Context, id string) (Principal, error) {
	hash, now := Hash(id), g.now()
	s, found, err := g.sessions.FindSession(ctx, hash)
	switch {
	case err != nil:
		return Principal{}, err
	case !found:
		return Principal{}, errSignedOut()
	}
	p, ok, err := g.holder(ctx, s.TokenHash)
	if err != nil {
		return Principal{}, err
	}
	if !ok || !now.Before(s.CreatedAt.Add(SessionLife)) || !now.Before(s.SeenAt.Add(SessionIdle)) {
		return Principal{}, errors.Join(errSignedOut(), g.sessions.DeleteSession(ctx, hash))
	}
	if now.Sub(s.SeenAt) >= touchEvery {
		if err := g.sessions.TouchSession(ctx, hash, now); err != nil {
			return Principal{}, err
		}
	}
	p.Via = ViaSession
	return p, nil
}

// SignOut ends the session with the id.
func (g *Gatekeeper) SignOut(ctx context.Context, id string) error {
	return g.sessions.DeleteSession(ctx, Hash(id))
}
