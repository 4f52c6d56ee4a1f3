package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/config"
)

// mcpServerConfig is one entry of a client's configuration file.
type mcpServerConfig struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

func (a *app) mcpConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp-config",
		Short: "Print the MCP client configuration for this binary",
		Long: "mcp-config prints what an MCP client such as Claude Code needs to spawn this binary:\n" +
			"    claudeops mcp-config > mcp.json && claude --mcp-config mcp.json --strict-mcp-config\n" +
			"Variables are referred to, never copied, so the file holds no token.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			if resolved, err := filepath.EvalSymlinks(binary); err == nil {
				binary = resolved
			}
			env := map[string]string{}
			for _, v := range config.ServerVariables() {
				env[v.Name] = "${" + v.Name + ":-" + v.Default + "}"
			}
			return a.printJSON(map[string]any{"mcpServers": map[string]mcpServerConfig{
				"claudeops": {Type: "stdio", Command: binary, Args: []string{"mcp-server"}, Env: env},
			}})
		},
	}
}
