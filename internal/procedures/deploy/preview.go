package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Candidate is a commit that may come into a repository, such as the head of a pull request.
type Candidate struct {
	Provider string
	Owner    string
	Name     string
	Commit   string // 40 or 64 hexadecimal digits
}

// Preview lists what a deployment would change on this machine if a candidate replaced the present contents of its
// repository.
type Preview struct {
	Concerned bool // false: neither the configuration nor a module comes from the repository, and nothing else is said
	Plan      *change.Plan
	Files     []FileDiff // in the plan's order
	// Pending are the files that a deployment would change in the same way without the candidate.
	Pending  map[change.FileKey]bool
	Adopts   int // files that were there before, and that the deployment would replace
	Warnings []string
}

// Concerns reports whether the configuration, or one of its modules, comes from a repository: one that the operator has
// named (Settings.Repos), or, if none is named, the one whose address the checkout AGENTPACK_HOME/repo was cloned from,
// or that of a module. It reads the configuration and starts git once, at most.
func (s *Service) Concerns(ctx context.Context, provider, owner, name string) (bool, error) {
	if err := s.ready(); err != nil {
		return false, err
	}
	if own, err := s.configuration(ctx, provider, owner, name); own || err != nil {
		return own, err
	}
	config, err := loadConfig(s.setup.repo(""), true)
	switch e := errorOf(err); {
	case e != nil && e.Code == ConfigMissing:
		return false, nil
	case err != nil:
		return false, err
	}
	return len(modulesOf(config, owner, name)) > 0, nil
}

// configuration reports whether the configuration itself comes from a repository.
func (s *Service) configuration(ctx context.Context, provider, owner, name string) (bool, error) {
	if len(s.repos) == 0 {
		address, err := s.setup.Git.origin(ctx, s.setup.repo(""))
		return sameRepository(address, owner, name), err
	}
	full := strings.ToLower(owner + "/" + name)
	return slices.ContainsFunc(s.repos, func(named string) bool {
		named = strings.ToLower(named)
		return named == full || named == strings.ToLower(provider)+":"+full
	}), nil
}

// modulesOf returns the ids of modules that come from a repository, by the name at the end of their address.
func modulesOf(c *Config, owner, name string) (ids []string) {
	for _, m := range c.Modules {
		if m.Source.Git != nil && sameRepository(m.Source.Git.URL, owner, name) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// sameRepository reports whether an address of git ends with the name of a repository, small and capital letters aside.
func sameRepository(address, owner, name string) bool {
	home, err := homeOf(address)
	return err == nil && strings.EqualFold(home.Owner, owner) &&
		strings.EqualFold(home.Name, strings.TrimSuffix(name, ".git"))
}

// Preview says what a deployment would change with a candidate. It changes no target, and fetches from no address that
// the configuration in place does not have: what is proposed may name any. Errors are those of Plan, and E_GIT_FAILED
// if the commit cannot be had.
func (s *Service) Preview(ctx context.Context, c Candidate) (p Preview, err error) {
	if p.Concerned, err = s.Concerns(ctx, c.Provider, c.Owner, c.Name); err != nil || !p.Concerned {
		return p, faulted(err)
	}
	from, warnings, err := s.candidate(ctx, c)
	if err != nil {
		return p, faultOf(err)
	}
	d, err := s.setup.desire(ctx, Request{}, from)
	if err != nil {
		return p, faultOf(err)
	}
	if p.Plan, err = s.engine.Plan(ctx, d); err != nil {
		return p, faultOf(err)
	}
	if p.Files, p.Warnings, err = Diff(p.Plan); err != nil {
		return p, faultOf(err)
	}
	p.Adopts = len(p.Plan.Adopted())
	p.Warnings = slices.Concat(warnings, p.Plan.Warnings, p.Warnings)
	p.Pending = s.pending(ctx, p.Plan)
	return p, nil
}

// faulted is faultOf for an error that may be nil.
func faulted(err error) error {
	if err == nil {
		return nil
	}
	return faultOf(err)
}

// pending returns the files that a deployment changes already as a plan does.
func (s *Service) pending(ctx context.Context, with *change.Plan) map[change.FileKey]bool {
	now, err := s.Plan(ctx, Request{})
	if err != nil {
		return nil // the page of deployments says why
	}
	after := map[change.FileKey]string{}
	for _, c := range now.Changes {
		after[change.FileKey{Target: c.Target, Path: c.Path}] = string(c.Op) + c.Content().SHA256()
	}
	out := map[change.FileKey]bool{}
	for _, c := range with.Changes {
		key := change.FileKey{Target: c.Target, Path: c.Path}
		out[key] = after[key] == string(c.Op)+c.Content().SHA256()
	}
	maps.DeleteFunc(out, func(_ change.FileKey, same bool) bool { return !same })
	return out
}

// candidate returns the reading of the configuration if the candidate is part of it.
func (s *Service) candidate(ctx context.Context, c Candidate) (from reading, warnings []string, err error) {
	if !isCommit(c.Commit) {
		return from, nil, change.NewError(GitFailed, "git_failed", []string{"retry_command"},
			"it is not known which commit is the head of the pull request")
	}
	repo := s.setup.repo("")
	current, err := loadConfig(repo, true)
	if err != nil {
		return from, nil, err
	}
	from = reading{repo: repo, dir: repo, trusted: true, hashes: s.engine.Hashes}
	own, err := s.configuration(ctx, c.Provider, c.Owner, c.Name)
	if err != nil {
		return from, nil, err
	}
	if own {
		address := s.setup.Origin(ctx, repo)
		if address == "" {
			address = repo
		}
		if from.dir, err = s.setup.Git.Folder(ctx, (&GitSource{URL: address, Ref: c.Commit}).operators(),
			c.Commit); err != nil {
			return from, nil, err
		}
		proposed, err := LoadConfig(from.dir)
		if err != nil {
			return from, nil, err
		}
		from.choose = s.setup.chooseOf(current)
		for _, m := range proposed.Modules {
			if m.Source.Git == nil {
				continue
			}
			if _, err := from.choose(m); err != nil {
				return from, nil, err
			}
		}
		from.trusted = proposed.Targets[Codex].Options["codex_home"] == current.Targets[Codex].Options["codex_home"]
	}
	from.commit = func(g *GitSource) string {
		if sameRepository(g.URL, c.Owner, c.Name) {
			return c.Commit
		}
		return ""
	}
	lock, err := readLock(from.dir, from.own())
	if err != nil {
		return from, nil, err
	}
	for _, m := range current.Modules {
		if m.Source.Git != nil && sameRepository(m.Source.Git.URL, c.Owner, c.Name) && lock.commit(m) != "" {
			warnings = append(warnings,
				fmt.Sprintf("the module %s is pinned by %s to the commit %.12s: it changes when the lock file does", m.ID, lockName,
					lock.commit(m)))
		}
	}
	return from, warnings, nil
}

// chooseOf returns how a proposed configuration chooses sources: among the addresses that the one in place has, and
// those that the operator has admitted.
func (s Setup) chooseOf(current *Config) func(Module) (*GitSource, error) {
	known := map[string]bool{}
	for _, m := range current.Modules {
		if m.Source.Git != nil {
			known[m.Source.Git.URL] = true
		}
	}
	return func(m Module) (*GitSource, error) {
		if known[m.Source.Git.URL] {
			return m.Source.Git.operators(), nil // as the configuration in place, which is the operator's
		}
		chosen, err := s.choose(m)
		if err != nil {
			err = notNamed(m.Source.Git.URL,
				"the module %s comes from %s, which neither the configuration in place uses nor the operator has admitted; "+
					"nothing is fetched from there before the pull request is merged, so that what it would change is not known", m.ID,
				change.Short(m.Source.Git.URL)).
				With("module_id", m.ID).With("url", m.Source.Git.URL)
		}
		return chosen, err
	}
}
