package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// printConnector prints what a client needs to reach a claudeops that runs already: an address and the path of a file, and no variable or secret.
func printConnector(a *commandLine, client string, add bool, address, ticket string) error {
	server, err := ourServer()
	if err != nil {
		return err
	}
	command := app.ConnectorCommand(server.Command)
	if !strings.HasPrefix(address, "unix:/") {
		if err := checkServerAddress(address, ticket); err != nil {
			return err
		}
		command = []string{server.Command, "mcp-server"} // the small program speaks no HTTP
	}
	server.Command, server.Args = command[0], append(command[1:], "--connect", address)
	if ticket != "" {
		path, err := filepath.Abs(ticket)
		if err != nil {
			return err
		}
		server.Args = append(server.Args, "--ticket-file", path)
	}
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
		var names []config.Variable
		if c.refer == nil && !strings.HasPrefix(address, "unix:") {
			names = named(config.NetworkVariables())
		}
		text, err = c.print(c, server, names)
	case c.add == nil:
		return app.Usage(fmt.Errorf("%s has no command that adds a server; put what mcp-config --client %s prints into %s", c.name, c.name, c.file))
	default:
		text, err = c.add(c, server, nil, func(string) string { return "" })
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.streams.Out, strings.TrimRight(text, "\n"))
	return err
}

// checkServerAddress says what is wrong with the address of a server elsewhere, or with what is given beside it.
func checkServerAddress(address, ticket string) error {
	scheme, _, _ := strings.Cut(address, ":")
	if scheme != "http" && scheme != "https" {
		return app.Usage(errors.New("--connect is an address such as unix:/run/claudeops/mcp.sock or https://ops.example.org"))
	}
	if err := remote.Check(address); err != nil {
		return app.Usage(fmt.Errorf("--connect: %w", err))
	}
	if ticket == "" {
		return app.Usage(errors.New("--ticket-file is needed with such an address: it names the file with the agent's token (claudeops token create --agent)"))
	}
	return nil
}
