package prflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// questioned opens #1, and has ann ask on two lines: the comments 1.1 and 1.2.
func (b *bench) questioned() {
	b.Helper()
	b.mustOpen(createRequest(nil))
	b.clock.advance(time.Minute)
	b.crowd().ReviewLines(1, "ann", gitprovider.ReviewChangesRequested, "See the lines.",
		gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: "Why @bob? See https://example.com\nNow."},
		gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: "How often?"})
	b.clock.advance(time.Minute)
	b.fake.Script.ForgetCalls()
}

// replying is an answer without a commit.
func replying(change func(map[string]any)) []byte {
	return revising(func(r map[string]any) {
		delete(r, "files")
		delete(r, "title")
		delete(r, "body")
		r["reply"] = "It counts files."
		if change != nil {
			change(r)
		}
	})
}

func to(comment, text string) map[string]any { return map[string]any{"comment": comment, "text": text} }

// said are the texts of our answers on lines of #1.
func (b *bench) said() (out []string) {
	b.Helper()
	remarks, err := b.fake.Remarks(context.Background(), infra, 1)
	b.must(err)
	for _, r := range remarks {
		for _, line := range r.Lines {
			if line.IsAnswer() {
				out = append(out, fmt.Sprintf("%s:%d %s", line.Path, line.Line, line.Body))
			}
		}
	}
	return out
}

func TestRepliesArePostedWithTheCommitOfARevision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.questioned()
	call := revising(func(r map[string]any) {
		r["reply"] = "Done, as asked."
		r["replies"] = []any{to("1.2", "Each hour."), to("1.1", "For @bob.")}
	})
	result, err := b.create(call)
	if err != nil || !result.Revised || result.Replies != 3 || result.Commit != b.tip(result.Branch) {
		t.Fatalf("%+v, %v", result, err)
	}
	comments := b.comments()
	if len(comments) != 1 || !strings.HasPrefix(comments[0], gitprovider.AnswerOpening) ||
		!strings.HasSuffix(comments[0], "after the review of ann.\n\nDone, as asked.") {
		t.Errorf("the comments are %q", comments)
	}
	opening := "checks/inodes.md:1 Answered by Claude Ops (request " + result.RequestID + ", comment "
	want := []string{opening + "1.2).\n\nEach hour.", opening + "1.1).\n\nFor \u200b"}
	said := b.said()
	if len(said) != 2 || said[0] != want[0] || !strings.HasPrefix(said[1], opening+"1.1).\n\nFor ") ||
		strings.Contains(said[1], " @bob") {
		t.Errorf("the replies are %q", said)
	}
	row := b.attempts()[0]
	if row.Outcome != record.OutcomeRevised || row.Message != "3 of 3 replies posted" {
		t.Errorf("the audit has %+v", row)
	}
	b.mustWait()
	b.fake.Script.ForgetCalls()
	again, err := b.create(call)
	if err != nil || !again.Reused || again.Replies != 3 || b.fake.Script.Writes() != 0 {
		t.Errorf("again: %+v, %v, %d writes", again, err, b.fake.Script.Writes())
	}
	b.mustVerify()
}

func TestAQuestionIsAnsweredWithoutACommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Revisions.Max = 2
	b.questioned()
	before := b.pull(1)
	call := replying(func(r map[string]any) { r["replies"] = []any{to("1.1", "Because.")} })
	result, err := b.create(call)
	if err != nil || !result.Revised || result.Created() || result.Replies != 2 || len(result.Files) != 0 ||
		result.Commit != before.HeadCommit {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := b.fake.Script.Count(forgetest.MethodAppend); n != 0 || b.tip(result.Branch) != before.HeadCommit {
		t.Errorf("%d commits", n)
	}
	after := b.pull(1)
	if after.Title != before.Title || strings.Split(after.Body, "<!--")[0] != strings.Split(before.Body, "<!--")[0] ||
		after.Body == before.Body {
		t.Errorf("the text was %q: %s\nis %q: %s", before.Title, before.Body, after.Title, after.Body)
	}
	want := "Answered by Claude Ops (request " + result.RequestID + "), after the review of ann.\n\nIt counts files."
	if got := b.comments(); !slices.Equal(got, []string{want}) || len(b.said()) != 1 {
		t.Errorf("the comments are %q and %q", got, b.said())
	}
	if row := b.attempts()[0]; row.Outcome != record.OutcomeRevised || row.Message != "2 of 2 replies posted" ||
		row.Title != before.Title {
		t.Errorf("the audit has %+v", row)
	}
	b.mustWait()
	b.fake.Script.ForgetCalls()
	again, err := b.create(call)
	if err != nil || !again.Reused || again.Replies != 2 || b.fake.Script.Writes() != 0 {
		t.Errorf("again: %+v, %v, %d writes", again, err, b.fake.Script.Writes())
	}
	// What counts as a revision is bounded as one, and a revision may follow.
	b.ask(1, "Then say how.")
	if next, err := b.create(revising(nil)); err != nil || !next.Revised || next.Reused {
		t.Fatalf("%+v, %v", next, err)
	}
	b.ask(1, "And now?")
	if e, _ := b.mustRefuse(replying(nil), fault.LimitReached); e.Violations[0].Rule != "max_revisions" {
		t.Errorf("%+v", e.Violations)
	}
	b.mustVerify()
}

// What a reply and an answer to a comment hold does nothing on a forge, as in a body.
func TestRepliesDoNothingOnAForge(t *testing.T) {
	t.Parallel()
	const written = "/gcbrun now\n\natlantis apply\n\n.deploy production\n\n```suggestion\nx\n```"
	const harmless = "(quoted) /gcbrun now\n\n(quoted) atlantis apply\n\n(quoted) .deploy production\n\n" +
		"```text-suggestion\nx\n```"
	b := newBench(t)
	b.questioned()
	result, err := b.create(replying(func(r map[string]any) {
		r["reply"], r["replies"] = written, []any{to("1.1", written)}
	}))
	if err != nil || result.Replies != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	comments, said := b.comments(), b.said()
	if len(comments) != 1 || len(said) != 1 {
		t.Fatalf("the comments are %q, the answers %q", comments, said)
	}
	for _, text := range []string{comments[0], said[0]} {
		if !strings.HasSuffix(text, "\n\n"+harmless) {
			t.Errorf("posted as %q", text)
		}
	}
}

// Answers to comments on lines leave open what else was asked.
func TestWhatARepliesAloneDoNotAnswerStillAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.questioned()
	b.crowd().Comment(1, "bob", "And the name?")
	result, err := b.create(replying(func(r map[string]any) {
		delete(r, "reply")
		r["files"], r["replies"] = []any{}, []any{to("1.1", "Because.")}
	}))
	if err != nil || result.Replies != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	b.mustAsk()
	if _, err := b.create(replying(func(r map[string]any) {
		delete(r, "reply")
		r["replies"] = []any{to("1.1", "Because."), to("1.2", "Daily.")}
	})); err != nil {
		t.Fatal(err)
	}
	e, _ := b.mustRefuse(replying(func(r map[string]any) { r["replies"] = []any{to("1.2", "Daily.")} }),
		fault.InvalidArgument)
	if v := e.Violations[0]; v.Path != "replies[0].comment" || !strings.Contains(v.Suggestion, "none waits") {
		t.Errorf("%+v", v)
	}
	if result, err := b.create(replying(nil)); err != nil || result.Replies != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	b.mustWait()
}

func TestRepliesThatMayNotBePostedAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	replies := func(all ...any) func(map[string]any) {
		return func(r map[string]any) { r["replies"] = all }
	}
	for name, tt := range map[string]struct {
		change     func(map[string]any)
		prepare    func(*bench)
		code       fault.Code
		path, says string
	}{
		"an unknown comment": {replies(to("7", "x")), nil, fault.InvalidArgument, "replies[0].comment",
			"these wait: 1.1 (checks/inodes.md:1), 1.2"},
		"one comment twice": {replies(to("1.1", "x"), to("1.1", "y")), nil, fault.InvalidArgument, "replies[1].comment",
			"a second time"},
		"no text":       {replies(to("1.1", "")), nil, fault.InvalidArgument, "replies[0].text", "empty"},
		"blank text":    {replies(to("1.1", " \n")), nil, fault.InvalidArgument, "replies[0].text", "blank"},
		"a blank reply": {func(r map[string]any) { r["reply"] = " " }, nil, fault.InvalidArgument, "reply", "blank"},
		"too long a reply": {func(r map[string]any) { r["reply"] = strings.Repeat("x", 8001) }, nil, fault.InvalidArgument,
			"reply", "at most 8000"},
		"too long an answer": {replies(to("1.1", strings.Repeat("x", 4001))), nil, fault.InvalidArgument, "replies[0].text",
			"at most 4000"},
		"longer when harmless": {replies(to("1.1", strings.Repeat("@a ", 1333))), nil, fault.InvalidArgument,
			"replies[0].text",
			"written so that it does"},
		"a secret": {replies(to("1.1", "key AKIAQ4XK7TZP2LMN5RSW ")), nil, fault.ContentDenied, "replies[0].text",
			"secret"},
		"a secret in reply": {func(r map[string]any) { r["reply"] = "key AKIAQ4XK7TZP2LMN5RSW " }, nil, fault.ContentDenied,
			"reply", "secret"},
		"a hidden character": {func(r map[string]any) { r["reply"] = "a\u202eb" }, nil, fault.ContentDenied, "reply",
			"cannot see"},
		"without revises": {func(r map[string]any) { delete(r, "revises") }, nil, fault.InvalidArgument, "reply",
			"without `revises`"},
		"a read-only server": {nil, func(b *bench) { b.options.Authority.ReadOnly = "It reads only." }, fault.ReadOnly, "",
			""},
		"a tier that reads": {nil, func(b *bench) { b.options.Authority.Tier = gitprovider.TierObserve }, fault.TierDenied,
			"", ""},
		"nobody asked": {nil, func(b *bench) { b.mustAnswer() }, fault.DuplicatePR, "revises", ""},
		"nobody asked, revise always": {func(r map[string]any) { r["reply"] = "Again." }, func(b *bench) {
			b.options.Authority.Policy.Revisions.Always = true
			b.mustAnswer()
		}, fault.DuplicatePR, "revises", "no review that waits"},
		"of another's": {func(r map[string]any) { r["revises"] = 99 }, nil, fault.NotFound, "revises", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.questioned()
			if tt.prepare != nil {
				tt.prepare(b)
			}
			change := tt.change
			if change == nil {
				change = func(r map[string]any) { r["reply"] = "Once more." }
			}
			e, row := b.mustRefuse(replying(change), tt.code)
			if tt.path != "" && !slices.ContainsFunc(e.Violations, func(v fault.Violation) bool {
				return v.Path == tt.path && strings.Contains(v.Message+" "+v.Suggestion, tt.says)
			}) {
				t.Errorf("the violations are %+v", e.Violations)
			}
			if strings.Contains(fmt.Sprint(row), "AKIAQ4XK7TZP2LMN5RSW") {
				t.Error("the audit has the secret")
			}
		})
	}
}

// mustAnswer answers the review of #1.
func (b *bench) mustAnswer() {
	b.Helper()
	if result, err := b.create(replying(nil)); err != nil || result.Replies != 1 {
		b.Fatalf("%+v, %v", result, err)
	}
}

func TestADryRunOfRepliesSaysWhatWouldBePostedAndAPersonPostsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.questioned()
	result := b.shown(replying(func(r map[string]any) { r["replies"] = []any{to("1.2", "Daily.")} }))
	want := []string{
		"note in the mark of #1 that its review was answered", "answer in a comment on #1",
		`answer the comment 1.2 on line 1 of "checks/inodes.md" of #1`,
	}
	if !slices.Equal(result.Preview.Calls, want) {
		t.Errorf("it would %q", result.Preview.Calls)
	}
	opened, err := b.promote(result.RequestID)
	if err != nil || opened.Replies != 2 || len(b.said()) != 1 || len(b.comments()) != 1 {
		t.Errorf("%+v, %v; %q, %q", opened, err, b.comments(), b.said())
	}
}

// Whatever write of an answer fails, and however, the identical call ends with each answer there once.
func TestRepliesArePostedOnceWhateverFails(t *testing.T) {
	t.Parallel()
	both := func(r map[string]any) {
		r["reply"], r["replies"] = "It counts files.", []any{to("1.1", "Because."), to("1.2", "Daily.")}
	}
	calls := map[string][]byte{"without a commit": replying(both), "with a commit": revising(both)}
	faults := map[string]func(s *forgetest.Script, method string){
		"acts, and its answer is lost": func(s *forgetest.Script, m string) { s.FailAfter(m) },
		"does not act":                 func(s *forgetest.Script, m string) { s.FailBefore(m, down()) },
		"is refused": func(s *forgetest.Script, m string) {
			s.FailBefore(m, fault.New(fault.Forbidden, "no"))
		},
	}
	for kind, call := range calls {
		for what, fail := range faults {
			for _, method := range []string{forgetest.MethodReply, forgetest.MethodComment, forgetest.MethodSetText,
				forgetest.MethodRemarks} {
				t.Run(kind+": "+method+" "+what, func(t *testing.T) {
					b := newBench(t)
					b.questioned()
					if method == forgetest.MethodRemarks { // the look after a failed reply
						b.fake.Script.Before(forgetest.MethodReply, func() { fail(b.fake.Script, method) })
						b.fake.Script.FailAfter(forgetest.MethodReply)
					} else {
						fail(b.fake.Script, method)
					}
					first, err := b.create(call)
					if err != nil && method != forgetest.MethodSetText {
						t.Fatal(err)
					}
					if err == nil && first.Replies < 3 && len(first.Warnings) == 0 {
						t.Errorf("no warning: %+v", first)
					}
					b.clock.advance(time.Hour)
					again, err := b.create(call)
					if err != nil || again.Number != 1 {
						t.Fatalf("%+v, %v", again, err)
					}
					b.resume()
					all := strings.Join(append(b.comments(), b.said()...), "\n")
					for _, text := range []string{"It counts files.", "Because.", "Daily."} {
						if n := strings.Count(all, text); n != 1 {
							t.Errorf("%q was posted %d times:\n%s", text, n, all)
						}
					}
					b.mustWait()
					b.mustVerify()
				})
			}
		}
	}
}

// A forge that does not take an answer where the comment stands gets one comment that quotes it.
func TestAReplyThatIsRefusedAtItsLineIsACommentThatQuotes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.questioned()
	b.fake.Script.FailBefore(forgetest.MethodReply, fault.New(fault.NotFound, "the comment is gone"))
	result, err := b.create(replying(func(r map[string]any) {
		delete(r, "reply")
		r["replies"] = []any{to("1.1", "Because."), to("1.2", "Daily.")}
	}))
	if err != nil || result.Replies != 2 || len(result.Warnings) != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	want := "Answered by Claude Ops (request " + result.RequestID + ", comment 1.1, 1.2).\n\n" +
		"> checks/inodes.md:1: Why bob? See https example.com\n\nBecause.\n\n> checks/inodes.md:1: How often?\n\nDaily."
	if got := b.comments(); !slices.Equal(got, []string{want}) {
		t.Errorf("the comments are %q, want %q", got, want)
	}
}

// A pull request that is merged while it is answered gets no answer.
func TestNothingIsAnsweredOnAPullRequestThatHasEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.questioned()
	b.fake.Script.Before(forgetest.MethodSetText, func() { b.world().Merge(1) })
	_, err := b.create(replying(nil))
	if fault.CodeOf(err) != fault.Conflict || len(b.comments()) != 0 || len(b.said()) != 0 {
		t.Errorf("%v; %q", err, b.comments())
	}
	if row := b.attempts()[0]; row.Outcome == record.OutcomeRevised {
		t.Errorf("the audit has %+v", row)
	}
}
