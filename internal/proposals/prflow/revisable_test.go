package prflow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// fail has a check of #1's head fail.
func (b *bench) fail() {
	b.Helper()
	b.fake.People.SetChecks(infra, 1, gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"lint"},
		Details: []gitprovider.FailedCheck{
			{Name: "lint", Summary: "2 errors", Log: strings.Repeat("x", 5000) +
				"\nchecks/inodes.md:1 too short\nGITHUB_TOKEN=ghp_" + "x7Kq2mZp9LwT4vRb8NcY3sDf6HjG1aEu5QoW" + "\n",
				URL: "https://ci.example.org/1"},
		}})
}

func TestFailingChecksAskForARevision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	first := b.mustOpen(createRequest(nil))
	b.mustFail(revising(nil), fault.DuplicatePR)
	b.fail()
	status := b.status()
	if status.Revise != "yes: revises 1" || status.Checks.Details != nil {
		t.Errorf("%+v", status)
	}
	details := b.statusWith("files").Checks.Details
	if len(details) != 1 || details[0].Summary != "2 errors" || !strings.Contains(details[0].LogEnd, "too short") ||
		len(details[0].LogEnd) > 2100 ||
		strings.Contains(details[0].LogEnd, "ghp_") || details[0].URL != "https://ci.example.org/1" {
		t.Errorf("%+v", details)
	}
	e, _ := b.mustRefuse(createRequest(files(file("checks/inodes.md", "create", "# Inodes another way\n"))),
		fault.DuplicatePR)
	if !strings.Contains(e.Next, `mend what its checks say ("lint"`) || !strings.Contains(e.Next, "revises: 1") {
		t.Errorf("next is %q", e.Next)
	}
	b.mustRevise(revising(nil))
	if said := b.comments(); len(said) != 1 || !strings.Contains(said[0], "since checks failed") {
		t.Errorf("the comments are %q", said)
	}
	more := revising(files(file("checks/inodes.md", "update", "# Inodes, once more\n")))
	b.mustFail(more, fault.DuplicatePR)
	b.fail()
	b.world().Review(first.Number, "ann", gitprovider.ReviewApproved, "")
	b.mustFail(more, fault.Conflict)
}

func TestFailingChecksAskForNothingWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	b.mustOpen(createRequest(nil))
	b.fail()
	b.options.Authority.Policy.Revisions.OnChecks = false
	before := b.world().Branches()
	if e, _ := b.mustRefuse(revising(nil), fault.DuplicatePR); !strings.Contains(e.Message, "waits for its review") {
		t.Errorf("%v", e)
	}
	if now := b.world().Branches(); len(now) != len(before) || now[b.pull(1).Branch] != before[b.pull(1).Branch] {
		t.Error("a branch was written")
	}
}

func TestFailingChecksAskAtMostAsOftenAsThePolicyLetsThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	b.options.Authority.Policy.Revisions.Max = 1
	b.fail()
	b.mustRevise(revising(nil))
	b.fail()
	b.mustRefuse(revising(files(file("checks/inodes.md", "update", "# Again\n"))), fault.LimitReached)
}

// update brings the branch of #1 up to date, as a person does, with files of theirs.
func (b *bench) update(rebase bool, files ...providertest.File) {
	b.Helper()
	b.world().(providertest.BranchUpdater).UpdateBranch(1, rebase, files...)
}

func TestABranchThatAPersonBroughtUpToDateIsRevised(t *testing.T) {
	t.Parallel()
	moved := func(b *bench) { b.world().Push("main", providertest.File{Path: "README.md", Content: "newer\n"}) }
	for name, do := range map[string]func(b *bench){
		"merged": func(b *bench) { moved(b); b.update(false) },
		"merged twice": func(b *bench) {
			moved(b)
			b.update(false)
			b.world().Push("main", providertest.File{Path: "README.md", Content: "newest\n"})
			b.update(false)
		},
		"rebased":            func(b *bench) { moved(b); b.update(true) },
		"merged and rebased": func(b *bench) { moved(b); b.update(false); b.update(true) },
		"an executable elsewhere": func(b *bench) {
			b.world().Push("main", providertest.File{Path: "run.sh", Content: "x", Executable: true})
			b.update(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first := b.reviewed()
			do(b)
			head := b.pull(first.Number).HeadCommit
			b.mustRevise(revising(nil))
			tip := b.pull(first.Number)
			if parents := b.world().Parents(tip.HeadCommit); len(parents) != 1 || parents[0] != head {
				t.Errorf("the parents of the revision are %v, want %s", parents, head)
			}
			b.mustReuse(revising(nil), first.Number)
			b.update(true)
			b.ask(first.Number, "And why?")
			b.mustRevise(revising(files(file("checks/inodes.md", "update", "# Inodes\n\ndf -i, since files run out\n"))))
		})
	}
}

// A person brings the branch up to date after the base branch has changed other lines of the same file.
func TestAFileThatWasMergedWithTheBaseBranchIsStillOurs(t *testing.T) {
	t.Parallel()
	const was = "# Disk\n\none\ntwo\nthree\nfour\nfive\n"
	both := strings.Replace(strings.Replace(was, "two", "TWO", 1), "five", "FIVE", 1)
	for name, c := range map[string]struct {
		person  func(b *bench)
		refused bool
	}{
		"merged":  {func(b *bench) { b.update(false) }, false},
		"rebased": {func(b *bench) { b.update(true) }, false},
		"merged, with a line of theirs": {func(b *bench) {
			b.update(false, providertest.File{Path: "checks/disk.md", Content: both + "theirs\n"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDiskBench(t, was)
			first := b.mustOpen(createRequest(files(edited("checks/disk.md", "two", "TWO"))))
			b.ask(first.Number, "Say more.")
			b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: strings.Replace(was, "five", "FIVE", 1)})
			c.person(b)
			more := edited("checks/disk.md", "three", "THREE")
			more["base_sha"] = gitprovider.BlobID([]byte(both), b.tip("main"))
			if c.refused {
				delete(more, "edits")
				delete(more, "base_sha")
				more["content"] = "x\n"
			}
			result, err := b.create(revising(files(more)))
			if c.refused {
				if e := fault.From(err); e.Code != fault.Conflict || e.Violations[0].Rule != "head" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || !result.Revised {
				t.Fatalf("%+v, %v", result, err)
			}
			if got := b.content(first.Branch, "checks/disk.md"); got != strings.Replace(both, "three", "THREE", 1) {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

func TestABranchThatBringsSomethingOfAPersonIsNotRevised(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(b *bench){
		"another file":     func(b *bench) { b.update(false, providertest.File{Path: "checks/mine.md", Content: "x\n"}) },
		"our file changed": func(b *bench) { b.update(false, providertest.File{Path: "checks/inodes.md", Content: "x\n"}) },
		"our file made executable": func(b *bench) {
			b.update(false, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n", Executable: true})
		},
		"a rebase with another file": func(b *bench) {
			b.update(true,
				providertest.File{Path: "checks/mine.md", Content: "x\n"})
		},
		"a commit": func(b *bench) {
			b.world().Push(b.pull(1).Branch, providertest.File{Path: "checks/mine.md", Content: "x\n"})
		},
		"a commit and an update": func(b *bench) {
			b.world().Push(b.pull(1).Branch, providertest.File{Path: "checks/inodes.md", Content: "x\n"})
			b.update(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			b.world().Push("main", providertest.File{Path: "README.md", Content: "newer\n"})
			do(b)
			before := b.world().Branches()
			_, err := b.create(revising(nil))
			e := fault.From(err)
			if e.Code != fault.Conflict || e.Violations[0].Rule != "head" || !strings.Contains(e.Message, `of "somebody"`) {
				t.Errorf("%v", err)
			}
			for branch, commit := range b.world().Branches() {
				if before[branch] != commit {
					t.Errorf("%s was written", branch)
				}
			}
		})
	}
}

// crowd is the world of b with what they can say besides.
func (b *bench) crowd() *memhost.World { return b.world().(*memhost.World) }

// status returns get_pr_status of #1.
func (b *bench) status() prflow.StatusResult {
	b.Helper()
	s, err := prflow.New(b.options).Status(context.Background(), agent, inInfra(with("pr_number", 1)))
	b.must(err)
	return s
}

// mustAsk demands that #1 may be revised.
func (b *bench) mustAsk() {
	b.Helper()
	if got := b.status().Revise; got != "yes: revises 1" {
		b.Errorf("status says %q", got)
	}
}

// mustWait demands that #1 waits for people.
func (b *bench) mustWait() {
	b.Helper()
	if got := b.status().Revise; !strings.HasPrefix(got, "no: #1 waits for its review") {
		b.Errorf("status says %q", got)
	}
}

// Words said while a revision is on its way are not answered by it, whatever their times are.
func TestWordsSaidWhileARevisionRunsAreUnanswered(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(b *bench){
		"a comment, in the second of the answer": func(b *bench) { b.crowd().Comment(1, "bob", "And how often?") },
		"a review, in the second of the answer": func(b *bench) {
			b.crowd().Review(1, "bob", gitprovider.ReviewChangesRequested, "And how often?")
		},
		"a review that was begun a while before": func(b *bench) {
			b.clock.advance(-30 * time.Second)
			b.crowd().Review(1, "bob", gitprovider.ReviewCommented, "And how often?")
			b.clock.advance(30 * time.Second)
		},
		"an answer to a comment on a line": func(b *bench) {
			b.crowd().Reply(1, 0, 0, "bob", "And how often?")
		},
	} {
		for what, spoil := range map[string]func(b *bench){
			"": func(*bench) {},
			", and title and body cannot be set": func(b *bench) {
				b.fake.Script.FailBefore(forgetest.MethodSetText, fault.New(fault.RepoNotAllowed, "no"))
			},
		} {
			t.Run(name+what, func(t *testing.T) {
				b := newBench(t)
				b.mustOpen(createRequest(nil))
				b.clock.advance(time.Minute)
				b.crowd().ReviewLines(1, "ann", gitprovider.ReviewChangesRequested, "Say how, too.",
					gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: "Here."})
				b.clock.advance(time.Minute)
				b.fake.Script.Before(forgetest.MethodAppend, func() { say(b) })
				spoil(b)
				b.mustRevise(revising(nil))
				b.mustAsk()
				next := revising(files(edited("checks/inodes.md", "df -i\n", "df -i, daily\n")))
				b.clock.advance(time.Minute)
				b.mustRevise(next)
				b.mustWait()
			})
		}
	}
}

func TestAMarkNamesAsManyRemarksAsFitAndTheTimeOfTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	for range 200 {
		b.clock.advance(time.Second)
		b.crowd().Comment(1, "ann", "Say how.")
	}
	b.mustRevise(revising(nil))
	b.mustWait()
	if n := len(b.pull(1).Body); n > 4096 {
		t.Errorf("the body has %d bytes", n)
	}
	b.crowd().Comment(1, "ann", "Once more.")
	b.mustAsk()
}

func TestCommentsOnLinesReachStatusAndRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	on := func(line int, body string) gitprovider.LineComment {
		return gitprovider.LineComment{Path: "checks/inodes.md", Line: line, Body: body}
	}
	settled := on(1, "Never mind.")
	settled.Resolved = true
	b.crowd().ReviewLines(1, "ann", gitprovider.ReviewCommented, "", on(1, "Say how."), settled)
	b.crowd().ReviewLines(1, "bob", gitprovider.ReviewCommented, "", on(1, "And\nhow often."))
	status := b.status()
	if status.Revise != "yes: revises 1" || len(status.Reviews) != 2 {
		t.Fatalf("status is %+v", status)
	}
	want := []prflow.LineEntry{
		{ID: "1.1", Path: "checks/inodes.md", Line: 1, Body: "Say how."},
		{ID: "1.2", Path: "checks/inodes.md", Line: 1, Body: "Never mind.", Resolved: true},
	}
	if got := status.Reviews[0].Comments; !slices.Equal(got, want) {
		t.Errorf("the comments are %+v", got)
	}
	other := createRequest(files(file("checks/inodes.md", "create", "# Other\n")))
	e, _ := b.mustRefuse(other, fault.DuplicatePR)
	last := e.Existing.LastReview
	if last == nil || last.Author != "bob" || !slices.Equal(last.Comments, []fault.LineQuote{
		{ID: "1.1", Author: "ann", Path: "checks/inodes.md", Line: 1, Text: "Say how."},
		{ID: "2.1", Author: "bob", Path: "checks/inodes.md", Line: 1, Text: "And\nhow often."},
	}) {
		t.Errorf("the refusal quotes %+v", last)
	}
	text := strings.Join(fault.Wire{ExistingPR: e.Existing}.Facts(), "\n")
	if !strings.Contains(text,
		"\n> ann, on checks/inodes.md line 1 (comment 1.1): Say how.\n> bob, on checks/inodes.md line 1 (comment 2.1): "+
			"And\n> how often.") {
		t.Errorf("the text of the refusal is %q", text)
	}
}

// A comment in the conversation opens a revision, and its words stand where the reviews do.
func TestAPlainCommentOpensARevisionWithItsWords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	b.mustOpen(createRequest(nil))
	b.clock.advance(time.Minute)
	b.crowd().Comment(1, "bob", "And how often?")
	s := b.status()
	if s.Revise != "yes: revises 1" || len(s.Reviews) != 1 || s.Reviews[0].Author != "bob" ||
		s.Reviews[0].State != "commented" || s.Reviews[0].Body != "And how often?" {
		t.Errorf("status says %q and %+v", s.Revise, s.Reviews)
	}
	set := prflow.Toolset(func() *prflow.Service { return prflow.New(b.options) })
	for _, p := range set.Prompts {
		text, err := p.Text(t.Context(), operation.Call{Caller: agent, Ceiling: gitprovider.TierRemediate},
			map[string]string{"repository": "joe/infra", "number": "1", "change": "x"})
		if answers := p.Name == "answer-review"; err != nil || answers != strings.Contains(text, "And how often?") {
			t.Errorf("%s: %v, %s", p.Name, err, text)
		}
	}
}

// However much reviewers write, the answer keeps the newest of it.
func TestTheAnswerOfStatusIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	for range 8 {
		var lines []gitprovider.LineComment
		for range 20 {
			lines = append(lines, gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: strings.Repeat("no ", 900)})
		}
		b.crowd().ReviewLines(1, "ann", gitprovider.ReviewCommented, "", lines...)
	}
	shown, left, runes := 0, 0, 0
	status := b.status()
	for _, r := range status.Reviews {
		shown, left = shown+len(r.Comments), left+r.LeftOut
		for _, c := range r.Comments {
			runes += len([]rune(c.Body))
		}
	}
	if shown == 0 || shown+left != 160 || runes > 20_000 || len(status.Reviews[7].Comments) == 0 {
		t.Errorf("%d comments of %d runes, %d left out", shown, runes, left)
	}
}

func TestAConversationThatWasSettledAsksForNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	b.crowd().ReviewLines(1, "ann", gitprovider.ReviewCommented, "", gitprovider.LineComment{
		Path: "checks/inodes.md", Line: 1, Body: "Why?", Resolved: true,
	})
	b.mustWait()
}
