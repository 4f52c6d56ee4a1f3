package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

func TestRunGivesOneAnswerEvenIfItsRecordFailed(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.Internal, "the disk is full")
	for _, c := range []struct {
		name  string
		state sessions.State
		err   error
		exit  error
		told  string
	}{
		{"a good one", sessions.StateSucceeded, nil, nil, ""},
		{"a bad one", sessions.StateFailed, nil, silentExit(1), ""},
		{"one that could not be recorded", sessions.StateFailed, full, silentExit(1), "the disk is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &commandLine{json: true, streams: Streams{Out: &out}, lookup: func(string) (string, bool) { return "", false }}
			if err := tellRun(a, []sessions.Record{{ID: "a", Ending: sessions.Ending{State: c.state}}}, nil,
				c.err); !errors.Is(err, c.exit) {
				t.Errorf("got %v, want %v", err, c.exit)
			}
			var answer struct {
				Items []sessions.Record
				Error struct{ Detail string }
			}
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Items) != 1 ||
				answer.Error.Detail != c.told {
				t.Errorf("answered %v, %s", err, &out)
			}
			out.Reset()
			a.json = false
			if err := tellRun(a, []sessions.Record{{ID: "a", Ending: sessions.Ending{State: c.state}}}, nil,
				c.err); c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("to people: got %v, want %v", err, c.err)
			}
			if !strings.Contains(out.String(), string(c.state)) {
				t.Errorf("people are not told of the session: %s", &out)
			}
		})
	}
}
