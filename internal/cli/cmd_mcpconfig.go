package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/doctor"
	"github.com/claudeops/claudeops/internal/forges"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/mcpconfig"
	"github.com/claudeops/claudeops/internal/mounted"
)

// mcpServerConfig is our entry of a client's configuration file.
type mcpServerConfig struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

func (a *app) mcpConfigCommand() *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "mcp-config",
		Short: "Print the MCP client configuration for this binary",
		Long: "mcp-config prints what an MCP client such as Claude Code needs to spawn this binary:\n" +
			"    claudeops mcp-config > mcp.json && claude --mcp-config mcp.json --strict-mcp-config\n" +
			"Variables are referred to, never copied, so the file holds no token. Servers of mounted repositories are merged in as\n" +
			"far as CLAUDEOPS_MOUNTED_MCP admits them; who contributed what, and what was refused, is said on standard error, or\n" +
			"with --explain on standard output instead of the configuration.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.mcpConfig(explain) },
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "say who contributed what and what was refused, instead")
	return cmd
}

func (a *app) mcpConfig(explain bool) error {
	cfg := config.Load(a.environment, forges.All())
	for _, warning := range cfg.Warnings {
		fmt.Fprintf(a.streams.Err, "claudeops: %s\n", warning)
	}
	offers := mounted.Repos{Dir: cfg.Mounted.Dir}.Offers()
	merged, err := mergedMCP(cfg, offers, referredEnvironment())
	if err != nil {
		return err
	}
	if explain {
		return a.print(map[string]any{"mcp": merged, "mounted": offers, "prompt": offers.Text()}, func(w *strings.Builder) {
			explainMCP(w, merged)
			explainOffers(w, offers)
		})
	}
	var b strings.Builder
	if len(merged.Refused) > 0 || len(merged.Servers) > 1 {
		explainMCP(&b, merged)
	}
	for _, problem := range offers.Problems { // a folder that is left out may have had servers
		fmt.Fprintf(&b, "problem  %s: %s\n", offers.Dir, problem)
	}
	fmt.Fprint(a.streams.Err, b.String())
	return a.printJSON(merged.Config())
}

// referredEnvironment hands our server its variables by reference: the client expands them when it starts the server.
func referredEnvironment() map[string]string {
	env := map[string]string{}
	for _, v := range config.ServerVariables(forges.All()) {
		env[v.Name] = "${" + v.Name + ":-" + v.Default + "}"
	}
	return env
}

// mergedMCP is the configuration of the agent's MCP client: our own entry, which gets the environment, and what the
// mounted repositories may add. An error says that the path of this program is unknown.
func mergedMCP(cfg config.Config, offers mounted.Offers, env map[string]string) (mcpconfig.Result, error) {
	binary, err := os.Executable()
	if err != nil {
		return mcpconfig.Result{}, err
	}
	if resolved, err := filepath.EvalSymlinks(binary); err == nil {
		binary = resolved
	}
	var entry bytes.Buffer
	encoder := json.NewEncoder(&entry)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(mcpServerConfig{Type: "stdio", Command: binary, Args: []string{"mcp-server"}, Env: env}); err != nil {
		return mcpconfig.Result{}, err
	}
	var contributions []mcpconfig.Contribution
	for _, r := range offers.Repositories {
		if r.MCP != nil {
			contributions = append(contributions, mcpconfig.Contribution{From: r.Folder, Text: r.MCP.Text, Problem: r.MCP.Problem})
		}
	}
	blank := config.AgentSecrets()
	for _, v := range config.ServerVariables(forges.All()) {
		blank = append(blank, v.Name)
	}
	system := []mcpconfig.System{{Name: "claudeops", JSON: bytes.TrimSpace(entry.Bytes())}}
	return mcpconfig.Merge(system, contributions, mcpconfig.Rules{
		Mode: cfg.Mounted.MCP, Env: cfg.Mounted.Env, Blank: blank, Forges: driver.Prefixes(forges.All()), Binary: binary,
	}), nil
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

func explainOffers(w *strings.Builder, offers mounted.Offers) {
	for _, r := range offers.Repositories {
		fmt.Fprintf(w, "mounted  %s: %d checks, %d playbooks, %d skills\n", r.Folder, len(r.Checks), len(r.Playbooks), len(r.Skills))
		for _, problem := range r.Problems {
			fmt.Fprintf(w, "problem  %s: %s\n", r.Folder, problem)
		}
	}
	for _, problem := range offers.Problems {
		fmt.Fprintf(w, "problem  %s: %s\n", offers.Dir, problem)
	}
}

// mountedFinding says what is mounted, and how much of it is left out.
func (p *parts) mountedFinding() doctor.Finding {
	f := doctor.Finding{Name: "mounted repositories", Status: "ok"}
	info, err := os.Stat(p.cfg.Mounted.Dir)
	if err != nil || !info.IsDir() {
		f.Status, f.Detail = "off", p.cfg.Mounted.Dir+" is no folder"
		if p.cfg.Mounted.Dir != config.DefaultReposDir {
			f.Status, f.Detail = "warning", f.Detail+"; correct CLAUDEOPS_REPOS_DIR"
		}
		return f
	}
	offers := mounted.Repos{Dir: p.cfg.Mounted.Dir}.Offers()
	problems := len(offers.Problems)
	for _, r := range offers.Repositories {
		problems += len(r.Problems)
	}
	f.Detail = fmt.Sprintf("%s: %d, which may name their provider and offer procedures", p.cfg.Mounted.Dir, len(offers.Repositories))
	merged, err := mergedMCP(p.cfg, offers, nil)
	if err != nil {
		f.Status, f.Detail = "warning", f.Detail+"; their MCP servers cannot be merged: "+err.Error()
		return f
	}
	if refused := len(merged.Refused); refused > 0 || problems > 0 {
		f.Status = "warning"
		f.Detail += fmt.Sprintf("; %d contributions refused, %d problems: see claudeops mcp-config --explain", refused, problems)
	}
	if n := len(merged.Servers) - 1; n > 0 {
		f.Detail += fmt.Sprintf("; MCP servers merged: %d", n)
	}
	return f
}
