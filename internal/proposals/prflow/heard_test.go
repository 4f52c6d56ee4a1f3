package prflow_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// crowd is the world of b with what they can say besides.
func (b *bench) crowd() *memhost.World { return b.world().(*memhost.World) }

// status returns get_pr_status of #1.
func (b *bench) status() prflow.StatusResult {
	b.Helper()
	raw, _ := json.Marshal(map[string]any{"repo_owner": "joe", "repo_name": "infra", "pr_number": 1})
	s, err := prflow.New(b.options).Status(context.Background(), agent, raw)
	if err != nil {
		b.Fatal(err)
	}
	return s
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
				b.mustOpen(request(nil))
				b.clock.advance(time.Minute)
				b.crowd().ReviewLines(1, "ann", gitprovider.ReviewChangesRequested, "Say how, too.",
					gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: "Here."})
				b.clock.advance(time.Minute)
				b.fake.Script.Before(forgetest.MethodAppend, func() { say(b) })
				spoil(b)
				if _, err := b.create(revising(nil)); err != nil {
					t.Fatal(err)
				}
				if got := b.status().Revise; got != "yes: revises 1" {
					t.Errorf("status says %q", got)
				}
				next := revising(func(r map[string]any) {
					r["files"] = []any{map[string]any{
						"path": "checks/inodes.md", "action": "update",
						"edits": []any{map[string]any{"old": "df -i\n", "new": "df -i, daily\n"}},
					}}
				})
				b.clock.advance(time.Minute)
				if _, err := b.create(next); err != nil {
					t.Errorf("the next revision: %v", err)
				}
				if got := b.status().Revise; !strings.HasPrefix(got, "no: #1 waits for its review") {
					t.Errorf("after the next revision status says %q", got)
				}
			})
		}
	}
}

func TestAMarkNamesAsManyRemarksAsFitAndTheTimeOfTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
	for range 200 {
		b.clock.advance(time.Second)
		b.crowd().Comment(1, "ann", "Say how.")
	}
	if _, err := b.create(revising(nil)); err != nil {
		t.Fatal(err)
	}
	if got := b.status().Revise; !strings.HasPrefix(got, "no: #1 waits for its review") {
		t.Errorf("status says %q", got)
	}
	if n := len(b.pull(1).Body); n > 4096 {
		t.Errorf("the body has %d bytes", n)
	}
	b.crowd().Comment(1, "ann", "Once more.")
	if got := b.status().Revise; got != "yes: revises 1" {
		t.Errorf("status says %q", got)
	}
}

func TestCommentsOnLinesReachStatusAndRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
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
	other := request(func(r map[string]any) { r["files"] = []any{file("checks/inodes.md", "create", "# Other\n")} })
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

// However much reviewers write, the answer keeps the newest of it.
func TestTheAnswerOfStatusIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
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
	b.mustOpen(request(nil))
	b.crowd().ReviewLines(1, "ann", gitprovider.ReviewCommented, "", gitprovider.LineComment{
		Path: "checks/inodes.md", Line: 1, Body: "Why?", Resolved: true,
	})
	if got := b.status().Revise; !strings.HasPrefix(got, "no: #1 waits for its review") {
		t.Errorf("status says %q", got)
	}
}
