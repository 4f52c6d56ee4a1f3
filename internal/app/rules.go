package app

import (
	"path/filepath"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// rules are the operator's, as far as they can be read.
type rules struct {
	Policy    policy.Policy // the default where the configured one cannot be read
	policyErr error
	allowed   config.Permissions
	lowered   bool // it is the connection that is read-only, and not the server
}

// fileKinds are the kinds of files that a policy's scope.kinds can name: one line for each toolset that has some.
func fileKinds() []gitprovider.FileKind {
	return []gitprovider.FileKind{
		definitions.FileKind(),
		definitions.ClaudeFileKind(),
		packages.FileKind(),
		deploy.FileKind(),
	}
}

// ReadRules reads the policy.
func ReadRules(c config.Permissions) rules {
	r := rules{allowed: c}
	if r.Policy, r.policyErr = policy.Load(c.PolicyFile, fileKinds()...); r.policyErr != nil {
		r.Policy = policy.Default()
	}
	r.Policy.Targets.EnvRepositories = c.Repos
	return r
}

// only lowers what is allowed to the repositories that a token names; none lowers nothing. What names no repository
// allows none.
func (r *rules) only(repos []string) {
	for _, name := range repos {
		pattern, err := policy.ParseRepoPattern(name)
		if err != nil { // it was checked when the token was made
			pattern = policy.RepoPattern{}
			r.allowed.ReposProblem = "the token names a repository that cannot be understood; make another one"
		}
		r.Policy.Targets.CallersRepositories = append(r.Policy.Targets.CallersRepositories, pattern)
	}
}

// sources are the places that files of projects may choose from: those of the policy, and those that persons have
// allowed by a command, as they are now. A list that cannot be read admits nothing; doctor says so.
func (p *Parts) sources() sources.List {
	allowed, err := p.AllowedSources().Load()
	if err != nil {
		p.Log.Error(err.Error())
	}
	return slices.Concat(p.Rules.Policy.Server.Sources, allowed)
}

// AllowedSources is the file of those that persons have allowed by a command.
func (p *Parts) AllowedSources() sources.File {
	if p.Cfg.Records.Dir == "" {
		return sources.File{}
	}
	return sources.File{Path: filepath.Join(p.Cfg.Records.Dir, "sources.yaml")}
}

// problem says why the rules cannot be known, or "".
func (r rules) problem() string {
	if r.policyErr != nil {
		return r.policyErr.Error()
	}
	return r.allowed.ReposProblem
}

// Effective is the policy, or why the one that is configured cannot be read.
func (r rules) Effective() (policy.Policy, error) {
	if problem := r.problem(); problem != "" {
		return policy.Policy{}, fault.Wrap(r.policyErr, fault.Misconfigured, "%s", problem)
	}
	return r.Policy, nil
}

// noWriting says why no tool may write, or "".
func (r rules) noWriting() string {
	switch {
	case r.problem() != "":
		return r.problem() + "; nothing is written until the operator corrects it"
	case r.allowed.ReadOnly:
		return r.isReadOnly()
	}
	return ""
}

// readOnly says why proposals are refused altogether, or "". A policy that cannot be read must not be replaced by
// a wider one, so it shuts the door; reading stays possible.
func (r rules) readOnly() string {
	switch {
	case r.problem() != "":
		return r.problem() + "; nothing can be proposed until the operator corrects it"
	case r.allowed.ReadOnly:
		return r.isReadOnly() + ": it lists and reads pull requests, and opens none"
	}
	return ""
}

// isReadOnly says who has said that nothing may be written.
func (r rules) isReadOnly() string {
	if r.lowered {
		return "this agent is read-only (by its token, or by how it connects)"
	}
	return "the server is read-only (CLAUDEOPS_READ_ONLY)"
}
