package credentials_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// cuts is a Store in which a token was cut off once.
type cuts struct {
	at  time.Time
	err error
}

func (c cuts) Connections(context.Context) ([]record.Connection, error) { return nil, c.err }

func (c cuts) CutConnection(context.Context, string, string, ...record.Attempt) error { return c.err }

func (c cuts) LastCuts(context.Context) (map[string]time.Time, error) {
	return map[string]time.Time{"laptop": c.at}, c.err
}

func TestATokenWhoseAgentWasCutOffLetsNobodyInForAWhile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	made := now.Add(-24 * time.Hour)
	for name, test := range map[string]struct {
		store cuts
		made  time.Time
		want  fault.Code
	}{
		"never":                          {cuts{}, made, ""},
		"a moment ago":                   {cuts{at: now.Add(-time.Second)}, made, fault.Unauthenticated},
		"almost an hour ago":             {cuts{at: now.Add(time.Second - credentials.KeptOut)}, made, fault.Unauthenticated},
		"an hour ago":                    {cuts{at: now.Add(-credentials.KeptOut)}, made, ""},
		"before the token was made":      {cuts{at: now.Add(-time.Minute)}, now.Add(-time.Second), ""},
		"by a clock that is ahead":       {cuts{at: now.Add(time.Minute)}, made, fault.Unauthenticated},
		"it is not known: let nobody in": {cuts{err: errors.New("the disk is gone")}, made, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.CodeOf(credentials.AdmitConnection(t.Context(), test.store, "laptop", test.made,
				now)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			reads := 0
			tokens := func(context.Context) ([]access.Token, error) {
				reads++
				return []access.Token{{Name: "laptop", Agent: true, CreatedAt: test.made}, {Name: "script"}}, nil
			}
			gone, err := credentials.Gone(t.Context(), test.store, tokens, []string{"laptop", "script", "revoked"}, now)
			want := map[fault.Code][]string{"": {"script", "revoked"}, fault.Unauthenticated: {"laptop", "script", "revoked"}}
			if !slices.Equal(gone, want[test.want]) || fault.CodeOf(err) == "" != (test.want != fault.Internal) || reads != 1 {
				t.Errorf("gone are %q, %v, after %d reads", gone, err, reads)
			}
		})
	}
}
