package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
)

func TestNothingEscalatesUnlessTheOperatorPermitsIt(t *testing.T) {
	for _, c := range []struct {
		tier, cap string
		want      int
	}{
		{"", "", 1}, {"2", "", 2}, {"1", "3", 3}, {"3", "2", 2}, {"2", "9", 1}, {"2", "${CLAUDEOPS_MAX_TIER}", 2},
		{"9", "", 1},
	} {
		s := load(map[string]string{"CLAUDEOPS_TIER": c.tier, "CLAUDEOPS_MAX_TIER": c.cap}).Sessions
		if int(s.MaxTier) != c.want {
			t.Errorf("tier %q, cap %q: %d, want %d", c.tier, c.cap, s.MaxTier, c.want)
		}
	}
}

func TestASessionHasLimitsAndModels(t *testing.T) {
	s := load(nil).Sessions
	if s.Binary != "claude" || s.Limits.Time != 30*time.Minute || s.Limits.Turns != 60 || s.Limits.CostUSD != 0 ||
		s.Limits.ScheduledUSD != 2 || s.Problem != "" ||
		s.Models[1] != "haiku" || s.Models[3] != "opus" || s.PromptsDir != "" {
		t.Errorf("by default %+v", s)
	}
	s = load(map[string]string{
		"CLAUDEOPS_CLAUDE_BIN": "/opt/claude", "CLAUDEOPS_SESSION_TIMEOUT": "90s", "CLAUDEOPS_MAX_TURNS": "5",
		"CLAUDEOPS_MAX_COST_USD": "2.50", "CLAUDEOPS_TIER2_MODEL": "claude-sonnet-5-5", "CLAUDEOPS_PROMPTS_DIR": "own",
	}).Sessions
	if s.Binary != "/opt/claude" || s.Limits.Time != 90*time.Second || s.Limits.Turns != 5 || s.Limits.CostUSD != 2.5 ||
		s.Limits.ScheduledUSD != 2.5 || s.Problem != "" ||
		s.Models[2] != "claude-sonnet-5-5" || !filepath.IsAbs(s.PromptsDir) {
		t.Errorf("as asked %+v", s)
	}
	if s = load(map[string]string{"CLAUDEOPS_MAX_COST_USD": "none"}).Sessions; s.Limits.CostUSD != 0 ||
		s.Limits.ScheduledUSD != 0 || s.Problem != "" {
		t.Errorf("without a limit of cost %+v", s)
	}
}

func TestAnAgentDoesNotStartOnAGuess(t *testing.T) {
	for name, value := range map[string]string{
		"CLAUDEOPS_SESSION_TIMEOUT": "30", "CLAUDEOPS_MAX_TURNS": "0", "CLAUDEOPS_MAX_COST_USD": "NaN",
		"CLAUDEOPS_TIER1_MODEL": "--help",
		"CLAUDEOPS_AGENT_TOOLS": "Bash", "CLAUDEOPS_AGENT_ENV": "GITHUB_TOKEN",
		"HTTPS_PROXY": "http://joe:tok-7f3a9c2e@proxy.example",
	} {
		for _, value := range []string{value, strings.ToLower(value)} {
			s := load(map[string]string{name: value, "GITHUB_TOKEN": "tok-7f3a9c2e"}).Sessions
			if !strings.Contains(s.Problem, name) || strings.Contains(s.Problem, "tok-7f3a9c2e") {
				t.Errorf("%s=%s: problem %q", name, value, s.Problem)
			}
		}
	}
	for _, ours := range []string{"CLAUDEOPS_TIER", "claudeops_anything", "GITEA_TOKEN_FILE", "A=B", "GITHUB_API_URL"} {
		if s := load(map[string]string{"CLAUDEOPS_AGENT_ENV": ours}).Sessions; s.Problem == "" {
			t.Errorf("agents may have %s", ours)
		}
	}
	for _, tools := range []string{"Edit", "Bash()", "Bash(df *), Write(//etc/**)", "4:Bash(df *)", "mcp__a b"} {
		if s := load(map[string]string{"CLAUDEOPS_AGENT_TOOLS": tools}).Sessions; s.Problem == "" {
			t.Errorf("taken as tools: %s", tools)
		}
	}
}

func TestToolsAreSplitOutsideOfBracketsAndHaveATier(t *testing.T) {
	s := load(map[string]string{"CLAUDEOPS_AGENT_TOOLS": "Bash(df -h, *),3:Bash(systemctl restart " +
		"*)\n2:WebFetch(domain:example.org),mcp__grafana__*"}).Sessions
	want := []config.AgentTool{
		{From: 1, Rule: "Bash(df -h, *)"}, {From: 3, Rule: "Bash(systemctl restart *)"},
		{From: 2, Rule: "WebFetch(domain:example.org)"}, {From: 1, Rule: "mcp__grafana__*"},
	}
	if s.Problem != "" || !slices.Equal(s.Tools, want) {
		t.Errorf("got %+v, problem %q", s.Tools, s.Problem)
	}
}

func TestTheAgentsEnvironmentIsAnAllowlistAndItsServersIsWhole(t *testing.T) {
	env := map[string]string{
		"PATH": "/bin", "HOME": "/home/joe", "ANTHROPIC_API_KEY": "sk-model-credential", "KUBECONFIG": "/k", "OTHER": "x",
		"CLAUDEOPS_AGENT_ENV": "KUBECONFIG", "GITHUB_TOKEN": "tok-7f3a9c2e",
		"CLAUDEOPS_DATABASE_URL": "postgres://joe:passw0rd!@db/ops",
		"CLAUDEOPS_API_TOKENS":   "rest-token-0001", "CLAUDEOPS_POLICY": "policy.yaml",
		"GITEA_TOKEN_FILE": "/run/secrets/gitea",
	}
	c := load(env)
	got := strings.Join(c.Sessions.Env, "\n")
	for _, want := range []string{"PATH=/bin", "HOME=/home/joe", "ANTHROPIC_API_KEY=sk-model-credential", "KUBECONFIG=/k",
		"DISABLE_AUTOUPDATER=1"} {
		if !slices.Contains(c.Sessions.Env, want) {
			t.Errorf("the agent lacks %s: %s", want, got)
		}
	}
	for _, secret := range []string{"tok-7f3a9c2e", "passw0rd", "rest-token", "OTHER", "CLAUDEOPS_", "/run/secrets"} {
		if strings.Contains(got, secret) {
			t.Errorf("the agent gets %s", secret)
		}
	}
	for _, v := range config.ServerVariables(forges.All()) {
		if _, given := c.Sessions.ServerEnv[v.Name]; !given {
			t.Errorf("the server would inherit %s", v.Name)
		}
	}
	if s := c.Sessions.ServerEnv; s["GITHUB_TOKEN"] != "tok-7f3a9c2e" || !filepath.IsAbs(s["CLAUDEOPS_POLICY"]) ||
		s["GITEA_TOKEN_FILE"] != "/run/secrets/gitea" ||
		s["CLAUDEOPS_STATE_DIR"] != "/home/joe/.local/state/claudeops" || s["CLAUDEOPS_API_TOKENS"] != "" {
		t.Errorf("the server gets %v", s)
	}
	if !slices.Contains(c.Secrets, "sk-model-credential") {
		t.Error("the model's credential is not redacted")
	}
}

func TestASessionsIdHasTheShapeOfOne(t *testing.T) {
	for value, want := range map[string]string{
		"01M803F3KHPKXGSS8YCYD9D0A9": "01M803F3KHPKXGSS8YCYD9D0A9", "": "", "x": "", "01M803F3KHPKXGSS8YCYD9D0A9'": "",
		"01m803f3khpkxgss8ycyd9d0a9": "",
	} {
		if s := load(map[string]string{"CLAUDEOPS_SESSION": value}); s.SessionID != want {
			t.Errorf("%q: %q", value, s.SessionID)
		}
	}
}

func TestAnIntervalThatCannotBeReadIsAProblem(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "0s": 0, "1m": time.Minute, "1h": time.Hour, "168h": 7 * 24 * time.Hour, "${CLAUDEOPS_INTERVAL}": 0,
		"59s": -1, "169h": -1, "-1h": -1, "1": -1, "hourly": -1, "7d": -1, "1h;": -1,
	} {
		s := load(map[string]string{"CLAUDEOPS_INTERVAL": value}).Sessions
		if bad := want < 0; bad != strings.Contains(s.Schedule.Problem, "CLAUDEOPS_INTERVAL") ||
			s.Schedule.Cadence.Gap(time.Now()) != max(want, 0) {
			t.Errorf("%q: %s, problem %q", value, s.Schedule.Cadence, s.Schedule.Problem)
		}
	}
}

func TestAgentsGetTheToolsetsOfSessionsAndNotThoseOfTheServer(t *testing.T) {
	env := map[string]string{
		"CLAUDEOPS_TOOLSETS": "pr,definitions", "CLAUDEOPS_ALLOW_WRITE": "true", "FRACTARY_CACHE_DIR": "/cache",
		"FRACTARY_REGISTRY_TOKEN": "tok-of-a-registry",
	}
	if s := load(env).Sessions; s.ServerEnv["CLAUDEOPS_TOOLSETS"] != "" || s.ServerEnv["CLAUDEOPS_ALLOW_WRITE"] != "" ||
		s.ServerEnv["FRACTARY_CACHE_DIR"] != "" ||
		!slices.Equal(s.Toolsets, []string{"pr"}) {
		t.Errorf("by default: %v, %v", s.Toolsets, s.ServerEnv)
	}
	env["CLAUDEOPS_SESSION_TOOLSETS"] = "pr, definitions"
	s := load(env).Sessions
	for name, want := range map[string]string{
		"CLAUDEOPS_TOOLSETS": "pr,definitions", "CLAUDEOPS_ALLOW_WRITE": "true", "FRACTARY_CACHE_DIR": "/cache",
		"FRACTARY_REGISTRY_TOKEN": "tok-of-a-registry",
	} {
		if s.ServerEnv[name] != want {
			t.Errorf("%s is %q", name, s.ServerEnv[name])
		}
	}
	if strings.Contains(strings.Join(s.Env, " "), "tok-of-a-registry") {
		t.Error("the agent itself has the token")
	}
}

func TestTheBoundaryIsNeverAGuess(t *testing.T) {
	for _, test := range []struct{ name, value, problem string }{
		{"CLAUDEOPS_BOUNDARY", "landlok", "CLAUDEOPS_BOUNDARY is"},
		{"CLAUDEOPS_BOUNDARY", "user", ""},
		{"CLAUDEOPS_AGENT_NET", "none", "CLAUDEOPS_AGENT_NET is"},
		{"CLAUDEOPS_AGENT_NET", "model", ""},
		{"CLAUDEOPS_AGENT_READ", "/var/log,etc", "CLAUDEOPS_AGENT_READ holds"},
		{"CLAUDEOPS_AGENT_WRITE", "/srv/x, /srv/y/../z", ""},
	} {
		c := load(map[string]string{test.name: test.value})
		if got := c.Sessions.Problem; !strings.Contains(got, test.problem) || (test.problem == "") != (got == "") {
			t.Errorf("%s=%s: %q, want %q", test.name, test.value, got, test.problem)
		}
	}
	c := load(map[string]string{"CLAUDEOPS_AGENT_WRITE": "/srv/x, /srv/y/../z",
		"CLAUDEOPS_AGENT_USER": "agents"}).Permissions.Confinement
	if c.Boundary != config.BoundaryAuto || c.Net != config.NetAny || c.AgentUser != "agents" ||
		!slices.Equal(c.Write, []string{"/srv/x", "/srv/z"}) {
		t.Errorf("%+v", c)
	}
}

func TestThePortsOfTheModel(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want []uint16
	}{
		{nil, []uint16{443}},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8765/x"}, []uint16{8765}},
		{[]string{"ANTHROPIC_BASE_URL=https://gateway.example.org"}, []uint16{443}},
		{[]string{"HTTPS_PROXY=http://proxy:3128", "http_proxy=proxy"}, []uint16{443, 3128, 80}},
	} {
		if got := config.ModelPorts(test.env); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.env, got, test.want)
		}
	}
}

func TestWhetherNamesHaveToBeLookedUpToAskTheModel(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want bool
	}{
		{nil, true},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8765/x"}, false},
		{[]string{"ANTHROPIC_BASE_URL=http://localhost:8765"}, false},
		{[]string{"ANTHROPIC_BASE_URL=https://[2001:db8::1]/"}, false},
		{[]string{"ANTHROPIC_BASE_URL=https://gateway.example.org"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128"}, false},
		{[]string{"https_proxy=10.0.0.1:3128"}, false},
		{[]string{"HTTPS_PROXY=http://proxy:3128"}, true},
		{[]string{"HTTP_PROXY=http://10.0.0.1:3128"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128", "NO_PROXY=.anthropic.com"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128", "CLAUDE_CODE_USE_BEDROCK=1"}, true},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "http_proxy=proxy"}, true},
	} {
		if got := config.ModelNeedsNames(test.env); got != test.want {
			t.Errorf("%v: %t, want %t", test.env, got, test.want)
		}
	}
}
