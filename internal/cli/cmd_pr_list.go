package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func prListCommand(a *commandLine) *cobra.Command {
	var repo, cloneURL, state string
	cmd := &cobra.Command{
		Use: "list", Short: "List the open pull requests labelled claude-ops", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner, name, err := splitRepo(repo)
			if err != nil {
				return err
			}
			result, err := listAll(cmd.Context(), a, prflow.ListRequest{RepoOwner: owner, RepoName: name, CloneURL: cloneURL,
				State: state})
			if err != nil {
				return err
			}
			return a.print(asList(result), func(w *strings.Builder) { describeList(w, result) })
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "repository as owner/name")
	cmd.Flags().StringVar(&cloneURL, "clone-url", "", "clone URL, to settle the provider")
	cmd.Flags().StringVar(&state, "state-of-review", "",
		"only those of ours whose reviews stand so: none, approved or changes_requested")
	return cmd
}

// listAll reads all pages.
func listAll(ctx context.Context, a *commandLine, req prflow.ListRequest) (all prflow.ListResult, err error) {
	req.Limit = 100
	for {
		page, err := askFor[prflow.ListResult](ctx, a, prflow.ToolListPRs, req)
		if err != nil {
			return all, err
		}
		page.PRs, page.Warnings = append(all.PRs, page.PRs...), append(all.Warnings, page.Warnings...)
		all = page
		if page.Next <= req.After { // on the last page there is none
			return all, nil
		}
		req.After = page.Next
	}
}

func describeList(w *strings.Builder, r prflow.ListResult) {
	if len(r.PRs) == 0 {
		w.WriteString("No open pull requests labelled claude-ops.\n")
		return
	}
	var rows [][]string
	for _, pr := range r.PRs {
		rows = append(rows, []string{"#" + strconv.Itoa(pr.Number), pr.CreatedAt, pr.State, pr.Title,
			strings.Join(pr.Files, ", ")})
	}
	columns(w, rows)
	for _, warning := range r.Warnings {
		w.WriteString("warning: " + warning + "\n")
	}
}
