package providertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func everyMethodTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"knows its name": nameTest,
		"says not found for a missing repository":         missingRepo,
		"says timeout for a context that ended":           endedContext,
		"says timeout for a deadline that passed":         passedDeadline,
		"keeps the cause of a context's end for the logs": contextCause,
		"answers a ping, and ends it with its context":    pingTest,
	}
}

// methods calls every method of the port that takes a context.
func (s *Scene) methods(ctx context.Context, ref gitprovider.RepoRef) map[string]error {
	s.t.Helper()
	req := s.Request("claude-ops/fix/every-method", Update("checks/disk.md", "new\n"))
	req.Snapshot.Repo = ref
	spec := s.Spec("claude-ops/fix/every-method", "Every method")
	spec.Repo = ref
	errs := map[string]error{}
	_, errs["Snapshot"] = s.p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: ref})
	_, errs["Commit"] = s.p.Commit(ctx, req)
	_, errs["OpenPullRequest"] = s.p.OpenPullRequest(ctx, spec)
	errs["Label"] = s.p.Label(ctx, ref, 1, []string{"x"})
	_, errs["FindByHead"] = s.p.FindByHead(ctx, ref, spec.Head)
	_, errs["BranchTip"] = s.p.BranchTip(ctx, ref, spec.Head)
	errs["DeleteBranch"] = s.p.DeleteBranch(ctx, ref, spec.Head, req.Snapshot.BaseCommit)
	_, errs["ListOpen"] = s.p.ListOpen(ctx, ref, gitprovider.LabelOurs)
	_, errs["Status"] = s.p.Status(ctx, ref, 1)
	_, errs["OpenOurs"] = s.p.OpenOurs(ctx, ref, 10)
	_, errs["OurBranches"] = s.p.OurBranches(ctx, ref)
	_, errs["ReadBlob"] = s.p.(gitprovider.BlobReader).ReadBlob(ctx, ref, req.Snapshot.BaseCommit)
	_, errs["ReadCommit"] = s.p.ReadCommit(ctx, ref, req.Snapshot.BaseCommit)
	reviser := s.reviser()
	more := req
	branch := *req.Snapshot
	more.Snapshot, branch.Base = &branch, req.Branch
	_, errs["Append"] = reviser.Append(ctx, more)
	_, errs["SetText"] = s.editor().SetText(ctx, ref, 1, "Title", "Body")
	errs["Comment"] = reviser.Comment(ctx, ref, 1, "Hello.")
	_, errs["Remarks"] = s.p.(gitprovider.RemarkReader).Remarks(ctx, ref, 1)
	errs["Withdraw"] = s.p.Withdraw(ctx, ref, gitprovider.Withdrawal{
		Number: 1, Branch: spec.Head, Head: req.Snapshot.BaseCommit,
	})
	_, errs["Close"] = s.p.Close(ctx, ref, gitprovider.Closing{Number: 1, Branch: spec.Head,
		Head: req.Snapshot.BaseCommit})
	return errs
}

func nameTest(t *testing.T, h Harness) {
	s := newScene(t, h)
	if s.p.Name() == "" {
		t.Fatal("the provider has no name")
	}
}

func pingTest(t *testing.T, h Harness) {
	s := newScene(t, h)
	pinger, can := s.p.(gitprovider.Pinger)
	if !can {
		t.Fatal("the provider cannot be pinged")
	}
	s.Must(pinger.Ping(s.ctx))
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.Code(pinger.Ping(ctx), fault.Timeout)
}

func (s *Scene) everyMethod(ctx context.Context, ref gitprovider.RepoRef, want fault.Code) {
	s.t.Helper()
	before := s.Branches()
	for method, err := range s.methods(ctx, ref) {
		if got := fault.CodeOf(err); got != want {
			s.t.Errorf("%s: got code %q (%v), want %s", method, got, err, want)
		}
	}
	s.Same("branches", s.Branches(), before)
}

func missingRepo(t *testing.T, h Harness) {
	s := newScene(t, h)
	for _, ref := range []gitprovider.RepoRef{
		{Owner: s.Ref().Owner, Name: "no-such-repository"}, {Owner: "no-such-owner", Name: s.Ref().Name},
	} {
		s.everyMethod(s.ctx, ref, fault.NotFound)
	}
}

func endedContext(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.everyMethod(ctx, s.Ref(), fault.Timeout)
}

func passedDeadline(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithDeadline(s.ctx, time.Unix(0, 0))
	defer cancel()
	s.everyMethod(ctx, s.Ref(), fault.Timeout)
}

func contextCause(t *testing.T, h Harness) {
	s := newScene(t, h)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for method, err := range s.methods(ctx, s.Ref()) {
		if e := fault.From(err); e == nil || e.Cause == nil {
			t.Errorf("%s: %v has no cause", method, err)
		}
	}
}

func raceTests() map[string]func(*testing.T, Harness) {
	return map[string]func(*testing.T, Harness){
		"of creators of one branch has one winner":           raceBranch,
		"of openers of one pull request ends with one":       raceOpen,
		"of creators of different branches has no loser":     raceDifferent,
		"of deleting one branch leaves nobody with an error": raceDelete,
	}
}

// together runs n calls at the same time.
func together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

const racers = 6

func raceBranch(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.Request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	made := make([]gitprovider.Commit, racers)
	errs := together(racers, func(i int) (err error) {
		mine := req
		mine.Message += string(rune('a' + i))
		made[i], err = s.p.Commit(s.ctx, mine)
		return err
	})
	winners := 0
	for i, err := range errs {
		if err != nil {
			s.Code(err, fault.Conflict)
			continue
		}
		winners++
		s.Same("tip", s.Tip(req.Branch), made[i].ID)
	}
	s.Same("winners", winners, 1)
}

func raceOpen(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	got := make([]int, racers)
	for _, err := range together(racers, func(i int) error {
		pr, err := s.p.OpenPullRequest(s.ctx, s.Spec(made.Branch, "Race"))
		got[i] = pr.Number
		return err
	}) {
		s.Must(err)
	}
	for _, number := range got {
		s.Same("number", number, got[0])
	}
	s.Same("found", s.Find(made.Branch).Number, got[0])
}

func raceDifferent(t *testing.T, h Harness) {
	s := newScene(t, h)
	req := s.Request("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	for _, err := range together(racers, func(i int) error {
		mine := req
		mine.Branch += string(rune('a' + i))
		_, err := s.p.Commit(s.ctx, mine)
		return err
	}) {
		s.Must(err)
	}
	s.Same("branches", len(s.Branches()), racers+1)
}

func raceDelete(t *testing.T, h Harness) {
	s := newScene(t, h)
	made := s.Commit("claude-ops/check/disk", Update("checks/disk.md", "new\n"))
	for _, err := range together(racers, func(int) error {
		return s.p.DeleteBranch(s.ctx, s.Ref(), made.Branch, made.ID)
	}) {
		s.Must(err)
	}
	s.Same("tip", s.Tip(made.Branch), "")
}
