package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

// mcpConfigFlags are the flags of mcp-config.
type mcpConfigFlags struct {
	client, address, connectTo, ticket  string
	add, explain, instructions, managed bool
}

func mcpConfigCommand(a *commandLine) *cobra.Command {
	var o mcpConfigFlags
	cmd := &cobra.Command{
		Use:   "mcp-config",
		Short: "Print the MCP client configuration for this binary",
		Long: "mcp-config prints what an MCP client such as Claude Code needs to spawn this binary:\n" +
			"    claudeops mcp-config > mcp.json && claude --mcp-config mcp.json --strict-mcp-config\n" +
			"Variables are referred to, never copied, so the file holds no token. Servers of mounted repositories are merged in as\n" +
			"far as CLAUDEOPS_MOUNTED_MCP admits them; who contributed what, and what was refused, is said on standard error, or\n" +
			"with --explain on standard output instead of the configuration.\n" +
			"With --client it prints what another client reads, with our server alone, or with --add the command that adds it there:\n" +
			"    claudeops mcp-config --client codex >> ~/.codex/config.toml\n" +
			"With --url it prints what a client needs to reach claudeops serve by its address, with the token in " +
			"CLAUDEOPS_AGENT_TOKEN:\n" +
			"    claudeops mcp-config --url https://ops.example.org --client cursor\n" +
			"With --connect it does so for the socket of a claudeops on this machine, with the token in the file that " +
			"--ticket-file names:\n" +
			"    claudeops mcp-config --connect unix:/run/claudeops/mcp.sock --ticket-file ~/.claudeops-token --client cursor\n" +
			"With --instructions it prints what an agent's instructions should say of the operator's scripts, which are tools:\n" +
			"    claudeops mcp-config --instructions >> CLAUDE.md\n" +
			"With --managed-settings it prints what leaves Claude Code on a machine no other way to a forge:\n" +
			"    claudeops mcp-config --managed-settings > /etc/claude-code/managed-settings.json",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return o.run(a) },
	}
	cmd.Flags().StringVar(&o.client, "client", "", "for which client: "+clientNames())
	cmd.Flags().BoolVar(&o.add, "add", false, "print the command that adds our server to the client, instead")
	cmd.Flags().StringVar(&o.address, "url", "",
		"have the client connect to claudeops serve at this address, such as https://ops.example.org, instead")
	cmd.Flags().StringVar(&o.connectTo, "connect", "",
		"have the client connect to a running claudeops at this socket, such as unix:/run/claudeops/mcp.sock, instead")
	cmd.Flags().StringVar(&o.ticket, "ticket-file", "",
		"with --connect: file that holds the token; only its path is printed")
	cmd.Flags().BoolVar(&o.instructions, "instructions", false,
		"print what an agent's instructions should say of the operator's scripts, instead")
	cmd.Flags().BoolVar(&o.managed, "managed-settings", false,
		"print settings by which an administrator leaves Claude Code no other way to a forge, instead")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "say who contributed what and what was refused, instead")
	return cmd
}

func (o mcpConfigFlags) run(a *commandLine) error {
	if err := checkClientFlags(o.client, o.add, o.explain, o.instructions); err != nil {
		return err
	}
	switch {
	case o.managed:
		if a.cmd.Flags().NFlag() > 1 {
			return app.Usage(errors.New("--managed-settings goes without other flags"))
		}
		return printManagedSettings(a)
	case o.address != "":
		if o.connectTo != "" || o.ticket != "" || o.explain || o.instructions {
			return app.Usage(errors.New("--url goes with --client and --add alone"))
		}
		return printAddress(a, o.client, o.add, o.address)
	case o.connectTo != "" || o.ticket != "":
		return printConnector(a, o.client, o.add, o.connectTo, o.ticket)
	case o.instructions:
		return printInstructions(a)
	case o.client == "" || o.client == "claude" && !o.add:
		return runMCPConfig(a, o.explain)
	}
	c, err := findClient(o.client)
	if err != nil {
		return err
	}
	return printForClient(a, c, o.add)
}

// printManagedSettings prints what an administrator puts into Claude Code's managed-settings.json, so that agents which
// people start by themselves have no other way to a forge than this server. The servers themselves are in
// managed-mcp.json, which mcp-config prints.
func printManagedSettings(a *commandLine) error {
	type object = map[string]any
	return a.printJSON(object{
		"permissions": object{
			"allow":                        []string{"mcp__" + app.OurName},
			"deny":                         []string{"WebFetch", "WebSearch"},
			"disableBypassPermissionsMode": "disable",
		},
		// Rules, hooks and servers of people and projects do not count.
		"allowManagedPermissionRulesOnly": true,
		"allowManagedHooksOnly":           true,
		"allowManagedMcpServersOnly":      true,
		// A server of managed-mcp.json whose entry refers to a variable has to be listed.
		"allowedMcpServers": []object{{"serverName": app.OurName}},
		// Commands of the agent run without a network. The server keeps it: Claude Code starts it outside of the sandbox.
		"sandbox": object{
			"enabled": true, "failIfUnavailable": true, "allowUnsandboxedCommands": false,
			"network": object{"allowedDomains": []string{}, "allowManagedDomainsOnly": true},
		},
	})
}

func runMCPConfig(a *commandLine, explain bool) error {
	cfg := config.Load(a.sources(), forges.All())
	for _, warning := range cfg.Warnings {
		a.streams.printWarning("%s", warning)
	}
	offers := config.Repos{Dir: cfg.Mounted.Dir}.Offers()
	merged, err := app.MergedMCP(cfg, offers, serverArguments(a), referredEnvironment(a))
	if err != nil {
		return err
	}
	advice, noScripts := app.ScriptAdvice(a.program(), cfg)
	if explain {
		return a.print(map[string]any{"mcp": merged, "mounted": offers, "prompt": offers.Text(), "instructions": advice},
			func(w *strings.Builder) {
				explainMCP(w, merged)
				explainOffers(w, offers)
				w.WriteString(advice)
			})
	}
	noteScripts(a, cfg, advice, noScripts)
	var b strings.Builder
	if len(merged.Refused) > 0 || len(merged.Servers) > 1 {
		explainMCP(&b, merged)
	}
	for _, problem := range offers.Problems { // a folder that is left out may have had servers
		fmt.Fprintf(&b, "problem  %s: %s\n", offers.Dir, problem)
	}
	fmt.Fprint(a.streams.Err, surfaceOf(a, a.streams.Err).lay(b.String()))
	return a.printJSON(merged.Config())
}

// noteScripts says on standard error which scripts the server has as tools, where it has the toolset.
func noteScripts(a *commandLine, cfg config.Config, advice, problem string) {
	if !slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return
	}
	if advice == "" {
		a.streams.printWarning("%s", textscan.Clean(problem, maxNote))
		return
	}
	fmt.Fprintf(a.streams.Err,
		"claudeops: put this into the agent's instructions (mcp-config --instructions prints it alone):\n\n%s\n",
		textscan.Clean(advice, maxNote))
}

// maxNote bounds the text about scripts, in bytes.
const maxNote = 64 << 10

// printInstructions prints what an agent's instructions should say of scripts.
func printInstructions(a *commandLine) error {
	advice, problem := app.ScriptAdvice(a.program(), config.Load(a.sources(), forges.All()))
	if advice == "" {
		return fault.New(fault.Misconfigured, "there are no scripts to tell of: %s", problem)
	}
	return a.print(map[string]string{"instructions": advice}, func(w *strings.Builder) {
		fmt.Fprintf(w, "## Scripts of the operator\n\n%s", advice)
	})
}

// claudeReference returns a reference to a variable in a configuration of Claude Code. One that is not set becomes
// empty, which counts as unset: a default in its place would take precedence over the environment file. Only the server
// knows defaults.
func claudeReference(v config.Variable) string { return "${" + v.Name + ":-}" }

// referredEnvironment hands our server its variables by reference: the client expands them when it starts the server.
func referredEnvironment(a *commandLine) map[string]string {
	env := map[string]string{}
	for _, v := range clientVariables(a) {
		env[v.Name] = claudeReference(v)
	}
	return env
}

func explainMCP(w *strings.Builder, merged mcpconfig.Result) {
	var rows [][]string
	for _, s := range merged.Servers {
		from := s.From
		if from == "" {
			from = "Claude Ops"
		}
		rows = append(rows, []string{"server", s.Name, s.Type, "from " + from, s.Target})
	}
	columns(w, rows)
	for _, r := range merged.Refused {
		fmt.Fprintf(w, "refused  %s\n", r)
	}
}

func explainOffers(w *strings.Builder, offers config.Offers) {
	for _, r := range offers.Repositories {
		fmt.Fprintf(w, "mounted  %s: %s, %s, %s\n", r.Folder, fault.Count(len(r.Checks), "check", "checks"),
			fault.Count(len(r.Playbooks), "playbook", "playbooks"), fault.Count(len(r.Skills), "skill", "skills"))
		for _, problem := range r.Problems {
			fmt.Fprintf(w, "problem  %s: %s\n", r.Folder, problem)
		}
	}
	for _, problem := range offers.Problems {
		fmt.Fprintf(w, "problem  %s: %s\n", offers.Dir, problem)
	}
}

// printAddress prints what a client needs to reach a claudeops serve by its address. The token stays in a variable.
func printAddress(a *commandLine, client string, add bool, given string) error {
	at, err := mcpconfig.Address(given)
	if err != nil {
		return app.Usage(fmt.Errorf("--url: %w", err))
	}
	if lowered := loweredFlags(a); len(lowered) > 0 {
		return app.Usage(fmt.Errorf("by its address an agent has the rights of its token: make that with "+
			"`claudeops token create --agent %s`, and leave the flags out here", strings.Join(lowered, " ")))
	}
	forms := mcpconfig.AddressForms()
	found := slices.IndexFunc(forms, func(f mcpconfig.AddressForm) bool { return f.Client == cmp.Or(client, "claude") })
	if found < 0 {
		return app.Usage(fmt.Errorf("--client is one of %s", clientNames()))
	}
	form := forms[found]
	text := form.Text(at)
	if add {
		words := form.Add(at)
		if words == nil {
			return app.Usage(
				fmt.Errorf("%s has no command that adds a server; put what mcp-config --url %s --client %s prints into %s",
					form.Client, given, form.Client, form.File))
		}
		text = mcpconfig.ShellLine(words) + "\n"
	} else {
		fmt.Fprintf(a.streams.Err, "claudeops: this belongs into %s\n", form.File)
	}
	fmt.Fprintf(a.streams.Err,
		"claudeops: where %s starts, set %s to the agent's token (claudeops token create --agent)\n", form.Client,
		mcpconfig.TokenVariable)
	_, err = fmt.Fprint(a.streams.Out, strings.TrimRight(text, "\n")+"\n")
	return err
}

// printConnector prints what a client needs to reach a claudeops that runs already: an address and the path of a file,
// and no variable or secret.
func printConnector(a *commandLine, client string, add bool, address, ticket string) error {
	server, err := ourServer(nil)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(address, "unix:/") {
		return app.Usage(
			errors.New("--connect is a socket such as unix:/run/claudeops/mcp.sock; for https://ops.example.org there is --url"))
	}
	command := app.ConnectorCommand(server.Command)
	server.Command, server.Args = command[0], append(command[1:], "--connect", address)
	if ticket != "" {
		path, err := filepath.Abs(ticket)
		if err != nil {
			return err
		}
		server.Args = append(server.Args, "--ticket-file", path)
	}
	server.Args = append(server.Args, loweredFlags(a)...)
	if client == "" {
		client = "claude"
	}
	c, err := findClient(client)
	if err != nil {
		return err
	}
	var text string
	switch {
	case !add:
		fmt.Fprintf(a.streams.Err, "claudeops: this belongs into %s\n", c.file)
		text, err = c.print(c, server, nil)
	case c.add == nil:
		return app.Usage(fmt.Errorf("%s has no command that adds a server; put what mcp-config --client %s prints into %s",
			c.name, c.name, c.file))
	default:
		text, err = c.add(c, server, nil, func(string) string { return "" })
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.streams.Out, strings.TrimRight(text, "\n"))
	return err
}

// loweredFlags returns the flags of the command line that take rights from a connection, as both connectors know them.
func loweredFlags(a *commandLine) (flags []string) {
	if tier := *a.flags["CLAUDEOPS_TIER"]; tier != "" {
		flags = append(flags, "--tier", tier)
	}
	if givenUp(*a.flags["CLAUDEOPS_DRY_RUN"]) {
		flags = append(flags, "--dry-run")
	}
	if givenUp(*a.flags["CLAUDEOPS_READ_ONLY"]) {
		flags = append(flags, "--read-only")
	}
	return flags
}

// clientVariables returns the variables that the server started by the client reads: ours, and those that the
// operator's files name. A file that cannot be read is reported, and names nothing.
func clientVariables(a *commandLine) []config.Variable {
	cfg := config.Load(a.sources(), forges.All())
	out := config.ClientVariables(forges.All(), cfg.Permissions.Toolsets)
	add := func(name, meaning string) {
		if !slices.ContainsFunc(out, func(v config.Variable) bool { return v.Name == name }) {
			out = append(out, config.Variable{Name: name, Meaning: meaning, Secret: true}) // its value may be one
		}
	}
	for _, name := range sorted(namedTokens(a, cfg)) {
		add(name, "token that a file of the operator names")
		add(name+"_FILE", "file of "+name)
	}
	for _, name := range sorted(scriptVariables(a, cfg)) {
		add(name, "variable that scripts may see")
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// namedTokens returns the variables that the operator's files name as token_env: of registries of definitions, and of
// sources.
func namedTokens(a *commandLine, cfg config.Config) (names []string) {
	uses := func(toolset string) bool { return slices.Contains(cfg.Permissions.Toolsets, toolset) }
	if uses(definitions.ToolsetName) {
		d := cfg.Tools.Definitions
		folder, err := app.WorkingFolder(a.program())
		if err != nil {
			folder = "" // of no project
		}
		named, err := definitions.TokenVariables(definitions.ConfigOptions{File: d.ConfigFile, Project: folder, Home: d.Home})
		if err != nil {
			a.streams.printWarning(
				"the registries of definitions cannot be read, so that the variables with their tokens are missing: %s", err)
		}
		names = append(names, named...)
	}
	if !uses(definitions.ToolsetName) && !uses(deploy.ToolsetName) && !uses(packages.ToolsetName) {
		return names
	}
	p := &app.Parts{Cfg: cfg, Rules: app.NewRules(a.freshSources, slog.New(slog.DiscardHandler))}
	allowed, err := p.AllowedSources().Load()
	if err != nil {
		a.streams.printWarning("%s; the variables with tokens of sources are missing", err)
	}
	for _, s := range slices.Concat(p.Rules.Now().Policy.Server.Sources, allowed) {
		if s.TokenEnv != "" {
			names = append(names, s.TokenEnv)
		}
	}
	return names
}

// scriptVariables returns the variables that the settings of scripts name, without those that no script sees.
func scriptVariables(a *commandLine, cfg config.Config) (names []string) {
	if !slices.Contains(cfg.Permissions.Toolsets, scripts.ToolsetName) {
		return nil
	}
	settings, err := app.ScriptSettings(a.program())
	if err != nil {
		return nil // which is said with the scripts
	}
	return slices.DeleteFunc(slices.Clone(settings.Env), func(name string) bool { return !cfg.ScriptSees(name) })
}
