package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// kindBench is one whose policy admits a kind of files at tier 3.
func kindBench(t *testing.T, tier gitprovider.Tier) *bench {
	t.Helper()
	b := newBench(t)
	p, err := policy.Parse("test.yaml", []byte("version: 1\nscope: {kinds: [definitions]}\n"), gitprovider.FileKind{
		Name: "definitions", Patterns: []string{".fractary/agents/**"},
		Validate: func(_, content string) (out []gitprovider.FileProblem) {
			if !strings.HasPrefix(content, "name: ") {
				out = append(out, gitprovider.FileProblem{Line: 3, Column: 5, Message: "name: is missing",
					Suggestion: "give it a name"})
			}
			return out
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.options.Authority.Policy, b.options.Authority.Tier = p, tier
	return b
}

func TestAFileOfAKindIsProposedAtTier3IfItsValidatorAcceptsIt(t *testing.T) {
	t.Parallel()
	result := kindBench(t, gitprovider.TierRemediate).mustOpen(
		request(files(file(".fractary/agents/a.yaml", "create", "name: a\n"))))
	if len(result.Files) != 1 || result.Files[0] != ".fractary/agents/a.yaml" {
		t.Errorf("%+v", result)
	}
}

func TestABrokenFileOfAKindIsRefusedWithTheWordsOfItsValidator(t *testing.T) {
	t.Parallel()
	b := kindBench(t, gitprovider.TierRemediate)
	e, row := b.mustRefuse(request(files(file(".fractary/agents/a.yaml", "create", "nam: a\n"),
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
		request(files(file(".fractary/agents/a.yaml", "create", "name: a\n"))), fault.TierDenied)
	if got := violationsOf(e); got != "tier_denied:kind:definitions" {
		t.Error(got)
	}
}

func TestWithoutTheKindItsFolderStaysHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Tier = gitprovider.TierRemediate
	b.mustRefuse(request(files(file(".fractary/agents/a.md", "create", "name: a\n"))), fault.ScopeDenied)
}
