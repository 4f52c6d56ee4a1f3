package app

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// rules ask for the operator's rules as they are now, lowered to the rights of one connection. They hold no copy of a
// rule: each decision asks Now once and uses that answer throughout.
type rules struct {
	live *policy.Live
	// What a connection lowers, whatever the rules are; see lower.
	repos            []policy.RepoPattern // that the caller's token is for; empty: it names none
	reposProblem     string
	dryRun, readOnly bool
}

// Ruling is the operator's rules for one decision.
type Ruling struct {
	policy.Snapshot
	lowered bool // it is the connection that is read-only, and not the server
}

// fileKinds returns the kinds of files that a policy's scope.kinds can name: one line for each toolset that has some.
func fileKinds() []gitprovider.FileKind {
	return append(definitions.SkillFileKinds(),
		definitions.FileKind(),
		definitions.ClaudeFileKind(),
		packages.FileKind(),
		deploy.FileKind(),
	)
}

// NewRules makes what reads the operator's rules from the sources, again and again.
func NewRules(from func() (config.Sources, error), log *slog.Logger) rules {
	file := &policy.File{Kinds: fileKinds()}
	return rules{live: policy.NewLive(policy.LiveOptions{
		Read: func() policy.Reading { return readRules(from, file) },
		Changed: func(was, is policy.Snapshot) {
			switch {
			case is.Problem != "" && is.Problem != was.Problem:
				log.Error("the operator's rules cannot be read: nothing can be proposed and nobody signs in anew", "problem",
					is.Problem)
			case is.Problem == "" && was.Problem != "":
				log.Warn("the operator's rules can be read again", "policy", is.Hash)
			case is.Hash != was.Hash:
				log.Warn("the operator's rules have changed", "policy", is.Hash, "before", was.Hash)
			}
			if is.DryRun.On != was.DryRun.On || is.ReadOnly.On != was.ReadOnly.On {
				log.Warn("the switches have changed", "dry_run", is.DryRun.On, "read_only", is.ReadOnly.On)
			}
			logSwitches(log, is)
		},
		Now: time.Now,
	})}
}

// logSwitches says which places say false to a switch that others switch on.
func logSwitches(log *slog.Logger, s policy.Snapshot) {
	for _, on := range []policy.Switch{s.DryRun, s.ReadOnly} {
		if warning := on.Warning(); warning != "" {
			log.Warn(warning)
		}
	}
}

// withSwitches returns the warnings with what the policy adds to those of the switches: each switch has one, which
// names all of its places.
func (r Ruling) withSwitches(warnings []string, set config.Rules) []string {
	withoutPolicy := []string{set.DryRun.Warning(), set.ReadOnly.Warning()}
	out := slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return slices.Contains(withoutPolicy, w) })
	for _, on := range []policy.Switch{r.DryRun, r.ReadOnly} {
		if warning := on.Warning(); warning != "" {
			out = append(out, warning)
		}
	}
	return out
}

// readRules reads the rules once. This is the one place where what the sources and the policy say comes together.
func readRules(from func() (config.Sources, error), file *policy.File) policy.Reading {
	places, problem := from()
	set := config.LoadRules(places)
	out := policy.Reading{DryRun: set.DryRun, ReadOnly: set.ReadOnly, Problem: set.ReposProblem,
		ReposProblem: set.ReposProblem}
	read, err := file.Load(set.PolicyFile)
	if err != nil {
		read, out.Problem = policy.Default(), err.Error()
	}
	if problem != nil {
		out.Problem = problem.Error()
	}
	read.Targets.EnvRepositories = set.Repos
	out.Policy = read
	if on := read.Server.DryRun; on != nil {
		out.DryRun.Say("dry_run of "+read.Source, *on)
	}
	if on := read.Server.ReadOnly; on != nil {
		out.ReadOnly.Say("read_only of "+read.Source, *on)
	}
	return out
}

// Now returns the rules for one decision.
func (r rules) Now() Ruling {
	out := Ruling{Snapshot: r.live.Now()}
	out.lowered = r.readOnly && !out.ReadOnly.On
	if r.dryRun {
		out.DryRun.Say("the agent's token, or how it connects", true)
	}
	if r.readOnly {
		out.ReadOnly.Say("the agent's token, or how it connects", true)
	}
	out.Policy.Targets.CallersRepositories = r.repos
	if out.Problem == "" {
		out.Problem = r.reposProblem
	}
	return out
}

// lower returns the rules for a connection: only makes them stricter. repos are the repositories that a token names;
// none lowers nothing. What names no repository allows none.
func (r rules) lower(dryRun, readOnly bool, repos []string) rules {
	r.dryRun, r.readOnly = r.dryRun || dryRun, r.readOnly || readOnly
	r.repos = slices.Clone(r.repos)
	for _, name := range repos {
		pattern, err := policy.ParseRepoPattern(name)
		if err != nil { // it was checked when the token was made
			pattern = policy.RepoPattern{}
			r.reposProblem = "the token names a repository that cannot be understood; make another one"
		}
		r.repos = append(r.repos, pattern)
	}
	return r
}

// sources returns the places that files of projects may choose from: those of the policy, and those that persons have
// allowed by a command, as they are now. A list that cannot be read admits nothing; doctor says so.
func (p *Parts) sources() sources.List {
	allowed, err := p.AllowedSources().Load()
	if err != nil {
		p.Log.Error(err.Error())
	}
	return slices.Concat(p.Rules.Now().Policy.Server.Sources, allowed)
}

// AllowedSources returns the file of those that persons have allowed by a command.
func (p *Parts) AllowedSources() sources.File {
	if p.Cfg.Records.Dir == "" {
		return sources.File{}
	}
	return sources.File{Path: filepath.Join(p.Cfg.Records.Dir, "sources.yaml")}
}

// PolicyState says which rules hold, since when, and what is wrong with them; for health.
func (p *Parts) PolicyState() policy.State { return p.Rules.live.State() }

// Effective returns the policy as it is now, or why the one that is configured cannot be read.
func (r rules) Effective() (policy.Policy, error) {
	now := r.Now()
	if now.Problem != "" {
		return policy.Policy{}, fault.New(fault.Misconfigured, "%s", now.Problem)
	}
	return now.Policy, nil
}

// noWriting says why no tool may write, or "".
func (r Ruling) noWriting() string {
	switch {
	case r.Problem != "":
		return r.Problem + "; nothing is written until the operator corrects it"
	case r.ReadOnly.On:
		return r.isReadOnly()
	}
	return ""
}

// policyHash returns the hash of the policy for the records.
func (r Ruling) policyHash() string {
	if r.Problem != "" {
		return record.PolicyUnreadable
	}
	return r.Hash
}

// roleOf returns a person's role. While the rules cannot be read, everyone who had a role may only read.
func (r Ruling) roleOf(who policy.Known) policy.Role {
	role := r.Roles.RoleOf(who)
	if r.Problem != "" && role != "" {
		return policy.RoleViewer
	}
	return role
}

// nothingKept says why not even caches may be written, or "".
func (r Ruling) nothingKept() string {
	if why := r.noWriting(); why != "" || !r.DryRun.On {
		return why
	}
	return "this is a dry run"
}

// noProposals says why proposals are refused altogether, or "". A policy that cannot be read must not be replaced by
// a wider one, so it shuts the door; reading stays possible.
func (r Ruling) noProposals() string {
	switch {
	case r.Problem != "":
		return r.Problem + "; nothing can be proposed until the operator corrects it"
	case r.ReadOnly.On:
		return r.isReadOnly() + ": it lists and reads pull requests, and opens none"
	}
	return ""
}

// isReadOnly says who has said that nothing may be written.
func (r Ruling) isReadOnly() string {
	if r.lowered {
		return "this agent is read-only (by its token, or by how it connects)"
	}
	if !slices.ContainsFunc(r.ReadOnly.By, func(place string) bool { return strings.HasPrefix(place, "CLAUDEOPS_") }) {
		return "the server is read-only (read_only of the policy)"
	}
	return "the server is read-only (CLAUDEOPS_READ_ONLY)"
}
