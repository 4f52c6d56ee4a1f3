package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Session is how agents are run. Problem names the variable that is malformed, "" if none is: an agent must not start on
// a guess of what it may do.
type Session struct {
	ID         string // of the session that this process serves, "" for none; whoever starts an agent sets it
	Binary     string
	PromptsDir string // "" for those of the binary
	MaxTier    gitprovider.Tier
	Models     map[gitprovider.Tier]string
	Timeout    time.Duration
	MaxTurns   int
	MaxCostUSD float64 // 0: none
	Tools      []AgentTool
	Env        []string          // the agent's environment, all of it, as NAME=value
	ServerEnv  map[string]string // what the agent's MCP server gets: our variables, secrets among them
	Problem    string

	// Interval is how often `claudeops serve` starts a session; 0 is never. IntervalProblem says why it cannot be known, "" if
	// it can.
	Interval        time.Duration
	IntervalProblem string
}

// AgentTool is a permission of the Claude CLI, such as Bash(systemctl status *), from a tier upwards.
type AgentTool struct {
	From gitprovider.Tier
	Rule string
}

// Defaults and bounds of a session.
const (
	DefaultClaude         = "claude" // the Claude CLI, looked for in PATH
	DefaultSessionTimeout = 30 * time.Minute
	maxSessionTimeout     = 24 * time.Hour
	DefaultMaxTurns       = 60
	maxMaxTurns           = 10000
	maxMaxCost            = 10000
)

func (e *env) session(c Config) Session {
	s := Session{
		Binary: e.get("CLAUDEOPS_CLAUDE_BIN"), PromptsDir: e.get("CLAUDEOPS_PROMPTS_DIR"), MaxTier: c.Tier,
		Timeout: DefaultSessionTimeout, MaxTurns: DefaultMaxTurns, ServerEnv: e.serverEnv(c),
		Models: map[gitprovider.Tier]string{
			gitprovider.TierObserve: "haiku", gitprovider.TierInvestigate: "sonnet", gitprovider.TierRemediate: "opus",
		},
	}
	if id := e.get("CLAUDEOPS_SESSION"); regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(id) {
		s.ID = id
	} else if id != "" {
		e.warn("CLAUDEOPS_SESSION is no id of a session: it is left out")
	}
	if s.Binary == "" {
		s.Binary = DefaultClaude
	}
	if dir, err := filepath.Abs(s.PromptsDir); s.PromptsDir != "" && err == nil {
		s.PromptsDir = dir
	}
	if e.get("CLAUDEOPS_MAX_TIER") != "" {
		s.MaxTier = e.tier("CLAUDEOPS_MAX_TIER")
	}
	problem := func(format string, args ...any) {
		if s.Problem == "" {
			s.Problem = fmt.Sprintf(format, args...)
		}
	}
	for tier, model := range map[gitprovider.Tier]string{
		gitprovider.TierObserve: e.get("CLAUDEOPS_TIER1_MODEL"), gitprovider.TierInvestigate: e.get("CLAUDEOPS_TIER2_MODEL"),
		gitprovider.TierRemediate: e.get("CLAUDEOPS_TIER3_MODEL"),
	} {
		if model == "" {
			continue
		}
		s.Models[tier] = model
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`).MatchString(model) {
			problem("CLAUDEOPS_TIER%s_MODEL is no name of a model", tier)
		}
	}
	e.sessionLimits(&s, problem)
	s.Interval, s.IntervalProblem = e.interval()
	s.Tools = e.agentTools(problem)
	s.Env = e.agentEnv(c, problem)
	return s
}

func (e *env) sessionLimits(s *Session, problem func(string, ...any)) {
	if raw := e.get("CLAUDEOPS_SESSION_TIMEOUT"); raw != "" {
		d, err := time.ParseDuration(raw)
		if err != nil || d <= 0 || d > maxSessionTimeout {
			problem("CLAUDEOPS_SESSION_TIMEOUT is no time such as 30m, of at most 24h")
		}
		s.Timeout = d
	}
	if raw := e.get("CLAUDEOPS_MAX_TURNS"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > maxMaxTurns {
			problem("CLAUDEOPS_MAX_TURNS is no number from 1 to %d", maxMaxTurns)
		}
		s.MaxTurns = n
	}
	if raw := e.get("CLAUDEOPS_MAX_COST_USD"); raw != "" {
		cost, err := strconv.ParseFloat(raw, 64)
		if err != nil || !(cost > 0 && cost <= maxMaxCost) {
			problem("CLAUDEOPS_MAX_COST_USD is no amount such as 2.50, of at most %d", maxMaxCost)
		}
		s.MaxCostUSD = cost
	}
}

// agentTools reads CLAUDEOPS_AGENT_TOOLS: permissions separated by commas or line ends, each with a tier and a colon
// before it if it is for that tier and above only.
func (e *env) agentTools(problem func(string, ...any)) (out []AgentTool) {
	rule := regexp.MustCompile(`^(?:([123]):)?((?:Bash|WebFetch)\([^\r\n]+\)|mcp__[A-Za-z0-9_-]+(?:__\*)?)$`)
	for _, entry := range splitRules(e.get("CLAUDEOPS_AGENT_TOOLS")) {
		m := rule.FindStringSubmatch(entry)
		if m == nil {
			problem("CLAUDEOPS_AGENT_TOOLS holds %s, which is no permission such as Bash(df *), 3:Bash(systemctl restart *) "+
				"or WebFetch(domain:example.org)", shown(entry))
			continue
		}
		tier, _ := gitprovider.ParseTier(m[1]) // "" is tier 1
		out = append(out, AgentTool{From: tier, Rule: m[2]})
	}
	return out
}

// splitRules splits at line ends and at commas outside of brackets.
func splitRules(s string) (out []string) {
	depth, from := 0, 0
	add := func(to int) {
		if entry := strings.TrimSpace(s[from:to]); entry != "" {
			out = append(out, entry)
		}
		from = min(to+1, len(s))
	}
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case r == '\n' || r == ',' && depth == 0:
			depth = 0
			add(i)
		}
	}
	add(len(s))
	return out
}

// modelCredentials are the variables by which an agent may reach its model, with their values. Those of Anthropic have the
// form NAME_FILE too; the others are read by the SDKs of their clouds.
func (e *env) modelCredentials() map[string]string {
	out := map[string]string{
		"ANTHROPIC_API_KEY": e.secret("ANTHROPIC_API_KEY"), "ANTHROPIC_AUTH_TOKEN": e.secret("ANTHROPIC_AUTH_TOKEN"),
		"CLAUDE_CODE_OAUTH_TOKEN": e.secret("CLAUDE_CODE_OAUTH_TOKEN"),
	}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"} {
		out[name], _ = e.lookup(name)
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" || isPlaceholder(value) })
	return out
}

// agentNames are the variables that an agent gets where they are set; LC_ and what follows is among them too.
func agentNames() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"NODE_EXTRA_CA_CERTS", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
		"https_proxy", "no_proxy", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK",
		"CLAUDE_CODE_USE_VERTEX", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS",
		"AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
	}
}

// agentEnv is the agent's environment: an allowlist, what the operator adds by name, and switches of the CLI. A value that
// holds a secret of ours is refused, under whatever name.
func (e *env) agentEnv(c Config, problem func(string, ...any)) []string {
	values := map[string]string{"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
	names := agentNames()
	for _, name := range splitList(e.get("CLAUDEOPS_AGENT_ENV")) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || isOurs(name) {
			problem("CLAUDEOPS_AGENT_ENV names %s, which agents may not have", shown(name))
			continue
		}
		names = append(names, name)
	}
	credentials := e.modelCredentials()
	for _, name := range append(names, slices.Sorted(maps.Keys(credentials))...) {
		value, set := credentials[name]
		if !set {
			value, set = e.lookup(name)
		}
		if !set || isPlaceholder(value) {
			continue
		}
		for _, secret := range c.Secrets {
			if len(secret) >= minSecret && strings.Contains(value, secret) {
				problem("%s holds a secret of claudeops, and agents would see it; give the agent another value", name)
			}
		}
		values[name] = value
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}

// minSecret is the length in bytes from which a value is looked for in others.
const minSecret = 8

// isOurs reports whether a variable is one that claudeops reads.
func isOurs(name string) bool {
	for _, v := range ServerVariables() {
		if strings.EqualFold(v.Name, name) {
			return true
		}
	}
	return strings.HasPrefix(strings.ToUpper(name), "CLAUDEOPS_")
}

// serverEnv is the environment of the agent's MCP server: every variable that it reads, so that it inherits none. Files
// are named by absolute paths, since the agent works in another folder.
func (e *env) serverEnv(c Config) map[string]string {
	out := map[string]string{}
	for _, v := range ServerVariables() {
		value := e.get(v.Name)
		isFile := strings.HasSuffix(v.Name, "_FILE") || v.Name == "CLAUDEOPS_POLICY"
		if abs, err := filepath.Abs(value); isFile && value != "" && err == nil {
			value = abs
		}
		out[v.Name] = value
	}
	out["CLAUDEOPS_STATE_DIR"], out["CLAUDEOPS_LOCAL_ROOT"] = c.StateDir, c.LocalRoot
	out["CLAUDEOPS_REPOS_DIR"] = c.ReposDir
	if abs, err := filepath.Abs(c.ReposDir); err == nil {
		out["CLAUDEOPS_REPOS_DIR"] = abs
	}
	return out
}
