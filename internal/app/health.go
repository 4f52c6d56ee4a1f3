package app

import (
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/system/confine"
)

// NewDoctorOf is NewDoctor for a command, which also looks at the servers that run.
func NewDoctorOf(p *Parts) *doctor.Doctor {
	d := NewDoctor(p)
	d.Rules.Servers = p.servers
	return d
}

// NewDoctor makes what looks once at everything that this process is configured with, by the rules as they are now.
func NewDoctor(p *Parts) *doctor.Doctor {
	now := p.Rules.Now()
	o := doctor.Options{
		Config: p.Cfg, Rules: doctor.Rules{Policy: now.Policy, ReadOnly: now.noProposals(), DryRun: now.DryRun,
			ReposProblem: now.ReposProblem}, Redact: p.Scanner.Redact,
		Records: p.Store, Audit: p.ComparedAudit(), Outbox: p.Store.Outbox, Registry: p.Providers.registry, Key: p.keyOfMarks,
		Notifying: p.notifier.Names(), Proposed: p.Store.History.Proposed,
		MergeMCP: func(offers mounted.Offers) (mcpconfig.Result, error) { return MergedMCP(p.Cfg, offers, nil, nil) },
	}
	o.Boundary = doctor.Boundary{
		Held: func() (confine.Boundary, error) {
			b, _, err := decideBoundary(p.Cfg)
			return b, err
		},
		Exposed: func() string { return exposedToAgents(p) },
		Scripts: func() []string { return placesOfScripts(p) },
	}
	for _, provider := range p.identities {
		o.SignIn = append(o.SignIn, provider)
	}
	if now.Problem != now.ReposProblem {
		o.Rules.Problem = now.Problem
	}
	if p.Providers.local != nil {
		o.Git = p.Providers.local
	}
	return doctor.New(o)
}
