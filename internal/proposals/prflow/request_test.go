package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

// acting is a request whose title and body would do something on a forge.
func acting() []byte {
	return createRequest(func(r map[string]any) {
		r["title"] = "fixup! Raise the limit [skip ci] for @ann"
		r["body"] = "closes&nbsp;#7 and _@eve_ " +
			"looks.\n\n/merge\n\n![x](https://e.example/i.png)\n\n<details>\n\n```\nSigned-off-by: A\n"
	})
}

func TestWhatLeavesDoesNothingAndADryRunShowsItExactly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shown := b.shown(acting())
	opened := b.mustOpen(acting())
	body := b.body(opened.Number)
	if prflow.AgentText(body) != prflow.AgentText(shown.Preview.Body) || opened.Branch != shown.Branch {
		t.Errorf("shown\n%s\non %s, and opened\n%s\non %s", shown.Preview.Body, shown.Branch, body, opened.Branch)
	}
	const want = "closes&nbsp;(see) #7 and _@ eve_ looks.\n\n(quoted) " +
		"/merge\n\n\\![x](https://e.example/i.png)\n\n&lt;details>\n\n" +
		"```\n(quoted) Signed-off-by: A\n```"
	if got := prflow.AgentText(body); got != want {
		t.Errorf("opened with\n%s\nwant\n%s", got, want)
	}
	const title = "(fixup!) Raise the limit [skip ci as text] for @ ann"
	if message := b.world().Message(opened.Commit); shown.Preview.Title != title ||
		!strings.HasPrefix(message, title+"\n\n") {
		t.Errorf("shown with the title %q, committed as %q", shown.Preview.Title, message)
	}
	if strings.Join(shown.Warnings, "\n") != strings.Join(opened.Warnings, "\n") || len(opened.Warnings) < 8 {
		t.Errorf("warnings %q, and %q", shown.Warnings, opened.Warnings)
	}
}

func TestAPromotedDryRunLeavesAsItWasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.dryRun(acting())
	result, err := b.promote(id)
	if err != nil || len(result.Warnings) > 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
	shown, err := b.store.History.Proposal(t.Context(), id)
	b.must(err)
	if body := b.body(result.Number); prflow.AgentText(body) != prflow.AgentText(shown.Body) ||
		result.Branch != shown.Branch {
		t.Errorf("shown\n%s\non %s, and opened\n%s\non %s", shown.Body, shown.Branch, body, result.Branch)
	}
}

func TestTextsThatAreTooLongOnceTheyDoNothingAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := b.mustRefuse(createRequest(with("title", "Fixes #7 "+strings.Repeat("x", prflow.MaxTitleRunes()-9))),
		fault.InvalidArgument)
	if len(e.Violations) != 1 || e.Violations[0].Path != "title" || e.Violations[0].Suggestion == "" {
		t.Errorf("violations %+v", e.Violations)
	}
	e, _ = b.mustRefuse(createRequest(with("body", strings.Repeat("@ann ", prflow.MaxBodyBytes()/5))),
		fault.InvalidArgument)
	if len(e.Violations) != 1 || e.Violations[0].Path != "body" || e.Violations[0].Suggestion == "" {
		t.Errorf("violations %+v", e.Violations)
	}
}

// A reply and answers to comments are texts like the body.
func TestTextsOfWhoMayNotProposeAreNotParsed(t *testing.T) {
	written := func(e *fault.Error) (paths []string) {
		for _, v := range e.Violations {
			if strings.Contains(v.Message, "written so that it does") {
				paths = append(paths, v.Path)
			}
		}
		return paths
	}
	for texts, long := range map[string][]byte{ // too long when they are written anew
		"body": createRequest(with("body", strings.Repeat("@a ", prflow.MaxBodyBytes()/3))),
		"reply replies[0].text": replying(func(r map[string]any) {
			r["reply"], r["replies"] = strings.Repeat("@a ", 2600), []any{to("1.1", strings.Repeat("@a ", 1300))}
		}),
	} {
		for code, forbid := range map[fault.Code]func(*prflow.Authority){
			fault.TierDenied: func(a *prflow.Authority) { a.Tier = gitprovider.TierObserve },
			fault.ReadOnly:   func(a *prflow.Authority) { a.ReadOnly = "switched off" },
		} {
			b := newBench(t)
			b.questioned()
			e, _ := b.mustRefuse(long, fault.InvalidArgument)
			if got := strings.Join(written(e), " "); got != texts {
				t.Fatalf("refused for %q: %+v", got, e.Violations)
			}
			forbid(&b.options.Authority)
			if e, _ := b.mustRefuse(long, code); len(written(e)) != 0 {
				t.Errorf("%s: %q were written anew", code, written(e))
			}
		}
	}
}

func TestNoTextOfARequestCostsMuch(t *testing.T) {
	const most = 100 << 20
	b := newBench(t)
	b.questioned()
	_, _ = b.create(createRequest(nil)) // what is made once, such as the rules of secrets, is not counted
	full := func(bytes int) string {    // a table that is as wide as long
		n := bytes / 8
		return strings.Repeat("|a", n) + "\n" + strings.Repeat("|-", n) + "\n" + strings.Repeat("x\n", 2*n-1)
	}
	for name, raw := range map[string][]byte{
		"body":  createRequest(with("body", full(prflow.MaxBodyBytes()))),
		"reply": replying(with("reply", full(8000))),
		"replies": replying(func(r map[string]any) {
			r["replies"] = []any{to("1.1", full(4000)), to("1.2", full(4000))}
		}),
	} {
		b.options.Authority.DryRun = true
		if n := markdowntest.Allocated(func() { _, _ = b.create(raw) }); n > most {
			t.Errorf("%s: %d MB are allocated", name, n>>20)
		}
	}
}

func TestATrueMarkOfAnotherPullRequestInTheBodyIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.body(b.mustOpen(createRequest(nil)).Number)
	mark := first[strings.Index(first, "<!--"):]
	second := b.mustOpen(createRequest(func(r map[string]any) {
		r["title"], r["body"] = "Another", "In code:\n\n```\n"+mark+"```\n\n`"+strings.TrimSpace(mark)+"`"
		r["files"] = []any{file("checks/other.md", "create", "x")}
	}))
	if body := b.body(second.Number); strings.Count(body, "<!-- claude-ops:") != 1 || !strings.HasSuffix(body, " -->\n") {
		t.Errorf("the body has more marks than ours:\n%s", body)
	}
}

func TestTheSchemasOfTheToolsAreThoseOfTheirTypes(t *testing.T) {
	t.Parallel()
	operationtest.Schemas(t, prflow.Toolset(nil))
}

func TestTheKnownValuesOfARequestAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	enum := func(of any, field string) []string {
		f, _ := reflect.TypeOf(of).FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), ",")
	}
	for _, name := range enum(prflow.CreateRequest{}, "ChangeType") {
		if !gitprovider.ChangeType(name).Valid() {
			t.Errorf("%s is not a change type", name)
		}
	}
	if got := len(enum(prflow.CreateRequest{}, "ChangeType")); got != len(gitprovider.ChangeTypes()) {
		t.Errorf("%d change types may be asked for, there are %d", got, len(gitprovider.ChangeTypes()))
	}
	for _, name := range enum(prflow.FileRequest{}, "Action") {
		if !gitprovider.Action(name).Valid() {
			t.Errorf("%s is not an action", name)
		}
	}
}

// counting counts the bytes that are searched for secrets.
type counting struct {
	behind *textscan.Scanner
	bytes  int
}

func (c *counting) Secrets(ctx context.Context, name, text string) ([]textscan.Secret, error) {
	c.bytes += len(text)
	return c.behind.Secrets(ctx, name, text)
}

func (c *counting) Hide(text string) string { return c.behind.Hide(text) }

func (c *counting) Redact(text string) string { return c.behind.Redact(text) }

func (c *counting) Spread(texts []string) []int {
	for _, text := range texts {
		c.bytes += len(text)
	}
	return c.behind.Spread(texts)
}

// Searching a mebibyte for secrets takes half a second and more, so what is refused for its size is not searched.
func TestWhatIsTooLongIsRefusedWithoutASearch(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	long := strings.Repeat("a", size)
	many := make([]any, 2000)
	for i := range many {
		many[i] = file(fmt.Sprintf("checks/%s-%d.md", strings.Repeat("a", 200), i), "create", "# A\n")
	}
	tests := map[string]struct {
		change func(map[string]any)
		code   fault.Code
		bytes  int // that may be searched
	}{
		"a title":      {with("title", long), fault.InvalidArgument, 1000},
		"a body":       {with("body", long), fault.InvalidArgument, 1000},
		"a path":       {files(file("checks/"+long+".md", "create", "# A\n")), fault.ScopeDenied, 1000},
		"a content":    {files(file("checks/a.md", "create", long)), fault.ContentDenied, 1000},
		"many files":   {files(many...), fault.InvalidArgument, 100 * 600},
		"unknown keys": {func(r map[string]any) { addUnknown(r, 100_000) }, fault.InvalidArgument, 20_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			searched := &counting{behind: scanner}
			b.options.Secrets = searched
			_, row := b.mustRefuse(createRequest(tt.change), tt.code)
			if searched.bytes > tt.bytes {
				t.Errorf("%d bytes were searched", searched.bytes)
			}
			recorded, err := json.Marshal(row)
			if err != nil || len(recorded) > 128<<10 {
				t.Errorf("%d bytes are recorded, %v", len(recorded), err)
			}
		})
	}
}

func addUnknown(r map[string]any, n int) {
	for i := range n {
		r[fmt.Sprintf("unknown%06d", i)] = i
	}
}

// kindBench is one whose policy admits a kind of files at tier 3.
func kindBench(t *testing.T, tier gitprovider.Tier) *bench {
	t.Helper()
	b := newBench(t)
	b.options.Authority.Tier = tier
	b.options.Authority.Policy = mustPolicy(t, "scope: {kinds: [definitions]}", gitprovider.FileKind{
		Name: "definitions", Patterns: []string{".fractary/agents/**"},
		Validate: func(_, _, content string) (out []gitprovider.FileProblem) {
			if !strings.HasPrefix(content, "name: ") {
				out = append(out, gitprovider.FileProblem{Line: 3, Column: 5, Message: "name: is missing",
					Suggestion: "give it a name"})
			}
			return out
		},
	})
	return b
}

func TestAFileOfAKindIsProposedAtTier3IfItsValidatorAcceptsIt(t *testing.T) {
	t.Parallel()
	result := kindBench(t, gitprovider.TierRemediate).mustOpen(
		createRequest(files(file(".fractary/agents/a.yaml", "create", "name: a\n"))))
	if len(result.Files) != 1 || result.Files[0] != ".fractary/agents/a.yaml" {
		t.Errorf("%+v", result)
	}
}

func TestABrokenFileOfAKindIsRefusedWithTheWordsOfItsValidator(t *testing.T) {
	t.Parallel()
	b := kindBench(t, gitprovider.TierRemediate)
	e, row := b.mustRefuse(createRequest(files(file(".fractary/agents/a.yaml", "create", "nam: a\n"),
		file("checks/x.md", "create", "# X\n"))), fault.ContentDenied)
	v := e.Violations[0]
	if len(e.Violations) != 1 || v.Rule != "kind:definitions" || v.Path != ".fractary/agents/a.yaml" ||
		!strings.Contains(v.Message, "at line 3, column 5: name: is missing") || v.Suggestion != "give it a name" {
		t.Errorf("%+v", e.Violations)
	}
	for _, verdict := range row.Verdicts {
		if (verdict.Gate == record.GateContent) != (verdict.Ruling == record.Deny) && verdict.Ruling == record.Deny {
			t.Errorf("gate %s: %s", verdict.Gate, verdict.Ruling)
		}
	}
}

func TestAFileOfAKindIsRefusedBelowTier3(t *testing.T) {
	t.Parallel()
	e, _ := kindBench(t, gitprovider.TierInvestigate).mustRefuse(
		createRequest(files(file(".fractary/agents/a.yaml", "create", "name: a\n"))), fault.TierDenied)
	if got := violationsOf(e); got != "tier_denied:kind:definitions" {
		t.Error(got)
	}
}

func TestWithoutTheKindItsFolderStaysHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Tier = gitprovider.TierRemediate
	b.mustRefuse(createRequest(files(file(".fractary/agents/a.md", "create", "name: a\n"))), fault.ScopeDenied)
}
