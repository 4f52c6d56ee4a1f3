package policy

import (
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// CheckAnswer says which paths may be proposed, and by which rule.
type CheckAnswer struct {
	Tier     int               `json:"tier"`
	Allowed  bool              `json:"allowed" doc:"The tier may propose all of them in one pull request, by path and number"`
	TierSays []fault.Violation `json:"tier_says" doc:"What speaks against it whatever the paths are"`
	Paths    []PathVerdict     `json:"paths"`
}

// PathVerdict is the answer for one path.
type PathVerdict struct {
	Path       string     `json:"path"`
	Allowed    bool       `json:"allowed"`
	Code       fault.Code `json:"code" doc:"Empty when allowed"`
	Rule       string     `json:"rule" doc:"The pattern that spoke, or canonical-path, not-in-allow-list, policy-file"`
	Message    string     `json:"message,omitempty"`
	Suggestion string     `json:"suggestion,omitempty"`
}

// CheckPaths says whether a tier may change the paths in one pull request, and by which rule.
func (p Policy) CheckPaths(tier gitprovider.Tier, paths []string) CheckAnswer {
	out := CheckAnswer{
		Tier: int(tier), TierSays: append([]fault.Violation{}, gitprovider.ValidateTier(p.Tiers, tier, len(paths))...),
		Paths: []PathVerdict{},
	}
	files, scope := make([]gitprovider.FileChange, len(paths)), p.Scope.At(tier)
	for i, path := range paths {
		files[i].Path = path
		v := scope.Check(path)
		verdict := PathVerdict{Path: path, Allowed: v.Allowed, Rule: v.Rule}
		if v.Reason != nil {
			verdict.Code, verdict.Message, verdict.Suggestion = v.Reason.Code, v.Reason.Message, v.Reason.Suggestion
		}
		out.Paths = append(out.Paths, verdict)
	}
	out.Allowed = len(out.TierSays) == 0 && len(gitprovider.ValidateScope(scope, files)) == 0
	return out
}
