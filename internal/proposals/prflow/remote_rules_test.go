package prflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestTheSameChangeAgainIsReused(t *testing.T) {
	t.Parallel()
	changes := map[string]func(map[string]any){
		"the very same request":   nil,
		"another title and body":  func(r map[string]any) { r["title"], r["body"] = "Something else", "Other words." },
		"another change type":     with("change_type", "check"),
		"the base branch spelled": with("base_branch", "main"),
		"the owner in capitals":   with("repo_owner", "JOE"),
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first := b.mustOpen(request(nil))
			b.fake.Script.ForgetCalls()
			again, err := b.create(request(change))
			if err != nil || !again.Reused || again.Number != first.Number || again.URL != first.URL ||
				again.Branch != first.Branch {
				t.Fatalf("got %+v, %v; want #%d reused", again, err, first.Number)
			}
			if b.fake.Script.Writes() != 0 || len(b.open()) != 1 {
				t.Errorf("writes %d, open %v", b.fake.Script.Writes(), b.open())
			}
			if row := b.attempts()[0]; row.Outcome != record.OutcomeReused || row.PRNumber != first.Number {
				t.Errorf("the audit has %+v", row)
			}
		})
	}
}

func TestAMergedChangeIsNoChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(request(nil))
	b.world().Merge(first.Number)
	b.mustRefuse(request(nil), fault.NoChange)
}

func TestDuplicateGate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Tier = 3
	first := b.mustOpen(request(files(file("checks/a.md", "create", "a"), file("checks/b.md", "create", "b"))))
	t.Run("an overlapping change is refused with the pull request's number", func(t *testing.T) {
		e, row := b.mustRefuse(request(files(file("checks/b.md", "create", "other"), file("checks/c.md", "create", "c"))),
			fault.DuplicatePR)
		if e.Existing == nil || e.Existing.Number != first.Number || strings.Join(e.Existing.Paths, " ") != "checks/b.md" {
			t.Errorf("existing %+v", e.Existing)
		}
		if row.PRNumber != first.Number {
			t.Errorf("the audit has %+v", row)
		}
	})
	t.Run("a change that does not overlap is not", func(t *testing.T) {
		b.mustOpen(request(func(r map[string]any) {
			r["title"] = "Another one"
			r["files"] = []any{file("checks/d.md", "create", "d")}
		}))
	})
	t.Run("what counts are the files that the pull request changes now", func(t *testing.T) {
		b.world().Push(first.Branch, providertest.File{Path: "checks/later.md", Content: "pushed by a person"})
		b.mustRefuse(request(files(file("checks/later.md", "create", "x"))), fault.DuplicatePR)
	})
	t.Run("after it was merged it blocks no more", func(t *testing.T) {
		b.world().Merge(first.Number)
		b.mustOpen(request(func(r map[string]any) {
			r["title"] = "A follow-up"
			r["files"] = []any{file("checks/a.md", "update", "a2")}
		}))
	})
}

func TestCooldownGate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(request(nil))
	b.clock.advance(time.Minute)
	b.world().Close(first.Number)
	b.clock.advance(time.Hour)
	e, _ := b.mustRefuse(request(nil), fault.CooldownActive)
	if e.RetryAfter != 23*time.Hour || e.Existing == nil || e.Existing.Number != first.Number {
		t.Errorf("retry after %s, existing %+v", e.RetryAfter, e.Existing)
	}
	b.mustRefuse(request(files(file("checks/inodes.md", "create", "something else"))), fault.CooldownActive)
	other := b.mustOpen(request(func(r map[string]any) {
		r["title"] = "Another file"
		r["files"] = []any{file("checks/free.md", "create", "x")}
	}))
	b.clock.advance(23*time.Hour - time.Second)
	b.mustRefuse(request(nil), fault.CooldownActive)
	b.clock.advance(time.Second)
	again := b.mustOpen(request(nil))
	if again.Number == first.Number || again.Branch == first.Branch || again.Number == other.Number {
		t.Errorf("the change came back as %+v, before it was %+v", again, first)
	}
}

func TestAPolicyWithoutCooldownLetsARejectedChangeComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "cooldown_hours: 0")
	first := b.mustOpen(request(nil))
	b.clock.advance(time.Second)
	b.world().Close(first.Number)
	b.clock.advance(time.Second)
	b.mustOpen(request(nil))
}

func TestABranchNameThatIsTakenGetsADigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.world().Push("claude-ops/fix/check-inodes-too", providertest.File{Path: "notes.txt", Content: "a person's"})
	before := b.tip("claude-ops/fix/check-inodes-too")
	first := b.mustOpen(request(nil))
	const shorter = "claude-ops/fix/check-inodes-" // with the digest, the whole slug would be as long as an object id
	if !strings.HasPrefix(first.Branch, shorter) || len(first.Branch) != len(shorter)+8 {
		t.Errorf("branch %s", first.Branch)
	}
	if b.tip("claude-ops/fix/check-inodes-too") != before {
		t.Error("the other branch was moved")
	}
}

func TestADryRunChecksEverythingAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.DryRun = true
	b.options.Authority.Tier = 3
	tip := b.tip("main")
	result, err := b.create(request(files(
		file("checks/disk.md", "update", "# Disk\nnew line\n"), file("checks/new.md", "create", "one\ntwo"),
		file("checks/old.md", "delete"),
	)))
	if err != nil {
		t.Fatal(err)
	}
	if !result.DryRun || result.Number != 0 || result.URL != "" || result.Branch != "claude-ops/fix/check-inodes-too" {
		t.Errorf("result %+v", result)
	}
	want := "--- a/checks/disk.md\n+++ b/checks/disk.md\n@@ -1 +1,2 @@\n # Disk\n+new line\n" +
		"--- /dev/null\n+++ b/checks/new.md\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n" +
		"--- a/checks/old.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Old\n"
	if result.Preview.Diff != want {
		t.Errorf("diff\n%s, want\n%s", result.Preview.Diff, want)
	}
	if len(result.Preview.Gates) != len(prflow.Gates()) || len(result.Preview.Calls) != 3 ||
		result.Preview.Base != "main" ||
		strings.Join(result.Preview.Labels, " ") != "claude-ops automated" {
		t.Errorf("preview %+v", result.Preview)
	}
	if b.fake.Script.Writes() != 0 || b.tip("main") != tip || len(b.open()) != 0 {
		t.Errorf("%d writes", b.fake.Script.Writes())
	}
	row := b.attempts()[0]
	if row.Outcome != record.OutcomeDryRun || row.PRNumber != 0 {
		t.Errorf("the audit has %+v", row)
	}
	saved, err := b.store.History.Proposal(t.Context(), row.RequestID)
	if err != nil || saved.State != record.StateDryRun || len(saved.Files) != 3 || saved.Body == "" {
		t.Errorf("the recorded proposal is %+v, %v", saved, err)
	}
	t.Run("it holds nothing against the real request", func(t *testing.T) {
		b.options.Authority.DryRun = false
		b.mustOpen(request(nil))
	})
	t.Run("what would be refused is refused in a dry run, too", func(t *testing.T) {
		b.options.Authority.DryRun = true
		b.mustRefuse(request(files(file("README.md", "update", "x"))), fault.ScopeDenied)
		b.mustRefuse(request(files(file("checks/inodes.md", "create", "other"))), fault.DuplicatePR)
	})
}

func TestADryRunRepeatsTheChangeOnlyIfAskedTo(t *testing.T) {
	t.Parallel()
	for _, asked := range []any{nil, "summary", "full"} {
		b := newBench(t)
		b.options.Authority.DryRun = true
		result, err := b.create(request(func(r map[string]any) {
			if delete(r, "preview"); asked != nil {
				r["preview"] = asked
			}
		}))
		if err != nil || len(result.Lines) != 1 || result.Lines[0].Added != 1 || result.Preview.Title == "" ||
			len(result.Preview.Calls) != 3 {
			t.Errorf("%v: %+v, %v", asked, result, err)
		}
		if full := result.Preview.Diff != "" && strings.Contains(result.Preview.Body,
			"Disks fill up"); full != (asked == "full") || strings.Contains(result.Preview.Body, "<!--") {
			t.Errorf("%v: body %q, diff %q", asked, result.Preview.Body, result.Preview.Diff)
		}
		saved, err := b.store.History.Proposal(t.Context(), result.RequestID)
		if err != nil || !strings.Contains(saved.Body, "Disks fill up") || saved.Files[0].Content != "# Inodes\n" {
			t.Errorf("%v: a person sees %+v, %v", asked, saved, err)
		}
	}
}

func TestALongDiffIsCutInThePreview(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.DryRun = true
	result, err := b.create(request(files(file("checks/x.md", "create", strings.Repeat("lorem ipsum äöü\n", 8000)))))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Preview.Diff) > 70_000 || !strings.Contains(result.Preview.Diff, "[cut: the diff has") {
		t.Errorf("a diff of %d bytes", len(result.Preview.Diff))
	}
}
