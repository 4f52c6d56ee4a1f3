package prflow_test

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// staleLedger answers the first reservation with what held the files a moment ago, as a store does that finds its
// process's lock free, since the process has ended the proposal meanwhile.
type staleLedger struct {
	prflow.Ledger
	history prflow.History
	ends    func() // has the holder end its proposal; nil once that was done
}

func (l *staleLedger) Reserve(ctx context.Context, p record.Proposal, claim record.Claim) (*record.Proposal, error) {
	if l.ends == nil {
		return l.Ledger.Reserve(ctx, p, claim)
	}
	held, err := l.history.Unfinished(ctx)
	if err != nil || len(held) != 1 {
		return nil, fault.New(fault.Internal, "%d hold files, %v", len(held), err)
	}
	l.ends()
	l.ends = nil
	held[0].Abandoned = true
	return &held[0], nil
}

// One review is answered by one revision, also where another process ends its revision just when this one looks whether
// that process is alive.
func TestARevisionThatEndedWhileItWasLookedAtIsNotRevisedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	committed, goOn, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	other := b.options
	other.Step = func(name string) {
		if name == "answering" { // the commit is there; title, body and record say nothing of it yet
			close(committed)
			<-goOn
		}
	}
	go func() {
		_, err := prflow.New(other).Create(context.Background(), agent, revising(nil))
		first <- err
	}()
	<-committed
	b.options.Ledger = &staleLedger{Ledger: b.options.Ledger, history: b.options.History, ends: func() {
		close(goOn)
		if err := <-first; err != nil {
			t.Error(err)
		}
	}}
	head := b.pull(1).HeadCommit
	result, err := b.create(revising(func(r map[string]any) {
		r["files"] = []any{map[string]any{"path": "checks/inodes.md", "action": "update", "content": "# Another way\n"}}
	}))
	if fault.CodeOf(err) != fault.Conflict {
		t.Errorf("%+v, %v", result, err)
	}
	if now := b.pull(1).HeadCommit; now != head {
		t.Errorf("the branch was moved from %s to %s", head, now)
	}
}

// lateHistory has something happen between the reading of the pull requests and that of what was made of one.
type lateHistory struct {
	prflow.History
	meanwhile func() // nil once it has happened
}

func (h *lateHistory) MadeOf(ctx context.Context, provider, owner, repo string, number int) ([]record.Proposal, error) {
	if do := h.meanwhile; do != nil {
		h.meanwhile = nil
		do()
	}
	return h.History.MadeOf(ctx, provider, owner, repo, number)
}

// The identical answer that another process gives while this one reads is the answer of this one, too: with a commit,
// which moves the head, and alone, which does not.
func TestTheSameAnswerGivenMeanwhileIsReused(t *testing.T) {
	t.Parallel()
	answers := func(r map[string]any) { r["replies"] = []any{to("1.1", "Because they end.")} }
	for name, raw := range map[string][]byte{"with a commit": revising(answers), "alone": replying(answers)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.questioned()
			other := b.options
			b.options.History = &lateHistory{History: b.options.History, meanwhile: func() {
				if _, err := prflow.New(other).Create(context.Background(), agent, raw); err != nil {
					t.Error(err)
				}
			}}
			result, err := b.create(raw)
			if err != nil || result.Number != 1 || !result.Reused {
				t.Errorf("%+v, %v", result, err)
			}
			if said := b.said(); len(said) != 1 {
				t.Errorf("answered %d times: %q", len(said), said)
			}
		})
	}
}
