package review

import (
	"context"
	"errors"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// known is the record of #1; nil for none.
type known struct{ pull *record.PullRecord }

func (k known) FindPull(context.Context, record.PullKey) (record.PullRecord, bool, error) {
	if k.pull == nil {
		return record.PullRecord{}, false, nil
	}
	return *k.pull, true, nil
}

// What the provider says counts: the record may be older, or of another state folder.
func TestTheCooldownIsLiftedOfWhatTheProviderSaysIsClosed(t *testing.T) {
	inRecord := func(s gitprovider.State) *record.PullRecord { return &record.PullRecord{State: s} }
	at := func(s gitprovider.State) gitprovider.PullRequest { return gitprovider.PullRequest{Number: 1, State: s} }
	down, none := fault.New(fault.Timeout, "no answer"), fault.New(fault.NotFound, "there is none")
	for name, c := range map[string]struct {
		record *record.PullRecord
		pr     gitprovider.PullRequest
		ours   bool
		err    error
		want   gitprovider.State
		code   fault.Code
	}{
		"closed a moment ago, open in the record": {record: inRecord(gitprovider.StateOpen),
			pr: at(gitprovider.StateClosed), want: gitprovider.StateClosed},
		"reopened, closed in the record": {record: inRecord(gitprovider.StateClosed),
			pr: at(gitprovider.StateOpen), want: gitprovider.StateOpen},
		"merged after all": {record: inRecord(gitprovider.StateClosed),
			pr: at(gitprovider.StateMerged), want: gitprovider.StateMerged},
		"closed, and ours by its mark, no record": {pr: at(gitprovider.StateClosed), ours: true,
			want: gitprovider.StateClosed},
		"closed, of somebody else": {pr: at(gitprovider.StateClosed)},
		"no such number":           {err: none},
		"closed in the record, no answer": {record: inRecord(gitprovider.StateClosed), err: down,
			want: gitprovider.StateClosed},
		"open in the record, no answer": {record: inRecord(gitprovider.StateOpen), err: down,
			code: fault.Timeout},
		"not in the record, no answer": {err: down, code: fault.Timeout},
		"in the record, and gone from the provider": {record: inRecord(gitprovider.StateOpen), err: none,
			code: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Pulls: known{c.record},
				Ask: func(context.Context, string, string, string, int) (gitprovider.PullRequest, bool, error) {
					return c.pr, c.ours, c.err
				}})
			_, state, err := s.stateOf(t.Context(), record.PullKey{Number: 1})
			if fault.CodeOf(err) != c.code && (err != nil || c.code != "") || state != c.want {
				t.Errorf("%q, %v; want %q, %q", state, err, c.want, c.code)
			}
			var e *fault.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%v is no fault", err)
			}
		})
	}
}
