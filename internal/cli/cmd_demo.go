package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops"
	"github.com/claudeops/claudeops/internal/demo"
	"github.com/claudeops/claudeops/internal/fault"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent open a pull request, and be refused",
		Long: "demo makes a repository in a folder of its own, spawns this binary as an MCP server, drives it through a real MCP\n" +
			"client, plays the reviewing person, and prints what happens. It needs git, no token and no network.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "claudeops-demo-"); err != nil {
					return err
				}
			}
			path, _ := a.lookup("PATH")
			err = demo.Run(cmd.Context(), demo.Options{
				Binary: binary, Dir: dir, Procedures: claudeops.Procedures, Out: a.streams.Out, Path: path,
			})
			if err != nil {
				return fault.Wrap(err, fault.Internal, "the demo did not go as it must: %s", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "empty or missing folder for the demo (default: a new one in the temporary folder)")
	return cmd
}
