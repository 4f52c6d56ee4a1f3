package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/proposals/review"
)

func reviewCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Review and merge pull requests of local repositories, as a person",
		Long: "review is for people and for repositories without a forge. No MCP tool leads here: an agent proposes, a person\n" +
			"decides. Forges have pages of their own for this.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(reviewListCommand(a), reviewShowCommand(a))
	for _, verb := range review.Verbs() {
		cmd.AddCommand(reviewActCommand(a, verb))
	}
	return cmd
}

func reviewActCommand(a *commandLine, verb review.Verb) *cobra.Command {
	var repo string
	var lines lineFlags
	r := review.Request{Verb: verb.Name, Provider: local.Name}
	cmd := &cobra.Command{
		Use: verb.Name + " NUMBER", Short: verb.Short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, number, err := reviewTarget(repo, args[0])
			if err != nil {
				return err
			}
			r.Owner, r.Name, r.Number = ref.Owner, ref.Name, number
			if r.Comments, err = lines.comments(); err != nil {
				return err
			}
			if verb.Name == review.LiftCooldown && !cmd.Flags().Changed("provider") {
				r.Provider = a.program().Wire(app.Needs{}).Flow.Reader().ProviderOf(ref.Owner, ref.Name)
			}
			return runReview(cmd.Context(), a, verb, r)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	cmd.Flags().StringVar(&r.Comment, "comment", "", "what to say")
	cmd.Flags().StringVar(&r.Head, "head", "", "the head commit that you looked at: refuse if it has moved")
	if verb.Name == review.LiftCooldown {
		cmd.Flags().StringVar(&r.Provider, "provider", "", "where the repository is, if several providers are enabled")
	}
	if verb.Lines {
		lines.add(cmd)
	}
	if verb.Force {
		cmd.Flags().BoolVar(&r.Force, "force", false,
			"merge although changes were requested, or the head moved since it was approved")
	}
	return cmd
}

// review acts as the command's user, and prints what came of it.
func runReview(ctx context.Context, a *commandLine, verb review.Verb, r review.Request) error {
	p := a.program().Wire(app.Needs{})
	call, err := app.AtTerminal(ctx, p)
	if err == nil {
		err = app.MayAtTerminal(call, review.NeedsOf(verb.Name))
	}
	if err != nil {
		return err
	}
	r.By = call.Caller
	outcome, err := app.NewReviews(p).Do(ctx, r)
	if err != nil {
		return err
	}
	return a.print(outcome, func(w *strings.Builder) {
		fmt.Fprintf(w, "%s #%d as %s.\n", strings.ToUpper(verb.Done[:1])+verb.Done[1:], r.Number, shown(r.By.String(), 100))
		if outcome.Commit != "" {
			fmt.Fprintf(w, "  commit %s\n", outcome.Commit)
		}
		for _, warning := range outcome.Warnings {
			fmt.Fprintf(w, "warning: %s\n", warning)
		}
	})
}

func reviewTarget(repo, arg string) (gitprovider.RepoRef, int, error) {
	number, err := prNumber(arg)
	if err != nil {
		return gitprovider.RepoRef{}, 0, err
	}
	ref, err := parseRepo(repo)
	return ref, number, err
}

// parseRepo reads --repo.
func parseRepo(repo string) (gitprovider.RepoRef, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return gitprovider.RepoRef{}, err
	}
	ref, problems := gitprovider.NewRepoRef(owner, name, "")
	for argument, problem := range problems {
		return ref, app.Usage(fmt.Errorf("--repo %.200q: %s %w", repo, argument, problem))
	}
	return ref, nil
}

// parseState reads the state that a listing is narrowed to; "" for all.
func parseState(state string) (gitprovider.State, error) {
	switch s := gitprovider.State(state); s {
	case gitprovider.StateOpen, gitprovider.StateClosed, gitprovider.StateMerged:
		return s, nil
	}
	if state == "all" {
		return "", nil
	}
	return "", app.Usage(errors.New("--state is open, closed, merged or all"))
}
