package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
)

// mcpClient is a program that can start our MCP server, and how to configure it.
type mcpClient struct {
	name, file string
	// refer returns a reference of its configuration to a variable of its own environment; nil where it lists the names,
	// and passes on no others, those of the system included.
	refer func(v config.Variable) string
	// always says that the tools are shown to the model from the first request on, where it would search for them
	// otherwise.
	always bool
	// file's content, and the command that adds the server; add is nil where the client has none.
	print func(c mcpClient, s app.McpServerConfig, names []config.Variable) (string, error)
	add   func(c mcpClient, s app.McpServerConfig, set []config.Variable, value func(string) string) (string, error)
}

func mcpClients() []mcpClient {
	inShell := func(v config.Variable) string { return "${" + v.Name + "}" }
	inEditor := func(v config.Variable) string { return "${env:" + v.Name + "}" }
	return []mcpClient{
		{name: "claude", file: ".mcp.json of a project",
			refer:  claudeReference,
			always: true, print: servers("mcpServers", true), add: addToClaude},
		{name: "codex", file: "~/.codex/config.toml", print: codexTOML, add: addToCodex},
		{name: "gemini", file: "~/.gemini/settings.json", refer: inShell, print: servers("mcpServers", false),
			add: addToGemini},
		{name: "cursor", file: "~/.cursor/mcp.json", refer: inEditor, print: servers("mcpServers", true)},
		{name: "vscode", file: ".vscode/mcp.json, or mcp.json of the user's profile", refer: inEditor,
			print: servers("servers", true), add: addToVSCode},
	}
}

func clientNames() string {
	var names []string
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// findClient returns the client with the name.
func findClient(name string) (mcpClient, error) {
	for _, c := range mcpClients() {
		if c.name == name {
			return c, nil
		}
	}
	return mcpClient{}, app.Usage(fmt.Errorf("--client is one of %s", clientNames()))
}

// ourServer returns our entry of a client's configuration, without its environment.
func ourServer(arguments []string) (app.McpServerConfig, error) {
	binary, err := os.Executable()
	if err != nil {
		return app.McpServerConfig{}, err
	}
	return app.McpServerConfig{Type: "stdio", Command: files.Resolve(binary), Args: arguments}, nil
}

// serverArguments returns the arguments with which a client starts our server: the flags that were given here hold
// there, too. Paths are absolute, since a client starts it in another folder.
func serverArguments(a *commandLine) []string {
	out := []string{"mcp-server"}
	a.cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		if !f.Changed || value == "" {
			return
		}
		switch f.Name {
		case "json", "addr":
			return
		case "env-file", "policy", "state-dir", "local-root", "repos-dir":
			if abs, err := filepath.Abs(value); err == nil {
				value = abs
			}
		}
		out = append(out, "--"+f.Name+"="+value)
	})
	return out
}

// printForClient prints what a client reads, or the command that adds our server to it. It holds no secret.
func printForClient(a *commandLine, c mcpClient, add bool) error {
	server, err := ourServer(serverArguments(a))
	if err != nil {
		return err
	}
	if !add {
		cfg := config.Load(a.sources(), forges.All())
		names := clientVariables(a)
		if c.refer == nil {
			names = append(names, variablesByName(config.SystemVariables(cfg.Permissions.Toolsets))...)
		}
		text, err := c.print(c, server, names)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.streams.Err, "claudeops: this belongs into %s\n", c.file)
		advice, problem := app.ScriptAdvice(a.program(), cfg)
		noteScripts(a, cfg, advice, problem)
		_, err = fmt.Fprint(a.streams.Out, text)
		return err
	}
	if c.add == nil {
		return app.Usage(fmt.Errorf("%s has no command that adds a server; put what mcp-config --client %s prints into %s",
			c.name, c.name, c.file))
	}
	value := func(name string) string {
		v, _ := a.lookupSetting(name)
		return v
	}
	var set []config.Variable // the others have their defaults
	for _, v := range clientVariables(a) {
		if value(v.Name) != "" {
			set = append(set, v)
		}
	}
	line, err := c.add(c, server, set, value)
	if err != nil {
		return err
	}
	if secret := secretsAmong(set); c.refer == nil && len(secret) > 0 {
		fmt.Fprintf(a.streams.Err,
			"claudeops: %s keeps values in %s and this command names no secret: for %s add what mcp-config --client %s prints "+
				"to that file instead\n",
			c.name, c.file, strings.Join(secret, ", "), c.name)
	}
	_, err = fmt.Fprintln(a.streams.Out, line)
	return err
}

func variablesByName(names []string) (variables []config.Variable) {
	for _, name := range names {
		variables = append(variables, config.Variable{Name: name})
	}
	return variables
}

func secretsAmong(variables []config.Variable) (names []string) {
	for _, v := range variables {
		if v.Secret {
			names = append(names, v.Name)
		}
	}
	return names
}

// servers prints a JSON object of servers. typed says that the client needs the transport in the entry.
func servers(key string, typed bool) func(mcpClient, app.McpServerConfig, []config.Variable) (string, error) {
	return func(c mcpClient, s app.McpServerConfig, names []config.Variable) (string, error) {
		return indentedJSON(map[string]any{key: map[string]any{app.OurName: entryOf(c, s, names, typed)}})
	}
}

func entryOf(c mcpClient, s app.McpServerConfig, names []config.Variable, typed bool) map[string]any {
	env := map[string]string{}
	for _, v := range names {
		env[v.Name] = c.refer(v)
	}
	entry := map[string]any{"command": s.Command, "args": s.Args, "env": env}
	if typed {
		entry["type"] = s.Type
	}
	if c.always {
		entry["alwaysLoad"] = true
	}
	return entry
}

// codexTOML returns a table of config.toml. Codex hands its servers few variables of its own; env_vars names more,
// whose values stay where they are.
func codexTOML(_ mcpClient, s app.McpServerConfig, names []config.Variable) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\ncommand = %s\nargs = [", app.OurName, tomlText(s.Command))
	for i, arg := range s.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(tomlText(arg))
	}
	b.WriteString("]\nenv_vars = [\n")
	for _, v := range names {
		fmt.Fprintf(&b, "  %s,\n", tomlText(v.Name))
	}
	b.WriteString(
		"]\n# What is permitted is for the server to decide. Without this a session that nobody attends is refused each " +
			"call that writes.\n" +
			"default_tools_approval_mode = \"approve\"\n")
	return b.String(), nil
}

// tomlText returns a basic string of TOML, which JSON's strings are, but for U+007F.
func tomlText(text string) string {
	quoted, err := compactJSON(text)
	if err != nil {
		return `""` // a string can always be encoded
	}
	return strings.ReplaceAll(quoted, "\x7f", `\u007f`)
}

// addToClaude needs no variables: Claude Code hands its own environment to its servers.
func addToClaude(c mcpClient, s app.McpServerConfig, _ []config.Variable, _ func(string) string) (string, error) {
	entry := entryOf(c, s, nil, true)
	delete(entry, "env")
	text, err := compactJSON(entry)
	return mcpconfig.ShellLine([]string{"claude", "mcp", "add-json", "--scope", "user", app.OurName, text}), err
}

// addToCodex gives settings by value, since the command has no other way, and no secret.
func addToCodex(_ mcpClient, s app.McpServerConfig, set []config.Variable, value func(string) string) (string, error) {
	words := []string{"codex", "mcp", "add", app.OurName}
	for _, v := range set {
		if !v.Secret {
			words = append(words, "--env", v.Name+"="+value(v.Name))
		}
	}
	return mcpconfig.ShellLine(slices.Concat(words, []string{"--", s.Command}, s.Args)), nil
}

func addToGemini(c mcpClient, s app.McpServerConfig, set []config.Variable, _ func(string) string) (string, error) {
	words := slices.Concat([]string{"gemini", "mcp", "add", "--scope", "user", app.OurName, s.Command}, s.Args)
	for _, v := range set {
		words = append(words, "-e", v.Name+"="+c.refer(v))
	}
	return mcpconfig.ShellLine(words), nil
}

func addToVSCode(c mcpClient, s app.McpServerConfig, set []config.Variable, _ func(string) string) (string, error) {
	entry := entryOf(c, s, set, true)
	entry["name"] = app.OurName
	text, err := compactJSON(entry)
	return mcpconfig.ShellLine([]string{"code", "--add-mcp", text}), err
}

func encodedJSON(v any, indent string) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(v)
	return string(textscan.EscapeJSON([]byte(b.String()))), err
}

func indentedJSON(v any) (string, error) { return encodedJSON(v, "  ") }

func compactJSON(v any) (string, error) {
	text, err := encodedJSON(v, "")
	return strings.TrimSpace(text), err
}

// checkClientFlags refuses flags that do not go together.
func checkClientFlags(client string, add, explain, instructions bool) error {
	if instructions && (client != "" || add || explain) {
		return app.Usage(errors.New("--instructions goes without the other flags"))
	}
	if add && client == "" {
		return app.Usage(errors.New("--add goes with --client"))
	}
	if explain && client != "" {
		return app.Usage(errors.New("--explain tells of what is merged for Claude Code, and goes without --client"))
	}
	return nil
}
