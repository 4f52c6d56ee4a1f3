package cli

import (
	"github.com/claudeops/claudeops/internal/app"
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/logqueue"
	"github.com/claudeops/claudeops/internal/operation"
)

// commandLine holds the state of one run of the command line.
type commandLine struct {
	streams Streams
	lookup  func(string) (string, bool) // a variable of the environment, or of the environment file
	process func(string) (string, bool) // a variable of the environment alone
	file    *environmentFile            // nil where none is read
	envFile string                      // the flag that names another one
	args    []string                    // of the command line
	json    bool
	flags   map[string]*string // environment variable -> the flag that overrides it
	cmd     *cobra.Command
	made    *app.App
	more    []operation.Toolset // beside those of the program; tests add some
	only    string              // the one toolset that is served; "" for those of CLAUDEOPS_TOOLSETS
	folder  string              // that toolsets beside pr look at; "" for the working folder
	logs    *logqueue.Writer    // stands before streams.Err in commands that run for long; nil in others
}

// program returns the App of the run, and makes it at the first call.
func (a *commandLine) program() *app.App {
	if a.made == nil {
		a.made = app.New(func() app.Options {
			o := app.Options{
				Lookup: a.lookup, Environment: a.environment, Sources: a.freshSources, Args: a.args, Out: a.streams.Out,
				Logger: a.logger, FlushLog: a.flush, Sleep: a.streams.Sleep,
				More: a.more, Only: a.only, Folder: a.folder,
			}
			if a.file != nil {
				o.EnvironmentFile, _ = a.environmentPath(a.process)
			}
			return o
		})
	}
	return a.made
}

// Command returns the tree of commands, for tools that describe it. Use Run to run it.
func Command() *cobra.Command {
	return (&commandLine{lookup: func(string) (string, bool) { return "", false }}).rootCommand()
}

func (a *commandLine) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "claudeops",
		Short: "Lets AI operations agents propose changes to their own procedures, as pull requests",
		Long: "claudeops lets an AI operations agent propose changes to its own procedures as pull requests that a person\n" +
			"merges. Tier, scope, content, duplicates and caps are decided here, never by a prompt, and every attempt is recorded.",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.cmd = cmd
			if err := a.checkEnvironmentFile(); err != nil {
				return err
			}
			return a.checkSecretFiles()
		},
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version: app.Version(),
	}
	root.SetVersionTemplate("claudeops {{.Version}}\n")
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetFlagErrorFunc(wrongFlag)
	a.globalFlags(root)
	root.AddCommand(
		initCommand(a),
		mcpServerCommand(a),
		prCommand(a),
		reviewCommand(a),
		policyCommand(a),
		configCommand(a),
		group("sources", "Say which registries and repositories the files of projects may choose"),
		auditCommand(a),
		doctorCommand(a),
		serveCommand(a),
		healthCommand(a),
		runCommand(a),
		sessionCommand(a),
		group("connections", "Look at the agents that are connected now, and cut them off"),
		scriptsCommand(a),
		group("token", "Make, list and revoke the tokens of REST and sign-in", tokenCreateCommand(a)),
		mcpConfigCommand(a),
		demoCommand(a),
		versionCommand(a),
		backupCommand(a),
		deployCommand(a),
	)
	a.addOperations(root)
	describeHelp(root)
	if completes(a) {
		addCompletions(a, root)
	}
	return root
}

// globalFlags adds the flags that override a variable of the environment.
func (a *commandLine) globalFlags(root *cobra.Command) {
	a.flags = map[string]*string{}
	for _, f := range []struct{ name, variable, usage string }{
		{"tier", "CLAUDEOPS_TIER", "permission tier: 1, 2 or 3"},
		{"dry-run", "CLAUDEOPS_DRY_RUN", "check everything, write nothing"},
		{"read-only", "CLAUDEOPS_READ_ONLY", "refuse every proposal"},
		{"policy", "CLAUDEOPS_POLICY", "policy file (YAML)"},
		{"state-dir", "CLAUDEOPS_STATE_DIR", "folder of the records"},
		{"local-root", "CLAUDEOPS_LOCAL_ROOT", "folder of local git repositories, as owner/name"},
		{"repos-dir", "CLAUDEOPS_REPOS_DIR", "folder of mounted working copies"},
		{"addr", "CLAUDEOPS_ADDR", "where serve listens, as host:port"},
		{"default-provider", "CLAUDEOPS_DEFAULT_PROVIDER", "provider of repositories that nothing else settles"},
	} {
		a.flags[f.variable] = root.PersistentFlags().String(f.name, "", f.usage+" ("+f.variable+")")
		if f.name == "dry-run" || f.name == "read-only" {
			root.PersistentFlags().Lookup(f.name).NoOptDefVal = "true"
		}
	}
	root.PersistentFlags().StringVar(&a.envFile, "env-file", "",
		"file of variables that the environment lacks (default ~/.config/claudeops/environment, which init writes)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "answer in JSON")
}

// environment reads a variable, flags first.
func (a *commandLine) environment(name string) (string, bool) {
	if flag := a.flags[name]; flag != nil && *flag != "" {
		return *flag, true
	}
	return a.lookup(name)
}

// group makes a command that holds others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: noSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// usageArgs makes wrong arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return wrongArguments(cmd, args)
		}
		return nil
	}
}
