package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

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
		fmt.Fprintf(&w, "The policy: at most %s in one pull request of your tier.\n", plural.Files(rules.Tiers.MaxFiles(tier)))
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
