package config

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

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
	Interval time.Duration // 0 is never
	Problem  string        // why it cannot be known, "" if it can
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
	minInterval           = time.Minute
	maxInterval           = 7 * 24 * time.Hour
)

func (e *env) sessionID() string {
	id := e.get("CLAUDEOPS_SESSION")
	if id != "" && !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(id) {
		e.warn("CLAUDEOPS_SESSION is no id of a session: it is left out")
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
			problem("CLAUDEOPS_TIER%s_MODEL is no name of a model", tier)
		}
	}
	return models
}

func (e *env) sessionLimits(problem func(string, ...any)) SessionLimits {
	limits := SessionLimits{Time: DefaultSessionTimeout, Turns: DefaultMaxTurns, ScheduledUSD: DefaultScheduledUSD}
	if raw := e.get("CLAUDEOPS_SESSION_TIMEOUT"); raw != "" {
		d, err := time.ParseDuration(raw)
		if err != nil || d <= 0 || d > maxSessionTimeout {
			problem("CLAUDEOPS_SESSION_TIMEOUT is no time such as 30m, of at most 24h")
		}
		limits.Time = d
	}
	if raw := e.get("CLAUDEOPS_MAX_TURNS"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > maxMaxTurns {
			problem("CLAUDEOPS_MAX_TURNS is no number from 1 to %d", maxMaxTurns)
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

// schedule reads the interval at which sessions start by themselves; unset or 0 means never. Unattended agents cost
// money and may change things, so a value that cannot be understood is a problem, not a guess.
func (e *env) schedule() Schedule {
	raw := e.get("CLAUDEOPS_INTERVAL")
	if raw == "" {
		return Schedule{}
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d != 0 && (d < minInterval || d > maxInterval) {
		return Schedule{Problem: fmt.Sprintf(
			"CLAUDEOPS_INTERVAL is %s, which is neither 0 nor a time from 1m to 168h such as 1h", shown(raw))}
	}
	return Schedule{Interval: d}
}
