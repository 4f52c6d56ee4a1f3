package store

import (
	"context"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func agentConnection(id, token string) record.Connection {
	return record.Connection{
		ID: id, Credential: token, Tier: 2, DryRun: true, Way: "unix", Peer: "pid 4711, uid 1000 \x00 <&>", Since: noon(),
	}
}

func connected(t *testing.T, s *Store) []record.Connection {
	t.Helper()
	return must.Get(s.Connections().Connections(context.Background()))(t)
}

func heed(t *testing.T, s *Store, id string, calls int) (known, cut bool) {
	t.Helper()
	all := must.Get(s.Connections().HeedConnections(context.Background(), map[string]int{id: calls}))(t)
	cut, known = all[id]
	return known, cut
}

func TestAConnectionIsListedWhileItIsOpen(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	wantEqual(t, len(connected(t, s)), 0)
	before := must.Get(other.Connections().ConnectionsVersion(ctx))(t)
	wantEqual(t, s.Connections().OpenConnection(ctx, agentConnection("a", "laptop")), nil)
	wantEqual(t, connected(t, other), []record.Connection{agentConnection("a", "laptop")})
	if after, err := other.Connections().ConnectionsVersion(ctx); err != nil || after == before {
		t.Errorf("version %d, %v", after, err)
	}
	known, cut := heed(t, s, "a", 3)
	wantEqual(t, []bool{known, cut}, []bool{true, false})
	wantEqual(t, connected(t, other)[0].Calls, 3)
	wantEqual(t, s.Connections().CloseConnection(ctx, "a"), nil)
	wantEqual(t, len(connected(t, other)), 0)
	known, _ = heed(t, s, "a", 0)
	wantEqual(t, known, false)
}

func TestAPersonCutsAConnectionOff(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	now := noon()
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: func() time.Time { return now }})
	wantEqual(t, s.Connections().OpenConnection(ctx, agentConnection("a", "laptop")), nil)
	row := attempt("cut")
	wantCode(t, other.Connections().CutConnection(ctx, "b", "ann", row), fault.NotFound)
	wantEqual(t, verify(t, s, "").Rows, int64(0))
	wantEqual(t, len(must.Get(s.Connections().LastCuts(ctx))(t)), 0)

	wantEqual(t, other.Connections().CutConnection(ctx, "a", "ann", row), nil)
	now = now.Add(time.Minute)
	second := attempt("again")
	wantEqual(t, other.Connections().CutConnection(ctx, "a", "bob", second), nil) // the first time counts
	wantEqual(t, verify(t, s, "").Rows, int64(2))
	known, cut := heed(t, s, "a", 0)
	wantEqual(t, []bool{known, cut}, []bool{true, true})
	wantEqual(t, connected(t, s)[0].CutBy, "ann")
	wantEqual(t, connected(t, s)[0].CutAt.UTC(), noon())

	wantEqual(t, s.Connections().CloseConnection(ctx, "a"), nil)
	wantEqual(t, len(connected(t, s)), 0)
	wantEqual(t, must.Get(s.Connections().LastCuts(ctx))(t)["laptop"].UTC(), noon()) // it is known after the end
	wantCode(t, other.Connections().CutConnection(ctx, "a", "ann"), fault.NotFound)

	now = now.Add(2 * keepCut)
	wantEqual(t, other.Connections().OpenConnection(ctx, agentConnection("c", "laptop")), nil)
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM agent_connections"), 1)
}

// A store that is closed holds its locks no more, as a process that was killed.
func TestConnectionsOfAKilledProcessAreNotListed(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	for _, id := range []string{"a", "b"} {
		wantEqual(t, s.Connections().OpenConnection(ctx, agentConnection(id, "laptop")), nil)
	}
	wantEqual(t, other.Connections().CutConnection(ctx, "b", "ann"), nil)
	const ofConnections = "SELECT process FROM agent_connections ORDER BY id"
	locks := must.Get(selectOf(ctx, other.db, scanText, ofConnections))(t)
	wantEqual(t, s.Close(), nil)
	for _, lock := range locks {
		waitUntilEnded(t, other, lock)
	}
	wantCode(t, other.Connections().CutConnection(ctx, "a", "ann"), fault.NotFound)
	wantEqual(t, len(connected(t, other)), 0)
	wantEqual(t, must.Get(other.Connections().LastCuts(ctx))(t)["laptop"].UTC(), noon())
	known, _ := heed(t, other, "a", 0) // so that one that lives after all is recorded again
	wantEqual(t, known, false)
}

func TestACutHoldsForTheWholeSessionAtOnce(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), emptyPlace(t)
	s, other := open(t, place, Options{Now: noon}), open(t, place, Options{Now: noon})
	for id, session := range map[string]string{"a": "s1", "b": "s1", "c": "s2", "d": "", "e": ""} {
		c := agentConnection(id, "laptop")
		c.Session = session
		wantEqual(t, s.Connections().OpenConnection(ctx, c), nil)
	}
	cut := func(id, session string) bool {
		t.Helper()
		return must.Get(s.Connections().IsCut(ctx, id, session))(t)
	}
	wantEqual(t, []bool{cut("a", "s1"), cut("d", ""), cut("unknown", "")}, []bool{false, false, false})
	wantEqual(t, other.Connections().CutConnection(ctx, "a", "ann", attempt("cut a")), nil)
	wantEqual(t, other.Connections().CutConnection(ctx, "d", "ann", attempt("cut d")), nil)
	wantEqual(t, []bool{cut("a", "s1"), cut("b", "s1"), cut("c", "s2"), cut("d", ""), cut("e", "")},
		[]bool{true, true, false, true, false})
}
