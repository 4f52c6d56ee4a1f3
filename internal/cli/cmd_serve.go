package cli

import (
	"github.com/claudeops/claudeops/internal/app"
	"github.com/spf13/cobra"
)

func serveCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard for people and the REST API for programs",
		Long: "serve listens on CLAUDEOPS_ADDR (127.0.0.1:8080 by default) until SIGINT or SIGTERM; then it answers what it has\n" +
			"begun and ends. Every route but the probes needs a token or a login. Where no token was ever made, the first " +
			"start makes\n" +
			"one, in the state folder, and prints an address that signs a browser in once. With --interval it starts an agent " +
			"session of tier 1 at that interval. Logs go to stderr, as JSON with\n" +
			"CLAUDEOPS_LOG_FORMAT=json.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return app.RunServe(cmd.Context(), a.program()) },
	}
	sessionToolsetsFlag(a, cmd)
	a.flags["CLAUDEOPS_INTERVAL"] = cmd.Flags().String("interval", "",
		"how often to start a session of tier 1, such as 1h; 0 is never (CLAUDEOPS_INTERVAL)")
	a.flags["CLAUDEOPS_ANONYMOUS_READ"] = cmd.Flags().String("anonymous-read", "",
		"let programs on this machine read without a token (CLAUDEOPS_ANONYMOUS_READ)")
	cmd.Flags().Lookup("anonymous-read").NoOptDefVal = "true"
	a.flags["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = cmd.Flags().String("deploy-after-merge", "",
		"deploy what was merged, unless it would replace files that nobody has deployed (CLAUDEOPS_DEPLOY_AFTER_MERGE)")
	cmd.Flags().Lookup("deploy-after-merge").NoOptDefVal = "true"
	return cmd
}
