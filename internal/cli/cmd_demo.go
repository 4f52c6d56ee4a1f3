package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/ops/demo"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
)

func demoCommand(a *commandLine) *cobra.Command {
	var dir string
	var serve, life bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent open a pull request, and be refused",
		Long: "demo makes a repository in a folder of its own, spawns this binary as an MCP server, drives it through a real MCP\n" +
			"client, plays the reviewing person, and prints what happens. It needs git, no token and no network. With --serve it\n" +
			"does so in front of the dashboard, at CLAUDEOPS_ADDR, and stays until it is interrupted. With --life it walks " +
			"one procedure\n" +
			"through its life instead: found wrong, proposed, reviewed, revised, merged, deployed, packaged, installed, " +
			"rolled back.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := demoOptions(a, dir)
			if err != nil {
				return err
			}
			switch {
			case serve && life:
				return app.Usage(errors.New("--serve and --life do not go together"))
			case serve:
				err = demo.Serve(cmd.Context(), options, demoAddr(cmd.Context(), a))
			case life:
				err = demo.RunLife(cmd.Context(), options)
			default:
				err = demo.Run(cmd.Context(), options)
			}
			var folder demo.FolderError
			var start demo.StartError
			switch {
			case errors.As(err, &folder):
				return app.Usage(folder)
			case errors.As(err, &start):
				return app.Usage(start)
			case err != nil:
				return fault.Wrap(err, fault.Internal, "the demo failed: %s", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "",
		"empty or missing folder for the demo (default: a new one in the temporary folder)")
	cmd.Flags().BoolVar(&life, "life", false, "walk one procedure through its life")
	cmd.Flags().BoolVar(&serve, "serve", false, "serve the dashboard, and stay")
	return cmd
}

func demoOptions(a *commandLine, dir string) (demo.Options, error) {
	binary, err := os.Executable()
	if err == nil && dir == "" {
		var made files.Temporary // which stays
		made, err = files.MakeTemporary("", "claudeops-demo-")
		dir = made.Path
	}
	path, _ := a.lookup("PATH")
	return demo.Options{Binary: binary, Dir: dir, Procedures: claudeops.Procedures, Out: a.streams.Out, Path: path,
		Command: typedName(os.Args[0])}, err
}

// typedName returns the command by which a shell in the same folder calls this program again: as it was called, since a
// name without a slash was found in PATH.
func typedName(called string) string {
	if strings.ContainsRune(called, filepath.Separator) {
		return mcpconfig.ShellLine([]string{called})
	}
	return "claudeops"
}

// demoAddr is CLAUDEOPS_ADDR, else the default address, or a free port of this machine if something listens there
// already.
func demoAddr(ctx context.Context, a *commandLine) string {
	if addr, _ := a.lookupSetting("CLAUDEOPS_ADDR"); addr != "" {
		return addr
	}
	probe, err := new(net.ListenConfig).Listen(ctx, "tcp", config.DefaultAddr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = probe.Close()
	return config.DefaultAddr
}
