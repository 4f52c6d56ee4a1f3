package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
)

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
