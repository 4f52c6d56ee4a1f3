package web_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestHostileTextIsShownHarmlessOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	evil := "\"'><script>alert(1)</script><b onclick=x hx-get=/x hx-on:click=alert(1) data-hx-post=/y " +
		"data-live>\u202e\u200b\x1b[2J {{.}} " + strings.Repeat("A", 1<<20)
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = evil[:60] + fmt.Sprint(i)
	}
	violations := make([]fault.Violation, 1000)
	for i := range violations {
		violations[i] = fault.Violation{Code: "scope_denied", Path: evil[:80], Rule: evil[:80], Message: evil[:200],
			Suggestion: evil[:80]}
	}
	a := record.Attempt{
		Time: w.Now(), RequestID: "evil-1", Door: record.DoorMCP, Caller: evil, Tier: 2, Action: record.ActionCreate,
		Provider: "fake",
		Owner:    evil[:90], Repo: "../..", Base: evil[:90], Branch: evil[:90], Title: evil, Paths: paths,
		Outcome: record.OutcomeRefused, Code: "scope_denied",
		Message: evil, PRNumber: 7, PRURL: "javascript:alert(1)",
		Verdicts: []record.Verdict{{Gate: record.GateScope, Ruling: record.Deny, Detail: evil, Violations: violations}},
	}
	p := record.Proposal{
		ID: "evil-2", CreatedAt: w.Now(), Caller: evil, Tier: 2, Provider: "fake", Owner: "joe", Repo: "infra", Base: "main",
		Title: evil[:200],
		Body:  "# <i>x</i>\n[a](javascript:alert(1)) <script>alert(1)</script>\n\n" + evil, Digest: "d", ChangeType: "fix",
		Progress: record.Progress{State: record.StateDryRun, Branch: evil[:90], PRURL: "data:text/html,x"},
	}
	for i := range 100 {
		p.Files = append(p.Files, gitprovider.FileChange{
			Path: fmt.Sprintf("checks/n%d.md", i), Action: "create", Content: evil[:len(evil)/(i*i+1)],
		})
	}
	ctx := context.Background()
	if err := w.store.Ledger.Record(ctx, a, nil); err != nil {
		t.Fatal(err)
	}
	a.RequestID, a.Outcome, a.Code = "evil-2", record.OutcomeDryRun, ""
	if err := w.store.Ledger.Record(ctx, a, &p); err != nil {
		t.Fatal(err)
	}
	repo := gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	hosted := w.fake.World(t, repo)
	hosted.Push("claude-ops/fix/x", providertest.File{Path: "checks/z.md", Content: evil})
	pr := hosted.OpenPR("claude-ops/fix/x", evil[:200], "claude-ops")
	hosted.Review(pr, "ann<script>\u202e", gitprovider.ReviewCommented, evil)
	w.web.Rules.Doctor = func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Name: "x", Status: "problem", Detail: evil}}
	}
	for _, target := range []string{
		"/", "/changes", "/changes?q=" + url.QueryEscape(evil[:60]), "/proposals/evil-1", "/proposals/evil-2",
		"/proposals/evil-2?view=split",
		"/changes/forges", fmt.Sprintf("/pulls/fake/joe/infra/%d", pr), "/audit", "/doctor",
		"/policy?path=" + url.QueryEscape(evil[:300]),
		"/sign-in?next=" + url.QueryEscape(evil[:60]),
	} {
		d := w.page(target, 200) // and what wellFormed says
		if n := len(d.text); n > 3<<20 {
			t.Errorf("%s: %d bytes of text", target, n)
		}
	}
	d := w.page("/proposals/evil-1", 200)
	d.has(" more, sha256 ", "<script>alert(1)</script>") // of what was refused less is kept
	w.page("/proposals/evil-2", 200).has(" more.", "more files are not shown", "more bytes are not shown")
	w.page("/nothing/"+url.PathEscape(evil[:60]), 404)
}
