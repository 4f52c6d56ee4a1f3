package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/prflow"
)

func (a *app) reviewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Review and merge pull requests of local repositories, as a person",
		Long: "review is for people and for repositories without a forge. No MCP tool leads here: an agent proposes, a person\n" +
			"decides. Forges have pages of their own for this.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.reviewListCommand(), a.reviewShowCommand())
	for _, verb := range reviewVerbs() {
		cmd.AddCommand(a.reviewActCommand(verb))
	}
	return cmd
}

// reviewVerb is one thing that a person can do with a pull request.
type reviewVerb struct {
	name, short, done string
	force             bool         // has the flag --force
	event             prflow.Event // what people are told; "" for nothing
	act               reviewAct
}

// reviewAct does it. Only merging heeds the note's Force.
type reviewAct func(context.Context, *local.Reviewer, gitprovider.RepoRef, int, local.MergeNote) (reviewOutcome, error)

func reviewVerbs() []reviewVerb {
	return []reviewVerb{
		{"approve", "Approve a pull request", "approved", false, "", plainAct((*local.Reviewer).Approve)},
		{"request-changes", "Ask for changes; needs --comment", "asked for changes to", false, "",
			plainAct((*local.Reviewer).RequestChanges)},
		{"comment", "Make a remark; needs --comment", "remarked on", false, "", plainAct((*local.Reviewer).Comment)},
		{"merge", "Merge a pull request", "merged", true, prflow.EventMerged, merge},
		{"close", "Close a pull request without merging it", "closed", false, prflow.EventClosed,
			plainAct((*local.Reviewer).Close)},
	}
}

// plainAct adapts what needs no more than a note.
func plainAct(act func(*local.Reviewer, context.Context, gitprovider.RepoRef, int, local.Note) error) reviewAct {
	return func(
		ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, number int, note local.MergeNote,
	) (reviewOutcome, error) {
		return reviewOutcome{}, act(r, ctx, ref, number, note.Note)
	}
}

// reviewOutcome is what a verb did.
type reviewOutcome struct {
	Number   int      `json:"number"`
	Done     string   `json:"done"`
	Commit   string   `json:"commit,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func merge(
	ctx context.Context, r *local.Reviewer, ref gitprovider.RepoRef, number int, note local.MergeNote,
) (reviewOutcome, error) {
	merged, err := r.Merge(ctx, ref, number, note)
	return reviewOutcome{Commit: merged.Commit, Warnings: merged.Warnings}, err
}

func (a *app) reviewActCommand(verb reviewVerb) *cobra.Command {
	var repo string
	var note local.MergeNote
	cmd := &cobra.Command{
		Use: verb.name + " NUMBER", Short: verb.short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(repo, args[0])
			if err != nil {
				return err
			}
			return a.review(cmd.Context(), verb, ref, number, note)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	cmd.Flags().StringVar(&note.Body, "comment", "", "what to say")
	cmd.Flags().StringVar(&note.Who, "as", "", "your name (default: the operating system's user)")
	cmd.Flags().StringVar(&note.Head, "head", "", "the head commit that you looked at: refuse if it has moved")
	if verb.force {
		cmd.Flags().BoolVar(&note.Force, "force", false,
			"merge although changes were requested, or the head moved since it was approved")
	}
	return cmd
}

// review acts as the command's user, and prints what came of it.
func (a *app) review(
	ctx context.Context, verb reviewVerb, ref gitprovider.RepoRef, number int, note local.MergeNote,
) error {
	p := a.wire()
	provider, err := p.needLocal()
	if err != nil {
		return err
	}
	caller := a.caller(p)
	if note.Who == "" {
		note.Who = caller.Name
	}
	caller.Name = note.Who
	outcome, err := p.review(ctx, caller, provider, verb, ref, number, note)
	p.deliver(ctx)
	if err != nil {
		return err
	}
	return a.print(outcome, func(w *strings.Builder) {
		fmt.Fprintf(w, "%s #%d as %s.\n", strings.ToUpper(verb.done[:1])+verb.done[1:], number, shown(note.Who, 100))
		if outcome.Commit != "" {
			fmt.Fprintf(w, "  commit %s\n", outcome.Commit)
		}
		for _, warning := range outcome.Warnings {
			fmt.Fprintf(w, "warning: %s\n", warning)
		}
	})
}

// review acts and records it: what people do is in the audit, too. Every door of people comes through here.
func (p *parts) review(
	ctx context.Context, caller prflow.Caller, provider *local.Provider, verb reviewVerb, ref gitprovider.RepoRef, number int,
	note local.MergeNote,
) (reviewOutcome, error) {
	started := time.Now()
	attempt := prflow.Attempt{
		Time: started, RequestID: newID(), Door: caller.Door, Caller: caller.Name, Action: "review." + verb.name,
		Provider: provider.Name(), Owner: ref.Owner, Repo: ref.Name, PRNumber: number, Outcome: prflow.OutcomeDone,
	}
	outcome, actErr := verb.act(ctx, local.NewReviewer(provider), ref, number, note)
	attempt.Duration = time.Since(started)
	if actErr != nil {
		e := fault.From(actErr)
		attempt.Outcome, attempt.Code, attempt.Message = prflow.OutcomeRefused, e.Code, p.scanner.Redact(e.Message)
	}
	recordErr := p.recordReview(context.WithoutCancel(ctx), attempt, verb.event)
	if actErr != nil {
		return outcome, actErr
	}
	outcome.Number, outcome.Done = number, verb.name
	if recordErr != nil {
		outcome.Warnings = append(outcome.Warnings, "not recorded in the audit: "+fault.From(recordErr).Message)
	}
	return outcome, nil
}

// recordReview appends what a person did to the audit, and an end to the record of the pull request. Where the poll was faster
// to see the end, it has told people, and nobody is told twice.
func (p *parts) recordReview(ctx context.Context, a prflow.Attempt, event prflow.Event) error {
	end := prflow.PullRecord{
		PullKey: prflow.PullKey{Provider: a.Provider, Owner: a.Owner, Repo: a.Repo, Number: a.PRNumber},
		State:   gitprovider.StateMerged, SeenBy: a.Door, EndedAt: a.Time, EndedBy: a.Caller,
	}
	switch {
	case a.Outcome != prflow.OutcomeDone || event == "":
		return p.store.Record(ctx, a, nil)
	case event == prflow.EventClosed:
		end.State = gitprovider.StateClosed
	}
	return p.store.RecordEnd(ctx, a, end, p.notices(event, a)...)
}

func reviewTarget(repo, arg string) (gitprovider.RepoRef, int, error) {
	number, err := prNumber(arg)
	if err != nil {
		return gitprovider.RepoRef{}, 0, err
	}
	ref, err := reviewRepo(repo)
	return ref, number, err
}

func reviewRepo(repo string) (gitprovider.RepoRef, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return gitprovider.RepoRef{}, err
	}
	ref, problems := gitprovider.NewRepoRef(owner, name, "")
	for argument, problem := range problems {
		return ref, usageError{fmt.Errorf("--repo: %s %w", argument, problem)}
	}
	return ref, nil
}
