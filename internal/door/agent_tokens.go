package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/connect"
	"github.com/claudeops/claudeops/internal/fault"
)

// Bounds of agents with tokens.
const (
	maxTokenConnections = 100             // at the same time, of all tokens, with those in their handshake
	tokenLook           = 2 * time.Second // how often connections are looked at whose token may be good no more
	leaveLook           = 20 * time.Millisecond
)

// Tokens lets in agents that the operator has given a token each, whatever they come through. Its bounds hold for all ways in together. It is
// safe for concurrent use.
type Tokens struct {
	host *Host
	// admit says who has a token, with which rights; an error refuses the connection. Credential names the token.
	admit func(ctx context.Context, token string) (Arrival, error)
	// good reports whether the token that a credential names still lets in; an error keeps those who are in.
	good func(ctx context.Context, credential string) (bool, error)

	mu     sync.Mutex
	rows   map[string]*rows // by the way in, so that strangers at one leave room for those at another
	in     int              // connections, with those in their handshake
	counts map[string]int   // of connections, by credential
}

// NewTokens makes Tokens. admit says who has a token, with which rights; an error refuses the connection. good reports whether the token that
// a credential names still lets in; an error keeps those who are in.
func NewTokens(h *Host, admit func(ctx context.Context, token string) (Arrival, error), good func(ctx context.Context, credential string) (bool, error)) *Tokens {
	return &Tokens{host: h, admit: admit, good: good, rows: map[string]*rows{}, counts: map[string]int{}}
}

// Host serves those who are let in.
func (t *Tokens) Host() *Host { return t.host }

// Enter counts a connection in, before its handshake; false if there are too many. Leave counts it out.
func (t *Tokens) Enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in >= maxTokenConnections {
		return false
	}
	t.in++
	return true
}

// Leave counts a connection out that Enter has counted in.
func (t *Tokens) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in--
}

// Admit finds what the ticket of a handshake, which is a token, lets its holder do, and counts the connection for that token until done is
// called. way and peer are those of the Connection. A refusal is recorded, and done is nil then; limit_reached may pass.
func (t *Tokens) Admit(ctx context.Context, hello connect.Hello, way string, peer fmt.Stringer) (a Arrival, done func(), refused *fault.Error) {
	if a, refused = t.Check(ctx, hello.Ticket, way, peer); refused != nil {
		return Arrival{}, nil, refused
	}
	if !t.take(a.Credential) {
		refused = fault.New(fault.LimitReached, "this token has %d connections already, and can have no more", t.host.options.Limits.Connections)
		t.Refused(ctx, way, peer, refused)
		return Arrival{}, nil, refused
	}
	a.Rights = a.Rights.Lower(hello.Lower)
	return a, sync.OnceFunc(func() { t.give(a.Credential) }), nil
}

// Check finds who has a token, and what it lets them do. A refusal is recorded.
func (t *Tokens) Check(ctx context.Context, token, way string, peer fmt.Stringer) (Arrival, *fault.Error) {
	a, err := t.admit(ctx, token)
	if err != nil {
		refused := fault.From(err)
		t.Refused(ctx, way, peer, refused)
		return Arrival{}, refused
	}
	a.Way, a.Peer = way, peer.String()
	return a, nil
}

// Refused records something that was refused; Limits.Rows bounds that for each way in.
func (t *Tokens) Refused(ctx context.Context, way string, peer fmt.Stringer, why *fault.Error) {
	if ctx.Err() == nil {
		t.rowsOf(way).refused(ctx, Rights{}, peer, why)
	}
}

func (t *Tokens) rowsOf(way string) *rows {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[way] == nil {
		t.rows[way] = newRows(t.host)
	}
	return t.rows[way]
}

// take counts a connection of a credential; false if it has as many as it may have.
func (t *Tokens) take(credential string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[credential] >= t.host.options.Limits.Connections {
		return false
	}
	t.counts[credential]++
	return true
}

func (t *Tokens) give(credential string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[credential]--; t.counts[credential] <= 0 {
		delete(t.counts, credential)
	}
}

// Keep ends connections whose token was revoked or has expired, until ctx ends; then it waits until all have left, for Limits.End at most.
func (t *Tokens) Keep(ctx context.Context) {
	ticker := time.NewTicker(tokenLook)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			t.look(ctx)
		}
	}
	bound := time.NewTimer(t.host.options.Limits.End)
	defer bound.Stop()
	ticker.Reset(leaveLook)
	for !t.empty() {
		select {
		case <-bound.C:
			return
		case <-ticker.C:
		}
	}
}

func (t *Tokens) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in == 0
}

// look cuts off those whose token is good no more.
func (t *Tokens) look(ctx context.Context) {
	for _, c := range t.host.Connections() {
		if c.Credential == "" {
			continue
		}
		if good, err := t.good(ctx, c.Credential); err == nil && !good {
			t.host.options.Log.Info("an agent is cut off: its token is good no more", "connection", c.ID, "credential", c.Credential)
			t.host.Cut(c.ID)
		}
	}
}
