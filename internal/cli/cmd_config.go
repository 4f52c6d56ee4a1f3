package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func configCommand(a *commandLine) *cobra.Command {
	return group("config", "Show the settings that hold, and where they come from", configShowCommand(a))
}

func configShowCommand(a *commandLine) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show each setting, its value and the place that it comes from",
		Long: "show lists each setting with its value and the place that it comes from: the command line, the environment, " +
			"the\nenvironment file, the policy, or the default. Secrets are shown as \"set\". It reads what every command reads, " +
			"and so does\nthe server of a client that mcp-config has set up. Without --all, settings that nothing sets are left " +
			"out.\n\n" +
			"A dry run and read-only hold if any place says so; a place that says false against it is a warning.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return runConfigShow(a, all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "list settings that nothing sets, too")
	return cmd
}

func runConfigShow(a *commandLine, all bool) error {
	p := a.program().Wire(app.Needs{})
	now := p.Rules.Now()
	settings := config.Show(a.sources(), forges.All(), map[string]policy.Switch{
		"CLAUDEOPS_DRY_RUN": now.DryRun, "CLAUDEOPS_READ_ONLY": now.ReadOnly,
	})
	shown := []config.Setting{}
	for _, s := range settings {
		if s.Value = p.Scanner.Redact(s.Value); all || s.Source != "" && s.Source != "default" || len(s.Warnings) > 0 {
			shown = append(shown, s)
		}
	}
	return a.print(listOf(shown), func(w *strings.Builder) {
		rows := [][]string{}
		for _, s := range shown {
			rows = append(rows, []string{s.Name, s.Value, s.Source})
			for _, warning := range s.Warnings {
				rows = append(rows, []string{"", "", "warning: " + warning})
			}
		}
		columns(w, rows)
	})
}
