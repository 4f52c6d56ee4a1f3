package definitions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestConfigIsTheOperatorsAndThenTheProjects(t *testing.T) {
	t.Parallel()
	project, home := t.TempDir(), t.TempDir()
	users, asJSON, asYAML := filepath.Join(home, ".fractary/config.json"), filepath.Join(project,
		".fractary/config.json"), filepath.Join(project, ".fractary/config.yaml")
	load := func(file string) []string {
		t.Helper()
		c, err := loadConfig(ConfigOptions{File: file, Project: project, Home: home})
		must.Do(t, err)
		out := append([]string{}, c.Sources...)
		for _, r := range c.Registries {
			out = append(out, fmt.Sprint(r.Name, " ", r.isQueried()))
		}
		return out
	}
	same := func(got []string, want ...string) {
		t.Helper()
		operationtest.Same(t, "the configuration", want, got)
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
		must.Do(t, os.Symlink(to, filepath.Join(map[string]string{"in": outside, "out": project}[name], name)))
	}
	same(load(filepath.Join(outside, "in")), users, filepath.Join(outside, "in"), "other false")
	if _, err := loadConfig(ConfigOptions{File: "out", Project: project, Home: home}); codeOf(err) != ConfigError {
		t.Errorf("a link of the project that leaves it: %v", err)
	}
	c, err := loadConfig(ConfigOptions{Project: home, Home: home})
	if err != nil || len(c.Registries) != 1 || !c.Registries[0].isQueried() {
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
	must.Do(t, err)
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
	public := shelf(t, "9.0.0")
	b := twoRegistries(t,
		fmt.Sprintf(`{"registries":[{"name":"public","url":%q,"priority":50},{"name":"corp","url":%q,"priority":1}]}`, public,
			httpfault.NoListener))
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
	b = twoRegistries(t, fmt.Sprintf(`{"registries":[{"name":"corp","url":%q},{"name":"public","url":%q}]}`, httpfault.NoListener,
		filepath.Join(public, "registry.json")))
	b.same("agent_info", `{"name":"writer"}`, map[string]any{"version": "9.0.0", "registry": "public"})
	b.same("plugin_info", `{"plugin":"@org/faber","remote":true}`,
		map[string]any{"version": "9.0.0", "registry": "public"})
}

// everyTool asks all tools for what may make them ask registries.
func (b *bench) everyTool() {
	for tool, arguments := range map[string]string{
		"agent_list": `{}`, "tool_list": `{}`, "agent_info": `{"name":"writer"}`, "tool_info": `{"name":"reader"}`,
		"agent_validate": `{"name":"writer","strict":true}`,
		"tool_validate":  `{"name":"reader"}`, "plugin_list": `{"outdated":true}`,
		"plugin_info":   `{"plugin":"@org/faber","remote":true}`,
		"plugin_search": `{"query":"faber"}`, "config_get": `{"key":"registries"}`, "config_show": `{"format":"yaml"}`,
		"config_registry_list": `{}`,
		"cache_stats":          `{}`, "cache_clear": `{}`, "fork_list": `{}`, "fork_info": `{"name":"mine"}`,
		"fork_diff": `{"name":"mine"}`, "fork_check": `{}`,
	} {
		b.ask(tool, arguments)
	}
	for _, err := range []error{
		second(b.service.Select(b.Context(), Selection{})),
		second(b.service.Inspect(b.Context(), Agent, Reference{Name: "mine"}, "")),
	} {
		if err != nil {
			b.Error(err)
		}
	}
	if _, _, err := b.service.Forked(b.Context()); err != nil {
		b.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// notes are those of an answer in one text.
func (b *bench) notes(tool, arguments string) string {
	return fmt.Sprint(b.ask(tool, arguments)["notes"])
}

func TestAFileOfTheProjectNamesNoRegistryAndNoVariable(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	folder := t.TempDir()
	operationtest.WriteFiles(t, folder,
		map[string]string{"registry.json": `{"plugins":[{"name":"@org/secret","version":"1.0.0"}]}`})
	for name, text := range map[string]string{
		".fractary/config.json": `{"registries":[
			{"name":"a","url":"%[1]s/registry.json","auth":{"token_env":"GITHUB_TOKEN"}},{"name":"b","type":"stockyard","url":"%[1]s/registry.json"},
			{"name":"c","url":"%[2]s"},{"name":"d","url":"file://%[2]s/registry.json"},{"name":"e","url":"../outside/registry.json"}]}`,
		".fractary/config.yaml": "forge:\n  registries:\n    - {name: a, url: '%[1]s/registry.json', auth: {token_env: " +
			"ANTHROPIC_API_KEY, type: apikey}}\n    - {name: b, url: '%[2]s'}\n",
	} {
		b := newBench(t, map[string]string{
			name: fmt.Sprintf(text, f.URL, folder), ".fractary/agents/mine.yaml": agentYAML("mine", "1.0.0",
				"fork_of: {name: writer, version: 1.0.0}"),
			".fractary/plugins/faber/plugin.json": pluginJSON,
		}, nil)
		var read []string
		b.settings.Token = func(variable string) string {
			read = append(read, variable)
			return "s3cret"
		}
		b.everyTool()
		if seen := f.seen(); len(seen) > 0 || len(read) > 0 {
			t.Errorf("%s: the host got %v; the variables %v were read", name, seen, read)
		}
		b.same("config_get", `{"key":"registries.0.enabled"}`, map[string]any{"value": false, "exists": true})
		b.same("config_registry_list", `{}`, map[string]any{
			"registries.0.name": "a", "registries.0.url": f.URL + "/registry.json", "registries.0.disabled": true,
			"registries.0.authenticated": false,
		})
		for _, tool := range []string{"config_get", "config_show", "config_registry_list", "agent_list", "tool_list",
			"plugin_list", "plugin_search", "fork_list", "fork_check"} {
			arguments := map[string]string{"config_get": `{"key":"registries"}`, "plugin_search": `{"query":""}`}[tool]
			if arguments == "" {
				arguments = `{}`
			}
			notes := b.notes(tool, arguments)
			if want := fmt.Sprintf(
				`the registry "a" of %s is not used: only a file of the project names %s/registry.json; a person who trusts it runs: claudeops sources allow`,
				filepath.Join(b.settings.Project, name), f.URL); !strings.Contains(notes, want) {
				t.Errorf("%s: %s says %s, want %s", name, tool, notes, want)
			}
		}
		if listing, err := b.service.Select(t.Context(), Selection{}); err != nil ||
			!strings.Contains(fmt.Sprint(listing.Problems), `the registry "a" of`) {
			t.Errorf("the catalogue says %v, %v", listing.Problems, err)
		}
		if text := fmt.Sprint(b.ask("plugin_info", `{"plugin":"@org/faber","remote":true}`)); !strings.Contains(text,
			"unusedRegistries") {
			t.Errorf("a plugin that was not found: %s", text)
		}
	}
}

// loaded is the configuration of an operator's file and a project's, as lines.
func loaded(t *testing.T, admitted sources.List, operators, projects string) (lines []string, c Config) {
	t.Helper()
	home := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": operators})
	project := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": projects})
	c, err := loadConfig(ConfigOptions{Home: home, Project: project, Sources: admitted})
	must.Do(t, err)
	for _, r := range c.Registries {
		lines = append(lines, fmt.Sprintf("%s %s priority %d ttl %d token %q asked %t", r.Name, r.Type, r.Priority, r.TTL,
			r.TokenEnv, r.isQueried()))
	}
	return lines, c
}

func TestAFileOfTheProjectChoosesAmongTheOperatorsRegistries(t *testing.T) {
	t.Parallel()
	const operators = `{"registries":[
		{"name":"corp","type":"stockyard","url":"https://corp.example/r.json","priority":1,"cache_ttl":600,"auth":{"token_env":"CORP"}},
		{"name":"public","url":"https://public.example/r.json","priority":5},
		{"name":"off","url":"https://off.example/r.json","enabled":false}],
		"cache":{"ttl":1000},"resolution":{"global":false}}`
	admitted := sources.List{{Origin: "https://team.example/ok", TokenEnv: "TEAM"}}
	const corp = `corp stockyard priority 1 ttl 600 token "CORP" asked true`
	for _, c := range []struct {
		name, projects string
		want           []string
		ignored        string
	}{
		{"says nothing", `{}`, []string{corp, `public manifest priority 5 ttl 1000 token "" asked true`,
			`off manifest priority 100 ttl 1000 token "" asked false`}, ""},
		{"chooses none", `{"registries":[]}`, nil, ""},
		{"by name, lowered and behind",
			`{"registries":[{"name":"corp","url":"https://corp.example/r.json","priority":9,"cache_ttl":60},{"name":"public","url":"https://public.example/r.json"}]}`,
			[]string{`public manifest priority 5 ttl 1000 token "" asked true`,
				`corp stockyard priority 9 ttl 60 token "CORP" asked true`}, ""},
		{"by address in another spelling", `{"registries":[{"name":"mine","url":"https://CORP.example:443/r.json"}]}`,
			[]string{corp}, ""},
		{"twice",
			`{"registries":[{"name":"corp","url":"https://corp.example/r.json"},{"name":"x","url":"https://corp.example/r.json"}]}`, []string{corp}, ""},
		{"switched off", `{"registries":[{"name":"corp","url":"https://corp.example/r.json","enabled":false}]}`,
			[]string{`corp stockyard priority 1 ttl 600 token "CORP" asked false`}, ""},
		{"switched on, longer",
			`{"registries":[{"name":"off","url":"https://off.example/r.json","enabled":true,"cache_ttl":99999}],"cache":{"ttl":99999}}`,
			[]string{`off manifest priority 100 ttl 1000 token "" asked false`}, ""},
		{"times lowered", `{"cache":{"ttl":10},"registries":[{"name":"corp","url":"https://corp.example/r.json"}]}`,
			[]string{`corp stockyard priority 1 ttl 10 token "CORP" asked true`}, ""},
		{"another address under the name", `{"registries":[{"name":"corp","url":"https://evil.example/r.json"}]}`,
			[]string{`corp manifest priority 100 ttl 1000 token "" asked false`}, "has another address"},
		{"another path of the host", `{"registries":[{"name":"x","url":"https://corp.example/evil.json"}]}`,
			[]string{`x manifest priority 100 ttl 1000 token "" asked false`}, "sources allow https://corp.example/evil.json"},
		{"a user in the address", `{"registries":[{"name":"corp","url":"https://a:b@corp.example/r.json"}]}`,
			[]string{`corp manifest priority 100 ttl 1000 token "" asked false`}, "has another address"},
		{"another credential",
			`{"registries":[{"name":"corp","url":"https://corp.example/r.json","auth":{"token_env":"MINE"}}]}`, []string{corp},
			"the operator alone names credentials"},
		{"a source",
			`{"registries":[{"name":"team","type":"stockyard","url":"https://team.example/ok/r.json","auth":{"token_env":"MINE"},"cache_ttl":99999}]}`,
			[]string{`team manifest priority 100 ttl 1000 token "TEAM" asked true`}, "the operator alone names credentials"},
		{"beside a source", `{"registries":[{"name":"team","url":"https://team.example/other/r.json"}]}`,
			[]string{`team manifest priority 100 ttl 1000 token "" asked false`}, "is not used: only a file of the project"},
		{"what is off stays off", `{"registries":[],"resolution":{"global":true,"local":false}}`, nil,
			"resolution.global of"},
		{"the cache", `{"registries":[],"cache":{"directory":"/somewhere"}}`, nil, "cache.directory of"},
	} {
		got, config := loaded(t, admitted, operators, c.projects)
		operationtest.Same(t, c.name, c.want, got)
		if ignored := strings.Join(config.Ignored, "\n"); (c.ignored == "") != (ignored == "") ||
			!strings.Contains(ignored, c.ignored) {
			t.Errorf("%s: ignored %q, want %q", c.name, ignored, c.ignored)
		}
		if config.Resolution.Global || strings.HasPrefix(config.CacheDir, "/somewhere") {
			t.Errorf("%s: %+v", c.name, config)
		}
	}
}

func TestACredentialIsNeverOneOfClaudeOpsAndGoesOverHTTPS(t *testing.T) {
	t.Parallel()
	entry := func(address, kind, variable string) string {
		return fmt.Sprintf(`{"registries":[{"name":"r","type":%q,"url":%q,"auth":{"token_env":%q}}]}`, kind, address,
			variable)
	}
	for operators, why := range map[string]string{
		entry("https://r.example", "manifest", "MINE"):                             "",
		entry("http://127.0.0.1:1", "manifest", "MINE"):                            "",
		entry("http://[::1]:1", "manifest", "MINE"):                                "",
		entry("https://r.example", "stockyard", "FRACTARY_REGISTRY_TOKEN"):         "",
		entry("https://r.example", "manifest", "FRACTARY_REGISTRY_TOKEN"):          "for registries of type stockyard",
		entry("http://r.example", "manifest", "MINE"):                              "plain http",
		entry("http://127.0.0.1.r.example", "manifest", "MINE"):                    "plain http",
		`{"registries":[{"name":"r","url":"http://a:b@r.example"}]}`:               "plain http",
		`{"registries":[{"name":"r","url":"http://r.example"}]}`:                   "",
		entry("https://r.example", "manifest", "GITHUB_TOKEN"):                     "GITHUB_TOKEN",
		entry("https://r.example", "manifest", "github_token_file"):                "github_token_file",
		entry("https://r.example", "manifest", "ANTHROPIC_API_KEY"):                "ANTHROPIC_API_KEY",
		entry("https://r.example", "stockyard", "CLAUDE_CODE_OAUTH_TOKEN"):         "CLAUDE_CODE_OAUTH_TOKEN",
		entry("https://r.example", "stockyard", "CLAUDEOPS_API_TOKENS_FILE"):       "CLAUDEOPS_API_TOKENS_FILE",
		entry("https://r.example", "manifest", "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS"): "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS",
	} {
		_, c := loaded(t, nil, operators, `{}`)
		if r := c.Registries[0]; (r.Unused == "") != (why == "") || !strings.Contains(r.Unused, why) {
			t.Errorf("%s: %q, want %q", operators, r.Unused, why)
		}
	}
}

// carrier answers every request with an index, and notes where it went and with what.
type carrier struct{ seen []string }

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.seen = append(c.seen, strings.TrimSpace(r.URL.Redacted()+" "+r.Header.Get("Authorization")+
		r.Header.Get("X-Api-Key")))
	w := httptest.NewRecorder()
	_, _ = w.WriteString(`{"plugins":[{"name":"p","version":"1.0.0","manifest_url":"` + r.URL.Query().Get("names") +
		`"}]}`)
	return w.Result(), nil
}

func TestTheDefaultTokenGoesToStockyardsOfTheOperatorAlone(t *testing.T) {
	t.Parallel()
	for operators, want := range map[string]string{
		`{"registries":[{"name":"r","type":"stockyard","url":"https://r.example/x"}]}`: "https://r.example/x Bearer s3cret",
		`{"registries":[{"name":"r","type":"manifest","url":"https://r.example/x"}]}`:  "https://r.example/x",
		`{"registries":[{"name":"r","type":"stockyard","url":"http://r.example/x"}]}`:  "",
	} {
		_, c := loaded(t, nil, operators, `{}`)
		got := &carrier{}
		token := func(name string) string { return map[string]string{defaultTokenVariable: "s3cret"}[name] }
		_, failed := newRegistries(c, newCache("", "", false, time.Now), got, token).Search(t.Context(), "p", nil)
		if strings.Join(got.seen, "\n") != want ||
			(want == "") != (len(failed) == 1 && strings.Contains(failed[0].Error(), "plain http")) {
			t.Errorf("%s: %v, %v", operators, got.seen, failed)
		}
	}
}

func TestDataChoosesAmongWhatTheOperatorNamed(t *testing.T) {
	t.Parallel()
	const operators = `{"registries":[{"name":"r","url":"https://a:b@r.example/dir/x?names=%s","auth":{"token_env":"T"}},{"name":"other","url":"https://other.example/y","enabled":false}]}`
	admitted := sources.List{{Origin: "https://source.example/ok"}}
	for address, want := range map[string]string{
		"p.json":                           "https://a:xxxxx@r.example/dir/p.json Bearer s3cret",
		"/p.json":                          "https://a:xxxxx@r.example/p.json Bearer s3cret",
		"https://r.example/p.json":         "https://r.example/p.json Bearer s3cret",
		"https://R.example:443/p":          "https://R.example:443/p Bearer s3cret",
		"https://other.example/p":          "https://other.example/p",
		"https://source.example/ok/p":      "https://source.example/ok/p",
		"https://source.example/no/p":      "",
		"https://source.example/ok/../no":  "",
		"https://r.example:8443/p.json":    "",
		"http://r.example/p.json":          "",
		"//evil.example/p.json":            "",
		"https://c:d@other.example/p.json": "",
		"https://c:d@r.example/p.json":     "",
		"http://169.254.169.254/latest":    "",
		"file:///etc/passwd":               "",
		"ftp://r.example/x":                "",
	} {
		_, c := loaded(t, admitted, fmt.Sprintf(operators, address), `{}`)
		got := &carrier{}
		r := newRegistries(c, newCache("", "", false, time.Now), got,
			func(name string) string { return map[string]string{"T": "s3cret"}[name] })
		_, err := r.Plugin(t.Context(), Reference{Name: "p"})
		asked := got.seen[1:]
		if want == "" && (len(asked) > 0 || err == nil) || want != "" && !slices.Equal(asked, []string{want}) {
			t.Errorf("%s: asked %v, %v; want %q", address, asked, err, want)
		}
	}
}

func TestARegistryInAFolderNamesNothingOutsideOfIt(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	operationtest.WriteFiles(t, top, map[string]string{"r/in.json": `{"name":"p"}`, "r/deep/in.json": `{"name":"p"}`,
		"out.json": `{"name":"secret"}`})
	must.Do(t, os.Symlink("../out.json", filepath.Join(top, "r", "link.json")))
	for address, fine := range map[string]bool{
		"in.json": true, "./deep/in.json": true, filepath.Join(top, "r/in.json"): true, "file://" + top + "/r/in.json": true,
		"../out.json": false, filepath.Join(top, "out.json"): false, "file://" + top + "/out.json": false, "link.json": false,
		"deep/../../out.json": false,
	} {
		operationtest.WriteFiles(t, top,
			map[string]string{"r/registry.json": fmt.Sprintf(`{"plugins":[{"name":"p","version":"1.0.0","manifest_url":%q}]}`,
				address)})
		for _, at := range []string{filepath.Join(top, "r"), filepath.Join(top, "r", "registry.json")} {
			w := newWorld(t, nil, map[string]any{"name": "r", "url": at})
			remote, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "p"})
			if (err == nil) != fine || strings.Contains(fmt.Sprint(remote), "secret") {
				t.Errorf("%s: %v, %v", address, remote, err)
			}
		}
	}
	must.Do(t, os.Rename(filepath.Join(top, "out.json"), filepath.Join(top, "registry.json")))
	must.Do(t, os.Remove(filepath.Join(top, "r", "registry.json")))
	must.Do(t, os.Symlink("../registry.json", filepath.Join(top, "r", "registry.json")))
	w := newWorld(t, nil, map[string]any{"name": "r", "url": filepath.Join(top, "r")})
	if _, failed := w.search(t, ""); len(failed) != 1 {
		t.Errorf("an index that is a link out of the folder: %v", failed)
	}
}

func TestOnlyASourceThatSaysSoIsPrivate(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	for _, private := range []bool{false, true} {
		b := newBench(t,
			map[string]string{".fractary/config.json": fmt.Sprintf(`{"registries":[{"name":"r","url":"%s/registry.json"}]}`,
				f.URL)}, nil)
		b.settings.Sources = func() sources.List { return sources.List{{Origin: f.URL, Private: private}} }
		b.settings.Transport = transport.NewPool(nil)
		answer := b.ask("plugin_search", `{"query":"faber"}`)
		if private && answer["total"] != 1.0 || !private && (answer["code"] != "PERMISSION_DENIED" || len(f.seen()) > 0) {
			t.Errorf("private %t: %v", private, answer)
		}
		f.seen()
	}
}

func TestTheConfigurationOfTheProjectIsNoLinkOutOfIt(t *testing.T) {
	t.Parallel()
	secret := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"config.json": `{"private":"treasure"}`})
	for _, link := range []string{".fractary/config.json", ".fractary/config.yaml", ".fractary"} {
		b := newBench(t, nil, nil)
		name := filepath.Join(b.settings.Project, link)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		target := filepath.Join(secret, "config.json")
		if link == ".fractary" {
			target = secret
		}
		must.Do(t, os.Symlink(target, name))
		answer, err := json.Marshal(b.ask("config_get", `{"key":"private"}`))
		if err != nil || strings.Contains(string(answer), "treasure") || !strings.Contains(string(answer), "CONFIG_ERROR") {
			t.Errorf("%s: %s", link, answer)
		}
	}
	b := newBench(t, nil, map[string]string{".fractary/x": ""})
	must.Do(t, os.Symlink(filepath.Join(secret, "config.json"),
		filepath.Join(b.settings.Home, ".fractary/config.json")))
	b.same("config_get", `{"key":"private"}`, map[string]any{"value": "treasure"})
}
