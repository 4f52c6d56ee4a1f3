package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

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
