package definitions

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// shelf is a registry in a folder that has the plugin @org/faber and the agent writer in these versions.
func shelf(t *testing.T, versions ...string) string {
	t.Helper()
	files, entries := map[string]string{}, []string{}
	for _, v := range versions {
		files["writer-"+v+".yaml"] = agentYAML("writer", v)
		files["plugin-"+v+".json"] = fmt.Sprintf(
			`{"name":"@org/faber","version":%q,"agents":[{"name":"writer","version":%[1]q,"source":"writer-%[1]s.yaml"}]}`, v)
		entries = append(entries,
			fmt.Sprintf(`{"name":"@org/faber","version":%q,"description":"%[2]s","manifest_url":"plugin-%[1]s.json"}`, v,
				"workflows "+v))
	}
	files["registry.json"] = `{"plugins":[` + strings.Join(entries, ",") + `]}`
	return operationtest.WriteFiles(t, t.TempDir(), files)
}

func twoRegistries(t *testing.T, registries string) *bench {
	t.Helper()
	return newBench(t, map[string]string{
		".fractary/plugins/faber/plugin.json": `{"name":"@org/faber","version":"1.0.0"}`,
		".fractary/agents/mine.yaml":          agentYAML("mine", "1.0.0", "fork_of: {name: writer, version: 1.1.0}"),
	}, map[string]string{".fractary/config.json": registries})
}

func TestThePreferredRegistryWinsOverAHigherVersion(t *testing.T) {
	corp, public := shelf(t, "1.1.0", "1.2.0"), shelf(t, "9.0.0", "1.3.0")
	for about, registries := range map[string]string{
		"by priority": fmt.Sprintf(
			`{"registries":[{"name":"public","url":%q,"priority":50},{"name":"corp","url":%q,"priority":1}]}`, public, corp),
		"by its place in the file": fmt.Sprintf(`{"registries":[{"name":"corp","url":%q},{"name":"public","url":%q}]}`, corp,
			public),
	} {
		b := twoRegistries(t, registries)
		t.Log(about)
		b.same("agent_list", `{"source":"stockyard"}`,
			map[string]any{"total": 2.0, "agents.0.version": "1.2.0", "agents.0.registry": "corp", "agents.1.registry": "corp"})
		b.same("agent_info", `{"name":"writer"}`, map[string]any{"version": "1.2.0", "registry": "corp"})
		b.same("agent_info", `{"name":"writer","version":">=1"}`, map[string]any{"version": "1.2.0", "registry": "corp"})
		b.same("agent_info", `{"name":"writer","version":"^9.0.0"}`, map[string]any{"code": "AGENT_NOT_FOUND"})
		b.same("agent_info", `{"name":"mine"}`, map[string]any{"registry": nil})
		b.same("plugin_list", `{}`, map[string]any{"plugins.0.latestVersion": "1.2.0", "plugins.0.registry": "corp"})
		b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
			map[string]any{"version": "1.2.0", "registry": "corp", "availableVersions": []any{"1.2.0", "1.1.0"}})
		b.same("plugin_info", `{"plugin":"@org/faber","remote":true,"version":"^9.0.0"}`,
			map[string]any{"code": "PLUGIN_NOT_FOUND"})
		b.same("plugin_search", `{"query":"faber"}`,
			map[string]any{"total": 1.0, "results.0.version": "1.2.0", "results.0.registry": "corp"})
		b.same("plugin_search", `{"query":"workflows 9"}`, map[string]any{"total": 0.0})
		b.same("fork_list", `{}`, map[string]any{"forks.0.hasUpstreamUpdate": true, "forks.0.registry": "corp"})
		b.same("fork_info", `{"name":"mine"}`, map[string]any{"upstream.currentVersion": "1.2.0", "registry": "corp"})
		b.same("fork_check", `{}`, map[string]any{"updates.0.upstreamVersion": "1.2.0", "updates.0.breakingChanges": false,
			"updates.0.registry": "corp"})
		b.same("fork_diff", `{"name":"mine"}`, map[string]any{"upstreamVersion": "1.1.0", "registry": "corp"})
	}
}

func TestWhileThePreferredRegistryIsSilentNoOtherStandsIn(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	public := shelf(t, "9.0.0")
	b := twoRegistries(t,
		fmt.Sprintf(`{"registries":[{"name":"public","url":%q,"priority":50},{"name":"corp","url":%q,"priority":1}]}`, public,
			down.URL))
	if text := fmt.Sprint(b.ask("agent_info", `{"name":"writer"}`)); !strings.Contains(text,
		`not taken from the registry "public"`) {
		t.Error(text)
	}
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
		map[string]any{"code": "NETWORK_ERROR", "details.registry": "corp"})
	b.same("plugin_list", `{}`, map[string]any{"plugins.0.latestVersion": nil})
	b.same("fork_info", `{"name":"mine"}`, map[string]any{"upstream.currentVersion": ""})
	if notes := b.notes("plugin_search", `{"query":"faber"}`); !strings.Contains(notes, `"corp"`) {
		t.Errorf("the search says %s", notes)
	}

	// Registries of one priority stand in for each other: nobody prefers one.
	b = twoRegistries(t, fmt.Sprintf(`{"registries":[{"name":"corp","url":%q},{"name":"public","url":%q}]}`, down.URL,
		filepath.Join(public, "registry.json")))
	b.same("agent_info", `{"name":"writer"}`, map[string]any{"version": "9.0.0", "registry": "public"})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
		map[string]any{"version": "9.0.0", "registry": "public"})
}
