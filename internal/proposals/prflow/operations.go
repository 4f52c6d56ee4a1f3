package prflow

import (
	"context"
	"embed"
	"fmt"
	"slices"

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
		set.ConfiguredInstructions = func() operation.Instructions { return service().situation() }
		set.Prompts = prompts(service)
	}
	return set
}

// define completes an operation of a Service, whose kernel takes its calls. It belongs to no toolset that the kernel
// asks for: people have its command wherever they have the program.
func define[In, Out any](
	service func() *Service, o operation.Operation, way operation.CallSpec[In],
	handle func(ctx context.Context, s *Service, call operation.Call, in In) (Out, error),
) operation.Operation {
	way.MaxAnswer = operation.AnySize // each bounds its answers itself
	return operation.Define(func() *operation.Kernel { return service().kernel }, "", o, way,
		func(ctx context.Context, call operation.Call, in In) (Out, error) {
			out, err := handle(ctx, service().AtMost(call.Ceiling), call, in)
			return out, kernelFault(err)
		})
}

// createPR is not marked destructive: it only adds a branch and a pull request. The same call again returns the pull
// request that exists.
func createPR(service func() *Service) operation.Operation {
	return define(service, operation.Operation{
		Name: ToolCreatePR, Summary: "Propose a change as a pull request",
		Effect: operation.Write, Needs: operation.Needs{Tier: gitprovider.TierInvestigate, Scope: access.Propose,
			Dry: operation.DryTried, OwnGates: true},
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
	}, operation.CallSpec[CreateRequest]{
		Decode: operation.RawArguments[CreateRequest], Timeout: operation.Unbounded, Next: afterProposal,
		Rejected: func(call operation.Call) { service().AtMost(call.Ceiling).rejected(call) },
	}, func(ctx context.Context, s *Service, call operation.Call, _ CreateRequest) (CreateResult, error) {
		return s.createPR(ctx, call)
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
	}, operation.CallSpec[StatusRequest]{
		Timeout: operation.Unbounded, Next: afterReading,
		Target: func(in StatusRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in StatusRequest) (StatusResult, error) {
		return s.pullStatus(ctx, in)
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
	}, operation.CallSpec[ListRequest]{
		Timeout: readTimeout, Next: afterReading,
		Target: func(in ListRequest) operation.Target { return operation.Target{Owner: in.RepoOwner, Name: in.RepoName} },
	}, func(ctx context.Context, s *Service, _ operation.Call, in ListRequest) (ListResult, error) {
		return s.listOpenPage(ctx, in)
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
	}, operation.CallSpec[ReadFileRequest]{
		Timeout: operation.Unbounded, Next: afterReadingFile,
		Target: func(in ReadFileRequest) operation.Target {
			path, withhold := service().pathShown(in.Path)
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName, Paths: []string{path}, Withhold: withhold}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ReadFileRequest) (FileText, error) {
		return s.newFileReader().readFile(ctx, in)
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
	}, operation.CallSpec[ListFilesRequest]{
		Timeout: readTimeout, Next: afterReadingFile,
		Target: func(in ListFilesRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ListFilesRequest) (FileList, error) {
		return s.newFileReader().listBranchFiles(ctx, in)
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
	}, operation.CallSpec[ReadDiffRequest]{
		Timeout: operation.Unbounded, Next: afterReadingFile,
		Target: func(in ReadDiffRequest) operation.Target {
			return operation.Target{Owner: in.RepoOwner, Name: in.RepoName}
		},
	}, func(ctx context.Context, s *Service, _ operation.Call, in ReadDiffRequest) (PullDiff, error) {
		return s.newFileReader().pullDiff(ctx, in)
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
			For: operation.People, Tier: gitprovider.TierInvestigate, Scope: access.Review, Dry: operation.DryTried,
			OwnGates: true,
		},
		Route: operation.Route{
			Method: "POST", Path: "/proposals/{id}/promote", ID: "promoteProposal", Creates: true,
			Notes: "For people. Every gate is asked again, and the attempt is a new one with an id of its own.",
		},
	}, operation.CallSpec[PromoteRequest]{
		Timeout: operation.Unbounded, Next: afterProposal,
		Rejected: func(call operation.Call) { service().AtMost(call.Ceiling).rejected(call) },
	}, func(ctx context.Context, s *Service, call operation.Call, in PromoteRequest) (CreateResult, error) {
		return s.promote(ctx, call, in)
	})
}

// CreateResult is the answer to a proposal (design §4). In a dry run Number is 0 and URL empty.
type CreateResult struct {
	Number   int         `json:"number,omitempty"`
	URL      string      `json:"url,omitempty"`
	Branch   string      `json:"branch"`
	Commit   string      `json:"commit,omitempty"`
	Files    []string    `json:"files"`
	Lines    []FileLines `json:"lines,omitempty" brief:"true" doc:"Added and removed, by file"`
	Facts    []FactLine  `json:"facts,omitempty" brief:"true" doc:"What the lines name or do; say why in body"`
	Reused   bool        `json:"reused,omitempty" brief:"true" doc:"The same change was open already"`
	Revised  bool        `json:"revised,omitempty" brief:"true" doc:"The pull request that revises names has the commit, or, without files, the replies"`
	Replies  int         `json:"replies,omitempty" brief:"true" doc:"How many answers to the review were posted"`
	DryRun   bool        `json:"dry_run,omitempty" doc:"Nothing was written"`
	Warnings []string    `json:"warnings,omitempty"`
	Preview  *Preview    `json:"preview,omitempty" brief:"true"`

	RequestID string `json:"-"`
}

// Created reports whether a pull request was opened: by none of a dry run, of one that was open already, and of a
// revision.
func (r CreateResult) Created() bool { return !r.DryRun && !r.Reused && !r.Revised }

// Preview describes what a dry run would have done. The record has all of it, for people (design §3, gate 10); the
// caller sent the change, so its answer repeats it only on request.
type Preview struct {
	Base   string           `json:"base"`
	Title  string           `json:"title"`
	Body   string           `json:"body,omitempty" doc:"Of a full preview: as it would be, without the mark"`
	Labels []string         `json:"labels"`
	Diff   string           `json:"diff,omitempty" doc:"Of a full preview: unified, against the base commit"`
	Gates  []record.Verdict `json:"gates" brief:"true"`
	Calls  []string         `json:"calls"` // what would have been done, in order
}

// FileLines counts the lines of a file that a change adds and removes.
type FileLines struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	// Unknown says that the file on the base branch is too large to be compared, so that nothing was counted.
	Unknown bool `json:"unknown,omitempty" doc:"The file on the base branch is too large to be compared"`
}

// StatusResult is the answer to a StatusRequest (design §4).
type StatusResult struct {
	Number    int           `json:"number"`
	Title     string        `json:"title"`
	URL       string        `json:"url"`
	State     string        `json:"state" enum:"open,closed,merged"`
	Mergeable *bool         `json:"mergeable" doc:"null: still being computed, or not open"`
	Reviews   []ReviewEntry `json:"reviews" brief:"true"`
	Checks    ChecksEntry   `json:"checks" brief:"true"`
	Revise    string        `json:"revise,omitempty" brief:"true" doc:"Whether create_pr with revises may add to it now, or why not"`
	Included  *Included     `json:"included,omitempty" brief:"true" doc:"What include asks for"`
	Untrusted string        `json:"untrusted"`
}

// ReviewEntry is one review.
type ReviewEntry struct {
	Author      string `json:"author"`
	State       string `json:"state" enum:"approved,changes_requested,commented,dismissed,pending"`
	Body        string `json:"body"`
	SubmittedAt string `json:"submitted_at,omitempty"` // RFC 3339, UTC

	Comments []LineEntry `json:"comments,omitempty" doc:"On lines of files"`
	LeftOut  int         `json:"comments_left_out,omitempty" doc:"How many older comments on lines the answer has no room for"`
}

// LineEntry is a review comment on one line of a file.
type LineEntry struct {
	ID       string `json:"id,omitempty" doc:"For replies of create_pr"`
	Path     string `json:"path"`
	Line     int    `json:"line" doc:"From 1; 0: the file as a whole"`
	Before   bool   `json:"before,omitempty" doc:"The line is one of the file as it was before the change"`
	Outdated bool   `json:"outdated,omitempty" doc:"The branch has moved since, so that the line may be another one by now"`
	Text     string `json:"text,omitempty" doc:"Of the line, where files or difference were asked for and it is known"`
	Resolved bool   `json:"resolved,omitempty" doc:"Somebody has marked the conversation as settled"`
	Author   string `json:"author,omitempty" doc:"If it is not the review's"`
	Body     string `json:"body"`
}

// ChecksEntry is the combined CI state and the contexts that fail.
type ChecksEntry struct {
	State   string   `json:"state" enum:"none,pending,success,failure"`
	Failing []string `json:"failing"`

	Details []CheckEntry `json:"details,omitempty" doc:"Of the failing ones, where files or difference were asked for"`
}

// CheckEntry describes a failing check.
type CheckEntry struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	LogEnd  string `json:"log_end,omitempty" doc:"How its longer text ends, where the host has one"`
	URL     string `json:"url,omitempty"`
}

// Included holds the contents of a pull request of ours that a status request asked for.
type Included struct {
	Commit    string     `json:"commit,omitempty"` // of the branch
	Files     []PullFile `json:"files,omitempty"`
	Diff      string     `json:"diff,omitempty"`
	Notes     []string   `json:"notes,omitempty"` // what is left out, and what the base branch has changed since
	Untrusted string     `json:"untrusted"`
}

// PullFile is a file of a pull request as its branch has it. Pass BaseSHA as base_sha in create_pr with revises.
type PullFile struct {
	Path    string   `json:"path"`
	Deleted bool     `json:"deleted,omitempty"`
	BaseSHA string   `json:"base_sha,omitempty"`
	Text    string   `json:"text"`
	Lacks   []string `json:"lacks,omitempty"` // what was taken out of the text
}

// afterProposal tells the caller whether to call again after a refused proposal, and with what. A model may see only
// the text of the refusal, so it must contain the next step.
func afterProposal(e *fault.Error) string {
	switch e.Code {
	case fault.DuplicatePR, fault.CooldownActive:
		if e.Existing != nil {
			return fmt.Sprintf("do not call again: report #%d; do not move the change elsewhere", e.Existing.Number)
		}
		return "do not call again: report it; do not move the change elsewhere"
	case fault.TierDenied:
		if final(e) {
			return "do not call again: report what should change and why, so that a session of a higher tier or a person " +
				"takes it up"
		}
		return "propose fewer files that belong together in one more call, or report the whole change; no call can raise the tier"
	case fault.ScopeDenied:
		return "leave these paths out and call once more, or report the change to a person; do not put it into another file"
	case fault.Conflict:
		if final(e) {
			return "do not call again: report what should change and why, for a person to take up"
		}
		return "make the change again from what is there now, and call once more"
	case fault.NoChange:
		return "leave out what is listed and call once more with the rest; if nothing is left, report that it is done already"
	case fault.LimitReached:
		if final(e) { // waiting does not help
			return "do not call again: report what is still asked for, for a person to take up"
		}
		return "do not wait in this session: report the change and that pull requests wait for review; the identical call " +
			"is safe later"
	case fault.UpstreamError, fault.Timeout:
		return "the identical call is safe: it returns the pull request if it was opened; if it fails again, report it"
	case fault.Internal:
		return "look at list_prs whether it was opened; the identical call is safe, once; then report the request id"
	}
	return afterReading(e)
}

// afterReading is afterProposal for refused reads.
func afterReading(e *fault.Error) string {
	switch e.Code {
	case fault.InvalidArgument, fault.ContentDenied:
		return "correct everything that is listed and call once more; the same call is refused again"
	case fault.ReadOnly:
		return "do not call again: report what should change and why, for a person to take up"
	case fault.RepoNotAllowed:
		if !final(e) && len(e.Violations) > 0 {
			return "correct what is listed and call once more"
		}
		return "do not call again: report it to the operator"
	case fault.NotFound:
		return "correct what the message names and call once more; if it is right as it is, report that it cannot be seen"
	case fault.ProviderUnresolved:
		return "call once more as the message says; if it offers nothing, report it to the operator"
	case fault.Unauthenticated, fault.Forbidden:
		return "do not call again: report that this credential lets nobody in any more"
	case fault.RateLimited:
		return "the identical call is safe after that time; if the session ends before, report it"
	case fault.ProviderDisabled, fault.Misconfigured:
		return "do not call again: report to the operator what the message names"
	case fault.UpstreamError, fault.Timeout:
		return "the identical call is safe; if it fails again, report it"
	case fault.Internal:
		return "the identical call is safe, once; then report the request id"
	}
	return ""
}

// final reports whether the refusal has something that no change of the call corrects.
func final(e *fault.Error) bool {
	return slices.ContainsFunc(e.Violations, func(v fault.Violation) bool { return v.Final })
}
