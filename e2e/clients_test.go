//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherClientsOfferOurToolsToTheirModels holds that the real clients take what mcp-config prints: the request to
// their model has our three tools, and the server that they start has its tier by reference.
func TestOtherClientsOfferOurToolsToTheirModels(t *testing.T) {
	for _, c := range []client{codex(), gemini()} {
		t.Run(c.name, func(t *testing.T) {
			sent, _, got := c.converse(t, newWorld(t, "2"), scripted())
			for _, tool := range c.namesOfOurOwn {
				if !strings.Contains(sent, tool) {
					t.Errorf("the model was not told of %s (exit %d): %s%s", tool, got.code, got.stdout, got.stderr)
				}
			}
		})
	}
}

// The commands that --add prints are run as they are, and the clients list our server.
func TestTheCommandsOfOtherClientsAddOurServer(t *testing.T) {
	for name, settings := range map[string]string{"claude": ".claude.json", "codex": ".codex/config.toml",
		"gemini": ".gemini/settings.json"} {
		t.Run(name, func(t *testing.T) {
			w, home := newWorld(t, "2"), t.TempDir()
			w.vars["GITHUB_TOKEN"] = forgeToken
			bin := t.TempDir()
			client := installed(t, ".bin/"+name)
			if name == "claude" {
				client = installed(t, "@anthropic-ai/claude-code-linux-*/claude")
			}
			if err := os.Symlink(client, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
			env := append(w.environment("HOME="+home), "PATH="+bin+":"+os.Getenv("PATH"))
			printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", name, "--add"}, dir: home,
				env: env})
			if got := run(t, program{path: "/bin/sh", args: []string{"-c", printed.stdout}, dir: home, env: env,
				may: 2 * patience}); got.code != 0 {
				t.Fatalf("%s: exit %d: %s%s", printed.stdout, got.code, got.stdout, got.stderr)
			}
			text, err := os.ReadFile(filepath.Join(home, settings))
			if err != nil || !strings.Contains(string(text), "claudeops") || !strings.Contains(string(text), "mcp-server") ||
				strings.Contains(string(text), forgeToken) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
