package gitprovider_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestDefaultScope(t *testing.T) {
	cases := []struct {
		path    string
		allowed bool
		rule    string
	}{
		{"checks/disk.md", true, "checks/*.md"},
		{"playbooks/full-disk.md", true, "playbooks/*.md"},
		{".claude-ops/checks/a.md", true, ".claude-ops/checks/*.md"},
		{".claude-ops/playbooks/a.md", true, ".claude-ops/playbooks/*.md"},
		{".claude-ops/skills/a.md", true, ".claude-ops/skills/*.md"},
		{".claude-ops/skills/tidy/SKILL.md", true, ".claude-ops/skills/*/SKILL.md"},
		{"CLAUDE-OPS.md", true, "CLAUDE-OPS.md"},
		{"checks/Dockerfile-health.md", true, "checks/*.md"},
		{"checks/my.env.md", true, "checks/*.md"},
		{"checks/v1..v2.md", true, "checks/*.md"},

		{"README.md", false, gitprovider.RuleNotInAllowList},
		{"checks/sub/disk.md", false, gitprovider.RuleNotInAllowList},
		{"Checks/disk.md", false, gitprovider.RuleNotInAllowList},
		{"checks/disk.MD", false, gitprovider.RuleNotInAllowList},
		{"claude-ops.md", false, gitprovider.RuleNotInAllowList},
		{"sub/CLAUDE-OPS.md", false, gitprovider.RuleNotInAllowList},

		{"prompts/tier3-remediate.md", false, "prompts/**"},
		{"PROMPTS/x.md", false, "prompts/**"},
		{"CLAUDE.md", false, "CLAUDE.md"},
		{"checks/claude.md", false, "CLAUDE.md"},
		{".claude-ops/skills/CLAUDE.md", false, "CLAUDE.md"},
		{"CLAUDE.local.md", false, "CLAUDE.local.md"},
		{"checks/claude.LOCAL.md", false, "CLAUDE.local.md"},
		{"AGENTS.md", false, "AGENTS.md"},
		{"checks/AGENTS.md", false, "AGENTS.md"},
		{".claude-ops/skills/Agents.md", false, "AGENTS.md"},
		{".claude-ops/skills/agents.MD/SKILL.md", false, "AGENTS.md"},
		{"playbooks/gemini.md", false, "GEMINI.md"},
		{"checks/Copilot-Instructions.md", false, "copilot-instructions.md"},
		{".cursorrules", false, ".cursorrules"},
		{"checks/.CursorRules", false, ".cursorrules"},
		{"SKILL.md", false, "SKILL.md"},
		{"checks/SKILL.md", false, "SKILL.md"},
		{"playbooks/Skill.md", false, "SKILL.md"},
		{".claude-ops/skills/SKILL.md", false, "SKILL.md"},
		{".claude-ops/skills/a/b/SKILL.md", false, "SKILL.md"},
		{".claude-ops/skills/skill.md/SKILL.md", false, "SKILL.md"},
		{".claude-ops/checks/a/SKILL.md", false, "SKILL.md"},
		{"sub/.claude-ops/skills/a/SKILL.md", false, "SKILL.md"},
		{".claude/skills/a/SKILL.md", false, "SKILL.md"},
		{".claude-ops/skills/a/skill.md", false, gitprovider.RuleNotInAllowList},
		{".claude-ops/skills/a/README.md", false, gitprovider.RuleNotInAllowList},
		{"checks/AGENTS-health.md", true, "checks/*.md"},
		{"checks/agents.example.md", true, "checks/*.md"},
		{"entrypoint.sh", false, "entrypoint.sh"},
		{"checks/x.yaml", false, "*.yaml"},
		{"x.YML", false, "*.yml"},
		{"Dockerfile", false, "Dockerfile"},
		{"sub/dockerfile.prod", false, "Dockerfile.*"},
		{"main.go", false, "*.go"},
		{".env", false, ".env*"},
		{"checks/.env.local", false, ".env*"},
		{"prod.env", false, "*.env"},
		{".github/workflows/x.yml", false, "*.yml"},
		{".github/CODE.md", false, ".github/**"},
		{".gitea/x.md", false, ".gitea/**"},
		{".forgejo/x.md", false, ".forgejo/**"},
		{".claude/settings.json", false, ".claude/**"},
		{".agents/plugins/a.md", false, ".agents/**"},
		{".AGENTS/skills/a/b.md", false, ".agents/**"},
		{".mcp.json", false, ".mcp.json"},
		{".claude-ops/mcp.json", false, ".claude-ops/mcp.json"},
		{".Claude-Ops/MCP.json", false, ".claude-ops/mcp.json"},
		{"CODEOWNERS", false, "CODEOWNERS"},
		{"docs/codeowners", false, "CODEOWNERS"},
		{".gitmodules", false, ".gitmodules"},
		{"sub/.gitattributes", false, ".gitattributes"},
		{".githooks/pre-commit", false, ".githooks/**"},
		{".husky/pre-push", false, ".husky/**"},
		{"claudeops-policy.yaml", false, gitprovider.RulePolicyFile},
		{"checks/../prompts/x.md", false, gitprovider.RuleCanonicalPath},
		{".git/config", false, gitprovider.RuleCanonicalPath},
		{"checks/.git/config.md", false, gitprovider.RuleCanonicalPath},
	}
	scope := gitprovider.DefaultScope()
	for _, c := range cases {
		t.Run(c.path, func(t *testing.T) {
			v := scope.Check(c.path)
			if v.Allowed != c.allowed || v.Rule != c.rule {
				t.Errorf("Check = %t by %q, want %t by %q", v.Allowed, v.Rule, c.allowed, c.rule)
			}
			if v.Allowed != (v.Reason == nil) || v.Reason != nil &&
				(v.Reason.Code != fault.ScopeDenied || v.Reason.Message == "") {
				t.Errorf("reason %+v does not go with allowed=%t", v.Reason, v.Allowed)
			}
		})
	}
}

func TestNoScopeCanAllowWhatIsNeverAllowed(t *testing.T) {
	scope, err := gitprovider.NewScope([]string{"**", ".git/**", "*"}, nil, "/etc/claudeops/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		".git/config", ".GIT/hooks/x", "a/.git/x", "git~1/x", "../x", "a/../../x", "/etc/passwd", "rules.yaml",
		"sub/RULES.yaml",
		"claudeops-policy.yml", ".github/x", "a\x00b",
	} {
		if scope.Check(path).Allowed {
			t.Errorf("%q is allowed under a scope that allows everything it can", path)
		}
	}
	if !scope.Check("services/web.yaml").Allowed {
		t.Error("a policy that allows everything should allow services/web.yaml")
	}
}

// A scope that allows more still excludes instructions to agents, unless it drops or widens that.
func TestInstructionsToAgentsUnderAWideScope(t *testing.T) {
	for name, c := range map[string]struct {
		deny    []string
		allowed string
	}{
		"the default": {gitprovider.DefaultDeny(), ".claude-ops/skills/a/SKILL.md .claude-ops/skills/b/skill.md"},
		"nothing denied": {nil,
			".claude-ops/skills/a/SKILL.md .claude-ops/skills/b/skill.md docs/SKILL.md docs/Agents.md"},
		"all skills denied":   {[]string{"**/SKILL.md"}, "docs/Agents.md"},
		"skills' folder, too": {append(gitprovider.DefaultDeny(), ".claude-ops/skills/**"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			scope, err := gitprovider.NewScope([]string{"**"}, c.deny, "")
			if err != nil {
				t.Fatal(err)
			}
			var allowed []string
			for _, path := range []string{".claude-ops/skills/a/SKILL.md", ".claude-ops/skills/b/skill.md", "docs/SKILL.md",
				"docs/Agents.md"} {
				if scope.Check(path).Allowed {
					allowed = append(allowed, path)
				}
			}
			if got := strings.Join(allowed, " "); got != c.allowed {
				t.Errorf("allowed are %q, want %q", got, c.allowed)
			}
		})
	}
}

func TestNewScopeRefusesPatternsThatCannotMatch(t *testing.T) {
	for _, pattern := range []string{"", "/abs/*.md", "a/../b", "a//b", "./a", "[", "a/["} {
		if _, err := gitprovider.NewScope([]string{pattern}, nil, ""); err == nil {
			t.Errorf("the pattern %q was accepted", pattern)
		}
	}
}

func changes(paths ...string) []gitprovider.FileChange {
	out := make([]gitprovider.FileChange, len(paths))
	for i, p := range paths {
		out[i] = gitprovider.FileChange{Path: p, Action: gitprovider.ActionCreate, Content: "x\n"}
	}
	return out
}

func TestValidateScopeNamesEveryViolation(t *testing.T) {
	scope, err := gitprovider.NewScope([]string{"checks/**", "Checks/**"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name  string
		paths []string
		rules []string
	}{
		{"nothing wrong", []string{"checks/a.md", "checks/b.md", "checks/sub/a.md"}, nil},
		{"two paths out of scope", []string{"x.md", "checks/a.md", "y.md"},
			[]string{"not-in-allow-list", "not-in-allow-list"}},
		{"the same path twice", []string{"checks/a.md", "checks/a.md"}, []string{"path-collision"}},
		{"two spellings of a file", []string{"checks/a.md", "checks/A.md"}, []string{"path-collision"}},
		{"two spellings of a folder", []string{"checks/a.md", "Checks/b.md"}, []string{"path-collision"}},
		{"a file that is also a folder", []string{"checks/a", "checks/a/b.md"}, []string{"path-collision"}},
		{"a folder that is also a file", []string{"checks/a/b.md", "checks/A"}, []string{"path-collision"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var rules []string
			for _, v := range gitprovider.ValidateScope(scope, changes(c.paths...)) {
				rules = append(rules, v.Rule)
			}
			if strings.Join(rules, " ") != strings.Join(c.rules, " ") {
				t.Errorf("rules %v, want %v", rules, c.rules)
			}
		})
	}
}

func TestARefusalNeverRepeatsAHostilePathAsItIs(t *testing.T) {
	v := gitprovider.DefaultScope().Check("checks/\u202e\x1b[2J" + strings.Repeat("x", 5000))
	for _, text := range []string{v.Reason.Path, v.Reason.Message} {
		if strings.ContainsAny(text, "\u202e\x1b") || len(text) > 400 {
			t.Errorf("the refusal repeats the path: %q", text)
		}
	}
}

func TestARefusedPathIsAnsweredWithTheOneThatIsMeant(t *testing.T) {
	for raw, want := range map[string]string{
		"./checks/x.md": "such as checks/x.md", "checks//x.md": "such as checks/x.md",
		"/checks/./x.md":         "such as checks/x.md",
		"checks/../prompts/x.md": "such as checks/disk.md", "checks/ä.md": "such as checks/disk.md",
		"": "such as checks/disk.md",
	} {
		verdict := gitprovider.DefaultScope().Check(raw)
		if verdict.Reason == nil || !strings.HasSuffix(verdict.Reason.Suggestion, want) {
			t.Errorf("%q: %+v", raw, verdict.Reason)
		}
	}
}

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
