package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// PolicyAnswer describes the rules of this server.
type PolicyAnswer struct {
	Tier     int         `json:"tier" doc:"Of this server; a token may have a lower one"`
	DryRun   bool        `json:"dry_run"`
	ReadOnly string      `json:"read_only" doc:"Why no proposals are taken; empty if they are"`
	Policy   policy.View `json:"policy"`
}

func (h *status) showPolicy(context.Context, operation.Call, struct{}) (PolicyAnswer, error) {
	p, err := h.policy()
	now := h.settings.Rules()
	return PolicyAnswer{Tier: int(h.settings.Tier), DryRun: now.DryRun, ReadOnly: now.ReadOnly,
		Policy: p.View()}, err
}

// CheckRequest asks the policy about paths.
type CheckRequest struct {
	Paths []string `json:"paths" required:"true" minItems:"1" maxItems:"100"`
	Tier  int      `json:"tier,omitempty" minimum:"1" maximum:"3" doc:"Tier to ask about, 1 to 3; default: the caller's. It gives nothing."`
}

func (h *status) checkPolicy(_ context.Context, call operation.Call, in CheckRequest) (policy.CheckAnswer, error) {
	p, err := h.policy()
	if err != nil {
		return policy.CheckAnswer{}, err
	}
	tier := gitprovider.Tier(in.Tier)
	if tier == 0 {
		tier = min(h.settings.Tier, call.Ceiling)
	}
	return p.CheckPaths(tier, in.Paths), nil
}
