package prflow

import (
	"context"
	"embed"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
)

// Names of the tools. They are a contract: prompts, settings and clients name them.
const (
	ToolCreatePR    = "create_pr"
	ToolListPRs     = "list_prs"
	ToolGetPRStatus = "get_pr_status"
)

// OpPromote is the name of the operation that opens what a dry run has shown.
const OpPromote = "promote_proposal"

// Names of the operations by which files are read; those that are refused are in the audit by them.
const (
	ActionReadFile = "read_file"
	ActionReadDiff = "read_pr_diff"
)

//go:embed schema/*.json
var schemas embed.FS

// Toolset is what agents, programs and people ask of the use case. service is called for each request.
func Toolset(service func() *Service) operation.Toolset {
	set := operation.Toolset{
		Name: "pr", Schemas: schemas,
		Operations: []operation.Operation{createPR(service), getPRStatus(service), listPRs(service), readFile(service), readDiff(service), promoteProposal(service)},
		Reject: func(ctx context.Context, call operation.Call, _ string, why *fault.Error) {
			service().AtMost(call.Ceiling).Reject(ctx, call.Caller, why.Code, why.Message)
		},
	}
	set.Resources = Resources(service, nil)
	if service != nil {
		set.Situation = func() operation.Situation { return service().situation() }
		set.Prompts = prompts(service)
	}
	return set
}

// createPR is no destructive tool: it only adds a branch and a pull request. The same call again returns the pull request
// that exists.
func createPR(service func() *Service) operation.Operation {
	return operation.NewRaw[CreateRequest](operation.Operation{
		Name: ToolCreatePR, Summary: "Propose a change as a pull request",
		Effect: operation.Write, Needs: operation.Needs{Tier: gitprovider.TierInvestigate, Scope: access.Propose, Dry: operation.DryTried}, Command: "pr create",
		Tool: operation.Tool{
			Title: "Propose a change", Repeatable: true,
			Description: proposing,
		},
		Route: operation.Route{
			Method: "POST", Path: "/prs", ID: "createPR", Creates: true, Keyed: true,
			Notes: "201 for a pull request that was opened; 200 for a dry run, and for the open pull request that holds this " +
				"very change already (reused), or that got it as one more commit (revised). Every refusal names every broken rule. " +
				"There is no tier: the lower one of the server's and the token's holds. Repeating an identical request is safe.",
			MaxBody: 4 << 20, TooLarge: "propose less in one pull request", // what one MCP message may have
		},
	}, func(ctx context.Context, call operation.Call) (CreateResult, error) {
		return service().AtMost(call.Ceiling).Create(ctx, call.Caller, call.Arguments)
	})
}

func getPRStatus(service func() *Service) operation.Operation {
	return operation.NewRaw[StatusRequest](operation.Operation{
		Name: ToolGetPRStatus, Summary: "Read a pull request: state, reviews, checks",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr status",
		Tool: operation.Tool{
			Title: "Read a pull request", Description: "State, mergeability, reviews and CI checks of one pull request.",
		},
		Route: operation.Route{Method: "GET", Path: "/prs/{number}", ID: "getPRStatus"},
	}, func(ctx context.Context, call operation.Call) (StatusResult, error) {
		s := service().AtMost(call.Ceiling)
		out, err := s.Status(ctx, call.Arguments)
		return out, s.refusedReadOf(ctx, call, ToolGetPRStatus, err)
	})
}

func listPRs(service func() *Service) operation.Operation {
	return operation.NewRaw[ListRequest](operation.Operation{
		Name: ToolListPRs, Summary: "List our open pull requests of a repository",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr list",
		Tool: operation.Tool{
			Title:       "List open proposals",
			Description: "Open pull requests of ours (label claude-ops) in a repository, with the files that each changes.",
		},
		Route: operation.Route{Method: "GET", Path: "/prs", ID: "listPRs"},
	}, func(ctx context.Context, call operation.Call) (ListResult, error) {
		s := service().AtMost(call.Ceiling)
		out, err := s.List(ctx, call.Arguments)
		return out, s.refusedReadOf(ctx, call, ToolListPRs, err)
	})
}

// readFile is for clients that read by address: MCP has it as a resource.
func readFile(service func() *Service) operation.Operation {
	return operation.NewRaw[ReadFileRequest](operation.Operation{
		Name: ActionReadFile, Summary: "Read a file that may be proposed, on the base branch or on the branch of our own pull request",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr file",
		Route: operation.Route{
			Method: "GET", Path: "/repos/{owner}/{repo}/files/{path...}", ID: "readFile",
			Notes: "Text of at most 256 KiB, with the base_sha that createPR takes. What looks like a secret is replaced by lines of [redacted]. " +
				"A path outside of what may be proposed is refused.",
		},
	}, func(ctx context.Context, call operation.Call) (FileText, error) {
		return service().AtMost(call.Ceiling).ReadFile(ctx, call.Caller, call.Arguments)
	})
}

func readDiff(service func() *Service) operation.Operation {
	return operation.NewRaw[ReadDiffRequest](operation.Operation{
		Name: ActionReadDiff, Summary: "Read the difference of our own open pull request",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr diff",
		Route: operation.Route{
			Method: "GET", Path: "/prs/{number}/diff", ID: "readDiff",
			Notes: "At most 256 KiB, against the base branch as it is now. Files that may not be proposed are named and left out.",
		},
	}, func(ctx context.Context, call operation.Call) (PullDiff, error) {
		return service().AtMost(call.Ceiling).ReadDiff(ctx, call.Caller, call.Arguments)
	})
}

// PromoteRequest names the dry run to open.
type PromoteRequest struct {
	ID string `json:"id" required:"true" path:"id" maxLength:"64" doc:"Request id of the dry run"`
}

// promoteProposal is for people, so that no tool and no command leads to it.
func promoteProposal(service func() *Service) operation.Operation {
	o := operation.New(operation.Operation{
		Name: OpPromote, Summary: "Open the pull request that a dry run has shown",
		Effect: operation.Write, Needs: operation.Needs{Tier: gitprovider.TierInvestigate, Scope: access.Review, Dry: operation.DryTried},
		Route: operation.Route{
			Method: "POST", Path: "/proposals/{id}/promote", ID: "promoteProposal", Creates: true,
			Notes: "For people. Every gate is asked again, and the attempt is a new one with an id of its own.",
		},
	}, func(ctx context.Context, call operation.Call, in PromoteRequest) (CreateResult, error) {
		return service().AtMost(call.Ceiling).Promote(ctx, call.Caller, in.ID)
	})
	o.Reject = func(ctx context.Context, call operation.Call, why error) error {
		e := fault.From(why)
		service().AtMost(call.Ceiling).Reject(ctx, call.Caller, e.Code, e.Message)
		return why
	}
	return o
}
