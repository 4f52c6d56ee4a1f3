package gitprovider_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestAKindAdmitsItsPatternsAtTier3Alone(t *testing.T) {
	kind := gitprovider.FileKind{Name: "definitions", Patterns: []string{".fractary/agents/**"}}
	plain, err := gitprovider.NewScope([]string{"**/*.md", "**/*.yaml"}, append(gitprovider.DefaultDeny(), ".fractary/agents/secret/**"), "rules.yaml")
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
	kind := gitprovider.FileKind{Name: "deploy", Patterns: []string{"modules/**"}, Skills: []string{"modules/*/**/SKILL.md"}}
	scope := gitprovider.DefaultScope().WithKinds(kind).At(gitprovider.TierRemediate)
	for path, want := range map[string]bool{
		"modules/look/SKILL.md": true, "modules/skill/look/SKILL.md": true, "modules/look/steps.md": true,
		"modules/SKILL.md": false, "modules/look/skill.md": false, "modules/skill.md/x/SKILL.md": false, "modules/SKILL.md/SKILL.md": false,
		"modules/look/AGENTS.md": false, "modules/CLAUDE.md/SKILL.md": false, "modules/look/.claude/SKILL.md": false, "SKILL.md": false,
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
