package operation

import (
	"context"
	"errors"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/files"
)

// A call has waited for its lock when it is asked for the last time whether its caller is let in.
func TestWhoIsNotLetInAnyMoreAfterWaitingDoesNothing(t *testing.T) {
	revoked := fault.New(fault.Unauthenticated, "the token was revoked")
	for name, c := range map[string]struct {
		effect Effect
		err    error
		code   fault.Code
		reason Reason
		ran    bool
	}{
		"a write":                  {Write, revoked, fault.Unauthenticated, ReasonWriting, false},
		"a run":                    {Exec, revoked, fault.Unauthenticated, ReasonWriting, false},
		"a read is asked nothing":  {Read, revoked, "", "", true},
		"nobody can be asked":      {Write, errors.New("the records are away"), fault.Internal, ReasonOurs, false},
		"who is let in still does": {Write, nil, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, folder := newWorld(t), t.TempDir()
			way := Way[question]{Roots: func(question) []string { return []string{folder} }}
			o := Define(func() *Kernel { return w.Kernel }, "set", tool(c.effect), way,
				func(_ context.Context, call Call, _ question) (reply, error) {
					w.ran = append(w.ran, call)
					return reply{}, nil
				})
			caller := Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ci"}, Recheck: func(context.Context) error {
				if _, refused := (&Locks{dir: w.Locks.dir, held: w.Locks.held}).take(t.Context(),
					files.Resolve(folder)); refused == nil {
					t.Error("asked before the lock was taken")
				}
				return c.err
			}}
			_, err := o.Handle(t.Context(), Call{Caller: caller, Ceiling: Unlimited, Arguments: []byte(`{"name":"a"}`)})
			if fault.CodeOf(err) != c.code || (len(w.ran) == 1) != c.ran {
				t.Fatalf("got %v, ran %d times", err, len(w.ran))
			}
			if c.code == "" {
				return
			}
			if f := FaultOf(err); f.Reason != c.reason || len(w.rows) != 1 || w.rows[0].Code != c.code {
				t.Errorf("%+v, rows %+v", f, w.rows)
			}
		})
	}
}
