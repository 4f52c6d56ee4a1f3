package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func prFileCommand(a *commandLine) *cobra.Command {
	var req prflow.ReadFileRequest
	cmd := &cobra.Command{
		Use:   "file OWNER/NAME PATH",
		Short: "Print a file that may be proposed, as the base branch or our own pull request has it",
		Long: "Print a file that may be proposed. Its base_sha, which `pr create --base-sha` takes, and what was taken out " +
			"of the text go to stderr.",
		Example: "  claudeops pr file joe/home-cluster checks/disk.md\n" +
			"  claudeops pr file joe/home-cluster checks/disk.md --pull 7     # as its branch has it",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.RepoOwner, req.RepoName, err = splitRepo(args[0]); err != nil {
				return err
			}
			req.Path = args[1]
			if req.Pull == 0 && cmd.Flags().Changed("pull") { // which the request leaves out
				_, err = prNumber("0")
				return err
			}
			result, err := askFor[prflow.FileText](cmd.Context(), a, prflow.ActionReadFile, req)
			if err != nil {
				return err
			}
			return printText(a, result, result.Text, append([]string{"base_sha " + result.BaseSHA}, result.Lacks...))
		},
	}
	cmd.Flags().IntVar(&req.Pull, "pull", 0, "number of our open pull request, to read the file as its branch has it")
	cmd.Flags().StringVar(&req.CloneURL, "clone-url", "", "clone URL, to settle the provider")
	return cmd
}

func prFilesCommand(a *commandLine) *cobra.Command {
	var req prflow.ListFilesRequest
	cmd := &cobra.Command{
		Use:   "files OWNER/NAME [GLOB]",
		Short: "List the files that may be proposed, as the base branch has them",
		Long: "List the files that may be proposed, sorted by path: base_sha, which `pr create --base-sha` takes, bytes and " +
			"path. All of them are listed unless --limit or --after is given.",
		Example: "  claudeops pr files joe/home-cluster\n  claudeops pr files joe/home-cluster 'checks/**'",
		Args:    usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.RepoOwner, req.RepoName, err = splitRepo(args[0]); err != nil {
				return err
			}
			if len(args) > 1 {
				req.Glob = args[1]
			}
			all := req.Limit == 0 && req.After == ""
			if all {
				req.Limit = 1000
			}
			list, err := askFor[prflow.FileList](cmd.Context(), a, prflow.ActionListFiles, req)
			for next := list; err == nil && all && next.Next != ""; {
				req.After = next.Next
				if next, err = askFor[prflow.FileList](cmd.Context(), a, prflow.ActionListFiles, req); err == nil {
					list.Files, list.Next = append(list.Files, next.Files...), next.Next
				}
			}
			if err != nil {
				return err
			}
			return a.print(list, func(w *strings.Builder) {
				for _, f := range list.Files {
					fmt.Fprintf(w, "%s %9d %s\n", f.BaseSHA, f.Bytes, f.Path)
				}
				if list.Next != "" {
					fmt.Fprintf(w, "more after %s\n", list.Next)
				}
				if list.Incomplete {
					fmt.Fprintln(w, "there are more files than the provider tells of")
				}
			})
		},
	}
	cmd.Flags().IntVar(&req.Limit, "limit", 0, "entries of a page (default: all)")
	cmd.Flags().StringVar(&req.After, "after", "", "path after which the page begins")
	cmd.Flags().StringVar(&req.CloneURL, "clone-url", "", "clone URL, to settle the provider")
	return cmd
}

func prDiffCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff NUMBER", Short: "Print what our own open pull request changes",
		Long: "Print the unified difference of our own open pull request, against its base branch as it is now. What is " +
			"left out is named on stderr.",
	}
	return aboutPull(cmd, func(ctx context.Context, req prflow.ReadDiffRequest) error {
		result, err := askFor[prflow.PullDiff](ctx, a, prflow.ActionReadDiff, req)
		if err != nil {
			return err
		}
		return printText(a, result, result.Diff, result.Notes)
	})
}

// printText prints a text as it is, and notes about it on stderr; with --json the value that has both.
func printText(a *commandLine, v any, text string, notes []string) error {
	if a.json {
		return a.printJSON(v)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(a.streams.Err, note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.streams.Out, text)
	return err
}
