package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
)

// Proposal is a request to create_pr's use case, in its own terms.
type Proposal struct {
	Draft
	Title      string
	Body       string
	ChangeType string
}

// Proposed is a pull request that was opened, or would have been.
type Proposed struct {
	Repository string   `json:"repository" doc:"owner/name"`
	Number     int      `json:"number,omitempty"`
	URL        string   `json:"url,omitempty"`
	Branch     string   `json:"branch"`
	Title      string   `json:"title"`
	Files      []string `json:"files" doc:"Of the repository"`
	Reused     bool     `json:"reused,omitempty" doc:"The same change was open already"`
	DryRun     bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	// Provider is the provider of the pull request, for its page.
	Provider string `json:"provider,omitempty"`
}

// Proposer asks create_pr's use case, with all its gates, in the name of a call. What it refuses is recorded there.
type Proposer func(ctx context.Context, call operation.Call, p Proposal) (out Proposed, warnings []string, err error)

// ProposeRequest names what was changed in targets.
type ProposeRequest struct {
	Paths   []string `json:"paths,omitempty" positional:"true" maxItems:"100" doc:"Files of targets; without any, all that were modified"`
	Title   string   `json:"title,omitempty" maxLength:"72" doc:"Of the pull request; without one, the modules' names"`
	Why     string   `json:"why,omitempty" maxBytes:"16000" doc:"What was observed, and why the change helps; goes into the pull request"`
	Profile string   `json:"profile,omitempty" default:"default" doc:"Profile of the configuration"`
	Machine string   `json:"machine,omitempty" doc:"Machine id for machine overlays. Omit to auto-detect."`
}

func (s set) proposeDrift() operation.Operation {
	o := beside(NamePropose, "Propose what was changed in a target to the repository that it comes from",
		"Make a pull request of files that a person or an agent has changed where they were deployed, to the repository of "+
			"their modules, or of the overlay\n"+
			"that gives them. It is a proposal like all others: create_pr's gates judge it. The pull request says what was "+
			"deployed as its base, so that\n"+
			"nothing newer is overwritten. Files that are missing, or extra in the folder of a skill, are proposed only by "+
			"name. Nothing is changed in a target.")
	o.Effect, o.Needs = operation.Write, operation.Needs{Tier: gitprovider.TierInvestigate, Dry: operation.DryTried,
		Gated: true}
	way := operation.Way[ProposeRequest]{Timeout: operation.Unbounded, Check: func(in ProposeRequest) *operation.Fault {
		return bounded(map[string]string{"profile": in.Profile, "machine": in.Machine})
	}}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in ProposeRequest) (out Envelope[Proposed], err error) {
			if call.Scopes != nil && !call.Scopes.Has(access.Propose) {
				return out, fault.New(fault.Forbidden, "proposing needs the scope %s", access.Propose)
			}
			service := s.service()
			ctx, fetched := noting(ctx)
			defer func() { fetched.noteTo(call, operation.Note{}) }()
			draft, err := service.draftOf(ctx, Request{Profile: in.Profile, Machine: in.Machine}, in.Paths)
			if err != nil {
				return out, faultOf(err)
			}
			call.Records(func(context.Context, *fault.Error) error { return nil }) // the use case records what it judges
			done, warnings, err := s.propose(ctx, call, proposalOf(draft, in))
			if err != nil {
				return out, refused(err)
			}
			return enveloped(NamePropose, service.version, done, warnings), nil
		})
}

// refused returns a refusal of the use case in agentpack's form.
func refused(err error) error {
	e := fault.From(err)
	details := map[string]any{"reason_code": string(e.Code), "next_actions": []string{"follow_message"}}
	if len(e.Violations) > 0 {
		details["violations"] = e.Violations
	}
	return &operation.Fault{Code: string(ProposalRefused), Details: details, General: e}
}

// maxTitle is the most that a pull request's title may have, in characters.
const maxTitle = 72

func proposalOf(d Draft, in ProposeRequest) Proposal {
	p := Proposal{Draft: d, Title: strings.TrimSpace(in.Title), ChangeType: "fix"}
	if d.Skills {
		p.ChangeType = "skill"
	}
	if p.Title == "" {
		p.Title = "Take over what was changed in " + strings.Join(d.Modules, ", ")
		if len([]rune(p.Title)) > maxTitle {
			p.Title = fmt.Sprintf("Take over what was changed in %d modules", len(d.Modules))
		}
	}
	var b strings.Builder
	if why := strings.TrimSpace(in.Why); why != "" {
		b.WriteString(why + "\n\n")
	}
	b.WriteString(
		"Files were changed where they are deployed. This takes the changes over into what they are deployed from.\n\n| " +
			"file | module | deployed as |\n|---|---|---|\n")
	for _, f := range d.Files {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` |\n", inCode(f.Path), inCode(f.Module), inCode(f.From))
	}
	p.Body = b.String()
	return p
}

// inCode returns a text for a piece of code in a table.
func inCode(text string) string {
	return strings.NewReplacer("`", "'", "|", "/", "\n", " ").Replace(text)
}
