package prflow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// What people do to a pull request between our look and our commit is told, and nothing is commented there.
func TestARevisionOfAPullRequestThatEndedMeanwhileIsAConflict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(b *bench)
		says string
	}{
		"merged": {func(b *bench) { b.world().Merge(1) },
			"was merged while the revision was on its way, and without it: the commit "},
		"closed": {func(b *bench) { b.world().Close(1) },
			"was closed while the revision was on its way, and without it: the commit "},
		"merged, branch removed too": {func(b *bench) { b.world().Merge(1); b.world().DeleteBranch(plainBranch) },
			"was merged since it was read a moment ago; nothing"},
		"squashed": {func(b *bench) {
			b.world().Push("main", providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n"})
			b.world().Merge(1)
		}, "was merged while the revision was on its way, and without it: the commit "},
	} {
		for what, spoil := range map[string]func(b *bench){
			"":                                      func(*bench) {},
			", and the answer to the title is lost": func(b *bench) { b.fake.Script.FailAfter(forgetest.MethodSetText) },
			", and the title is refused": func(b *bench) {
				b.fake.Script.FailBefore(forgetest.MethodSetText, fault.New(fault.RepoNotAllowed, "no"))
			},
		} {
			t.Run(name+what, func(t *testing.T) {
				b := newBench(t)
				b.reviewed()
				b.fake.Script.Before(forgetest.MethodAppend, func() { c.end(b) })
				spoil(b)
				_, err := b.create(revising(nil))
				e := fault.From(err)
				if fault.CodeOf(err) != fault.Conflict || !strings.Contains(e.Message, c.says) ||
					!strings.Contains(e.Next, "without revises") {
					t.Fatalf("%v, next %q", err, e.Next)
				}
				if tip := b.tip(plainBranch); tip != "" && !strings.Contains(e.Message, tip[:12]) {
					t.Errorf("%q does not name the commit %s", e.Message, tip)
				}
				if len(b.comments()) > 0 {
					t.Errorf("commented: %q", b.comments())
				}
				if row := b.attempts()[0]; row.Outcome != record.OutcomeRefused || row.Code != fault.Conflict {
					t.Errorf("the audit has %+v", row)
				}
				b.mustHoldNothing()
			})
		}
	}
}

// mustHold demands a whole audit, and that so many proposals are left unfinished, and returns those.
func (b *bench) mustHold(n int) []record.Proposal {
	b.Helper()
	left, err := b.store.History.Unfinished(context.Background())
	if err != nil || len(left) != n {
		b.Fatalf("still reserved: %+v, %v", left, err)
	}
	b.mustVerify()
	return left
}

// mustHoldNothing demands that no files are reserved, and a whole audit.
func (b *bench) mustHoldNothing() {
	b.Helper()
	b.mustHold(0)
}

func TestARevisionThatWasMergedAtOnceIsMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	b.fake.Script.After(forgetest.MethodAppend, func() { b.world().Merge(1) })
	result, err := b.create(revising(nil))
	if err != nil || !result.Revised || !slices.Contains(result.Warnings,
		"#1 was merged a moment ago, with this revision") {
		t.Errorf("%+v, %v", result, err)
	}
	if len(b.comments()) > 0 {
		t.Errorf("commented: %q", b.comments())
	}
	b.mustHoldNothing()
}

// A process that dies after its commit leaves the same case to the process that settles it.
func TestWhatADeadProcessAddedToAPullRequestThatHadEndedIsSettledAsNotMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  func(s *forgetest.Script, do func())
		outcome record.Outcome
	}{
		"merged before the commit": {func(s *forgetest.Script, do func()) { s.Before(forgetest.MethodAppend, do) },
			record.OutcomeFailed},
		"merged after the commit": {func(s *forgetest.Script, do func()) { s.After(forgetest.MethodAppend, do) },
			record.OutcomeRevised},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			c.script(b.fake.Script, func() { b.world().Merge(1) })
			failure := fault.New(fault.UpstreamError, "no answer")
			b.fake.Script.FailAfter(forgetest.MethodAppend)
			b.fake.Script.FailBefore(forgetest.MethodBranchTip, failure)
			b.mustFail(revising(nil), fault.UpstreamError)
			b.clock.advance(time.Hour)
			b.resume()
			if row := b.attempts()[0]; row.Outcome != c.outcome || row.Action != record.ActionSettle {
				t.Errorf("the audit has %+v", row)
			}
			if len(b.comments()) > 0 {
				t.Errorf("commented: %q", b.comments())
			}
			b.mustHoldNothing()
		})
	}
}

// A title that the forge refuses is tried again, and told again, by each identical call.
func TestARefusedTitleIsTriedAgainAndWarnedOfAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	refused := fault.New(fault.RepoNotAllowed, "the forge refuses")
	const warning = "title and body could not be set: the forge refuses"
	for i := range 3 {
		b.fake.Script.FailBefore(forgetest.MethodSetText, refused)
		result, err := b.create(revising(with("title", "Check inodes, and how")))
		if err != nil || result.Number != 1 || result.Reused != (i > 0) || !slices.Contains(result.Warnings, warning) {
			t.Fatalf("call %d: %+v, %v", i, result, err)
		}
	}
	result, err := b.create(revising(with("title", "Check inodes, and how")))
	if err != nil || !result.Reused || len(result.Warnings) > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if pr := b.pull(1); pr.Title != "Check inodes, and how" || !strings.Contains(pr.Body, "Revision 1 of") ||
		len(b.comments()) != 1 {
		t.Errorf("%q: %s; %q", pr.Title, pr.Body, b.comments())
	}
	b.fake.Script.ForgetCalls()
	if _, err := b.create(revising(with("title", "Check inodes, and how"))); err != nil || b.fake.Script.Writes() > 0 {
		t.Errorf("%v, %v", err, b.fake.Script.Calls())
	}
}

// The record knows a commit that somebody has taken off the branch since: what the provider says counts.
func TestARecordedCommitThatIsGoneIsSettledAsNotMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remove  bool
		outcome record.Outcome
	}{"removed": {true, record.OutcomeFailed}, "there": {false, record.OutcomeRevised}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first := b.reviewed()
			b.fake.Script.FailBefore(forgetest.MethodComment, fault.New(fault.UpstreamError, "no answer"))
			b.mustRevise(revising(nil))
			if c.remove {
				b.fake.People.PointBranch(infra, plainBranch, first.Commit)
			}
			b.clock.advance(time.Hour)
			settled, err := prflow.New(b.options).Resume(context.Background())
			if err != nil || len(settled) != 1 || settled[0].Error != "" || (settled[0].Number == 1) == c.remove {
				t.Errorf("%+v, %v", settled, err)
			}
			if row := b.attempts()[0]; row.Outcome != c.outcome || row.Action != record.ActionSettle {
				t.Errorf("the audit has %+v", row)
			}
			b.mustHoldNothing()
		})
	}
}

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
	result, err := b.create(revising(files(file("checks/inodes.md", "update", "# Another way\n"))))
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
