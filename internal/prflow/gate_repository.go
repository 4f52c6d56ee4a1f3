package prflow

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
)

// resolveTarget finds the provider of the repository that is to be changed.
func (c *creation) resolveTarget() (gitprovider.Resolution, error) {
	if c.pinned != "" {
		return c.Registry.ResolveAt(c.pinned, c.repo)
	}
	return c.Registry.Resolve(c.repo)
}

// repoViolation is the part of gate 6 that needs no call: the operator's allowlist.
func (s *Service) repoViolation(res gitprovider.Resolution) *fault.Violation {
	if _, ok := s.Policy.AllowsRepo(res.Provider.Name(), res.Repo.Owner, res.Repo.Name); ok {
		return nil
	}
	var allowed []string
	for _, r := range s.Policy.AllRepositories() {
		allowed = append(allowed, r.String())
	}
	return &fault.Violation{
		Code: fault.RepoNotAllowed, Rule: "repositories",
		Message: fmt.Sprintf("the repository %s at %s is not on the operator's list (%s)",
			res.Repo, res.Provider.Name(), strings.Join(allowed, ", ")),
		Suggestion: "use a repository on the list, or ask the operator to add this one",
	}
}

// checkBase is the part of gate 6 that needs the snapshot: which branch may be targeted, and whether anything may be.
func (s *Service) checkBase(
	provider gitprovider.Provider, snap *gitprovider.Snapshot, manifestBase string,
) []fault.Violation {
	var out []fault.Violation
	if v := s.repoViolation(gitprovider.Resolution{Provider: provider, Repo: snap.Repo}); v != nil {
		out = append(out, *v) // the host knows the repository by another name than the one asked for
	}
	if snap.Archived {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "archived",
			Message:    fmt.Sprintf("the repository %s is archived and takes no changes", snap.Repo),
			Suggestion: "ask a person which repository took its place",
		})
	}
	if snap.Fork && !s.Policy.Targets.AllowForks {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "allow_forks",
			Message:    fmt.Sprintf("the repository %s is a fork", snap.Repo),
			Suggestion: "propose to the repository that it was forked from, or ask the operator to set allow_forks in the policy",
		})
	}
	if strings.HasPrefix(snap.Base, gitprovider.BranchPrefix) {
		return append(out, baseDenied(snap.Base, "is a branch of another proposal", snap.DefaultBranch))
	}
	pin, pinned := s.Policy.PinFor(snap.Repo.Owner, snap.Repo.Name)
	if pinned {
		out = append(out, pinViolations(pin, provider.Name(), snap)...)
	}
	if pin.BaseBranch == "" && !s.Policy.AllowsBase(snap.Base, snap.DefaultBranch, manifestBase) {
		out = append(out, baseDenied(snap.Base, "may not be targeted under the operator's policy", snap.DefaultBranch))
	}
	return out
}

// pinViolations holds what is asked for against what the policy pins for the repository, as the host knows it: neither a manifest
// nor a clone URL, another name of the repository nor the record of a dry run leads past a pin.
func pinViolations(pin policy.RepoPin, provider string, snap *gitprovider.Snapshot) (out []fault.Violation) {
	if pin.Provider != "" && pin.Provider != provider {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "pins",
			Message:    fmt.Sprintf("the operator's policy pins the repository %s to the provider %s, not %s", snap.Repo, pin.Provider, provider),
			Suggestion: "propose it at that provider, or ask the operator",
		})
	}
	if pin.BaseBranch != "" && pin.BaseBranch != snap.Base {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Path: "base_branch", Rule: "pins",
			Message: fmt.Sprintf("the operator's policy pins the repository %s to the base branch %s, not %s", snap.Repo,
				quote(pin.BaseBranch), quote(snap.Base)),
			Suggestion: "leave base_branch out",
		})
	}
	return out
}

func baseDenied(base, why, defaultBranch string) fault.Violation {
	return fault.Violation{
		Code: fault.RepoNotAllowed, Path: "base_branch", Rule: "base_branches",
		Message:    fmt.Sprintf("the base branch %s %s", quote(base), why),
		Suggestion: "leave base_branch out for the default branch " + defaultBranch,
	}
}
