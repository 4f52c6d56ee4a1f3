package gitprovider_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestAKindAdmitsItsPatternsAtTier3Alone(t *testing.T) {
	kind := gitprovider.FileKind{Name: "definitions", Patterns: []string{".fractary/agents/**"}}
	plain, err := gitprovider.NewScope([]string{"**/*.md", "**/*.yaml"},
		append(gitprovider.DefaultDeny(), ".fractary/agents/secret/**"), "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	with := plain.WithKinds(kind)
	for path, want := range map[string]struct {
		tier3 bool
		code  fault.Code // at tier 2
	}{
		".fractary/agents/a.yaml":          {true, fault.TierDenied},
		".fractary/agents/a/agent.md":      {true, fault.TierDenied},
		".fractary/config.yaml":            {false, fault.ScopeDenied},
		".fractary/x.md":                   {false, fault.ScopeDenied},
		".fractary/tools/t.md":             {false, fault.ScopeDenied},
		".Fractary/agents/a.md":            {false, fault.ScopeDenied},
		"x/.fractary/agents/a.md":          {false, fault.ScopeDenied},
		".fractary/agents/.hidden/a.md":    {false, fault.ScopeDenied},
		".fractary/agents/.fractary/a.md":  {true, fault.TierDenied}, // it lies below the folder
		".fractary/agents/../../x.md":      {false, fault.ScopeDenied},
		".fractary/agents//a.md":           {false, fault.ScopeDenied},
		".fractary/agents/CLAUDE.md":       {false, fault.ScopeDenied},
		".fractary/agents/Dockerfile":      {false, fault.ScopeDenied},
		".fractary/agents/rules.yaml":      {false, fault.ScopeDenied}, // the policy file's own name
		".fractary/agents/secret/agent.md": {false, fault.ScopeDenied},
		"a.yaml":                           {false, fault.ScopeDenied}, // YAML elsewhere stays denied
		"checks/a.md":                      {true, ""},
	} {
		if got := with.At(gitprovider.TierRemediate).Check(path); got.Allowed != want.tier3 {
			t.Errorf("%s at tier 3: %+v", path, got)
		}
		low := with.At(gitprovider.TierInvestigate).Check(path)
		if code := codeOf(low); code != want.code {
			t.Errorf("%s at tier 2: %q", path, code)
		}
		if code := codeOf(with.Check(path)); code != want.code {
			t.Errorf("%s at no tier: %q", path, code)
		}
		if got := plain.At(gitprovider.TierRemediate).Check(path); got.Allowed != (path == "checks/a.md") {
			t.Errorf("%s without the kind: %+v", path, got)
		}
	}
}

func TestAKindsSkillsAreNotDeniedByTheirName(t *testing.T) {
	kind := gitprovider.FileKind{Name: "deploy", Patterns: []string{"modules/**"},
		Skills: []string{"modules/*/**/SKILL.md"}}
	scope := gitprovider.DefaultScope().WithKinds(kind).At(gitprovider.TierRemediate)
	for path, want := range map[string]bool{
		"modules/look/SKILL.md": true, "modules/skill/look/SKILL.md": true, "modules/look/steps.md": true,
		"modules/SKILL.md": false, "modules/look/skill.md": false, "modules/skill.md/x/SKILL.md": false,
		"modules/SKILL.md/SKILL.md": false,
		"modules/look/AGENTS.md":    false, "modules/CLAUDE.md/SKILL.md": false, "modules/look/.claude/SKILL.md": false,
		"SKILL.md":                false,
		"x/modules/look/SKILL.md": false, "Modules/look/SKILL.md": false,
	} {
		if got := scope.Check(path); got.Allowed != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := gitprovider.DefaultScope().At(gitprovider.TierRemediate).Check("modules/look/SKILL.md"); got.Allowed {
		t.Errorf("without the kind: %+v", got)
	}
}

func codeOf(v gitprovider.ScopeVerdict) fault.Code {
	if v.Reason == nil {
		return ""
	}
	return v.Reason.Code
}

func TestAKindLiftsItsOwnRulesAlone(t *testing.T) {
	kind := gitprovider.FileKind{Name: "claude-agents", Patterns: []string{".claude/agents/*.md"},
		Lifts: []string{".claude/**"}}
	plain, err := gitprovider.NewScope(nil, gitprovider.DefaultDeny(), "")
	if err != nil {
		t.Fatal(err)
	}
	modules := gitprovider.FileKind{Name: "deploy", Patterns: []string{"modules/**", ".fractary/agents/**"}}
	with := plain.WithKinds(kind, modules).At(gitprovider.TierRemediate)
	if got := with.Check(".claude/agents/reviewer.md"); !got.Allowed || got.Rule != "kind:claude-agents" {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{
		".claude/settings.json", ".claude/agents/a/b.md", ".claude/commands/x.md", ".Claude/agents/a.md",
		".claude/Agents/a.md", "a/.claude/agents/x.md",
		".claude/agents/CLAUDE.md", ".claude/agents/SKILL.md", ".claude/agents/x.yaml", "checks/.claude/x.md", ".claude",
		"modules/a/.claude/settings.json", "modules/a/.claude/agents/a.md", ".fractary/agents/.claude/a.md",
	} {
		if got := with.Check(path); got.Allowed {
			t.Errorf("%s is allowed by %s", path, got.Rule)
		}
	}
	if got := plain.WithKinds(kind).At(gitprovider.TierInvestigate).Check(".claude/agents/a.md"); got.Allowed {
		t.Error("tier 2 may propose it")
	}
	if got := plain.At(gitprovider.TierRemediate).Check(".claude/agents/a.md"); got.Allowed || got.Rule != ".claude/**" {
		t.Errorf("without the kind: %+v", got)
	}
	narrow, err := gitprovider.NewScope(nil, []string{".claude/**", ".claude/agents/**"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := narrow.WithKinds(kind).At(gitprovider.TierRemediate).Check(".claude/agents/a.md"); got.Allowed {
		t.Error("a rule of the operator's own was lifted")
	}
}
