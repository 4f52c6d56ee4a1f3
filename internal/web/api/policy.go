package api

import (
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/strictjson"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// PolicyAnswer is what holds on this server.
type PolicyAnswer struct {
	Tier     int         `json:"tier" doc:"Of this server; a token may have a lower one"`
	DryRun   bool        `json:"dry_run"`
	ReadOnly string      `json:"read_only" doc:"Why no proposals are taken; empty if they are"`
	Policy   policy.View `json:"policy"`
}

func (h *status) showPolicy(*handler.Request) (handler.Response, error) {
	p, err := h.policy()
	return handler.Response{Value: PolicyAnswer{Tier: int(h.settings.Tier), DryRun: h.settings.DryRun, ReadOnly: h.settings.ReadOnly, Policy: p.View()}}, err
}

// CheckRequest asks the policy about paths.
type CheckRequest struct {
	Paths []string `json:"paths" required:"true" maxItems:"100"`
	Tier  int      `json:"tier,omitempty" doc:"Tier to ask about, 1 to 3; default: the caller's. It gives nothing."`
}

func (h *status) checkPolicy(req *handler.Request) (handler.Response, error) {
	body, err := handler.ReadBody(req, "application/json")
	if err != nil {
		return handler.Response{}, err
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
		return handler.Response{}, &fault.Error{Code: fault.InvalidArgument, Message: violations[0].Message, Violations: violations}
	}
	p, err := h.policy()
	if err != nil {
		return handler.Response{}, err
	}
	tier := gitprovider.Tier(q.Tier)
	if q.Tier == 0 {
		tier = min(h.settings.Tier, req.Principal.Ceiling)
	}
	return handler.Response{Value: p.CheckPaths(tier, q.Paths)}, nil
}
