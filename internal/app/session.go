package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	claudeops "github.com/claudeops/claudeops"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

// NewAgentSessions makes what people do with sessions of agents, with the schedule that is configured. An error is one
// of this machine's: without an interval there is none before the first session.
func NewAgentSessions(p *Parts) (*session.Service, error) {
	s := &session.Service{MaxTier: p.Cfg.Sessions.MaxTier, Supervisor: p.supervisor, Missing: NewDoctor(p).NoSession}
	if p.Cfg.Sessions.Schedule.Cadence.IsZero() {
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
		Cadence: p.Cfg.Sessions.Schedule.Cadence, Supervisor: supervisor, Records: p.Store.AgentSessions, Now: p.Store.Now,
		After: time.After, Log: p.Log,
		// the schedule has the error in the log
		Refused: func(ctx context.Context, why error) { _ = refusedStart(ctx, p, scheduleActor(), why) },
	})
	return s, nil
}

// servedSessions is NewAgentSessions for a server, which must be able to keep its schedule.
func servedSessions(ctx context.Context, p *Parts) (*session.Service, error) {
	s, err := NewAgentSessions(p)
	if err != nil {
		return nil, err
	}
	return s, refuseExposedSchedule(ctx, p, s)
}

// refuseExposedSchedule refuses to serve a schedule whose sessions could not start, since files of ours are open to
// agents, or an administrator keeps their MCP server from them. The audit has it.
func refuseExposedSchedule(ctx context.Context, p *Parts, s *session.Service) error {
	if s.Schedule == nil {
		return nil
	}
	if why := cmp.Or(exposedToAgents(p), managedServers()); why != "" {
		return refusedStart(ctx, p, scheduleActor(), fault.New(fault.Misconfigured,
			"sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start: %s", why))
	}
	return nil
}

func scheduleActor() record.Actor {
	return record.Actor{Door: record.DoorPoll, System: record.SystemSchedule}
}

// refusedStart records that a session which nobody asked for was refused: one of the schedule, or of a hook.
func refusedStart(ctx context.Context, p *Parts, who record.Actor, why error) error {
	start := ActNamed(newSessionActs(func() *Parts { return p }).Operations(), session.ActStart)
	return start.Reject(ctx, operation.Call{Caller: operation.Caller{Actor: who}}, why)
}

func newSessionActs(p func() *Parts) session.Acts {
	return session.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Audit: func() operation.Audit { return p().Store.Ledger },
		Runs: func() (session.Runs, error) { return p().supervisor() },
	}
}

// newRunHooks makes what starts sessions for other programs.
func newRunHooks(p *Parts) *session.Hooks {
	return &session.Hooks{
		Policy: p.Rules.Effective, Runs: func() (session.Runs, error) { return p.supervisor() },
		Store: p.Store.AgentSessions, Now: p.Store.Now, NewID: NewID,
		Refused: func(ctx context.Context, hook record.Actor, why error) error { return refusedStart(ctx, p, hook, why) },
		Issues:  func(provider string) (gitprovider.IssueReader, error) { return issueReader(p, provider) },
		ForgePerson: func(provider string, who gitprovider.IssueAccount) *record.Person {
			return forgePerson(p, provider, who)
		},
		IssueAddress: func(provider string, repo gitprovider.RepoRef, number int) string {
			return fmt.Sprintf("%s/issues/%d", registered(p, provider).CloneURL(repo.Owner, repo.Name), number)
		},
	}
}

// registered returns a provider's entry; the zero value if there is none.
func registered(p *Parts, provider string) gitprovider.Registration {
	entries := p.Providers.registry.Entries()
	at := slices.IndexFunc(entries, func(e gitprovider.Registration) bool { return e.Name == provider })
	if at < 0 {
		return gitprovider.Registration{}
	}
	return entries[at]
}

func issueReader(p *Parts, provider string) (gitprovider.IssueReader, error) {
	entry := registered(p, provider)
	reader, reads := entry.Provider.(gitprovider.IssueReader)
	if !reads {
		return nil, fault.New(fault.ProviderDisabled, "the provider %s cannot be asked about issues; "+
			"`claudeops doctor` says what is missing", provider)
	}
	return reader, nil
}

// forgePerson returns an account of a forge as a person: the one who signs in with it, if people do so here.
func forgePerson(p *Parts, provider string, who gitprovider.IssueAccount) *record.Person {
	entry := registered(p, provider)
	person := &record.Person{Issuer: strings.TrimSuffix(entry.CloneURL("", ""), "//"), Name: provider + ":" + who.Login,
		Subject: strconv.FormatInt(who.ID, 10), Forge: true}
	for _, known := range p.identities {
		if strings.EqualFold(strings.TrimRight(known.Issuer(), "/"), person.Issuer) {
			person.Issuer, person.Name = known.Issuer(), known.Name()+":"+who.Login
		}
	}
	return person
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
	s.Paused = func(ctx context.Context) error { return p.Store.Pauses().Paused(ctx, "", "") }
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

// existingToolsets returns the existing toolsets of a list; the MCP server serves no others.
func existingToolsets(toolsets []string) []string {
	there := new(App).toolsetNames()
	return slices.DeleteFunc(slices.Clone(toolsets), func(name string) bool { return !slices.Contains(there, name) })
}

// sessionOffers returns the mounted repositories' additions to a session that starts now.
func sessionOffers(cfg config.Config) session.Offering {
	offers := config.Repos{Dir: cfg.Mounted.Dir}.Offers()
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

// Bounds of what is read of pull requests before a session.
const (
	recentPulls     = 14 * 24 * time.Hour // how long sessions read about those that have ended
	mostPulls       = 20
	mostPullsRead   = 10 // of which the provider is asked
	pullsTime       = 20 * time.Second
	pullsSideBySide = 4
	mostToAnswer    = 3        // of which files and difference are shown
	toAnswerRoom    = 32 << 10 // bytes of JSON, for each
)

// sessionPulls implements session.Pulls: pull requests as the records have them, with what their providers say now.
type sessionPulls struct {
	store *store.Store
	flow  *prflow.Service
	now   func() time.Time
}

func newSessionPulls(p *Parts) sessionPulls {
	return sessionPulls{p.Store.Store, p.Flow, time.Now}
}

// Recent implements session.Pulls.
func (s sessionPulls) Recent(ctx context.Context, tier gitprovider.Tier) ([]session.Pull, error) {
	records, err := s.store.Pulls.RecentPulls(ctx, s.now().Add(-recentPulls), mostPulls)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pullsTime)
	defer cancel()
	pulls := make([]session.Pull, len(records))
	var reads sync.WaitGroup
	turns := make(chan struct{}, pullsSideBySide)
	var toAnswer atomic.Int32
	for i, r := range records {
		pulls[i].PullRecord = r
		if i >= mostPullsRead {
			pulls[i].Unread = "too many pull requests to read them all"
			continue
		}
		reads.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			s.loadPull(ctx, &pulls[i], tier, &toAnswer)
		})
	}
	reads.Wait()
	return pulls, nil
}

// loadPull adds what the provider says now, and of one whose review waits for an answer what is needed to answer it.
func (s sessionPulls) loadPull(ctx context.Context, p *session.Pull, tier gitprovider.Tier, toAnswer *atomic.Int32) {
	status, err := s.flow.Reader().StatusAt(ctx, p.Provider, p.Owner, p.Repo, p.Number)
	if err != nil {
		p.Unread = fault.From(err).Message
		return
	}
	if p.State = status.State; !status.ClosedAt.IsZero() {
		p.EndedAt = status.ClosedAt
	}
	p.Title, p.URL, p.Checks, p.Reviews = status.Title, status.URL, status.Checks.State, status.Reviews
	asks := len(status.Reviews) > 0 || status.Checks.State == gitprovider.ChecksFailure
	if !asks || toAnswer.Load() >= mostToAnswer {
		return
	}
	asked, err := s.flow.ToAnswer(ctx, tier, p.PullKey, status, toAnswerRoom)
	if err != nil || asked == nil || toAnswer.Add(1) > mostToAnswer {
		return // the agent can still ask for it; the log has the error
	}
	if text, err := json.Marshal(asked); err == nil {
		p.ToAnswer = text
	}
}

// OfSessions implements session.Pulls.
func (s sessionPulls) OfSessions(ctx context.Context, ids []string) (map[record.PullKey]time.Time, error) {
	out := map[record.PullKey]time.Time{}
	for _, id := range ids {
		attempts, err := s.store.History.Attempts(ctx, record.AttemptQuery{Session: id, Limit: record.MaxAttemptLimit})
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			if key := a.PullKey(); a.PRNumber > 0 && a.Time.After(out[key]) {
				out[key] = a.Time
			}
		}
	}
	return out, nil
}

// rulesForAgents says what the policy lets agents of a tier propose, for the first message of a session.
func rulesForAgents(p *Parts, tier gitprovider.Tier) string {
	now := p.Rules.Now()
	if why := now.noProposals(); why != "" {
		return "Nothing can be proposed: " + why + ".\n"
	}
	var w strings.Builder
	rules := now.Policy
	if tier == gitprovider.TierObserve {
		w.WriteString("Your tier may not propose. For higher tiers the policy is this:\n")
	} else {
		fmt.Fprintf(&w, "The policy: at most %s in one pull request of your tier.\n", fault.CountFiles(rules.Tiers.MaxFiles(tier)))
	}
	caps := rules.CapsFor(max(tier, gitprovider.TierInvestigate))
	fmt.Fprintf(&w, "Files that may be proposed: %s.\n", strings.Join(rules.Scope.Allow(), ", "))
	fmt.Fprintf(&w, "Repositories: %s. Base branches: %s.\n",
		OrAll(rules.View().Repositories, "every one that a provider serves"),
		OrAll(rules.Targets.BaseBranches, "the default branch"))
	fmt.Fprintf(&w, "At most %d open pull requests a repository, %d opened an hour.", caps.OpenPRs, caps.CreationsPerHour)
	if rest := rules.Limits.Cooldown; rest > 0 {
		fmt.Fprintf(&w, " A change that a person has closed rests %s.",
			strings.TrimSuffix(rest.Round(time.Minute).String(), "0m0s"))
	}
	if sections := rules.Text.RequiredSections; len(sections) > 0 {
		fmt.Fprintf(&w, " A body must have the sections %s.", strings.Join(sections, ", "))
	}
	w.WriteString("\n")
	return w.String()
}

// OrAll returns the list as one text, or what stands for an empty one.
func OrAll(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

// newCheckouts makes what brings mounted working copies up to date; nil if the operator does not want that.
func newCheckouts(a *App, p *Parts) func(context.Context) []session.CheckoutState {
	if !p.Cfg.Mounted.Update {
		return nil
	}
	copies := config.Repos{Dir: p.Cfg.Mounted.Dir}
	u := &session.CheckoutUpdater{
		Dir: resolvedPath(p.Cfg.Mounted.Dir), Git: &git.Runner{Env: deploy.GitEnvironment(a.Options().Environment),
			Reaped: true}, DryRun: func() bool { return p.Rules.Now().DryRun.On },
		Folders: func() (folders []string) {
			for _, r := range copies.Offers().Repositories {
				folders = append(folders, r.Folder)
			}
			return folders
		},
		Remote: func(address string) (git.Remote, error) { return RemoteOf(a, p, address) },
		Redact: p.Scanner.Redact,
	}
	return u.Update
}

// RemoteOf returns the repository that a working copy's address leads to: one of a provider, which is asked with the
// provider's own token at the provider's own address, or one below a source that the operator has named.
func RemoteOf(a *App, p *Parts, address string) (git.Remote, error) {
	if parsed, err := gitprovider.ParseRemote(address); err == nil {
		for _, entry := range p.Providers.registry.Entries() {
			if entry.Provider != nil && slices.Contains(entry.Hosts, parsed.Host) && parsed.Host != gitprovider.HostLocal {
				return git.Remote{URL: trust.Said(repositoryAt(entry.Base, parsed.Path)), Exact: true,
					Token: forgeToken(p, entry.Name)}, nil
			}
		}
	}
	allowed := p.sources()
	if root := p.Cfg.Forges.LocalRoot; root != "" {
		allowed = append(allowed,
			sources.Source{Origin: (&url.URL{Scheme: "file", Path: strings.TrimRight(root, "/")}).String(), Private: true})
	}
	chosen, source, ok := allowed.Pick(trust.Project[string]{Data: address})
	if !ok {
		return git.Remote{}, errors.New(strings.Replace(sources.Refusal(address), "a file of the project",
			"its configuration", 1))
	}
	remote := git.Remote{URL: chosen, Exact: true, Public: !source.Private}
	if source.TokenEnv != "" {
		remote.Token = a.registryToken(p, source.TokenEnv)
	}
	return remote, nil
}

// repositoryAt returns the address of a repository at a provider. path is that of a clone URL: an address over http
// begins with the path of the provider, one over ssh does not.
func repositoryAt(base, path string) string {
	if u, err := url.Parse(base); err == nil {
		path = strings.TrimPrefix(path, strings.TrimPrefix(u.Path, "/")+"/")
	}
	return base + "/" + path
}

// forgeToken returns the token of a provider; "" for one that acts in the name of an app.
func forgeToken(p *Parts, name string) string {
	for _, f := range p.Cfg.Forges.All {
		if f.Driver.Name == name && f.App == nil && f.Token.Text != "" {
			return f.Token.Source(func(token string) func() { return p.Scanner.Learn(token) }).Value()
		}
	}
	return ""
}
