package prflow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

func noAnswer() *fault.Error { return fault.New(fault.Timeout, "the host did not answer in time") }

// unclear are the failures after which it is not known whether our pull request is a second one, or whether it was
// withdrawn.
func unclear() map[string]func(*forgetest.Script) {
	return map[string]func(*forgetest.Script){
		"nobody answers the look": func(s *forgetest.Script) { s.FailBefore(forgetest.MethodOpenOurs, noAnswer()) },
		"the look meets a limit": func(s *forgetest.Script) {
			s.FailBefore(forgetest.MethodOpenOurs, fault.New(fault.RateLimited, "too many requests"))
		},
		"nobody answers the withdrawal": func(s *forgetest.Script) { s.FailBefore(forgetest.MethodWithdraw, noAnswer()) },
		"the withdrawal's answer is lost, and nobody answers the look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodWithdraw)
			s.FailBefore(forgetest.MethodFindByHead, noAnswer())
		},
		"the answer to the opening is lost, and nobody answers the look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodOpenPullRequest)
			s.FailBefore(forgetest.MethodFindByHead, noAnswer())
		},
	}
}

// wantOne demands that the rival's pull request alone is open, and nothing is left to settle.
func (b *bench) wantOne() {
	b.Helper()
	left, err := b.store.History.Unfinished(b.Context())
	if open := b.open(); err != nil || !slices.Equal(open, []int{1}) || len(left) != 0 {
		b.Errorf("open %v, left %+v, %v", open, left, err)
	}
	b.mustVerify()
}

func TestASecondPullRequestThatMayBeOpenIsSettledByARound(t *testing.T) {
	t.Parallel()
	for name, fail := range unclear() {
		t.Run(name, func(t *testing.T) {
			b := newLateBench(t)
			b.meetsARival("# Otherwise\n")
			fail(b.fake.Script)
			result, err := b.create(request(nil))
			if err != nil && !fault.From(err).Retryable() || err == nil && len(result.Warnings) != 1 {
				t.Fatalf("%+v, %v", result, err)
			}
			if settled, err := prflow.New(b.options).Resume(t.Context()); err != nil || len(settled) != 1 ||
				settled[0].Error != "" {
				t.Fatalf("settled %+v, %v", settled, err)
			}
			b.wantOne()
			b.world().Merge(1)
			b.clock.advance(time.Minute)
			b.mustOpen(request(files(file("checks/inodes.md", "update", "# Inodes\n")))) // it was not rejected
		})
	}
}

func TestASecondPullRequestThatMayBeOpenIsSettledByTheIdenticalCall(t *testing.T) {
	t.Parallel()
	for name, fail := range unclear() {
		for content, code := range map[string]fault.Code{"# Inodes\n": "", "# Otherwise\n": fault.DuplicatePR} {
			t.Run(name+", "+content, func(t *testing.T) {
				b := newLateBench(t)
				b.meetsARival(content)
				fail(b.fake.Script)
				_, _ = b.create(request(nil))
				result, err := b.create(request(nil))
				if fault.CodeOf(err) != code || code == "" && (result.Number != 1 || !result.Reused) ||
					code != "" && fault.From(err).Existing.Number != 1 {
					t.Errorf("%+v, %v", result, err)
				}
				if _, err := prflow.New(b.options).Resume(t.Context()); err != nil {
					t.Error(err)
				}
				b.wantOne()
			})
		}
	}
}

func TestAPullRequestThatWasNoSecondOneStaysOpenWhenThatIsSettled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		meet func(b *bench)
	}{
		{"nobody else's changes the file", func(b *bench) { b.world().Close(1) }},
		{"a person has changed its branch", func(b *bench) {
			b.world().Push(plainBranch, providertest.File{Path: "checks/disk.md", Content: "# Disk, by a person\n"})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newLateBench(t)
			b.meetsARival("# Otherwise\n")
			b.fake.Script.FailBefore(forgetest.MethodOpenOurs, noAnswer())
			result := b.mustOpen(request(nil))
			row.meet(b)
			if _, err := prflow.New(b.options).Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			p, err := b.store.History.Proposal(t.Context(), result.RequestID)
			if err != nil || p.State != record.StateOpened || p.PRNumber != result.Number ||
				!slices.Contains(b.open(), result.Number) {
				t.Errorf("%+v, %v; open %v", p, err, b.open())
			}
		})
	}
}

func TestAPullRequestThatWasJudgedIsNoRivalWhateverIsPushedToItLater(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	older := b.mustOpen(request(func(r map[string]any) {
		r["title"], r["files"] = "Another title", []any{file("checks/swap.md", "create", "# Swap\n")}
	}))
	b.clock.advance(time.Hour)
	b.fake.Script.FailAfter(forgetest.MethodOpenPullRequest)
	b.fake.Script.FailBefore(forgetest.MethodFindByHead, noAnswer())
	if _, err := b.create(request(nil)); err == nil {
		t.Fatal("no error")
	}
	b.world().Push(older.Branch, providertest.File{Path: "checks/inodes.md", Content: "# Inodes, by a person\n"})
	if _, err := prflow.New(b.options).Resume(t.Context()); err != nil || len(b.open()) != 2 {
		t.Errorf("open %v, %v", b.open(), err)
	}
}

func TestALookForOthersThatIsRefusedIsAWarning(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Otherwise\n")
	b.fake.Script.FailBefore(forgetest.MethodOpenOurs, fault.New(fault.ProviderDisabled, "the token may not do that"))
	result := b.mustOpen(request(nil))
	left, err := b.store.History.Unfinished(t.Context())
	if len(result.Warnings) != 1 || err != nil || len(left) != 0 {
		t.Errorf("%+v; left %+v, %v", result, left, err)
	}
}
