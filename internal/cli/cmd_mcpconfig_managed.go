package cli

import "github.com/claudeops/claudeops/internal/app"

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
