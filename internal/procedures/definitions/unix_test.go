//go:build unix

package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// waits is longer than any call takes that waits for nothing, on any machine, and less than a call's own limit.
const waits = 30 * time.Second

// TestWhatIsNoFileIsSaidAtOnce puts a named pipe, a folder and a link to a device where files are read, and asks every
// tool.
func TestWhatIsNoFileIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	kinds := operationtest.Special()
	kinds["a folder"] = func(name string) error { return os.Mkdir(name, 0o755) }
	for _, c := range []struct{ at, tool, arguments, says string }{
		{"project/.fractary/config.json", "config_get", `{"key":"x"}`, "CONFIG_ERROR"},
		{"project/.fractary/config.yaml", "agent_list", `{}`, "CONFIG_ERROR"},
		{"project/.fractary", "agent_list", `{}`, "CONFIG_ERROR"},
		{"home/.fractary/config.json", "plugin_search", `{"query":"x"}`, "CONFIG_ERROR"},
		{"project/.fractary/agents", "agent_list", `{}`, "is not a folder"},
		{"project/.fractary/plugins", "plugin_list", `{}`, "is not a folder"},
		{"project/.fractary/agents/a.yaml", "agent_validate", `{"path":".fractary/agents/a.yaml"}`, "is not a regular file"},
		{"project/.fractary/agents/a/agent.md", "agent_list", `{}`, "not a regular file"},
		{"project/.fractary/agents/a/agent.md", "agent_info", `{"name":"a"}`, "not a regular file"},
		{"project/.fractary/tools/a/tool.yaml", "tool_list", `{}`, "not a regular file"},
		{"project/.fractary/plugins/a/plugin.json", "plugin_list", `{}`, "is not a regular file"},
		{"project/.fractary/plugins/a/plugin.json", "plugin_info", `{"plugin":"a"}`, "is not a regular file"},
		{"home/.fractary/registry/plugins/a/plugin.json", "plugin_list", `{}`, "is not a regular file"},
		{"project/.fractary/agents/mine/metadata.json", "fork_list", `{}`, `"total":0`},
		{"home/.fractary/registry", "agent_list", `{}`, "is not a folder"},
		{"home/r/registry.json", "plugin_search", `{"query":"x"}`, "is not a regular file"},
		{"home/r/plugin.json", "plugin_info", `{"plugin":"p","remote":true}`, "is not a regular file"},
		{"home/.fractary/cache", "cache_stats", `{}`, "PERMISSION_DENIED"},
		{"home/.fractary/cache/claudeops", "cache_clear", `{}`, "PERMISSION_DENIED"},
		{"home/.fractary/cache/claudeops/files", "cache_stats", `{}`, "PERMISSION_DENIED"},
		{"home/.fractary/cache/web.json", "plugin_search", `{"query":"x"}`, ""},
	} {
		for kind, make := range kinds {
			about := c.at + " as " + kind
			b := newBench(t, map[string]string{".fractary/x": "",
				".fractary/agents/mine/agent.yaml": agentYAML("mine", "1.0.0")}, map[string]string{
				".fractary/config.json":                  `{"registries":[{"name":"r","url":"../r"},{"name":"web","url":"http://127.0.0.1:1/x"}]}`,
				"r/registry.json":                        `{"plugins":[{"name":"p","version":"1.0.0","manifest_url":"plugin.json"}]}`,
				".fractary/cache/claudeops/registries/x": "",
				".fractary/cache/claudeops/downloads/x":  "", ".fractary/registry/x": "",
			})
			name := strings.Replace(strings.Replace(c.at, "project/", b.settings.Project+"/", 1), "home/", b.settings.Home+"/",
				1)
			isFolder := !strings.Contains(filepath.Base(name)[1:], ".") && filepath.Base(name) != "files"
			if kind == "a folder" && isFolder {
				continue
			}
			must.Do(t, os.RemoveAll(name), os.MkdirAll(filepath.Dir(name), 0o755), make(name))
			operationtest.InTime(t, waits, about, func() {
				text, err := json.Marshal(b.ask(c.tool, c.arguments))
				if says := c.says; err != nil || kind == "a named pipe" && !strings.Contains(string(text), says) {
					t.Errorf("%s: %s, want %q", about, text, says)
				}
			})
			operationtest.InTime(t, waits, about, b.everyToolAnyhow)
		}
	}
}

// everyToolAnyhow asks all tools, whatever they answer.
func (b *bench) everyToolAnyhow() {
	for _, o := range b.toolset().Operations {
		for _, arguments := range []string{`{}`, `{"name":"mine"}`, `{"plugin":"p","remote":true}`, `{"query":""}`,
			`{"key":"registries"}`} {
			_, _ = o.Handle(b.Context(), operation.Call{Ceiling: operation.UncappedTier, Arguments: []byte(arguments)})
		}
	}
	_, _ = b.service.Select(b.Context(), Selection{})
	_, _, _ = b.service.Forked(b.Context())
}

// deaf is a transport that does not hear that its caller has gone.
type deaf struct{ until chan struct{} }

func (d deaf) RoundTrip(*http.Request) (*http.Response, error) {
	<-d.until
	return nil, fmt.Errorf("too late")
}

func TestTheLimitOfACallHoldsWhateverItWaitsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil,
		map[string]string{".fractary/config.json": `{"registries":[{"name":"web","url":"http://127.0.0.1:1/x"}]}`})
	until := make(chan struct{})
	defer close(until)
	b.settings.Transport = deaf{until}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	set := b.toolset()
	for _, o := range set.Operations {
		if o.Name != "fractary_forge_plugin_search" && o.Name != "fractary_forge_agent_info" {
			continue
		}
		operationtest.InTime(t, waits, o.Name, func() {
			arguments := map[string]string{"fractary_forge_plugin_search": `{"query":"x"}`,
				"fractary_forge_agent_info": `{"name":"x"}`}[o.Name]
			if _, err := o.Handle(ctx, operation.Call{Ceiling: operation.UncappedTier,
				Arguments: []byte(arguments)}); err == nil {
				t.Errorf("%s answered", o.Name)
			}
		})
	}
	operationtest.InTime(t, waits, "the catalogue", func() {
		if _, err := b.service.Select(ctx, Selection{}); err == nil {
			t.Error("the catalogue answered")
		}
	})
}
