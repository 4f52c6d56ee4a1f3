package definitions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forks is a catalog with a fork in each spelling, of an upstream with versions 1.0.0, 1.1.0 and 2.0.0.
func forks(t testing.TB) *Catalog {
	t.Helper()
	upstream := func(version string) string { return agentYAML("base", version, "author: Ann") }
	return catalog(t, map[string]string{
		".fractary/agents/key.yaml": agentYAML("key", "1.0.1", "license: MIT",
			"fork_of: {name: base, version: 1.0.0, forked_at: '2026-01-02T03:04:05Z', merged_at: '2026-02-02T03:04:05Z'}"),
		".fractary/agents/camel.md": agentMarkdown("camel", "1.1.1", "Do it.\n",
			"fork: {upstream: base, upstreamVersion: 1.1.0, forkedAt: '2026-01-03T00:00:00Z', localChanges: true}"),
		".fractary/agents/beside/agent.yaml":    agentYAML("beside", "3.0.0"),
		".fractary/agents/beside/metadata.json": `{"fork":{"created_at":"2026-01-04T00:00:00Z","from_name":"base","from_version":"2.0.0"}}`,
		".fractary/agents/base.yaml": strings.Replace(agentYAML("base", "1.0.5",
			"fork_of: {name: base, version: 1.0.0}"), "Do it.", "Do it well.", 1),
		".fractary/agents/plain.yaml":  agentYAML("plain", "1.0.0"),
		".fractary/agents/orphan.yaml": agentYAML("orphan", "1.0.0", "fork_of: {name: nobody, version: 1.0.0}"),
	}, map[string]string{
		".fractary/registry/agents/base@1.0.0/agent.yaml": upstream("1.0.0"),
		".fractary/registry/agents/base@1.1.0/agent.yaml": upstream("1.1.0"),
		".fractary/registry/agents/base@2.0.0/agent.yaml": upstream("2.0.0"),
	})
}

func TestForksInEverySpelling(t *testing.T) {
	t.Parallel()
	c := forks(t)
	list, err := c.Forks(t.Context(), Agent, Tool)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Name, From, Current, Created, Merged string
		Updated, Breaking                    bool
	}
	var got []line
	for _, f := range list {
		got = append(got, line{f.Definition.Name, f.Origin.Name + "@" + f.Origin.Version, f.Current, f.Origin.CreatedAt,
			f.Origin.LastMerged, f.Updated(), f.Breaking()})
	}
	want := []line{
		{"base", "base@1.0.0", "2.0.0", "", "", true, true},
		{"beside", "base@2.0.0", "2.0.0", "2026-01-04T00:00:00Z", "", false, false},
		{"camel", "base@1.1.0", "2.0.0", "2026-01-03T00:00:00Z", "", true, true},
		{"key", "base@1.0.0", "2.0.0", "2026-01-02T03:04:05Z", "2026-02-02T03:04:05Z", true, true},
		{"orphan", "nobody@1.0.0", "", "", "", false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiffComparesWithTheForkedVersion(t *testing.T) {
	t.Parallel()
	c := forks(t)
	for name, want := range map[string][]Difference{
		"key": {
			{"author", nil, "Ann", Removed}, {"license", "MIT", nil, Added}, {"name", "key", "base", Modified},
			{"version", "1.0.1", "1.0.0", Modified},
		},
		"camel": {{"author", nil, "Ann", Removed}, {"name", "camel", "base", Modified},
			{"version", "1.1.1", "1.1.0", Modified}},
		"base": {
			{"author", nil, "Ann", Removed}, {"system_prompt", "Do it well.", "Do it.", Modified},
			{"version", "1.0.5", "1.0.0", Modified},
		},
	} {
		fork, err := c.Fork(t.Context(), name)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := c.Diff(t.Context(), fork)
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	fork, err := c.Fork(t.Context(), "orphan")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Diff(t.Context(), fork); codeOf(err) != AgentNotFound {
		t.Errorf("without an upstream: %v", err)
	}
}

func TestWhatIsNoForkIsSaid(t *testing.T) {
	t.Parallel()
	c := forks(t)
	for name, want := range map[string]Code{"plain": ValidationError, "gone": AgentNotFound} {
		if _, err := c.Fork(t.Context(), name); codeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPluginsOfProjectAndUser(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{
		".fractary/plugins/faber/plugin.json":  `{"name":"@org/faber","version":"1.0.0","agents":["writer"],"tools":[{"name":"print"}]}`,
		".fractary/plugins/bare/plugin.json":   `{"version":"0.1.0"}`,
		".fractary/plugins/broken/plugin.json": `{`,
		".fractary/plugins/empty/README.md":    "",
	}, map[string]string{".fractary/registry/plugins/faber/plugin.json": `{"name":"@org/faber","version":"0.9.0"}`})
	plugins, problems, err := c.Plugins("")
	if err != nil || len(problems) != 1 {
		t.Fatal(problems, err)
	}
	var got []string
	for _, p := range plugins {
		got = append(got, string(p.Scope)+" "+p.Manifest.Name+"@"+p.Manifest.Version)
	}
	if diff := cmp.Diff([]string{"local @org/faber@1.0.0", "global @org/faber@0.9.0", "local bare@0.1.0"},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !plugins[0].named("faber") || !plugins[0].named("@org/faber") || plugins[0].Manifest.Agents[0].Name != "writer" ||
		plugins[0].Manifest.Tools[0].Name != "print" {
		t.Errorf("%+v", plugins[0])
	}
}

func TestPluginsInTheFormOfClaudeCodeAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".fractary/plugins/ops/plugin.json":   `{"name":"ops","version":"1.0.0","commands":"./commands/","agents":["./agents/x.md"],"skills":"./skills/"}`,
		".fractary/plugins/wrong/plugin.json": `{"name":"wrong","version":7}`,
	}, nil)
	list := b.ask("plugin_list", `{}`)
	notes := fmt.Sprint(list["notes"])
	if list["total"] != 1.0 || !strings.Contains(notes, "version is of a wrong type, number") ||
		strings.Contains(notes, "Go struct") {
		t.Errorf("the list is %v", list)
	}
	b.same("plugin_info", `{"plugin":"ops"}`, map[string]any{"components.commands": []any{"./commands/"},
		"components.agents": []any{"./agents/x.md"}, "components.tools": []any{}})
}
