package definitions

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestConfigIsTheOperatorsAndThenTheProjects(t *testing.T) {
	t.Parallel()
	project, home := t.TempDir(), t.TempDir()
	users, asJSON, asYAML := filepath.Join(home, ".fractary/config.json"), filepath.Join(project,
		".fractary/config.json"), filepath.Join(project, ".fractary/config.yaml")
	load := func(file string) []string {
		t.Helper()
		c, err := loadConfig(ConfigOptions{File: file, Project: project, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		out := append([]string{}, c.Sources...)
		for _, r := range c.Registries {
			out = append(out, fmt.Sprint(r.Name, " ", r.asked()))
		}
		return out
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := load(""); len(got) != 0 {
		t.Errorf("without a file: %v", got)
	}
	operationtest.WriteFiles(t, home,
		map[string]string{".fractary/config.json": `{"registries":[{"name":"user","url":"https://example.org/r.json"}]}`})
	same(load(""), users, "user true")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.yaml": "cache: {ttl: 5}\n"})
	same(load(""), users, asYAML, "user true")
	operationtest.WriteFiles(t, project,
		map[string]string{".fractary/config.yaml": "registries:\n  - {name: later, url: ./r, priority: 9}\n  - {name: " +
			"sooner, url: ./r, priority: 1}\n"})
	same(load(""), users, asYAML, "sooner false", "later false")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.json": "{\n\t\"registries\": []\n}\n"})
	same(load(""), users, asJSON)
	operationtest.WriteFiles(t, project,
		map[string]string{"other.json": `{"registries":[{"name":"other","url":"x.json"}]}`})
	same(load("other.json"), users, filepath.Join(project, "other.json"), "other false")
	outside := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{"f.json": `{"registries":[{"name":"other","url":"x.json"}]}`})
	same(load(filepath.Join(outside, "f.json")), filepath.Join(outside, "f.json"), "other true")
	for to, name := range map[string]string{filepath.Join(project, "other.json"): "in",
		filepath.Join(outside, "f.json"): "out"} {
		if err := os.Symlink(to, filepath.Join(map[string]string{"in": outside, "out": project}[name], name)); err != nil {
			t.Fatal(err)
		}
	}
	same(load(filepath.Join(outside, "in")), users, filepath.Join(outside, "in"), "other false")
	if _, err := loadConfig(ConfigOptions{File: "out", Project: project, Home: home}); codeOf(err) != ConfigError {
		t.Errorf("a link of the project that leaves it: %v", err)
	}
	c, err := loadConfig(ConfigOptions{Project: home, Home: home})
	if err != nil || len(c.Registries) != 1 || !c.Registries[0].asked() {
		t.Errorf("where the project is the user's home: %+v, %v", c.Registries, err)
	}
}

func TestConfigRefusesWhatIsMalformed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "no url": `{"registries":[{"name":"a"}]}`,
		"a scheme":   `{"registries":[{"name":"a","url":"ftp://x/y"}]}`,
		"a priority": `{"registries":[{"name":"a","url":"x","priority":0}]}`,
		"a type":     `{"registries":[{"name":"a","url":"x","type":"other"}]}`,
	} {
		project := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": text})
		if _, err := loadConfig(ConfigOptions{Project: project}); codeOf(err) != ConfigError ||
			!strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := loadConfig(ConfigOptions{File: "/nowhere/config.json"}); codeOf(err) != ConfigError {
		t.Errorf("a named file that is missing: %v", err)
	}
}

func TestConfigGet(t *testing.T) {
	t.Parallel()
	home := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{".fractary/config.json": `{"registries":[{"name":"a","url":"x","auth":{"token_env":"T","token":"s3cret"}}],"custom":{"n":1,"none":null}}`})
	c, err := loadConfig(ConfigOptions{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"registries.0.url": "x", "registries.0.priority": "100", "cache.directory": filepath.Join(home, ".fractary/cache"),
		"custom.none": nil, "resolution.local": true,
	} {
		got, exists := c.Get(key)
		if text, ok := got.(interface{ String() string }); ok {
			got = text.String()
		}
		if !exists || got != want {
			t.Errorf("%s: %v, %v", key, got, exists)
		}
	}
	for _, key := range []string{"registries.1", "registries.x", "registries.-1", "gone", "custom.n.m", ""} {
		if got, exists := c.Get(key); exists {
			t.Errorf("%q: %v", key, got)
		}
	}
	for _, defaults := range []bool{true, false} {
		if text := cmp.Diff(nil, c.Values(defaults)); strings.Contains(text, "s3cret") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}

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
	t.Parallel()
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
	t.Parallel()
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

	// Registries of one priority are interchangeable: none is preferred.
	b = twoRegistries(t, fmt.Sprintf(`{"registries":[{"name":"corp","url":%q},{"name":"public","url":%q}]}`, down.URL,
		filepath.Join(public, "registry.json")))
	b.same("agent_info", `{"name":"writer"}`, map[string]any{"version": "9.0.0", "registry": "public"})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
		map[string]any{"version": "9.0.0", "registry": "public"})
}
