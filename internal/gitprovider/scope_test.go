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
