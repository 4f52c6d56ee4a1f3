package prflow_test

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// pause pauses everything, or the repository of the requests.
func (b *bench) pause(owner, repo string) {
	b.Helper()
	_, err := b.store.Pauses().Pause(context.Background(), record.Pause{Owner: owner, Repo: repo,
		Why: "moving", By: "ann"},
		false, record.Attempt{Time: b.clock.Now(), RequestID: "pause", Action: "pause", Outcome: record.OutcomeDone})
	b.must(err)
}

func TestNothingIsProposedRevisedOrRepliedWhilePaused(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"a proposal": createRequest(files(file("checks/more.md", "create", "# More\n"))),
		"the same":   createRequest(nil), "a revision": revising(nil), "a reply": replying(nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.questioned()
			b.pause("", "")
			_, row := b.mustRefuse(raw, fault.Paused)
			if row.Title == "[withheld]" || row.Verdicts[5].Gate != record.GatePause || row.Verdicts[5].Ruling != record.Deny {
				t.Errorf("the row has no title or verdict: %+v", row)
			}
		})
	}
}

// TestACallUnderWayWritesNothingOncePaused pauses while a call is between its gates and its reservation.
func TestACallUnderWayWritesNothingOncePaused(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string][2]string{"everything": {}, "the repository": {"Joe", "Infra"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			caller, paused := agent, false
			caller.Progress = func(phase string) {
				if phase == "reserving the files" {
					paused = true
					b.pause(scope[0], scope[1])
				}
			}
			_, err := prflow.New(b.options).Create(t.Context(), caller, createRequest(nil))
			if fault.CodeOf(err) != fault.Paused || !paused || b.fake.Script.Writes() != 0 {
				t.Errorf("%v, paused %t, %d writes", err, paused, b.fake.Script.Writes())
			}
			if row := b.attempts()[0]; row.Code != fault.Paused || row.Verdicts[5].Ruling != record.Deny {
				t.Errorf("%+v", row)
			}
		})
	}
}
