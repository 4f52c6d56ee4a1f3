package prflow_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// opened opens #1, which adds a check, and has ann ask for changes.
func (b *bench) reviewed() prflow.CreateResult {
	b.Helper()
	first := b.mustOpen(createRequest(nil))
	b.ask(first.Number, "Say how, too.")
	return first
}

// ask has ann ask for changes, a while later.
func (b *bench) ask(number int, text string) {
	b.Helper()
	b.clock.advance(time.Minute)
	b.world().Review(number, "ann", gitprovider.ReviewChangesRequested, text)
	b.clock.advance(time.Minute)
}

// revising is a good revision of #1; change alters it.
func revising(change func(map[string]any)) []byte {
	return createRequest(func(r map[string]any) {
		r["revises"] = 1
		r["files"] = []any{edited("checks/inodes.md", "# Inodes\n", "# Inodes\n\ndf -i\n")}
		if change != nil {
			change(r)
		}
	})
}

func (b *bench) pull(number int) gitprovider.Status {
	b.Helper()
	status, err := b.fake.Status(context.Background(), infra, number)
	b.must(err)
	return status
}

// comments returns the comments on #1.
func (b *bench) comments() (out []string) {
	b.Helper()
	remarks, err := b.fake.Remarks(context.Background(), infra, 1)
	b.must(err)
	for _, r := range remarks {
		if r.State == "" {
			out = append(out, r.Body)
		}
	}
	return out
}

func (b *bench) content(branch, path string) string { return b.contentAt(b.tip(branch), path) }

func TestARevisionIsOneMoreCommitOnTheOpenPullRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.reviewed()
	head := b.tip(first.Branch)
	call := revising(func(r map[string]any) {
		r["title"], r["body"] = "Check inodes, and how", "## Why\n\nAs ann asked.\n"
	})
	result := b.mustRevise(call)
	if result.Created() || result.Number != 1 || result.Branch != first.Branch {
		t.Errorf("the result is %+v", result)
	}
	tip := b.tip(first.Branch)
	if !slices.Equal(b.world().Parents(tip), []string{head}) || result.Commit != tip {
		t.Errorf("the tip %s follows %v, want %s", tip, b.world().Parents(tip), head)
	}
	if got := b.content(first.Branch, "checks/inodes.md"); got != "# Inodes\n\ndf -i\n" {
		t.Errorf("the file holds %q", got)
	}
	pr := b.pull(1)
	if pr.Title != "Check inodes, and how" || !strings.HasPrefix(pr.Body, "## Why\n\nAs ann asked.") ||
		!strings.Contains(pr.Body, "Revision 1 of") {
		t.Errorf("the pull request is %q: %s", pr.Title, pr.Body)
	}
	want := "Revised by Claude Ops in " + tip[:12] + " (request " + result.RequestID + "), after the review of ann."
	if got := b.comments(); !slices.Equal(got, []string{want}) {
		t.Errorf("the comments are %q, want %q", got, want)
	}
	row := b.attempts()[0]
	if row.Outcome != record.OutcomeRevised || row.PRNumber != 1 || row.Action != record.ActionCreate {
		t.Errorf("the audit has %+v", row)
	}
	if branches := b.world().Branches(); len(branches) != 2 {
		t.Errorf("branches: %v", branches)
	}
	b.mustVerify()

	// The identical call is settled, and what was asked for first is open, too.
	b.fake.Script.ForgetCalls()
	if b.mustReuse(call, 1); b.fake.Script.Writes() != 0 {
		t.Errorf("again: %d writes", b.fake.Script.Writes())
	}
	if b.mustReuse(createRequest(nil), 1); b.tip(first.Branch) != tip {
		t.Errorf("the first call again: the branch is at %s", b.tip(first.Branch))
	}
	if len(b.comments()) != 1 {
		t.Errorf("the comments are %q", b.comments())
	}
}

func TestEachReviewAllowsOneRevisionUpToThePolicysLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Revisions.Max = 2
	first := b.reviewed()
	content := func(text string) func(map[string]any) { return files(file("checks/inodes.md", "update", text)) }
	b.mustRevise(revising(content("one\n")))
	e, _ := b.mustRefuse(revising(content("two\n")), fault.DuplicatePR)
	if !strings.Contains(e.Message, "waits for its review") {
		t.Errorf("the message is %q", e.Message)
	}
	b.clock.advance(time.Minute)
	b.world().(providertest.Commenter).Comment(1, "bob", "Once more.")
	b.clock.advance(time.Minute)
	b.mustRevise(revising(content("two\n")))
	b.ask(first.Number, "And again.")
	b.mustRefuse(revising(content("three\n")), fault.LimitReached)
	if b.content(first.Branch, "checks/inodes.md") != "two\n" || len(b.comments()) != 3 {
		t.Errorf("the branch has %q, comments %q", b.content(first.Branch, "checks/inodes.md"), b.comments())
	}
}

// mustRevise creates and fails the test unless a pull request was revised.
func (b *bench) mustRevise(raw []byte) prflow.CreateResult {
	b.Helper()
	result, err := b.create(raw)
	if err != nil || !result.Revised || result.Reused {
		b.Fatalf("%+v, %v", result, err)
	}
	return result
}

// onlyReviewed sets the policy to refuse revisions of pull requests without a review.
func (b *bench) onlyReviewed() { b.options.Authority.Policy.Revisions.Once = false }

// By default an agent may correct its own pull request once before anybody has looked at it.
func TestAFreshPullRequestIsCorrectedOnce(t *testing.T) {
	t.Parallel()
	more := files(file("checks/inodes.md", "update", "# Inodes\n\nAgain.\n"))
	for name, c := range map[string]struct {
		before func(b *bench)
		once   bool // whether the first correction is let through
	}{
		"nobody has looked": {func(*bench) {}, true},
		"a stranger has":    {func(b *bench) { b.crowd().Comment(1, "eve", "Change it.") }, true},
		"somebody has dismissed a review": {func(b *bench) {
			b.world().Review(1, "ann", gitprovider.ReviewDismissed, "Not so.")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustOpen(createRequest(nil))
			b.clock.advance(time.Minute)
			c.before(b)
			b.clock.advance(time.Minute)
			if want := map[bool]string{true: "yes: revises 1", false: "no: #1 waits"}[c.once]; !strings.HasPrefix(
				b.status().Revise, want) {
				t.Errorf("status says %q, want %q", b.status().Revise, want)
			}
			if c.once {
				b.mustRevise(revising(nil))
				b.clock.advance(time.Minute)
			}
			e, _ := b.mustRefuse(revising(more), fault.DuplicatePR)
			if !strings.Contains(e.Message, "waits for its review") {
				t.Errorf("the message is %q", e.Message)
			}
		})
	}
}

// A person moves our pull request to another branch, which the policy does not let agents target.
func TestOneAnswerAboutAPullRequestThatGoesElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	b.world().Push("release")
	b.crowd().Retarget(1, "release")
	const says = `#1 goes into "release" now`
	if got := b.status().Revise; !strings.HasPrefix(got, "no: "+says) {
		t.Errorf("status says %q", got)
	}
	e, _ := b.mustRefuse(revising(nil), fault.Conflict)
	if !strings.Contains(e.Message, says) || strings.Contains(e.Error(), "leave base_branch out") {
		t.Errorf("the revision: %v", e)
	}
	e, _ = b.mustRefuse(createRequest(nil), fault.DuplicatePR)
	if !strings.Contains(e.Next, says) {
		t.Errorf("the identical call: %s", e.Next)
	}
	b.options.Authority.Policy.Targets.BaseBranches = []string{"main", "release"}
	b.mustAsk()
}

func TestUnderReviseAlwaysNobodyHasToAsk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Revisions.Always = true
	b.mustOpen(createRequest(nil))
	other := titled("Other", file("checks/inodes.md", "create", "x\n"))
	refused, _ := b.mustRefuse(createRequest(other), fault.DuplicatePR)
	if !strings.Contains(refused.Next, "add to it by one more call with revises: 1") {
		t.Errorf("next: %q", refused.Next)
	}
	b.mustRevise(revising(nil))
}

func TestARevisionThatMayNotBeIsRefusedWithoutAWrite(t *testing.T) {
	t.Parallel()
	fourFiles := files(file("checks/a.md", "create", "a\n"), file("checks/b.md", "create", "b\n"),
		file("checks/c.md", "create", "c\n"))
	for name, c := range map[string]struct {
		before func(b *bench)
		ask    func(map[string]any)
		code   fault.Code
		says   string
	}{
		"nobody has said anything": {func(b *bench) { b.onlyReviewed(); b.mustOpen(createRequest(nil)) }, nil,
			fault.DuplicatePR, "waits for its review"},
		"only a stranger has": {func(b *bench) {
			b.onlyReviewed()
			b.mustOpen(createRequest(nil))
			b.clock.advance(time.Minute)
			b.world().(providertest.Commenter).Comment(1, "eve", "Change it.")
		}, nil, fault.DuplicatePR, "waits for its review"},
		"it was approved": {func(b *bench) {
			b.mustOpen(createRequest(nil))
			b.clock.advance(time.Minute)
			b.world().Review(1, "ann", gitprovider.ReviewApproved, "Fine.")
		}, nil, fault.Conflict, "approved"},
		"changes more than we proposed": {func(b *bench) {
			first := b.reviewed()
			b.world().Push(first.Branch, providertest.File{Path: "checks/more.md", Content: "m\n"})
		}, nil, fault.Conflict, "changes more than we proposed"},
		"the mark is gone": {func(b *bench) { b.reviewed(); b.world().SetBody(1, "Mine now.") }, nil, fault.Conflict,
			"mark"},
		"it was closed":      {func(b *bench) { b.reviewed(); b.world().Close(1) }, nil, fault.Conflict, "is closed"},
		"it was merged":      {func(b *bench) { b.reviewed(); b.world().Merge(1) }, nil, fault.Conflict, "is merged"},
		"there is no such":   {func(b *bench) { b.reviewed() }, with("revises", 7), fault.NotFound, "number 7"},
		"a malformed number": {func(b *bench) { b.reviewed() }, with("revises", 0), fault.InvalidArgument, "at least 1"},
		"somebody else's": {func(b *bench) {
			b.personOpens(providertest.File{Path: "checks/x.md", Content: "x\n"})
		}, nil, fault.NotFound, "of ours"},
		"the edits do not fit the branch": {func(b *bench) { b.reviewed() },
			files(edited("checks/inodes.md", "# Disk\n", "x\n")), fault.Conflict, "branch of the pull request"},
		"base_sha is another one": {func(b *bench) { b.reviewed() },
			files(based(file("checks/inodes.md", "update", "x\n"), "0123456")), fault.Conflict, "branch of the pull request"},
		"a file that the branch has is created": {func(b *bench) { b.reviewed() },
			files(file("checks/inodes.md", "create", "x\n")), fault.Conflict, "exists"},
		"the branch has it already": {func(b *bench) { b.reviewed() },
			files(file("checks/inodes.md", "update", "# Inodes\n")), fault.NoChange, "exactly this content"},
		"nothing would be left": {func(b *bench) { b.reviewed() }, files(file("checks/inodes.md", "delete")),
			fault.NoChange, "change nothing"},
		"more files than the tier may change": {func(b *bench) { b.reviewed() }, fourFiles, fault.TierDenied, "has 4"},
		"a path outside the scope": {func(b *bench) { b.reviewed() }, files(file("main.go", "create", "x\n")),
			fault.ScopeDenied, "main.go"},
		"a secret": {func(b *bench) { b.reviewed() },
			files(file("checks/inodes.md", "update", "x "+ownToken+"\n")), fault.ContentDenied, ""},
		"another base branch": {func(b *bench) {
			b.reviewed()
			b.world().Push("release")
			b.options.Authority.Policy.Targets.BaseBranches = []string{"*"}
		}, with("base_branch", "release"), fault.InvalidArgument, "goes into"},
		"a file of another pull request": {func(b *bench) {
			b.reviewed()
			b.mustOpen(createRequest(titled("Another", file("checks/disk.md", "update", "# Disk\n\ndf\n"))))
		}, files(file("checks/disk.md", "update", "x\n")), fault.DuplicatePR, "#2"},
		"a file that was rejected": {func(b *bench) {
			b.reviewed()
			b.mustOpen(createRequest(titled("Another", file("checks/disk.md", "update", "# Disk\n\ndf\n"))))
			b.world().Close(2)
		}, files(file("checks/disk.md", "update", "x\n")), fault.CooldownActive, "#2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.before(b)
			b.clock.advance(time.Minute)
			before := b.world().Branches()
			e, _ := b.mustRefuse(revising(c.ask), c.code)
			if !strings.Contains(e.Message, c.says) {
				t.Errorf("the message is %q, want %q", e.Message, c.says)
			}
			after := b.world().Branches()
			if len(before) != len(after) || len(b.comments()) > 1 {
				t.Errorf("branches %v, then %v; comments %q", before, after, b.comments())
			}
		})
	}
}

func TestADryRunOfARevisionShowsItAndAPersonOpensIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.reviewed()
	dry := b.shown(revising(nil))
	if !strings.Contains(dry.Preview.Diff, "+df -i") || strings.Contains(dry.Preview.Diff, "+# Inodes") ||
		!strings.Contains(dry.Preview.Calls[0], "add one commit") {
		t.Errorf("the preview is %+v", dry.Preview)
	}
	result, err := b.promote(dry.RequestID)
	if err != nil || !result.Revised || b.content(first.Branch, "checks/inodes.md") != "# Inodes\n\ndf -i\n" {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestCapsCountARevisionAsNoPullRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Limits.Caps.OpenPRs, b.options.Authority.Policy.Limits.Caps.CreationsPerHour = 2, 2
	b.reviewed()
	for i, text := range []string{"one\n", "two\n", "three\n"} {
		if result, err := b.create(revising(files(file("checks/inodes.md", "update", text)))); err != nil || !result.Revised {
			t.Fatalf("%d: %+v, %v", i, result, err)
		}
		b.ask(1, "More.")
	}
	b.mustOpen(createRequest(titled("Another", file("checks/disk.md", "update", "# Disk\n\ndf\n"))))
	b.mustRefuse(createRequest(titled("A third", file("checks/third.md", "create", "# Third\n"))), fault.LimitReached)
	if result, err := b.create(revising(files(file("checks/inodes.md", "update", "four\n")))); err != nil ||
		!result.Revised {
		t.Fatalf("at the cap: %+v, %v", result, err)
	}
}

func TestStatusListAndRefusalSayThatAPullRequestMayBeRevised(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	b.mustOpen(createRequest(nil))
	b.mustWait()
	other := createRequest(files(file("checks/inodes.md", "create", "# Other\n")))
	if e, _ := b.mustRefuse(other, fault.DuplicatePR); strings.Contains(e.Next, "revises") {
		t.Errorf("the refusal says %q", e.Next)
	}
	b.ask(1, "Say how.")
	b.mustAsk()
	e, _ := b.mustRefuse(other, fault.DuplicatePR)
	if !strings.Contains(e.Next, "revises: 1") || e.Existing.LastReview == nil ||
		e.Existing.LastReview.Text != "Say how." {
		t.Errorf("the refusal says %q, %+v", e.Next, e.Existing)
	}
	if list := b.list(); len(list.PRs) != 1 || !list.PRs[0].Ours {
		t.Errorf("%+v", list)
	}
}

// Whatever fails, and however, the identical call ends in one commit and one answer.
func TestARevisionThatFailsHalfWayIsFinishedByTheIdenticalCall(t *testing.T) {
	t.Parallel()
	failure := fault.New(fault.UpstreamError, "no answer")
	plans := map[string]func(s *forgetest.Script){
		"the comment arrives, and nobody can look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodComment)
			s.After(forgetest.MethodComment, func() { s.FailBefore(forgetest.MethodRemarks, failure) })
		},
		"the commit arrives, and nobody can look": func(s *forgetest.Script) {
			s.FailAfter(forgetest.MethodAppend)
			s.FailBefore(forgetest.MethodBranchTip, failure)
		},
	}
	for _, method := range []string{forgetest.MethodAppend, forgetest.MethodSetText, forgetest.MethodComment} {
		plans[method+" arrives, and the answer is lost"] = func(s *forgetest.Script) { s.FailAfter(method) }
		plans[method+" does not arrive"] = func(s *forgetest.Script) { s.FailBefore(method, failure) }
	}
	for name, plan := range plans {
		for _, lateness := range []time.Duration{0, gitprovider.ForgeLateness} {
			t.Run(name+", lateness "+lateness.String(), func(t *testing.T) {
				b := newBench(t)
				b.fake.SetLateness(lateness)
				first := b.reviewed()
				head := b.tip(first.Branch)
				plan(b.fake.Script)
				result, err := b.create(revising(nil))
				if err != nil && fault.CodeOf(err) != fault.UpstreamError {
					t.Fatalf("%+v, %v", result, err)
				}
				again, err := b.create(revising(nil))
				if err != nil || again.Number != 1 {
					t.Fatalf("again: %+v, %v", again, err)
				}
				b.clock.advance(time.Hour)
				b.resume()
				b.assertRevisedOnce(first.Branch, head)
			})
		}
	}
}

// assertRevisedOnce demands one commit after head, one answer, the new body, and nothing reserved.
func (b *bench) assertRevisedOnce(branch, head string) {
	b.Helper()
	tip := b.tip(branch)
	if tip == head || !slices.Equal(b.world().Parents(tip), []string{head}) {
		b.Errorf("the tip %s follows %v, want one commit after %s", tip, b.world().Parents(tip), head)
	}
	if len(b.comments()) != 1 {
		b.Errorf("the comments are %q", b.comments())
	}
	if body := b.pull(1).Body; !strings.Contains(body, "Revision 1 of") {
		b.Errorf("the body is %s", body)
	}
	b.mustHoldNothing()
}

func TestOfManyIdenticalRevisionsOneIsMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.reviewed()
	head := b.tip(first.Branch)
	b.options.Clock.Sleep = func(ctx context.Context, _ time.Duration) { time.Sleep(time.Millisecond) }
	const many = 6
	b.must(errors.Join(inParallel(many, func(int) error {
		result, err := prflow.New(b.options).Create(context.Background(), agent, revising(nil))
		if err == nil && result.Number != 1 {
			err = errors.New("another number")
		}
		return err
	})...))
	b.assertRevisedOnce(first.Branch, head)
}

// An agent that knows the base branch alone must not make its edits once more on what the pull request has changed
// already.
func TestEditsOfARevisionAreMadeFromItsBranch(t *testing.T) {
	t.Parallel()
	const onBranch = "# Disk\n\nKeep 9 days.\nTwo.\nThree.\nTwo.\n"
	answer := edited("checks/disk.md", "Three.", "Three.\nKeep 5 days.")
	for name, c := range map[string]struct {
		file map[string]any
		code fault.Code
		says string
	}{
		"from an unknown version": {answer, fault.Conflict, "nothing says that the edits are made from its text"},
		"from the base branch": {based(edited("checks/disk.md", "Three.", "Three.\nKeep 5 days."), blobOf(manual)),
			fault.Conflict, "must be made from the pull request's text"},
		"from another text": {based(edited("checks/disk.md", "Three.", "3."), blobOf("other")), fault.Conflict,
			"on the branch of the pull request now, not"},
		"that do not fit": {edited("checks/disk.md", "One.", "Keep 5 days."), fault.Conflict,
			"on the branch of the pull request"},
		"from the branch": {based(edited("checks/disk.md", "Keep 9 days.", "Keep 5 days."), blobOf(onBranch)), "",
			""},
		"of a file that it has not": {edited("checks/old.md", "Old", "Older"), "", ""},
		"whole content":             {file("checks/disk.md", "update", "# Disk\n\nKeep 5 days.\n"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEditBench(t)
			first := b.mustOpen(createRequest(files(edited("checks/disk.md", "One.", "Keep 9 days."))))
			b.ask(first.Number, "5 in place of 9")
			writes := b.fake.Script.Writes()
			_, err := b.create(revising(files(c.file)))
			if fault.CodeOf(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if c.code == "" {
				return
			}
			v := fault.From(err).Violations[0]
			if !strings.Contains(v.Message, c.says) || v.Present == nil || v.Present.Text != onBranch ||
				v.Present.BaseSHA != blobOf(onBranch) {
				t.Errorf("%+v, present %+v", v, v.Present)
			}
			if b.fake.Script.Writes() != writes {
				t.Error("something was written")
			}
		})
	}
}
