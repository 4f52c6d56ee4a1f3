// Package cli is the command line: a file for the commands of one topic.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Streams are the process's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Sleep passes the pauses between requests to a forge; nil waits for the time to pass. Tests of processes set it.
	Sleep func(context.Context, time.Duration)
}

// Main runs the command line of this process and returns its exit code: 0 done, 2 called wrongly or with unusable
// settings, 3 refused by a gate, 4 provider failure, 5 this machine lacks something that may come by itself, 1 a fault
// of ours, or a check with a negative result.
func Main() int {
	processtree.Conceal() // tokens may stand in the environment, and agents' commands run as the same user
	if len(os.Args) == 2 && os.Args[1] == processtree.ReaperCommand {
		return processtree.Reap()
	}
	if len(os.Args) == 2 && os.Args[1] == sandbox.HelperCommand {
		return sandbox.Enter()
	}
	if len(os.Args) == 3 && os.Args[1] == session.CheckCommand {
		return session.CheckHandoff(os.Args[2], os.Stdin, os.Stdout)
	}
	if name := config.RunAs(os.LookupEnv); name != "" && os.Geteuid() == 0 {
		err := sandbox.RunAs(name, os.Args, os.Environ()) // it starts this program again, and returns only if it cannot
		fmt.Fprintln(os.Stderr, err)
		return fault.ExitUsage
	}
	if exit, is := processtree.Init(os.Environ()); is { // in a container without an init of its own
		return exit
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
}

// Run runs one command. lookup reads the environment.
func Run(ctx context.Context, args []string, streams Streams, lookup func(string) (string, bool)) int {
	a := &commandLine{streams: streams, process: lookup, args: args, file: &environmentFile{}}
	a.lookup = a.withFile()
	defer a.flushLog()
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if a.cmd == nil { // its arguments could not be read
		a.cmd = cmd
	}
	if closeErr := a.program().Close(); err == nil {
		err = closeErr
	}
	var silent silentExit
	switch {
	case err == nil:
		return fault.ExitDone
	case errors.As(err, &silent):
		return int(silent)
	}
	return a.renderError(err)
}

// commandLine holds the state of one run of the command line.
type commandLine struct {
	streams Streams
	lookup  func(string) (string, bool) // a variable of the environment, or of the environment file
	process func(string) (string, bool) // a variable of the environment alone
	file    *environmentFile            // nil where none is read
	envFile string                      // the flag that names another one
	args    []string                    // of the command line
	json    bool
	long    bool               // lists are shown whole
	flags   map[string]*string // environment variable -> the flag that overrides it
	cmd     *cobra.Command
	made    *app.App
	more    []operation.Toolset // beside those of the program; tests add some
	only    string              // the one toolset that is served; "" for those of CLAUDEOPS_TOOLSETS
	folder  string              // that toolsets beside pr look at; "" for the working folder
	logs    *logWriter          // stands before streams.Err in commands that run for long; nil in others
}

// program returns the App of the run, and makes it at the first call.
func (a *commandLine) program() *app.App {
	if a.made == nil {
		a.made = app.New(func() app.Options {
			o := app.Options{
				Lookup: a.lookup, Environment: a.lookupSetting, Sources: a.freshSources, Args: a.args, Out: a.streams.Out,
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
	root := (&commandLine{lookup: func(string) (string, bool) { return "", false }}).rootCommand()
	reflowHelp(root)
	return root
}

// bareRoot returns the root without the commands below it.
func (a *commandLine) bareRoot() *cobra.Command {
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
	return root
}

func (a *commandLine) rootCommand() *cobra.Command {
	root := a.bareRoot()
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
		statusCommand(a),
		dashboardCommand(a),
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
	wrapHelp(a, root)
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
	root.PersistentFlags().BoolVar(&a.long, "long", false, "in lists: every column, nothing cut, times by your clock")
}

// lookupSetting reads a variable, flags first.
func (a *commandLine) lookupSetting(name string) (string, bool) {
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

// environmentFile reads the operator's environment file once for each path. It is safe for concurrent use.
type environmentFile struct {
	mu     sync.Mutex
	read   bool
	path   string
	values map[string]string
	err    error
}

// load returns the contents of the file. A file that was not named explicitly may be missing.
func (f *environmentFile) load(path string, named bool) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read || f.path != path {
		f.read, f.path = true, path
		f.values, f.err = readEnvironmentFile(path, named)
	}
	return f.values, f.err
}

func readEnvironmentFile(path string, named bool) (values map[string]string, err error) {
	if path != "" {
		values, err = config.ReadEnvironmentFile(path)
	}
	if !named && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return values, err
}

// explicitSetting returns a variable by its flag or of the environment, without the environment file.
func (a *commandLine) explicitSetting(name string) string {
	if flag := a.flags[name]; flag != nil && *flag != "" {
		return *flag
	}
	value, _ := a.process(name)
	return value
}

// sources returns the places that settings come from, the strongest first: flags, the environment, the environment file
// as it was when the command began.
func (a *commandLine) sources() config.Sources {
	values := map[string]string{}
	if a.file != nil {
		values, _ = a.file.load(a.environmentPath(a.process)) // checkEnvironmentFile says why it cannot be read
	}
	return a.sourcesWith(values)
}

// freshSources returns sources with the present environment file.
func (a *commandLine) freshSources() (config.Sources, error) {
	if a.file == nil {
		return a.sources(), nil
	}
	values, err := readEnvironmentFile(a.environmentPath(a.process))
	return a.sourcesWith(values), err
}

// sourcesWith returns the sources where the environment file holds the values.
func (a *commandLine) sourcesWith(values map[string]string) config.Sources {
	out := config.Sources{{Name: "the command line", Lookup: func(name string) (string, bool) {
		if flag := a.flags[name]; flag != nil && *flag != "" {
			return *flag, true
		}
		return "", false
	}}}
	if a.process == nil { // of tests
		return append(out, config.Environment(a.lookup)...)
	}
	out = append(out, config.Environment(a.process)...)
	if a.file == nil {
		return out
	}
	path, _ := a.environmentPath(a.process)
	return append(out, config.Source{Name: "the environment file " + path, Lookup: func(name string) (string, bool) {
		value, is := values[name]
		return value, is
	}})
}

// withFile has lookup read the operator's environment file for what the environment lacks.
func (a *commandLine) withFile() func(string) (string, bool) {
	return func(name string) (string, bool) { return a.sources()[1:].Lookup(name) }
}

func (a *commandLine) environmentPath(lookup func(string) (string, bool)) (path string, named bool) {
	if a.envFile != "" {
		return a.envFile, true
	}
	return config.EnvironmentFile(lookup), false
}

// checkEnvironmentFile refuses every command while the environment file cannot be used: unreadable settings are not
// replaced by others.
func (a *commandLine) checkEnvironmentFile() error {
	if a.file == nil || a.cmd.Name() == initName { // init writes the file
		return nil
	}
	if _, err := a.file.load(a.environmentPath(a.process)); err != nil {
		return app.Usage(err)
	}
	return nil
}

// checkSecretFiles refuses every command that has settings while the file of a secret is there and cannot be read: with
// another database or another key it would do other things than the operator wants.
func (a *commandLine) checkSecretFiles() error {
	if slices.Contains([]string{initName, "version"}, a.cmd.Name()) || a.cmd.HasParent() &&
		a.cmd.Parent().Name() == "completion" {
		return nil
	}
	if unreadable := config.UnreadableFiles(a.sources(), forges.All()); len(unreadable) > 0 {
		return app.Usage(errors.New(strings.Join(unreadable, "\n")))
	}
	return nil
}

func versionCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": app.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" +
				runtime.GOARCH}
			return a.print(v, func(w *strings.Builder) {
				fmt.Fprintf(w, "claudeops %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			})
		},
	}
}
