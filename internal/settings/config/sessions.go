package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/cadence"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Sessions are how agents are run. Problem names the variable that is malformed, "" if none is: an agent must not start
// on a guess of what it may do.
type Sessions struct {
	Binary     string
	PromptsDir string // "" for those of the binary
	MaxTier    gitprovider.Tier
	Models     map[gitprovider.Tier]string
	Limits     SessionLimits
	Tools      []AgentTool
	Env        []string          // the agent's environment, all of it, as NAME=value
	ServerEnv  map[string]string // what the agent's MCP server gets: our variables, secrets among them
	Toolsets   []string          // that agents get; never empty
	Schedule   Schedule
	Problem    string
}

// SessionLimits are the limits of one session.
type SessionLimits struct {
	Time    time.Duration
	Turns   int
	CostUSD float64 // 0: any
	// ScheduledUSD is the limit of cost of sessions that start by themselves, and of those that they hand over to; 0: any.
	ScheduledUSD float64
}

// Schedule says how often `claudeops serve` starts a session.
type Schedule struct {
	Cadence cadence.Cadence // the zero value is never
	Problem string          // why it cannot be known, "" if it can
}

// Defaults and bounds of a session.
const (
	DefaultClaude         = "claude" // the Claude CLI, looked for in PATH
	DefaultSessionTimeout = 30 * time.Minute
	maxSessionTimeout     = 24 * time.Hour
	DefaultMaxTurns       = 60
	maxMaxTurns           = 10000
	DefaultScheduledUSD   = 2.0
	maxMaxCost            = 10000
	noLimit               = "none"
)

func (e *env) sessionID() string {
	id := e.get("CLAUDEOPS_SESSION")
	if id != "" && !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(id) {
		e.warn("CLAUDEOPS_SESSION is not a session id: it is left out")
		return ""
	}
	return id
}

func (e *env) sessions(c Config) Sessions {
	s := Sessions{
		Binary: e.get("CLAUDEOPS_CLAUDE_BIN"), PromptsDir: absolute(e.get("CLAUDEOPS_PROMPTS_DIR")),
		MaxTier:   c.Permissions.Tier,
		ServerEnv: e.serverEnv(c), Toolsets: sessionToolsets(e), Schedule: e.schedule(),
		Problem: c.Permissions.Confinement.Problem,
	}
	if s.Binary == "" {
		s.Binary = DefaultClaude
	}
	if e.get("CLAUDEOPS_MAX_TIER") != "" {
		s.MaxTier = e.tier("CLAUDEOPS_MAX_TIER")
	}
	problem := func(format string, args ...any) {
		if s.Problem == "" {
			s.Problem = fmt.Sprintf(format, args...)
		}
	}
	s.Models = e.models(problem)
	s.Limits = e.sessionLimits(problem)
	s.Tools = e.agentTools(problem)
	s.Env = e.agentEnv(problem)
	return s
}

// sessionToolsets returns the toolsets that agents get, whatever the process that starts them has.
func sessionToolsets(e *env) []string {
	if named := splitList(e.get("CLAUDEOPS_SESSION_TOOLSETS")); len(named) > 0 {
		return named
	}
	return []string{"pr"}
}

func (e *env) models(problem func(string, ...any)) map[gitprovider.Tier]string {
	models := map[gitprovider.Tier]string{
		gitprovider.TierObserve: "haiku", gitprovider.TierInvestigate: "sonnet", gitprovider.TierRemediate: "opus",
	}
	for tier, model := range map[gitprovider.Tier]string{
		gitprovider.TierObserve: e.get("CLAUDEOPS_TIER1_MODEL"), gitprovider.TierInvestigate: e.get("CLAUDEOPS_TIER2_MODEL"),
		gitprovider.TierRemediate: e.get("CLAUDEOPS_TIER3_MODEL"),
	} {
		if model == "" {
			continue
		}
		models[tier] = model
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`).MatchString(model) {
			problem("CLAUDEOPS_TIER%s_MODEL is not a valid model name", tier)
		}
	}
	return models
}

func (e *env) sessionLimits(problem func(string, ...any)) SessionLimits {
	limits := SessionLimits{Time: DefaultSessionTimeout, Turns: DefaultMaxTurns, ScheduledUSD: DefaultScheduledUSD}
	if raw := e.get("CLAUDEOPS_SESSION_TIMEOUT"); raw != "" {
		d, err := time.ParseDuration(raw)
		if err != nil || d <= 0 || d > maxSessionTimeout {
			problem("CLAUDEOPS_SESSION_TIMEOUT is not a duration such as 30m, of at most 24h")
		}
		limits.Time = d
	}
	if raw := e.get("CLAUDEOPS_MAX_TURNS"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > maxMaxTurns {
			problem("CLAUDEOPS_MAX_TURNS is not a number from 1 to %d", maxMaxTurns)
		}
		limits.Turns = n
	}
	switch raw := e.get("CLAUDEOPS_MAX_COST_USD"); raw {
	case "":
	case noLimit:
		limits.ScheduledUSD = 0
	default:
		cost, err := strconv.ParseFloat(raw, 64)
		if err != nil || !(cost > 0 && cost <= maxMaxCost) {
			problem("CLAUDEOPS_MAX_COST_USD is neither an amount such as 2.50, of at most %d, nor none", maxMaxCost)
		}
		limits.CostUSD, limits.ScheduledUSD = cost, cost
	}
	return limits
}

// schedule reads when sessions start by themselves; unset or 0 means never. Unattended agents cost money and may change
// things, so a value that cannot be understood is a problem, not a guess.
func (e *env) schedule() Schedule {
	raw := e.get("CLAUDEOPS_INTERVAL")
	c, err := cadence.Parse(raw)
	if err != nil {
		return Schedule{Problem: fmt.Sprintf("CLAUDEOPS_INTERVAL is %s: %s", quoteShort(raw), err)}
	}
	return Schedule{Cadence: c}
}

// AgentTool is a permission of the Claude CLI, such as Bash(systemctl status *), from a tier upwards.
type AgentTool struct {
	From gitprovider.Tier
	Rule string
}

// agentTools reads CLAUDEOPS_AGENT_TOOLS: permissions separated by commas or line ends, each with a tier and a colon
// before it if it is for that tier and above only.
func (e *env) agentTools(problem func(string, ...any)) (out []AgentTool) {
	rule := regexp.MustCompile(`^(?:([123]):)?((?:Bash|WebFetch)\([^\r\n]+\)|mcp__[A-Za-z0-9_-]+(?:__\*)?)$`)
	for _, entry := range splitRules(e.get("CLAUDEOPS_AGENT_TOOLS")) {
		m := rule.FindStringSubmatch(entry)
		if m == nil {
			problem("CLAUDEOPS_AGENT_TOOLS holds %s, which is not a permission such as Bash(df *), 3:Bash(systemctl restart *) "+
				"or WebFetch(domain:example.org)", quoteShort(entry))
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

// AgentSecrets returns the variables by which the agent itself signs in. Servers that mounted repositories bring do not
// get them.
func AgentSecrets() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDEOPS_API_TOKENS",
		"CLAUDEOPS_API_TOKENS_FILE", "CLAUDEOPS_TOKEN", "CLAUDEOPS_TOKEN_FILE"}
}

// modelCredentials returns the variables by which an agent may reach its model, with their values. Those of Anthropic
// have the form NAME_FILE too; the others are read by the SDKs of their clouds.
func (e *env) modelCredentials() map[string]string {
	out := map[string]string{
		"ANTHROPIC_API_KEY": e.secret("ANTHROPIC_API_KEY"), "ANTHROPIC_AUTH_TOKEN": e.secret("ANTHROPIC_AUTH_TOKEN"),
		"CLAUDE_CODE_OAUTH_TOKEN": e.secret("CLAUDE_CODE_OAUTH_TOKEN"),
	}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"} {
		out[name], _ = e.lookup(name)
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" || isPlaceholder(value) })
	e.remember(slices.Sorted(maps.Values(out))...)
	return out
}

// agentNames returns the variables that an agent gets where they are set; LC_ and what follows is among them too.
func agentNames() []string {
	return append(HomeVariables(),
		"PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"NODE_EXTRA_CA_CERTS", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
		"https_proxy", "no_proxy", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK",
		"CLAUDE_CODE_USE_VERTEX", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS",
		"AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
	)
}

// agentEnv returns the agent's environment: an allowlist, what the operator adds by name, and switches of the CLI. A
// value that holds a secret of ours is refused, under whatever name.
func (e *env) agentEnv(problem func(string, ...any)) []string {
	ours := slices.Clone(e.secrets) // without the credentials for the model, which are read below
	values := map[string]string{"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
	names := agentNames()
	for _, name := range splitList(e.get("CLAUDEOPS_AGENT_ENV")) {
		if !isVariable(name) || e.isOurs(name) {
			problem("CLAUDEOPS_AGENT_ENV names %s, which agents may not have", quoteShort(name))
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
		if !set || value == "" || isPlaceholder(value) { // what compose hands on without a value is empty
			continue
		}
		for _, secret := range ours {
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
func (e *env) isOurs(name string) bool {
	for _, v := range ServerVariables(e.drivers) {
		if strings.EqualFold(v.Name, name) {
			return true
		}
	}
	return strings.HasPrefix(strings.ToUpper(name), "CLAUDEOPS_")
}

// serverEnv returns the environment of the agent's MCP server: every variable that it reads, so that it inherits none.
// Files are named by absolute paths, since the agent works in another folder.
func (e *env) serverEnv(c Config) map[string]string {
	out := map[string]string{}
	for _, v := range ServerVariables(e.drivers) {
		value := e.get(v.Name)
		if strings.HasSuffix(v.Name, "_FILE") || v.Name == "CLAUDEOPS_POLICY" {
			value = absolute(value)
		}
		out[v.Name] = value
	}
	// The server's own environment file may be another one; "" is unset there, and false would contradict it.
	for _, name := range []string{"CLAUDEOPS_DRY_RUN", "CLAUDEOPS_READ_ONLY"} {
		out[name] = ""
		if e.sources.Switch(name).On {
			out[name] = "true"
		}
	}
	out["CLAUDEOPS_STATE_DIR"], out["CLAUDEOPS_LOCAL_ROOT"] = c.Records.Dir, c.Forges.LocalRoot
	out["CLAUDEOPS_REPOS_DIR"] = absolute(c.Mounted.Dir)
	if toolsets := sessionToolsets(e); !slices.Equal(toolsets, []string{"pr"}) {
		toolsetEnv(e, toolsets, out)
	}
	return out
}

// toolsetEnv adds what a server needs that has more toolsets than that of pull requests.
func toolsetEnv(e *env, toolsets []string, out map[string]string) {
	out["CLAUDEOPS_TOOLSETS"], out["CLAUDEOPS_ALLOW_WRITE"] = strings.Join(toolsets, ","), e.get("CLAUDEOPS_ALLOW_WRITE")
	for _, v := range slices.Concat(definitionVariables(), deployVariables(), scriptVariables()) {
		out[v.Name] = e.get(v.Name)
		if v.Secret {
			out[v.Name+"_FILE"] = absolute(e.get(v.Name + "_FILE"))
		}
	}
}

// Variable reads the environment of agents' MCP servers: what those are given by name, and what agents have.
func (s Sessions) Variable(name string) (string, bool) {
	if value, has := s.ServerEnv[name]; has {
		return value, value != ""
	}
	for _, entry := range s.Env {
		if value, has := strings.CutPrefix(entry, name+"="); has {
			return value, true
		}
	}
	return "", false
}
