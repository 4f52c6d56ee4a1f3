package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

// acting is a request whose title and body would do something on a forge.
func acting() []byte {
	return request(func(r map[string]any) {
		r["title"] = "fixup! Raise the limit [skip ci] for @ann"
		r["body"] = "closes&nbsp;#7 and _@eve_ " +
			"looks.\n\n/merge\n\n![x](https://e.example/i.png)\n\n<details>\n\n```\nSigned-off-by: A\n"
	})
}

func TestWhatLeavesDoesNothingAndADryRunShowsItExactly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.DryRun = true
	shown, err := b.create(acting())
	if err != nil {
		t.Fatal(err)
	}
	b.options.Authority.DryRun = false
	opened := b.mustOpen(acting())
	agents := func(body string) string { return prflow.AgentText(body) }
	body := b.body(opened.Number)
	if agents(body) != agents(shown.Preview.Body) || opened.Branch != shown.Branch {
		t.Errorf("shown\n%s\non %s, and opened\n%s\non %s", shown.Preview.Body, shown.Branch, body, opened.Branch)
	}
	const want = "closes&nbsp;(see) #7 and _@ eve_ looks.\n\n(quoted) " +
		"/merge\n\n\\![x](https://e.example/i.png)\n\n&lt;details>\n\n" +
		"```\n(quoted) Signed-off-by: A\n```"
	if agents(body) != want {
		t.Errorf("opened with\n%s\nwant\n%s", agents(body), want)
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
	if err != nil {
		t.Fatal(err)
	}
	if body := b.body(result.Number); prflow.AgentText(body) != prflow.AgentText(shown.Body) ||
		result.Branch != shown.Branch {
		t.Errorf("shown\n%s\non %s, and opened\n%s\non %s", shown.Body, shown.Branch, body, result.Branch)
	}
}

func TestTextsThatAreTooLongOnceTheyDoNothingAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := b.mustRefuse(request(with("title", "Fixes #7 "+strings.Repeat("x", prflow.MaxTitleRunes()-9))),
		fault.InvalidArgument)
	if len(e.Violations) != 1 || e.Violations[0].Path != "title" || e.Violations[0].Suggestion == "" {
		t.Errorf("violations %+v", e.Violations)
	}
	e, _ = b.mustRefuse(request(with("body", strings.Repeat("@ann ", prflow.MaxBodyBytes()/5))), fault.InvalidArgument)
	if len(e.Violations) != 1 || e.Violations[0].Path != "body" || e.Violations[0].Suggestion == "" {
		t.Errorf("violations %+v", e.Violations)
	}
}

func TestTextsOfWhoMayNotProposeAreNotParsed(t *testing.T) {
	long := request(with("body", strings.Repeat("@a ", prflow.MaxBodyBytes()/3))) // too long when it is written anew
	for name, forbid := range map[string]func(*prflow.Authority){
		"tier 1":    func(a *prflow.Authority) { a.Tier = gitprovider.TierObserve },
		"read-only": func(a *prflow.Authority) { a.ReadOnly = "switched off" },
	} {
		b := newBench(t)
		if e, _ := b.mustRefuse(long, fault.InvalidArgument); len(e.Violations) != 1 || e.Violations[0].Path != "body" {
			t.Fatalf("refused for %+v", e.Violations)
		}
		forbid(&b.options.Authority)
		_, err := b.create(long)
		for _, v := range fault.From(err).Violations {
			if v.Path == "body" {
				t.Errorf("%s: the body was written anew: %+v", name, v)
			}
		}
		if code := fault.CodeOf(err); code != fault.TierDenied && code != fault.ReadOnly {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoTextOfARequestCostsMuch(t *testing.T) {
	const most = 100 << 20
	b := newBench(t)
	b.questioned()
	_, _ = b.create(request(nil))    // what is made once, such as the rules of secrets, is not counted
	full := func(bytes int) string { // a table that is as wide as long
		n := bytes / 8
		return strings.Repeat("|a", n) + "\n" + strings.Repeat("|-", n) + "\n" + strings.Repeat("x\n", 2*n-1)
	}
	for name, raw := range map[string][]byte{
		"body":  request(with("body", full(prflow.MaxBodyBytes()))),
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
	first := b.body(b.mustOpen(request(nil)).Number)
	mark := first[strings.Index(first, "<!--"):]
	second := b.mustOpen(request(func(r map[string]any) {
		r["title"], r["body"] = "Another", "In code:\n\n```\n"+mark+"```\n\n`"+strings.TrimSpace(mark)+"`"
		r["files"] = []any{file("checks/other.md", "create", "x")}
	}))
	if body := b.body(second.Number); strings.Count(body, "<!-- claude-ops:") != 1 || !strings.HasSuffix(body, " -->\n") {
		t.Errorf("the body has more marks than ours:\n%s", body)
	}
}
