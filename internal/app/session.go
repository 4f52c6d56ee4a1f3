package app

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	claudeops "github.com/claudeops/claudeops"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/system/files"
)

// NewAgentSessions makes what people do with sessions of agents, with the schedule that is configured. An error is one
// of this machine's: without an interval there is none before the first session.
func NewAgentSessions(p *Parts) (*session.Service, error) {
	s := &session.Service{MaxTier: p.Cfg.Sessions.MaxTier, Supervisor: p.supervisor, Missing: NewDoctor(p).NoSession}
	if p.Cfg.Sessions.Schedule.Interval == 0 {
		return s, nil
	}
	supervisor, err := s.Supervisor()
	if err != nil {
		return nil, err
	}
	for _, f := range NewDoctor(p).Agents() {
		if f.Status == doctor.Warning {
			p.Log.Warn("agents lack something", "what", f.Name, "detail", f.Told())
		}
	}
	s.Schedule = session.NewSchedule(session.ScheduleOptions{
		Every: p.Cfg.Sessions.Schedule.Interval, Supervisor: supervisor, Records: p.Store.AgentSessions, Now: p.Store.Now,
		After: time.After, Log: p.Log,
		// the schedule has the error in the log
		Refused: func(ctx context.Context, why error) { _ = refusedSchedule(ctx, p, why) },
	})
	return s, nil
}

// servedSessions is newAgentSessions for a server, which must be able to keep its schedule.
func servedSessions(ctx context.Context, p *Parts) (*session.Service, error) {
	s, err := NewAgentSessions(p)
	if err != nil {
		return nil, err
	}
	return s, refuseExposedSchedule(ctx, p, s)
}

// refuseExposedSchedule refuses to serve a schedule whose sessions could not start, since files of ours are open to
// agents. The audit has it.
func refuseExposedSchedule(ctx context.Context, p *Parts, s *session.Service) error {
	if s.Schedule == nil {
		return nil
	}
	if why := exposedToAgents(p); why != "" {
		return refusedSchedule(ctx, p, fault.New(fault.Misconfigured,
			"sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start: %s", why))
	}
	return nil
}

// refusedSchedule records that a session of the schedule was refused.
func refusedSchedule(ctx context.Context, p *Parts, why error) error {
	start := ActNamed(newSessionActs(func() *Parts { return p }).Operations(), session.ActStart)
	return start.Reject(ctx, operation.Call{Caller: operation.Caller{Actor: record.Actor{
		Door: record.DoorPoll, System: record.SystemSchedule}}}, why)
}

func newSessionActs(p func() *Parts) session.Acts {
	return session.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Audit: func() operation.Audit { return p().Store.Ledger },
		Runs: func() (session.Runs, error) { return p().supervisor() },
	}
}

// supervisor makes what runs sessions.
func newSupervisor(p *Parts) (*session.Supervisor, error) {
	settings, err := sessionSettings(p)
	if err != nil {
		return nil, err
	}
	return session.NewSupervisor(&session.Runner{
		Settings: settings, Records: p.Store.AgentSessions, Pulls: newSessionPulls(p), Journal: p.Store.AgentSessions,
		Secrets: p.Scanner, Now: p.Store.Now, NewID: NewID, Log: p.Log,
	}), nil
}

// sessionSettings turns configuration into the settings of sessions.
func sessionSettings(p *Parts) (session.Settings, error) {
	c := p.Cfg.Sessions
	binary, err := os.Executable()
	if err != nil {
		return session.Settings{}, err
	}
	binary = files.Resolve(binary)
	limits := session.DefaultLimits()
	limits.Time, limits.Turns = c.Limits.Time, c.Limits.Turns
	limits.CostUSD, limits.ScheduledUSD = c.Limits.CostUSD, c.Limits.ScheduledUSD
	s := session.Settings{
		Claude:  session.Claude{Binary: c.Binary, Models: c.Models, Env: c.Env},
		Server:  sessionServer(p, binary),
		Folders: session.Folders{Repos: resolvedPath(p.Cfg.Mounted.Dir), State: p.Cfg.Records.Dir},
		MaxTier: c.MaxTier, Limits: limits, DryRun: func() bool { return p.Rules.Now().DryRun.On }, Problem: c.Problem,
	}
	confineSessions(p, &s)
	s.Folders.Hidden = []string{"/run/secrets", resolvedPath(s.Folders.State)}
	if s.Folders.State == "" {
		s.Problem = p.Cfg.Records.Problem
	}
	if slices.Contains(s.Server.Toolsets, scripts.ToolsetName) {
		s.Server.Scripts = func(tier gitprovider.Tier) string {
			return p.Tools.scripts().List().Advice(OurName, int(tier), leastTier(p.Rules.Now().Policy))
		}
	}
	s.Update = p.update
	s.Offers = func() session.Offering { return sessionOffers(p.Cfg) }
	s.Rules = func(tier gitprovider.Tier) string { return rulesForAgents(p, tier) }
	for _, t := range c.Tools {
		s.Tools = append(s.Tools, session.ToolRule{From: t.From, Rule: t.Rule})
	}
	if s.Deny, err = denyRules(); err != nil {
		return s, err
	}
	if c.PromptsDir != "" {
		s.Claude.Prompts = files.FolderFS(c.PromptsDir)
		return s, nil
	}
	s.Claude.Prompts, err = fs.Sub(claudeops.Prompts, "prompts")
	return s, err
}

// serverCommand returns the command of a session's MCP server. Toolsets look at the folder that the session was started
// in, not at the agent's own, which is empty.
func serverCommand(binary string, toolsets []string) []string {
	command := []string{binary, "mcp-server"}
	folder, err := os.Getwd()
	if err != nil || slices.Equal(toolsets, []string{"pr"}) {
		return command
	}
	return append(command, "--folder", folder)
}

// known returns the existing toolsets of a list; the MCP server serves no others.
func known(toolsets []string) []string {
	there := ToolsetNames(new(App).Toolsets())
	return slices.DeleteFunc(slices.Clone(toolsets), func(name string) bool { return !slices.Contains(there, name) })
}

// sessionOffers returns the mounted repositories' additions to a session that starts now.
func sessionOffers(cfg config.Config) session.Offering {
	offers := mounted.Repos{Dir: cfg.Mounted.Dir}.Offers()
	out := session.Offering{Text: offers.Text(), Servers: map[string]json.RawMessage{}}
	merged, err := MergedMCP(cfg, offers, nil, nil) // the session writes our own entry itself
	if err != nil {
		out.Refused = append(out.Refused, "the MCP servers of mounted repositories are left out: "+err.Error())
		return out
	}
	for _, s := range merged.Servers {
		if s.From != "" {
			out.Servers[s.Name] = s.JSON
		}
	}
	for _, r := range merged.Refused {
		out.Refused = append(out.Refused, r.String())
	}
	return out
}

// resolvedPath returns an absolute path without links, as far as it exists: the CLI compares such paths with its rules.
func resolvedPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return files.Resolve(abs)
}

// denyRules returns the deny rules of the project's own settings of the CLI.
func denyRules() ([]string, error) {
	var settings struct {
		Permissions struct {
			Deny []string `json:"deny"`
		} `json:"permissions"`
	}
	err := json.Unmarshal(claudeops.AgentSettings, &settings)
	return settings.Permissions.Deny, err
}
