package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ToolTier is the lowest tier that may call a tool of a toolset, where the policy raises it.
type ToolTier struct {
	Tool string           `json:"tool"`
	Tier gitprovider.Tier `json:"tier" doc:"The lowest tier that may call it: 2 or 3; a higher one of the tool itself holds all the same"`
}

type toolSection struct {
	Tiers map[string]int `yaml:"tiers"`
}

// tools raises the lowest tiers of tools. Tier 1 would raise nothing, so naming it counts as a mistake.
func (f file) tools(p *Policy) error {
	if f.Tools == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools.Tiers)) {
		tier := f.Tools.Tiers[name]
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("tools.tiers: a tool has no name")
		}
		if tier < int(gitprovider.TierInvestigate) || tier > int(gitprovider.TierRemediate) {
			return fmt.Errorf("tools.tiers.%s: %d is outside %d to %d", name, tier, gitprovider.TierInvestigate,
				gitprovider.TierRemediate)
		}
		p.Agents.ToolTiers = append(p.Agents.ToolTiers, ToolTier{name, gitprovider.Tier(tier)})
	}
	return nil
}

// LeastTier returns the lowest tier that the policy lets call a tool of a toolset; 0 if it says nothing about it.
func (p Policy) LeastTier(tool string) gitprovider.Tier {
	at := slices.IndexFunc(p.Agents.ToolTiers, func(t ToolTier) bool { return t.Tool == tool })
	if at < 0 {
		return 0
	}
	return p.Agents.ToolTiers[at].Tier
}

// sources sets the places that files of projects may choose from.
func (f file) sources(p *Policy) error {
	p.Server.Sources = f.Sources
	return p.Server.Sources.Check()
}
