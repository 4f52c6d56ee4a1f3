package definitions

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// withForge is a bench whose user has configured a registry.
func withForge(t *testing.T, project, home map[string]string) (*bench, *forge) {
	f := newForge(t)
	files := map[string]string{".fractary/config.json": fmt.Sprintf(
		`{"registries":[{"name":"test","url":"%s/registry.json","priority":3}]}`, f.URL)}
	maps.Copy(files, home)
	return newBench(t, project, files), f
}

func TestListsOfDefinitions(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		sound, folder, tool := agentYAML, ".fractary/agents/", "agent_list"
		global := ".fractary/registry/agents/far@2.0.0/agent.yaml"
		if kind == Tool {
			sound, folder, tool = toolYAML, ".fractary/tools/", "tool_list"
			global = ".fractary/registry/tools/far@2.0.0/tool.yaml"
		}
		b := newBench(t, map[string]string{
			folder + "b.yaml": sound("b", "1.0.0"), folder +
				"a.yaml": strings.Replace(sound("a", "1.2.3"), "[demo]", "[other, x]", 1), folder + "broken.yaml": "a: [",
			folder + "unsound.yaml": strings.Replace(sound("unsound", "1.0.0"), "version: 1.0.0", "version: one", 1),
		}, map[string]string{global: sound("far", "2.0.0")})
		list := string(kind) + "s"
		b.same(tool, `{}`, map[string]any{
			"total": 3.0, "limit": 100.0, "offset": 0.0, list + ".0.name": "a", list + ".0.version": "1.2.3",
			list + ".0.source": "local",
			list + ".0.tags":   []any{"other", "x"}, list + ".0.path": filepath.Join(b.settings.Project, folder, "a.yaml"),
			list + ".2.source":      "global",
			list + ".1.description": fmt.Sprintf("A%s %s for tests", map[Kind]string{Agent: "n", Tool: ""}[kind], kind),
		})
		b.same(tool, `{"limit":1,"offset":1}`, map[string]any{"total": 3.0, "limit": 1.0, "offset": 1.0,
			list + ".0.name": "b", list + ".1": nil})
		b.same(tool, `{"tags":["nothing","x"]}`, map[string]any{"total": 1.0, list + ".0.name": "a"})
		b.same(tool, `{"source":"global"}`, map[string]any{"total": 1.0, list + ".0.name": "far"})
		b.same(tool, `{"source":"all"}`, map[string]any{"total": 3.0})
		b.same(tool, `{"offset":99}`, map[string]any{"total": 3.0, list: []any{}})
		if notes, _ := b.ask(tool, `{}`)["notes"].([]any); len(notes) != 2 ||
			!strings.Contains(notes[0].(string), "broken.yaml:1:") || !strings.Contains(notes[1].(string), `unsound.yaml`) {
			t.Errorf("notes %v", notes)
		}
	}
}

func TestDefinitionsOfRegistriesAreListedAndRead(t *testing.T) {
	t.Parallel()
	b, _ := withForge(t, nil, nil)
	b.same("agent_list", `{"source":"stockyard"}`,
		map[string]any{"total": 2.0, "agents.0.name": "writer", "agents.0.version": "2.0.0", "agents.0.source": "stockyard"})
	b.same("agent_info", `{"name":"writer"}`, map[string]any{"version": "2.0.0", "source": "stockyard"})
}

func TestSourcesThatTheConfigurationSwitchesOffAreNotAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{".fractary/agents/a.yaml": agentYAML("a", "1.0.0"),
		".fractary/config.json": `{"resolution":{"local":false}}`},
		map[string]string{".fractary/registry/agents/a@2.0.0/agent.yaml": agentYAML("a", "2.0.0")})
	b.same("agent_info", `{"name":"a"}`, map[string]any{"version": "2.0.0"})
	b.same("agent_validate", `{"path":".fractary/agents/a.yaml"}`, map[string]any{"valid": true})
	b.same("config_get", `{"key":"resolution.local"}`, map[string]any{"value": false})
}

func TestInfoOfAnAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/agents/base.yaml": strings.Replace(agentYAML("base", "1.0.0"), "tools: []", "tools: [read, gone@^2.0.0]",
			1),
		".fractary/agents/child/agent.md": agentMarkdown("child", "1.1.0", "Be careful.\n", "extends: base@^1.0.0",
			"author: Ann", "license: MIT",
			"custom_tools: [{name: mine, type: tool, description: d, parameters: {}, implementation: {type: bash, command: "+
				"x}, version: 0.1.0, tags: []}]"),
		".fractary/tools/read.yaml": toolYAML("read", "3.0.0"),
	}, nil)
	b.same("agent_info", `{"name":"child"}`, map[string]any{
		"name": "child", "version": "1.1.0", "description": "An agent for tests", "author": "Ann", "license": "MIT",
		"tags":  []any{"demo"},
		"tools": []any{"read", "gone@^2.0.0"}, "extends": "base@^1.0.0", "prompt": "Be careful.", "source": "local",
		"path": filepath.Join(b.settings.Project, ".fractary/agents/child/agent.md"),
		"dependencies": []any{
			map[string]any{"name": "base", "version": "1.0.0", "type": "agent"},
			map[string]any{"name": "read", "version": "3.0.0", "type": "tool"},
			map[string]any{"name": "gone", "version": "^2.0.0", "type": "tool"},
		},
	})
	b.same("agent_info", `{"name":"child","version":"^1.0.0"}`, map[string]any{"version": "1.1.0"})
	b.same("agent_info", `{"name":"child@1.1.0","source":"local"}`, map[string]any{"version": "1.1.0"})
	b.same("agent_info", `{"name":"child","version":"^2.0.0"}`,
		map[string]any{"error": true, "code": "AGENT_NOT_FOUND", "details.versions": []any{"1.1.0"}})
	b.same("agent_info", `{"name":"child","source":"global"}`, map[string]any{"code": "AGENT_NOT_FOUND"})
	b.same("agent_info", `{"name":"chld"}`, map[string]any{"code": "AGENT_NOT_FOUND", "details.similar": []any{"child"},
		"suggestions.0": "did you mean child?"})
}

func TestInfoOfATool(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/tools/read.yaml": toolYAML("read", "3.0.0", "author: Ann", "license: MIT", "output: {type: string}"),
	}, nil)
	b.same("tool_info", `{"name":"read"}`, map[string]any{
		"name": "read", "version": "3.0.0", "description": "A tool for tests", "author": "Ann", "license": "MIT",
		"tags": []any{"demo"}, "source": "local",
		"inputSchema.type": "object", "inputSchema.required": []any{"text"}, "inputSchema.properties.text.type": "string",
		"outputSchema.type": "string",
		"path":              filepath.Join(b.settings.Project, ".fractary/tools/read.yaml"),
	})
	b.same("tool_info", `{"name":"write"}`, map[string]any{"code": "TOOL_NOT_FOUND", "details.name": "write"})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/agents/good.yaml":   agentYAML("good", "1.0.0", "odd: 1"),
		".fractary/agents/bad.yaml":    agentYAML("bad", "one"),
		".fractary/agents/refers.yaml": strings.Replace(agentYAML("refers", "1.0.0"), "tools: []", "tools: [gone]", 1),
		".fractary/tools/t.yaml":       toolYAML("t", "1.0.0"), ".fractary/tools/broken.yaml": "a: [",
	}, nil)
	b.same("agent_validate", `{"name":"good"}`, map[string]any{
		"valid": true, "errors": []any{}, "warnings": []any{}, "schema_version": "1.0",
		"path": filepath.Join(b.settings.Project, ".fractary/agents/good.yaml"),
	})
	b.same("agent_validate", `{"name":"good","strict":true}`,
		map[string]any{"valid": true, "warnings.0.field": "odd", "warnings.0.line": 9.0, "warnings.0.column": 1.0})
	b.same("agent_validate", `{"path":".fractary/agents/bad.yaml"}`, map[string]any{
		"valid": false, "errors.0.field": "version", "errors.0.severity": "error", "errors.0.line": 6.0,
		"errors.0.column": 10.0, "errors.1": nil,
	})
	b.same("agent_validate", `{"name":"refers"}`, map[string]any{"valid": true})
	b.same("agent_validate", `{"name":"refers","strict":true}`,
		map[string]any{"valid": false, "errors.0.field": "tools.0", "errors.0.line": 5.0})
	b.same("tool_validate", `{"name":"t"}`, map[string]any{"valid": true})
	b.same("tool_validate", `{"path":".fractary/tools/broken.yaml"}`, map[string]any{"valid": false})
	b.same("tool_validate", `{"name":"gone"}`, map[string]any{"code": "TOOL_NOT_FOUND"})
	b.same("agent_validate", `{"path":".fractary/agents/gone.yaml"}`, map[string]any{"code": "AGENT_NOT_FOUND"})
	b.same("agent_validate", `{"path":"../outside.yaml"}`, map[string]any{"code": "PERMISSION_DENIED"})
	b.same("agent_validate", `{}`, map[string]any{"code": "VALIDATION_ERROR", "details.violations.0.path": "path"})
	b.same("agent_validate", `{"path":"a","name":"b"}`, map[string]any{"code": "VALIDATION_ERROR"})
}

const pluginJSON = `{"name":"@org/faber","version":"1.5.0","description":"Workflows","author":{"name":"Ann"},"license":"MIT","homepage":"https://h.example",
	"repository":{"url":"https://r.example"},"tags":["flow"],"agents":[{"name":"writer"}],"tools":["read"],"workflows":[],"hooks":[{"name":"h"}],
	"commands":[{"name":"c"}],"dependencies":{"@org/base":"^1.0.0"}}`

func TestPlugins(t *testing.T) {
	t.Parallel()
	b, f := withForge(t, map[string]string{".fractary/plugins/faber/plugin.json": pluginJSON,
		".fractary/plugins/bare/plugin.json":   `{"version":"0.1.0"}`,
		".fractary/plugins/broken/plugin.json": `{`, ".fractary/plugins/empty/README.md": ""},
		map[string]string{".fractary/registry/plugins/other/plugin.json": `{"name":"@org/other","version":"1.0.0"}`,
			".fractary/registry/plugins/faber/plugin.json": `{"name":"@org/faber","version":"0.9.0"}`})
	faber := filepath.Join(b.settings.Project, ".fractary/plugins/faber")
	if notes := b.notes("plugin_list", `{}`); strings.Count(notes, "plugin.json") != 1 ||
		!strings.Contains(notes, "broken") {
		t.Errorf("notes %s", notes)
	}
	b.same("plugin_list", `{}`, map[string]any{
		"total": 4.0, "plugins.3.name": "bare", "plugins.1.name": "@org/faber", "plugins.1.version": "0.9.0",
		"plugins.0.name": "@org/faber", "plugins.0.version": "1.5.0", "plugins.0.scope": "local",
		"plugins.0.path":      faber,
		"plugins.0.hasUpdate": true, "plugins.0.latestVersion": "2.0.0",
		"plugins.2.name": "@org/other", "plugins.2.scope": "global", "plugins.2.hasUpdate": nil,
	})
	b.same("plugin_list", `{"scope":"global"}`, map[string]any{"total": 2.0, "plugins.1.name": "@org/other"})
	b.same("plugin_list", `{"outdated":true}`, map[string]any{"total": 2.0, "plugins.0.name": "@org/faber"})
	b.same("plugin_info", `{"plugin":"faber"}`, map[string]any{"name": "@org/faber", "version": "1.5.0"})
	b.same("plugin_info", `{"plugin":"@org/faber"}`, map[string]any{
		"name": "@org/faber", "version": "1.5.0", "description": "Workflows", "author": "Ann", "license": "MIT",
		"homepage":   "https://h.example",
		"repository": "https://r.example", "keywords": []any{"flow"}, "dependencies": map[string]any{"@org/base": "^1.0.0"},
		"components": map[string]any{
			"agents": []any{"writer"}, "tools": []any{"read"}, "workflows": []any{}, "hooks": []any{"h"}, "commands": []any{"c"},
		},
		"installed": map[string]any{"scope": "local", "path": faber, "installedVersion": "1.5.0"}, "availableVersions": nil,
	})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`, map[string]any{
		"version": "2.0.0", "availableVersions": []any{"2.0.0", "1.0.0"}, "installed.installedVersion": "1.5.0",
	})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true,"version":"1.x"}`, map[string]any{"version": "1.0.0"})
	b.same("plugin_info", `{"plugin":"@org/faber","version":"^3.0.0"}`,
		map[string]any{"code": "PLUGIN_NOT_FOUND", "details.installedVersion": "1.5.0"})
	b.same("plugin_info", `{"plugin":"@org/gone"}`,
		map[string]any{"error": true, "code": "PLUGIN_NOT_FOUND", "details.plugin": "@org/gone"})
	b.same("plugin_info", `{"plugin":"@org/gone","remote":true}`,
		map[string]any{"code": "PLUGIN_NOT_FOUND", "details.searchedRegistries": []any{"test"}})
	b.same("plugin_search", `{"query":"FABER"}`, map[string]any{
		"total": 1.0, "query": "FABER", "results.0.name": "@org/faber", "results.0.version": "2.0.0",
		"results.0.description": "Workflows",
		"results.0.tags":        []any{"flow"}, "results.0.registry": "test",
	})
	b.same("plugin_search", `{"query":"","tags":["none"]}`, map[string]any{"total": 0.0, "results": []any{}})
	b.same("plugin_search", `{"query":"faber","offset":1,"limit":1}`, map[string]any{"total": 1.0, "results": []any{}})
	f.files["/faber-2.json"] = strings.Replace(f.files["/faber-2.json"], "Workflows", "Changed", 1)
	b.same("cache_stats", `{}`, map[string]any{"manifests.count": 1.0})
	b.same("cache_clear", `{}`, map[string]any{"success": true})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
		map[string]any{"code": "INTEGRITY_ERROR", "details.registry": "test"})
}

func TestRegistriesThatFailHaveTheirCodes(t *testing.T) {
	t.Parallel()
	b, f := withForge(t, nil, nil)
	f.status = 503
	b.same("plugin_search", `{"query":"x"}`, map[string]any{"code": "NETWORK_ERROR", "details.registry": "test"})
	f.status, f.wants = 0, "Bearer right"
	b.same("plugin_search", `{"query":"x"}`, map[string]any{"code": "AUTH_REQUIRED"})
	operationtest.WriteFiles(t, b.settings.Home, map[string]string{".fractary/config.json": fmt.Sprintf(
		`{"registries":[{"name":"test","url":"%s/registry.json","auth":{"token_env":"T"}},{"name":"off","url":"./r","priority":1,"enabled":false}]}`, f.URL)})
	b.same("config_registry_list", `{}`, map[string]any{
		"registries.0.name": "off", "registries.0.priority": 1.0, "registries.0.disabled": true, "registries.1.name": "test",
		"registries.1.url":      f.URL + "/registry.json",
		"registries.1.priority": 100.0, "registries.1.authenticated": false,
	})
	b.variables["T"] = "wrong"
	b.same("plugin_search", `{"query":"x"}`, map[string]any{"code": "AUTH_FAILED"})
	b.same("config_registry_list", `{}`, map[string]any{"registries.1.authenticated": true})
	b.variables["T"] = "right"
	b.same("plugin_search", `{"query":"faber"}`, map[string]any{"total": 1.0})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil,
		map[string]string{".fractary/config.json": `{"registries":[{"name":"r","url":"https://ann:geheim@r.example/registry.json","priority":2}],"cache":{"ttl":60}}`})
	file := filepath.Join(b.settings.Home, ".fractary/config.json")
	b.same("config_get", `{"key":"registries.0.name"}`,
		map[string]any{"key": "registries.0.name", "value": "r", "exists": true})
	b.same("config_get", `{"key":"cache.ttl"}`, map[string]any{"value": 60.0, "exists": true})
	b.same("config_get", `{"key":"registries.1"}`, map[string]any{"value": nil, "exists": false})
	b.same("config_show", `{}`, map[string]any{
		"config.registries.0.name": "r", "config.registries.0.priority": 2.0, "config.cache.ttl": 60.0,
		"config.resolution.stockyard": true,
		"config.cache.directory":      filepath.Join(b.settings.Home, ".fractary/cache"), "sources": []any{file}, "yaml": nil,
	})
	b.same("config_show", `{"includeDefaults":false}`, map[string]any{"config.resolution": nil, "config.cache.ttl": 60.0})
	if text, _ := b.ask("config_show", `{"format":"yaml"}`)["yaml"].(string); !strings.Contains(text, "priority: 2") {
		t.Errorf("yaml %q", text)
	}
	for tool, arguments := range map[string]string{"config_show": `{"format":"yaml"}`,
		"config_get": `{"key":"registries"}`, "config_registry_list": `{}`} {
		if text := fmt.Sprint(b.ask(tool, arguments)); strings.Contains(text, "geheim") {
			t.Errorf("%s shows a password: %s", tool, text)
		}
	}
	none := newBench(t, nil, nil)
	none.same("config_show", `{}`, map[string]any{"config.registries": []any{}, "sources": []any{},
		"config.cache.ttl": 3600.0})
	none.same("plugin_search", `{"query":"x"}`, map[string]any{"total": 0.0, "notes": []any{"no registry is configured"}})
	none.settings.ConfigFile = "/nowhere/config.json"
	none.service = nil
	for _, tool := range []string{"config_show", "cache_clear", "agent_list"} {
		none.same(tool, `{}`, map[string]any{"error": true, "code": "CONFIG_ERROR"})
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	b, _ := withForge(t, nil, nil)
	now := time.Now()
	b.settings.Now = func() time.Time { return now }
	b.same("cache_stats", `{}`, map[string]any{
		"manifests": map[string]any{"count": 0.0, "size": "0 B", "oldestEntry": "", "newestEntry": ""},
		"downloads": map[string]any{"count": 0.0, "size": "0 B"},
		"totalSize": "0 B", "location": filepath.Join(b.settings.Home, ".fractary/cache"),
	})
	b.ask("plugin_info", `{"plugin":"@org/faber","remote":true}`)
	stats := b.ask("cache_stats", `{}`)
	oldest, err := time.Parse(time.RFC3339, stats["manifests"].(map[string]any)["oldestEntry"].(string))
	if err != nil || time.Since(oldest) > time.Hour {
		t.Errorf("%v, %v", stats, err)
	}
	b.same("cache_stats", `{}`, map[string]any{"manifests.count": 1.0, "downloads.count": 1.0})
	b.same("cache_clear", `{"olderThan":1}`,
		map[string]any{"success": true, "cleared": map[string]any{"manifests": 0.0, "downloads": 0.0, "totalSize": "0 B"}})
	b.authority.DryRun = true
	b.same("cache_clear", `{}`, map[string]any{"dry_run": true, "cleared.manifests": 1.0, "cleared.downloads": 1.0})
	b.authority.DryRun = false
	b.same("cache_clear", `{"type":"downloads"}`,
		map[string]any{"cleared.manifests": 0.0, "cleared.downloads": 1.0, "dry_run": nil})
	now = now.Add(48 * time.Hour)
	b.same("cache_clear", `{"type":"manifests","olderThan":3}`, map[string]any{"cleared.manifests": 0.0})
	b.same("cache_clear", `{"type":"manifests","olderThan":1}`,
		map[string]any{"cleared.manifests": 1.0, "cleared.downloads": 0.0})
	b.authority.Tier = 1
	b.same("cache_clear", `{}`, map[string]any{"error": true, "code": "PERMISSION_DENIED", "details.request_id": "id-1"})
	var outcomes []string
	for _, row := range b.rows {
		outcomes = append(outcomes, string(row.Outcome))
		if row.Action != "fractary_forge_cache_clear" {
			t.Errorf("row %+v", row)
		}
	}
	if want := []string{"done", "dry_run", "done", "done", "done", "refused"}; !slices.Equal(outcomes, want) {
		t.Errorf("rows %v", outcomes)
	}
	if sizeText(1536) != "1.5 KB" || sizeText(3<<20) != "3.0 MB" {
		t.Errorf("%s, %s", sizeText(1536), sizeText(3<<20))
	}
}

func TestForks(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/agents/mine.yaml": agentYAML("mine", "1.0.1",
			"fork_of: {name: up, version: 1.0.0, forked_at: '2026-01-02', merged_at: '2026-02-03'}", "author: Ann"),
		".fractary/agents/own.yaml": agentYAML("own", "1.0.0"),
		".fractary/tools/cut.yaml": toolYAML("cut", "0.1.0",
			"fork: {upstream: gone, upstreamVersion: 1.0.0, forkedAt: '2026-01-02'}"),
	}, map[string]string{
		".fractary/registry/agents/up@1.0.0/agent.yaml": agentYAML("up", "1.0.0", "license: MIT"),
		".fractary/registry/agents/up@2.0.0/agent.yaml": agentYAML("up", "2.0.0"),
	})
	path := filepath.Join(b.settings.Project, ".fractary/agents/mine.yaml")
	b.same("fork_list", `{}`, map[string]any{
		"total": 2.0, "forks.0.name": "cut", "forks.0.type": "tool", "forks.0.hasUpstreamUpdate": false,
		"forks.1.name": "mine", "forks.1.type": "agent",
		"forks.1.upstream": map[string]any{"name": "up", "version": "1.0.0"}, "forks.1.localVersion": "1.0.1",
		"forks.1.path": path, "forks.1.hasUpstreamUpdate": true,
	})
	b.same("fork_list", `{"type":"tool"}`, map[string]any{"total": 1.0})
	b.same("fork_info", `{"name":"mine"}`, map[string]any{
		"name": "mine", "type": "agent", "path": path, "localVersion": "1.0.1", "createdAt": "2026-01-02",
		"lastMerged": "2026-02-03", "hasUpstreamUpdate": true,
		"upstream": map[string]any{"name": "up", "version": "1.0.0", "currentVersion": "2.0.0"},
	})
	b.same("fork_info", `{"name":"cut"}`, map[string]any{"upstream.currentVersion": "", "lastMerged": nil})
	b.same("fork_info", `{"name":"own"}`, map[string]any{"code": "VALIDATION_ERROR"})
	b.same("fork_info", `{"name":"nobody"}`, map[string]any{"code": "AGENT_NOT_FOUND"})
	b.same("fork_check", `{}`, map[string]any{
		"total": 1.0, "hasUpdates": true, "updates.0": map[string]any{
			"name": "mine", "type": "agent", "localVersion": "1.0.1", "upstreamVersion": "2.0.0", "breakingChanges": true},
	})
	b.same("fork_check", `{"name":"cut"}`, map[string]any{"total": 0.0, "hasUpdates": false, "updates": []any{}})
	b.same("fork_diff", `{"name":"mine","format":"json"}`, map[string]any{
		"name": "mine", "upstreamVersion": "1.0.0", "localVersion": "1.0.1",
		"summary":                  map[string]any{"added": 1.0, "removed": 1.0, "modified": 2.0},
		"differences.0":            map[string]any{"field": "author", "local": "Ann", "upstream": nil, "changeType": "added"},
		"differences.1.changeType": "removed", "unified": nil,
	})
	if text, _ := b.ask("fork_diff", `{"name":"mine"}`)["unified"].(string); !strings.Contains(text, "+author: Ann\n") ||
		!strings.HasPrefix(text, "--- up@1.0.0\n+++ mine@1.0.1\n") {
		t.Errorf("unified %q", text)
	}
	b.same("fork_diff", `{"name":"cut"}`, map[string]any{"code": "TOOL_NOT_FOUND", "details.upstream": "gone"})
}

func TestTheOtherCodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/agents/a.yaml":      agentYAML("a", "1.0.0", "extends: b"),
		".fractary/agents/b.yaml":      agentYAML("b", "1.0.0", "extends: a"),
		".fractary/agents/broken.yaml": agentYAML("broken", "one"),
	}, nil)
	b.same("agent_info", `{"name":"a"}`, map[string]any{"code": "DEPENDENCY_ERROR",
		"details.chain": []any{"a@1.0.0", "b@1.0.0", "a@1.0.0"}})
	b.same("agent_info", `{"name":"broken"}`,
		map[string]any{"code": "VALIDATION_ERROR", "details.problems.0.field": "version", "details.problems.0.line": 6.0})
	b.same("agent_list", `{"limit":1001,"source":"x","y":1}`,
		map[string]any{"code": "VALIDATION_ERROR", "details.violations.2.path": "source"})
	b.authority.Enabled = func(string) bool { return false }
	b.same("agent_list", `{}`, map[string]any{"code": "PERMISSION_DENIED"})
	for reason, code := range map[operation.Reason]Code{
		operation.ReasonBusy: ConflictError, operation.ReasonTime: NetworkError, operation.ReasonSize: ValidationError,
		operation.ReasonOurs: internalError, operation.ReasonWriting: PermissionDenied,
	} {
		f := operation.FaultOf(fmt.Errorf("x"))
		f.Reason = reason
		if got := failureOf(f, ""); got.Code != code || !got.Error || got.Details == nil || got.Suggestions == nil {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}
