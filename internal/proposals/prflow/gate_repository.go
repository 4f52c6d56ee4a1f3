package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// repositoryGate denies repositories and base branches that the operator does not allow. It notes what the change does
// to where later proposals go; see manifestNote.
func repositoryGate() gate {
	return gate{
		Name: record.GateRepository, Phase: phaseRepository,
		Asks:  "whether a provider serves the repository, and the operator allows it and the base branch",
		Judge: judgeRepository,
	}
}

func judgeRepository(_ context.Context, on rules, r *request, e *evidence) (ruling, error) {
	if e.unresolved != nil {
		v := fault.Violation{
			Code: e.unresolved.Code, Rule: "provider", Message: e.unresolved.Message,
			Final: e.unresolved.Code != fault.ProviderUnresolved,
		}
		return ruling{violations: []fault.Violation{v}}, nil
	}
	provider, snapshot := e.resolution.Provider, e.snapshot
	if provider == nil {
		return ruling{skipped: true}, nil
	}
	if v := notListed(on.Policy, provider.Name(), e.resolution.Repo); v != nil {
		return ruling{violations: []fault.Violation{*v}}, nil
	}
	if snapshot == nil {
		return ruling{skipped: true}, nil
	}
	out := ruling{
		violations: checkBase(on.Policy, provider.Name(), snapshot, e.resolution.BaseBranch),
		detail:     provider.Name() + ":" + snapshot.Repo.String() + ", settled by " + e.resolution.Via,
	}
	if rev := e.revision; rev != nil && rev.why != nil && rev.why.Rule == ruleTarget { // which says it better
		out.violations = slices.DeleteFunc(out.violations, isAboutBase)
	}
	if note := manifestNote(on.Policy, snapshot, r.inScope(on.Policy.Scope.At(on.Tier))); note != "" {
		out.warnings = []string{on.secrets.Redact(note)}
	}
	return out, nil
}

// checkBase says which branch may be targeted, and whether anything may be.
func checkBase(p policy.Policy, provider string, snap *gitprovider.Snapshot, manifestBase string) []fault.Violation {
	var out []fault.Violation
	if v := notListed(p, provider, snap.Repo); v != nil {
		out = append(out, *v) // the host knows the repository by another name than the one asked for
	}
	if snap.Archived {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "archived", Final: true,
			Message:    fmt.Sprintf("the repository %s is archived and takes no changes", snap.Repo),
			Suggestion: "ask a person which repository took its place",
		})
	}
	if snap.Fork && !p.Targets.AllowForks {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "allow_forks", Final: true,
			Message:    fmt.Sprintf("the repository %s is a fork", snap.Repo),
			Suggestion: "propose to the repository that it was forked from, or ask the operator to set allow_forks in the policy",
		})
	}
	if strings.HasPrefix(snap.Base, gitprovider.BranchPrefix) {
		return append(out, baseDenied(snap.Base, "is a branch of another proposal", snap.DefaultBranch))
	}
	pin, pinned := p.PinFor(snap.Repo.Owner, snap.Repo.Name)
	if pinned {
		out = append(out, pinViolations(pin, provider, snap)...)
	}
	if pin.BaseBranch == "" && !p.AllowsBase(snap.Base, snap.DefaultBranch, manifestBase) {
		out = append(out, baseDenied(snap.Base, "may not be targeted under the operator's policy", snap.DefaultBranch))
	}
	return out
}

// pinViolations holds what is asked for against what the policy pins for the repository, as the host knows it: neither
// a manifest nor a clone URL, another name of the repository nor the record of a dry run leads past a pin.
func pinViolations(pin policy.RepoPin, provider string, snap *gitprovider.Snapshot) (out []fault.Violation) {
	if pin.Provider != "" && pin.Provider != provider {
		out = append(out, fault.Violation{
			Code: fault.RepoNotAllowed, Rule: "pins", Final: true,
			Message: fmt.Sprintf("the operator's policy pins the repository %s to the provider %s, not %s", snap.Repo,
				pin.Provider, provider),
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
