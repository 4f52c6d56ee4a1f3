package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/ops/places"
)

func policySuggestCommand(a *commandLine) *cobra.Command {
	var repo, scope string
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "Look where a repository has procedures, and print a policy that opens them",
		Long: "suggest reads the names of the files on the base branch, says which folders hold procedures, and prints a policy\n" +
			"file that lets agents propose changes of those that --scope names. It changes nothing: put the text into the file of\n" +
			"CLAUDEOPS_POLICY. Folders with names such as runbooks, playbooks and checks, and skills and agents of Claude Code and\n" +
			"others are known; auto chooses those.",
		Example: "  claudeops policy suggest --repo joe/home-cluster\n" +
			"  claudeops policy suggest --repo joe/home-cluster --scope docs/runbooks,.claude/skills",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPolicySuggest(cmd.Context(), a, repo, scope) },
	}
	cmd.Flags().StringVar(&repo, "repo", "", repoUsage)
	cmd.Flags().StringVar(&scope, "scope", "auto", "folders that agents may change, with commas between; auto: the known ones")
	return cmd
}

func runPolicySuggest(ctx context.Context, a *commandLine, repo, scope string) error {
	found, complete, err := findPlaces(ctx, a, repo)
	if err != nil {
		return err
	}
	out, err := places.Suggest(found, complete, scope, a.program().Wire(app.Needs{}).Cfg.Permissions.Tier)
	if err != nil {
		return app.Usage(fmt.Errorf("--scope: %w", err))
	}
	return a.print(out, func(w *strings.Builder) {
		for line := range strings.Lines(places.Describe(found, complete)) {
			w.WriteString("#" + line)
		}
		if out.Policy == "" {
			w.WriteString("# Nothing of a known kind is there. --scope names folders to open.\n")
			return
		}
		w.WriteString("\n" + out.Policy)
	})
}

// findPlaces reads which folders of a repository hold procedures.
func findPlaces(ctx context.Context, a *commandLine, repo string) (found []places.Place, complete bool, err error) {
	ref, err := a.parseRepo(repo)
	if err != nil {
		return nil, false, err
	}
	return a.program().Wire(app.Needs{}).FindPlaces(ctx, ref)
}
