package agentdocs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
)

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
			t.Errorf("%+v is no command for every tier", tool)
		}
		commands = append(commands, strings.TrimSuffix(command, ")"))
	}
	if want := reading(); sessions.Problem != "" || !slices.Equal(commands, want) {
		t.Errorf("problem %q, commands %q, want %q", sessions.Problem, commands, want)
	}
}
