package prflow

import (
	"context"
	"embed"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

//go:embed schema/*.json
var schemas embed.FS

// ToolsetName is the toolset's name in CLAUDEOPS_TOOLSETS.
const ToolsetName = "pr"

// Toolset returns the operations on proposals for agents, programs and people. service is called for each request.
func Toolset(service func() *Service) operation.Toolset {
	set := operation.Toolset{
		Name: ToolsetName, Schemas: schemas,
		Operations: []operation.Operation{createPR(service), getPRStatus(service), listPRs(service), readFile(service),
			listFiles(service), readDiff(service), promoteProposal(service)},
	}
	set.Reject = func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
		if o := operation.Named(set.Operations, name); o.Reject != nil {
			_ = o.Reject(ctx, call, why)
			return
		}
		service().kernel.Reject(ctx, call, ToolCreatePR, why)
	}
	set.Resources = Resources(service, nil)
	if service != nil {
		set.Situation = func() operation.Situation { return service().situation() }
		set.Prompts = prompts(service)
	}
	return set
}

// define completes an operation of a Service, whose kernel takes its calls. It belongs to no toolset that the kernel
// asks for: people have its command wherever they have the program.
func define[In, Out any](
	service func() *Service, o operation.Operation, way operation.Way[In],
	handle func(ctx context.Context, s *Service, call operation.Call, in In) (Out, error),
) operation.Operation {
	way.MaxAnswer = operation.AnySize // each bounds its answers itself
	return operation.Define(func() *operation.Kernel { return service().kernel }, "", o, way,
		func(ctx context.Context, call operation.Call, in In) (Out, error) {
			out, err := handle(ctx, service().AtMost(call.Ceiling), call, in)
			return out, asked(err)
		})
}

// createPR is not marked destructive: it only adds a branch and a pull request. The same call again returns the pull
// request that exists.
func createPR(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ToolCreatePR, Summary: "Propose a change as a pull request",
		Effect: operation.Write, Needs: operation.Needs{Tier: gitprovider.TierInvestigate, Scope: access.Propose,
			Dry: operation.DryTried, Gated: true},
		Command: "pr create",
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
	}, operation.Way[CreateRequest]{
		Decode: operation.Unread[CreateRequest], Timeout: operation.Unbounded, Next: afterProposal,
		Rejected: func(call operation.Call) { service().AtMost(call.Ceiling).rejected(call) },
	}, func(ctx context.Context, s *Service, call operation.Call, _ CreateRequest) (CreateResult, error) {
		return s.create(ctx, call)
	})
}

func getPRStatus(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ToolGetPRStatus, Summary: "Read a pull request: state, reviews, checks",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read},
		Command: "pr status",
		Tool: operation.Tool{
			Title: "Read a pull request", Description: "State, mergeability, reviews and CI checks of one pull request.",
		},
		Route: operation.Route{Method: "GET", Path: "/prs/{number}", ID: "getPRStatus"},
	}, operation.Way[StatusRequest]{
		Timeout: operation.Unbounded, Next: afterReading,
		Target: func(in StatusRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in StatusRequest) (StatusResult, error) {
		return s.status(ctx, in)
	})
}

func listPRs(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ToolListPRs, Summary: "List our open pull requests of a repository",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr list",
		Tool: operation.Tool{
			Title:       "List open proposals",
			Description: "Open pull requests of ours (label claude-ops) in a repository, with the files that each changes.",
		},
		Route: operation.Route{Method: "GET", Path: "/prs", ID: "listPRs"},
	}, operation.Way[ListRequest]{
		Timeout: readTimeout, Next: afterReading,
		Target: func(in ListRequest) operation.Target { return operation.Target{Owner: in.RepoOwner, Name: in.RepoName} },
	}, func(ctx context.Context, s *Service, _ operation.Call, in ListRequest) (ListResult, error) {
		return s.list(ctx, in)
	})
}

// readFile serves clients that read by address: MCP has it as a resource.
func readFile(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name:    ActionReadFile,
		Summary: "Read a file that may be proposed, on the base branch or on the branch of our own pull request",
		Effect:  operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read},
		Command: "pr file",
		Route: operation.Route{
			Method: "GET", Path: "/repos/{owner}/{repo}/files/{path...}", ID: "readFile",
			Notes: "Text of at most 256 KiB, with the base_sha that createPR takes. What looks like a secret is replaced by " +
				"lines of [redacted]. " +
				"A path outside of what may be proposed is refused.",
		},
	}, operation.Way[ReadFileRequest]{
		Timeout: operation.Unbounded, Next: afterReadingFile,
		Target: func(in ReadFileRequest) operation.Target {
			path, withhold := service().pathShown(in.Path)
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName, Paths: []string{path}, Withhold: withhold}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ReadFileRequest) (FileText, error) {
		return s.files().file(ctx, in)
	})
}

// listFiles is for clients that read by address: MCP has it as a resource.
func listFiles(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ActionListFiles, Summary: "List the files that may be proposed, on the base branch",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read},
		Command: "pr files",
		Route: operation.Route{
			Method: "GET", Path: "/repos/{owner}/{repo}/files", ID: "listFiles",
			Notes: "Sorted by path, with the base_sha that createPR takes. Files outside of what may be proposed are not listed.",
		},
	}, operation.Way[ListFilesRequest]{
		Timeout: readTimeout, Next: afterReadingFile,
		Target: func(in ListFilesRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ListFilesRequest) (FileList, error) {
		return s.files().list(ctx, in)
	})
}

func readDiff(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ActionReadDiff, Summary: "Read the difference of our own open pull request",
		Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: "pr diff",
		Route: operation.Route{
			Method: "GET", Path: "/prs/{number}/diff", ID: "readDiff",
			Notes: "At most 256 KiB, against the base branch as it is now. Files that may not be proposed are named and left out.",
		},
	}, operation.Way[ReadDiffRequest]{
		Timeout: operation.Unbounded, Next: afterReadingFile,
		Target: func(in ReadDiffRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ReadDiffRequest) (PullDiff, error) {
		return s.files().pullDiff(ctx, in)
	})
}

// pathShown returns a path as the audit may have it; withhold says that it looks like a secret.
func (s *Service) pathShown(path string) (shown string, withhold bool) {
	if _, err := gitprovider.ParsePath(path); err != nil {
		path = quote(path)
	}
	found, err := s.Secrets.Secrets(context.Background(), "path", path)
	if err != nil || len(found) > 0 || s.Secrets.Redact(path) != path {
		return Withheld, true
	}
	return path, false
}

// promoteProposal is for people only: no tool leads to it.
func promoteProposal(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: OpPromote, Summary: "Open the pull request that a dry run has shown", Action: record.ActionPromote,
		Command: "pr promote",
		Effect:  operation.Write, Needs: operation.Needs{
			For: operation.People, Tier: gitprovider.TierInvestigate, Scope: access.Review, Dry: operation.DryTried, Gated: true,
		},
		Route: operation.Route{
			Method: "POST", Path: "/proposals/{id}/promote", ID: "promoteProposal", Creates: true,
			Notes: "For people. Every gate is asked again, and the attempt is a new one with an id of its own.",
		},
	}, operation.Way[PromoteRequest]{
		Timeout: operation.Unbounded, Next: afterProposal,
		Rejected: func(call operation.Call) { service().AtMost(call.Ceiling).rejected(call) },
	}, func(ctx context.Context, s *Service, call operation.Call, in PromoteRequest) (CreateResult, error) {
		return s.promote(ctx, call, in.ID)
	})
}
