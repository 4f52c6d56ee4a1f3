package app

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/system/files"
)

// McpServerConfig is our entry of a client's configuration file.
type McpServerConfig struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// AlwaysLoad has Claude Code show the tools to the model from the first request on; else the model has to search for
	// them.
	AlwaysLoad bool `json:"alwaysLoad"`
}

// OurName is the name of our server in every client.
const OurName = "claudeops"

// MergedMCP returns the configuration of the agent's MCP client: our own entry, which gets the arguments and the
// environment, and what the mounted repositories may add. An error says that the path of this program is unknown.
func MergedMCP(cfg config.Config, offers mounted.Offers, arguments []string,
	env map[string]string) (mcpconfig.Result, error) {
	binary, err := os.Executable()
	if err != nil {
		return mcpconfig.Result{}, err
	}
	binary = files.Resolve(binary)
	var entry bytes.Buffer
	encoder := json.NewEncoder(&entry)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(McpServerConfig{Type: "stdio", Command: binary, Args: arguments, Env: env,
		AlwaysLoad: true}); err != nil {
		return mcpconfig.Result{}, err
	}
	blank := config.AgentSecrets()
	for _, v := range config.ServerVariables(forges.All()) {
		blank = append(blank, v.Name)
	}
	system := []mcpconfig.System{{Name: "claudeops", JSON: bytes.TrimSpace(entry.Bytes())}}
	return mcpconfig.Merge(system, offers.Contributions(), mcpconfig.Rules{
		Mode: cfg.Mounted.MCP, Env: cfg.Mounted.Env, Blank: blank, Forges: driver.Prefixes(forges.All()), Binary: binary,
	}), nil
}
