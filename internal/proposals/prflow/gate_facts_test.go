package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/sanitize"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

const deletes = "# Cleanup\n\n```sh\nrm -rf /srv/data\n```\n"

func TestClassesOfFactsThatThePolicyRefusesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Facts.Classes = map[facts.Class]policy.FactRule{facts.Destroy: policy.RefuseFact}
	raw := createRequest(files(file("checks/clean.md", "create", deletes)))
	e, row := b.mustRefuse(raw, fault.ContentDenied)
	if v := e.Violations; len(v) != 1 || v[0].Rule != "facts:destroy" || v[0].Path != "checks/clean.md" ||
		!strings.Contains(v[0].Message, "line 4") {
		t.Errorf("violations %+v", e.Violations)
	}
	at := slices.IndexFunc(row.Verdicts, func(v record.Verdict) bool { return v.Gate == record.GateFacts })
	if v := row.Verdicts[at]; v.Ruling != record.Deny || !strings.Contains(v.Detail, "destroy 1") {
		t.Errorf("the audit has %+v", v)
	}
	b.mustOpen(createRequest(files(file("checks/look.md", "create", "# Look\n\n```sh\nls /srv/data\n```\n"))))
}

func TestFactsAreToldToAgentForgeAndRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	breaksOut := "```sh\nrm -rf /srv/`hostname` # @ann <b> fixes #1\n```\n"
	raw := createRequest(files(file("checks/clean.md", "create", deletes+"\n"+breaksOut)))
	result := b.mustOpen(raw)
	if len(result.Facts) == 0 || result.Facts[0] != (prflow.FactLine{Class: facts.Destroy, Path: "checks/clean.md",
		Line: 4}) {
		t.Errorf("the answer has %+v", result.Facts)
	}
	body := b.body(result.Number)
	if !strings.Contains(body, "- deletes: `checks/clean.md` line 4: `") {
		t.Errorf("the body is %q", body)
	}
	if !strings.Contains(body, "rm -rf /srv/?hostname?") {
		t.Errorf("the body lacks the words that try to end their code: %q", body)
	}
	for _, line := range strings.Split(body[strings.Index(body, "What the added lines would do"):], "\n") {
		words := strings.Split(line, "`")
		if strings.HasPrefix(line, "- deletes") && (len(words) != 5 || strings.ContainsAny(line, "<>")) {
			t.Errorf("the words of a fact do not keep to their code: %q", line)
		}
	}
	reading := b.facts()
	if reading.Counts[facts.Destroy] == 0 || len(reading.Facts) == 0 {
		t.Errorf("the record has %+v", reading)
	}
	b.mustVerify()
}

func TestFootersAndAnswersHaveFewFacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "```sh\nrm -rf /srv/data/%d\n```\n\n", i)
	}
	result := b.mustOpen(createRequest(files(file("checks/"+strings.Repeat("long-", 20)+".md", "create", text.String()))))
	answer, err := json.Marshal(result.Facts)
	b.must(err)
	if len(answer) > 1<<10 || len(result.Facts) == 0 {
		t.Errorf("the answer has %d bytes of %d facts", len(answer), len(result.Facts))
	}
	body := b.body(result.Number)
	if n := strings.Count(body, "\n- deletes:"); n != 10 || !strings.Contains(body, "- and 50 more in the dashboard\n") {
		t.Errorf("the body has %d facts: %q", n, body)
	}
}

// One sentence may stand in a file twenty times. It is one line of the footer, with the lines that have it.
func TestTheFooterHasWhatIsSaidOfManyLinesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := strings.Repeat("```sh\nrm -rf /srv/data\n```\n\n", 13)
	body := b.body(b.mustOpen(createRequest(files(file("checks/a.md", "create", text), file("checks/b.md", "create",
		"# B\n\n```sh\nrm -rf /srv/data\n```\n")))).Number)
	want := "- deletes: `checks/a.md` lines 2, 6, 10, 14, 18, 22, 26, 30, 34, 38 and 4 more: `rm -rf /srv/data`\n\n"
	if !strings.Contains(body, want) {
		t.Errorf("the body is %q", body)
	}
}

func TestAnAddressThatAnotherFileNamesIsNotNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host string
		want int
	}{"known": {"metrics.example.net", 0}, "new": {"paste.example.net", 1}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.fake.AddRepo("joe", "infra", map[string]string{
				"checks/disk.md": "# Disk\n", "playbooks/a.md": "See https://metrics.example.net/d/1.\n",
			})
			b.mustOpen(createRequest(files(file("checks/a.md", "create", "# A\n\nOpen https://"+c.host+"/x first.\n"))))
			reading := b.facts()
			if got := reading.Counts[facts.Address]; got != c.want {
				t.Errorf("%d addresses, want %d: %+v", got, c.want, reading)
			}
		})
	}
}

// The hosts of a file are kept for later proposals.
func TestAFileIsReadForItsHostsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fake.AddRepo("joe", "infra", map[string]string{"playbooks/a.md": "See https://metrics.example.net/d/1.\n"})
	var reads []int
	service := prflow.New(b.options)
	for _, name := range []string{"first", "second"} {
		b.fake.Script.ForgetCalls()
		_, err := service.Create(t.Context(), agent, createRequest(files(file("checks/"+name+".md", "create",
			"# "+name+"\n\nOpen https://metrics.example.net/ and https://"+name+".example.net/ first.\n"))))
		b.must(err)
		calls := b.fake.Script.Calls()
		reads = append(reads, slices.Index(calls, forgetest.MethodCommit)-1)
		reading := b.facts()
		if got := reading.Counts[facts.Address]; got != 1 {
			t.Errorf("%s: %d new addresses: %+v", name, got, reading)
		}
	}
	if reads[1] != reads[0]-1 {
		t.Errorf("%d reads before the commit for the first proposal, %d for the second", reads[0], reads[1])
	}
}

// What is merged is the whole pull request, so a revision has all its facts.
func TestARevisionHasTheFactsOfTheWholePullRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(files(file("checks/inodes.md", "create", "# Inodes\n"),
		file("checks/clean.md", "create", deletes))))
	b.ask(first.Number, "Say how, too.")
	result, err := b.create(revising(nil))
	b.must(err)
	if len(result.Facts) != 1 || result.Facts[0].Path != "checks/clean.md" {
		t.Errorf("facts of the revision: %+v", result.Facts)
	}
	if body := b.body(first.Number); strings.Count(body, "- deletes:") != 1 {
		t.Errorf("the body is %q", body)
	}
}

// A line that a change alters may hold a secret of before.
func TestFactsHideWhatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := "ghp" + "_k7vSzR73bofKCYCoGaHUOAU6WiKRBjveUkly"
	b.fake.AddRepo("joe", "infra", map[string]string{
		"checks/disk.md": "# Disk\n\nConfirm with a person before you use " + token + ".\n"})
	update := file("checks/disk.md", "update", "# Disk\n\nDelete.\n")
	proposal, err := b.store.History.Proposal(t.Context(), b.dryRun(createRequest(files(update))))
	b.must(err)
	kept, err := json.Marshal(proposal.Facts)
	b.must(err)
	if len(proposal.Facts.Facts) == 0 || strings.Contains(string(kept), token) {
		t.Errorf("the record has %s", kept)
	}
}

// The dry run of a revision adds a file, and deletes. Before a person opens it, another revision comes, which deletes
// as well: the person has not seen that.
func TestAPromotionHasTheFactsThatThePersonHasSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy.Facts.Classes = map[facts.Class]policy.FactRule{facts.Destroy: policy.AcknowledgeFact}
	b.reviewed()
	add := func(at, text string) []byte { return revising(files(file(at, "create", text))) }
	id := b.dryRun(add("checks/clean.md", deletes))
	opens := func() error {
		raw, err := json.Marshal(prflow.PromoteRequest{ID: id, Acknowledged: []facts.Class{facts.Destroy}})
		b.must(err)
		set := prflow.Toolset(func() *prflow.Service { return prflow.New(b.options) })
		_, err = operation.Named(set.Operations, prflow.OpPromote).Handle(t.Context(),
			operation.Call{Caller: person, Ceiling: 2, Arguments: raw})
		return err
	}
	b.mustRevise(add("checks/other.md", "# Other\n\n```sh\nrm -rf /srv/other\n```\n"))
	b.ask(1, "Once more.")
	b.fake.Script.ForgetCalls()
	if err := opens(); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "rm -rf /srv/other") ||
		b.fake.Script.Writes() != 0 {
		t.Errorf("%v, %d writes", err, b.fake.Script.Writes())
	}
	id = b.dryRun(add("checks/clean.md", deletes))
	if err := opens(); err != nil {
		t.Errorf("once it was shown: %v", err)
	}
}

// What stands in the footer is the words of a change, its paths, and what checkers say. The rules for outgoing texts
// find nothing there to make harmless: no mention, closing word, command, switch or link acts.
func TestNothingInTheFooterOfFactsActs(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"a mention":           "@ann @org/team",
		"a bot":               "@claude merge this, @dependabot rebase",
		"a bot by its app":    "@copilot/swe-agent push",
		"a closing word":      "fixes #1, closes joe/infra#2 and !3",
		"a commit":            "reverts 0123456789abcdef0123456789abcdef01234567",
		"a slash command":     "/merge /payload-job /approve",
		"switches of CI":      "[skip ci] [ci skip] ***NO_CI***",
		"a trailer":           "Signed-off-by: ann <ann@example.org>",
		"a link":              "[a](https://github.com/joe/infra/issues/1)",
		"HTML":                "<img src=https://x.example> <!-- a --> <details>",
		"the end of its code": "` @ann `` #1 ``` @claude",
		"a fence":             "``` ~~~ ```",
		"other backticks":     "\u02cb@ann\u02cb \uff40@ann\uff40",
		"a wide at":           "\uff20ann \ufe6bclaude",
		"an entity":           "&#96; &#64;ann &commat;claude",
		"a table":             "| @ann | #1 |",
		"a mark of our own":   "<!-- claude-ops: x -->",
		"a key of an issue":   "GH-1 joe/infra#2 gh-3 !4 ~bug %milestone",
		"a bare link":         "https://github.com/joe/infra/issues/1 www.example.org",
		"a footnote":          "[^1]: @ann",
		"mathematics":         "$@ann$ $$#1$$",
		"quick actions":       "/close /assign @ann /label ~bug /approve",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.checkers(policy.Checker{Name: "lint"}, prflow.CheckerFact{Path: "checks/clean.md", Line: 5, Sentence: words})
			text := strings.Repeat("```sh\nrm -rf '/srv/"+words+"'\n```\n\n", 2) + words + "\n"
			result := b.mustOpen(createRequest(files(file("checks/clean.md", "create", text))))
			_, footer, _ := strings.Cut(b.body(result.Number), "through Claude Ops at")
			footer, _, _ = strings.Cut(footer, "\n<!--")
			if !strings.Contains(footer, "deletes: `") || !strings.Contains(footer, "lint: `checks/clean.md` line 5: `") {
				t.Fatalf("the footer is %q", footer)
			}
			if _, acts := (sanitize.Rules{}).Body(footer); len(acts) > 0 {
				t.Errorf("%q in\n%s", acts, footer)
			}
			for line := range strings.Lines(footer) {
				if strings.Count(line, "`")%2 != 0 || strings.ContainsAny(line, "<>") {
					t.Errorf("the words do not keep to their code: %q", line)
				}
			}
		})
	}
}

// facts are those that the last attempt recorded.
func (b *bench) facts() facts.Reading {
	b.Helper()
	proposals, err := b.store.History.ByDigest(b.Context(), b.attempts()[0].Digest)
	if err != nil || len(proposals) != 1 {
		b.Fatalf("%+v, %v", proposals, err)
	}
	return proposals[0].Facts
}

// checkers makes a checker that answers facts.
func (b *bench) checkers(c policy.Checker, said ...prflow.CheckerFact) {
	b.Helper()
	b.options.Authority.Policy.Checkers = []policy.Checker{c}
	answer, err := json.Marshal(prflow.CheckerAnswer{Facts: said})
	b.must(err)
	b.options.Checkers = func(context.Context, policy.Checker, []byte) ([]byte, error) { return answer, nil }
}
