package web

import (
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/strictjson"
)

// PolicyAnswer is what holds on this server.
type PolicyAnswer struct {
	Tier     int         `json:"tier" doc:"Of this server; a token may have a lower one"`
	DryRun   bool        `json:"dry_run"`
	ReadOnly string      `json:"read_only" doc:"Why no proposals are taken; empty if they are"`
	Policy   policy.View `json:"policy"`
}

func (s *Server) showPolicy(*call) (answer, error) {
	p, err := s.Policy()
	return answer{value: PolicyAnswer{Tier: int(s.Tier), DryRun: s.DryRun, ReadOnly: s.ReadOnly, Policy: p.View()}}, err
}

// CheckRequest asks the policy about paths.
type CheckRequest struct {
	Paths []string `json:"paths" required:"true" maxItems:"100"`
	Tier  int      `json:"tier,omitempty" doc:"Tier to ask about, 1 to 3; default: the caller's. It gives nothing."`
}

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

func (s *Server) checkPolicy(c *call) (answer, error) {
	body, err := readBody(c, "application/json")
	if err != nil {
		return answer{}, err
	}
	var q CheckRequest
	violations := strictjson.Decode(body, &q, strictjson.Options{What: "body"})
	invalid := func(path, message string) {
		violations = append(violations, fault.Violation{Code: fault.InvalidArgument, Path: path, Message: message})
	}
	if len(violations) == 0 && len(q.Paths) == 0 {
		invalid("paths", "`paths` is empty")
	}
	if len(violations) == 0 && (q.Tier < 0 || q.Tier > int(gitprovider.TierRemediate)) {
		invalid("tier", "`tier` is 1, 2 or 3")
	}
	if len(violations) > 0 {
		return answer{}, &fault.Error{Code: fault.InvalidArgument, Message: violations[0].Message, Violations: violations}
	}
	p, err := s.Policy()
	if err != nil {
		return answer{}, err
	}
	tier := gitprovider.Tier(q.Tier)
	if q.Tier == 0 {
		tier = min(s.Tier, c.who.Ceiling)
	}
	return answer{value: checkPaths(p, tier, q.Paths)}, nil
}

func checkPaths(p policy.Policy, tier gitprovider.Tier, paths []string) CheckAnswer {
	out := CheckAnswer{
		Tier: int(tier), TierSays: append([]fault.Violation{}, gitprovider.ValidateTier(p.Tiers, tier, len(paths))...),
		Paths: []PathVerdict{},
	}
	files := make([]gitprovider.FileChange, len(paths))
	for i, path := range paths {
		files[i].Path = path
		v := p.Scope.Check(path)
		verdict := PathVerdict{Path: path, Allowed: v.Allowed, Rule: v.Rule}
		if v.Reason != nil {
			verdict.Code, verdict.Message, verdict.Suggestion = v.Reason.Code, v.Reason.Message, v.Reason.Suggestion
		}
		out.Paths = append(out.Paths, verdict)
	}
	out.Allowed = len(out.TierSays) == 0 && len(gitprovider.ValidateScope(p.Scope, files)) == 0
	return out
}
