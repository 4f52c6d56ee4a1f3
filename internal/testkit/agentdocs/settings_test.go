package agentdocs

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/config"
)

type mcpConfig struct {
	Servers map[string]struct {
		Type    string            `json:"type"`
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	} `json:"mcpServers"`
}

func decodeStrictly(t *testing.T, name string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(read(t, name)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestMCPConfigStartsTheContainersBinary(t *testing.T) {
	t.Parallel()
	var config mcpConfig
	decodeStrictly(t, ".claude/mcp.json", &config)
	server, ok := config.Servers[serverName]
	if !ok || len(config.Servers) != 1 {
		t.Fatalf("registers %q, want only %s", slices.Sorted(maps.Keys(config.Servers)), serverName)
	}
	if server.Type != "stdio" || server.Command != containerBinary || !slices.Equal(server.Args, []string{"mcp-server"}) {
		t.Errorf("starts %s %q as %s, want %s mcp-server as stdio", server.Command, server.Args, server.Type, containerBinary)
	}
}

// Claude Code passes ${NAME} on literally when the variable is missing, so that the form with a default is used. The
// default is empty, which is unset: another one would beat the operator's environment file.
func TestTheFilesOfDeploymentHandEveryVariableToTheServer(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i, v := range config.ServerVariables(forges.All()) {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n        \"%s\": \"${%[1]s:-}\"", v.Name)
	}
	const head = "\"env\": {"
	before, after, _ := strings.Cut(read(t, ".claude/mcp.json"), head)
	end := strings.Index(after, "\n      }")
	text := before + head + b.String() + after[end:]
	operationtest.Golden(t, filepath.Join("..", "..", "..", ".claude", "mcp.json"), []byte(text))
	if tier, ok := gitprovider.ParseTier(serverVariables()["CLAUDEOPS_TIER"]); !ok || tier != gitprovider.TierObserve {
		t.Errorf("the default tier is %v, want the lowest", tier)
	}
}

type claudeSettings struct {
	Schema      string `json:"$schema"`
	Permissions struct {
		Allow                        []string `json:"allow"`
		Deny                         []string `json:"deny"`
		AdditionalDirectories        []string `json:"additionalDirectories"`
		DisableBypassPermissionsMode string   `json:"disableBypassPermissionsMode"`
	} `json:"permissions"`
}

func TestSettingsOpenTheDoorAndNoOther(t *testing.T) {
	t.Parallel()
	var settings claudeSettings
	decodeStrictly(t, ".claude/settings.json", &settings)
	allow, deny := settings.Permissions.Allow, settings.Permissions.Deny
	for _, tool := range toolNames() {
		if !slices.Contains(allow, "mcp__"+serverName+"__"+tool) {
			t.Errorf("%s is not allowed", tool)
		}
	}
	for _, rule := range allow {
		if strings.HasPrefix(rule, "Bash") || strings.HasPrefix(rule, "Edit") || strings.HasPrefix(rule, "Write") {
			t.Errorf("%s: what the shell may do depends on the tier, and no tier edits files", rule)
		}
	}
	for _, rule := range []string{
		"Edit(/prompts/**)", "Edit(/.claude/**)", "Edit(//app/**)", "Edit(//repos/**)",
		"Bash(git push *)", "Bash(git * push)", "Bash(git * push *)", "Bash(gh *)", "Bash(curl *github.com*)",
		"Bash(claudeops *)", "Bash(" + containerBinary + " *)",
	} {
		if !slices.Contains(deny, rule) {
			t.Errorf("%s is not denied", rule)
		}
	}
	if settings.Permissions.DisableBypassPermissionsMode != "disable" {
		t.Error("a session could skip the permissions")
	}
}

// Claude Code checks the paths of all editing tools against Edit rules only; a Write(path) rule would do nothing
// (code.claude.com/docs/en/permissions).
func TestSettingsHaveNoRuleThatIsNeverConsulted(t *testing.T) {
	t.Parallel()
	var settings claudeSettings
	decodeStrictly(t, ".claude/settings.json", &settings)
	for _, rule := range slices.Concat(settings.Permissions.Allow, settings.Permissions.Deny) {
		for _, useless := range []string{"Write(", "MultiEdit(", "NotebookEdit("} {
			if strings.HasPrefix(rule, useless) {
				t.Errorf("%s is never consulted; write it as Edit(...)", rule)
			}
		}
	}
}

// reading are the only commands that the permissions which we recommend may name. None of them has an option that
// changes anything.
func reading() []string {
	return []string{
		"df *", "free *", "uptime *", "lsblk *", "systemctl status *", "systemctl show *", "systemctl is-active *",
		"systemctl list-units *",
		"systemctl list-timers *", "docker ps *", "docker stats --no-stream *", "docker system df", "docker logs *",
	}
}

func TestThePermissionsToBeginWithOnlyRead(t *testing.T) {
	line := regexp.MustCompile(`(?m)^(?:# )?CLAUDEOPS_AGENT_TOOLS=(.+)$`)
	example, docs := line.FindStringSubmatch(read(t,
		".env.example")), regexp.MustCompile(`(?m)^CLAUDEOPS_AGENT_TOOLS=(.+)$`).FindStringSubmatch(read(t,
		"docs/guides/sessions.md"))
	if example == nil || docs == nil || example[1] != docs[1] {
		t.Fatalf("not one line in both:\n%q\n%q", example, docs)
	}
	sessions := config.Load(config.Environment(func(name string) (string, bool) {
		if name != "CLAUDEOPS_AGENT_TOOLS" {
			return "", false
		}
		return example[1], true
	}), forges.All()).Sessions
	var commands []string
	for _, tool := range sessions.Tools {
		command, is := strings.CutPrefix(tool.Rule, "Bash(")
		if !is || tool.From != 1 {
			t.Errorf("%+v is not a command for every tier", tool)
		}
		commands = append(commands, strings.TrimSuffix(command, ")"))
	}
	if want := reading(); sessions.Problem != "" || !slices.Equal(commands, want) {
		t.Errorf("problem %q, commands %q, want %q", sessions.Problem, commands, want)
	}
}
