package definitions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// agentYAML is a sound agent with more lines.
func agentYAML(name, version string, more ...string) string {
	return fmt.Sprintf(`name: %s
type: agent
description: An agent for tests
llm: {provider: anthropic, model: claude-sonnet}
tools: []
version: %s
tags: [demo]
system_prompt: Do it.
`, name, version) + strings.Join(more, "\n") + "\n"
}

func agentMarkdown(name, version, body string, more ...string) string {
	return "---\n" + strings.Replace(agentYAML(name, version, more...), "system_prompt: Do it.\n", "", 1) + "---\n" + body
}

func toolYAML(name, version string, more ...string) string {
	return fmt.Sprintf(`name: %s
type: tool
description: A tool for tests
parameters: {text: {type: string, required: true, description: what to print}}
implementation: {type: bash, command: echo hello}
version: %s
tags: [demo]
`, name, version) + strings.Join(more, "\n") + "\n"
}

func catalog(t testing.TB, project, home map[string]string) *Catalog {
	t.Helper()
	return newCatalog(options{Project: operationtest.WriteFiles(t, t.TempDir(), project),
		Home: operationtest.WriteFiles(t, t.TempDir(), home), Now: time.Now})
}

func listed(t testing.TB, c *Catalog, kind Kind, source Source) []string {
	t.Helper()
	list, _, err := c.List(t.Context(), kind, source)
	must.Do(t, err)
	out := []string{}
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s %s@%s", s.Source, s.Name, s.Version))
	}
	return out
}

func TestListFindsEveryLayout(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{
		".fractary/agents/flat.yaml":          agentYAML("flat", "1.0.0"),
		".fractary/agents/short.yml":          agentYAML("short", "1.1.0"),
		".fractary/agents/text.md":            agentMarkdown("text", "1.2.0", "Prompt.\n"),
		".fractary/agents/folder/agent.yaml":  agentYAML("folder", "1.3.0"),
		".fractary/agents/both/agent.md":      agentMarkdown("both", "2.0.0", "Prompt.\n"),
		".fractary/agents/both/agent.yaml":    agentYAML("both", "1.0.0"),
		".fractary/agents/empty/README.md":    "nothing here",
		".fractary/agents/notes.txt":          "nothing here",
		".fractary/agents/._flat.yaml":        "\x00\x05\x16\x07 what macOS puts beside it",
		".fractary/agents/.#short.yml":        agentYAML("lock", "1.0.0"),
		".fractary/agents/broken.yaml":        "name: [",
		".fractary/tools/print/tool.yaml":     toolYAML("print", "1.0.0"),
		".fractary/agents/org:colon/agent.md": agentMarkdown("org:colon", "1.0.0", "Prompt.\n"),
	}, map[string]string{
		".fractary/registry/agents/shared@1.0.0/agent.yaml":  agentYAML("shared", "1.0.0"),
		".fractary/registry/agents/shared@1.10.0/agent.yaml": agentYAML("shared", "1.10.0"),
		".fractary/registry/agents/shared@1.9.0/agent.md":    agentMarkdown("shared", "1.9.0", "Prompt.\n"),
	})
	want := []string{
		"local both@2.0.0", "local flat@1.0.0", "local folder@1.3.0", "local org:colon@1.0.0",
		"global shared@1.10.0", "global shared@1.9.0", "global shared@1.0.0", "local short@1.1.0", "local text@1.2.0",
	}
	operationtest.Same(t, "agents", want, listed(t, c, Agent, ""))
	operationtest.Same(t, "tools", []string{"local print@1.0.0"}, listed(t, c, Tool, ""))
	_, problems, err := c.List(t.Context(), Agent, Local)
	if err != nil || len(problems) != 1 || !strings.HasSuffix(problems[0].File, "broken.yaml") {
		t.Errorf("problems: %v, %v", problems, err)
	}
}

func TestAChangeOnDiskIsSeen(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{".fractary/agents/a.yaml": agentYAML("a", "1.0.0")}, nil)
	for _, version := range []string{"1.0.1", "1.0.2", "1.0.3"} {
		listed(t, c, Agent, "")
		operationtest.WriteFiles(t, c.opts.Project, map[string]string{".fractary/agents/a.yaml": agentYAML("a", version)})
		if got := listed(t, c, Agent, "")[0]; got != "local a@"+version {
			t.Errorf("got %s, want version %s", got, version)
		}
	}
}

func TestLinksThatLeaveAreLeftOut(t *testing.T) {
	t.Parallel()
	outside := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"secret.yaml": agentYAML("secret", "1.0.0"), "folder/agent.yaml": agentYAML("folder", "1.0.0"),
	})
	c := catalog(t, map[string]string{
		".fractary/agents/own.yaml": agentYAML("own", "1.0.0"), "elsewhere/inside.yaml": agentYAML("inside", "1.0.0"),
		"elsewhere/whole.yaml": agentYAML("whole", "1.0.0"),
	}, nil)
	agents := filepath.Join(c.opts.Project, ".fractary", "agents")
	for link, target := range map[string]string{
		"secret.yaml": filepath.Join(outside, "secret.yaml"), "folder": filepath.Join(outside, "folder"),
		"inside.yaml": "../../elsewhere/inside.yaml",
		"whole.yaml":  filepath.Join(c.opts.Project, "elsewhere", "whole.yaml"), // an absolute one that stays
	} {
		must.Do(t, os.Symlink(target, filepath.Join(agents, link)))
	}
	if diff := cmp.Diff([]string{"local inside@1.0.0", "local own@1.0.0", "local whole@1.0.0"},
		listed(t, c, Agent, "")); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	for _, name := range []string{"secret", "folder", "../x", "a/../own", "."} {
		if _, err := c.Info(t.Context(), Agent, Reference{Name: name}, ""); codeOf(err) != AgentNotFound {
			t.Errorf("info of %q: %v", name, err)
		}
	}
	for _, name := range []string{".fractary/agents/secret.yaml", "../../etc/passwd",
		filepath.Join(outside, "secret.yaml")} {
		if _, err := c.validatePath(t.Context(), Agent, name, false); codeOf(err) != PermissionDenied {
			t.Errorf("validate %q: %v", name, err)
		}
	}
}

func TestResolvePrefersTheProjectAndThenTheHighestVersion(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{".fractary/agents/a.yaml": agentYAML("a", "1.0.0")}, map[string]string{
		".fractary/registry/agents/a@1.2.0/agent.yaml": agentYAML("a", "1.2.0"),
		".fractary/registry/agents/a@1.9.0/agent.yaml": agentYAML("a", "1.9.0"),
		".fractary/registry/agents/a@2.0.0/agent.yaml": agentYAML("a", "2.0.0"),
	})
	for ref, want := range map[string]string{
		"a": "1.0.0", "a@latest": "1.0.0", "a@1.0.0": "1.0.0", "a@^1.1.0": "1.9.0", "a@>=1.1.0 <1.5.0": "1.2.0",
		"a@2.x": "2.0.0", "a@1.2.0 - 1.9.0": "1.9.0",
	} {
		found, err := c.resolve(t.Context(), Agent, ParseReference(ref), "")
		if err != nil || found.Definition.Version != want {
			t.Errorf("%s: %+v, %v, want %s", ref, found, err, want)
		}
	}
	if found, err := c.resolve(t.Context(), Agent, Reference{Name: "a"}, Global); err != nil ||
		found.Definition.Version != "2.0.0" {
		t.Errorf("global: %+v, %v", found, err)
	}
	_, err := c.resolve(t.Context(), Agent, ParseReference("a@3.x"), "")
	if err == nil || err.Error() != `no version of agent "a" satisfies "3.x"; there are 1.0.0, 2.0.0, 1.9.0, 1.2.0` {
		t.Errorf("a@3.x: %v", err)
	}
	_, err = c.resolve(t.Context(), Agent, Reference{Name: "ab"}, "")
	var missing *notFoundError
	if !errors.As(err, &missing) || len(missing.Similar) == 0 {
		t.Errorf("ab: %v", err)
	}
}

func TestMergeFollowsWhatIsExtended(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{
		".fractary/agents/child.yaml": agentYAML("child", "1.0.0", "extends: parent@^1.0.0", "config: {b: 2}") + "",
		".fractary/agents/parent.md": strings.Replace(strings.Replace(agentMarkdown("parent", "1.4.0", "Be kind.\n",
			"extends: root", "config: {a: 1, b: 1}"),
			"tools: []", "tools: [print]", 1), "tags: [demo]", "tags: [base, demo]", 1),
		".fractary/agents/root.yaml": strings.Replace(agentYAML("root", "0.1.0", "author: Ann"), "tools: []",
			"tools: [grep, print]", 1),
	}, nil)
	project := c.opts.Project
	operationtest.WriteFiles(t, project, map[string]string{
		".fractary/agents/child.yaml": strings.Replace(agentYAML("child", "1.0.0", "extends: parent@^1.0.0",
			"config: {b: 2, c: 3}"), "system_prompt: Do it.\n", "", 1),
	})
	merged, err := c.Info(t.Context(), Agent, Reference{Name: "child"}, "")
	must.Do(t, err)
	d := merged.Definition
	got := map[string]any{
		"chain": merged.Chain, "tools": d.Tools, "tags": d.Tags, "prompt": d.Prompt, "author": d.Author, "extends": d.Extends,
		"version": d.Version,
		"config":  d.tree.get("config").jsonValue(),
	}
	want := map[string]any{
		"chain": []string{"child@1.0.0", "parent@1.4.0", "root@0.1.0"}, "tools": []string{"grep", "print"},
		"tags":   []string{"demo", "base"},
		"prompt": "Be kind.", "author": "Ann", "extends": "parent@^1.0.0", "version": "1.0.0",
		"config": map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)},
	}
	operationtest.Same(t, "merged", want, got)
}

func TestDefinitionsGoByTheNameThatTheirFileSays(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{
		".fractary/agents/file.yaml": agentYAML("said", "1.0.0"), ".fractary/agents/odd.yaml": agentYAML("'a b'", "1.0.0"),
		".fractary/agents/twin.yaml": agentYAML("said", "1.0.0"), ".fractary/agents/own.yaml": agentYAML("own", "2.0.0"),
	}, map[string]string{".fractary/registry/agents/folder@1.2.0/agent.yaml": agentYAML("shared", "1.2.0")})
	want := []string{"local odd@1.0.0", "local own@2.0.0", "local said@1.0.0", "local said@1.0.0", "global shared@1.2.0"}
	operationtest.Same(t, "agents", want, listed(t, c, Agent, ""))
	for _, name := range []string{"said", "file", "own", "shared", "folder@^1.0.0", "shared@1.x"} {
		if _, err := c.Info(t.Context(), Agent, ParseReference(name), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Info(t.Context(), Agent, ParseReference("shared@2.x"), ""); codeOf(err) != AgentNotFound {
		t.Errorf("%v", err)
	}
	_, problems, err := c.List(t.Context(), Agent, Local)
	if err != nil || !strings.Contains(fmt.Sprint(problems), "twin.yaml: says the same name as ") {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestMergeRefusesWhatCannotBeMerged(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		".fractary/agents/a.yaml":      agentYAML("a", "1.0.0", "extends: b"),
		".fractary/agents/b.yaml":      agentYAML("b", "1.0.0", "extends: c"),
		".fractary/agents/c.yaml":      agentYAML("c", "1.0.0", "extends: a"),
		".fractary/agents/self.yaml":   agentYAML("self", "1.0.0", "extends: self"),
		".fractary/agents/orphan.yaml": agentYAML("orphan", "1.0.0", "extends: gone@^2.0.0"),
		".fractary/agents/onbad.yaml":  agentYAML("onbad", "1.0.0", "extends: bad"),
		".fractary/agents/bad.yaml":    "name: bad\nversion: 1.0.0\n",
	}
	for i := range 100 {
		files[fmt.Sprintf(".fractary/agents/deep%d.yaml", i)] = agentYAML(fmt.Sprintf("deep%d", i), "1.0.0",
			fmt.Sprintf("extends: deep%d", i+1))
	}
	c := catalog(t, files, nil)
	for name, want := range map[string]string{
		"a":      "the definitions extend each other in a circle: a@1.0.0 extends b@1.0.0 extends c@1.0.0 extends a@1.0.0",
		"self":   "the definitions extend each other in a circle: self@1.0.0 extends self@1.0.0",
		"orphan": "what is extended was not found: orphan@1.0.0 extends gone@^2.0.0",
		"onbad":  "what is extended is broken",
		"deep0":  "more than 50 definitions extend each other",
	} {
		_, err := c.Info(t.Context(), Agent, Reference{Name: name}, "")
		if codeOf(err) != DependencyError || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		v, err := c.validateNamed(t.Context(), Agent, Reference{Name: name}, true)
		if err != nil || v.valid() {
			t.Errorf("%s is valid: %v, %v", name, v.Problems, err)
		}
		v, err = c.validateNamed(t.Context(), Agent, Reference{Name: name}, false)
		if err != nil || !v.valid() {
			t.Errorf("references of %s were resolved without strict: %v, %v", name, v.Problems, err)
		}
	}
}

func TestListEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := catalog(t, map[string]string{".fractary/agents/a.yaml": agentYAML("a", "1.0.0")}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.List(ctx, Agent, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// codeOf is the code of an error; "" for nil and for errors of others.
func codeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

const claudeAgent = `---
name: reviewer
description: Reviews code. Use it when: somebody asks
tools: Read, Grep, mcp__claudeops__create_pr
model: sonnet
---
You review code.
`

func TestClaudeCodesOwnAgentsAreListedAndRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{
		".claude/agents/reviewer.md": claudeAgent, ".claude/agents/notes.yaml": "a: b\n",
		".claude/agents/empty.md":      "---\nname: empty\n---\n",
		".claude/agents/deep/agent.md": claudeAgent, ".claude/tools/x.md": claudeAgent,
		".fractary/agents/forge.yaml": agentYAML("forge", "1.0.0"),
	}, map[string]string{".claude/agents/mine.md": "---\nname: mine\ndescription: Mine\ntools:\n  - Read\n---\nDo.\n"})
	b.same("agent_list", `{}`, map[string]any{
		"total": 3.0, "agents.0.name": "forge", "agents.0.format": nil, "agents.1.name": "mine", "agents.1.source": "global",
		"agents.2.name": "reviewer", "agents.2.version": "",
		"agents.2.format": "claude-code", "agents.2.source": "local",
		"agents.2.description": "Reviews code. Use it when: somebody asks",
		"agents.2.path":        filepath.Join(b.settings.Project, ".claude/agents/reviewer.md"),
	})
	if notes := fmt.Sprint(b.ask("agent_list", `{}`)["notes"]); !strings.Contains(notes,
		"empty.md:2:1: description: is missing") {
		t.Errorf("notes: %s", notes)
	}
	b.same("tool_list", `{}`, map[string]any{"total": 0.0})
	b.same("agent_info", `{"name":"reviewer"}`, map[string]any{
		"format": "claude-code", "prompt": "You review code.", "tools": []any{"Read", "Grep", "mcp__claudeops__create_pr"},
		"dependencies": nil,
	})
	b.same("agent_info", `{"name":"mine","source":"global"}`, map[string]any{"tools": []any{"Read"}})
	for _, request := range []string{
		`{"name":"reviewer","strict":true}`, `{"path":".claude/agents/reviewer.md","strict":true}`,
		`{"name":".claude/agents/reviewer.md"}`,
	} {
		b.same("agent_validate", request, map[string]any{"valid": true, "warnings.0.line": 3.0, "warnings.1": nil})
	}
	b.same("agent_validate", `{"path":".claude/agents/empty.md"}`,
		map[string]any{"valid": false, "errors.0.field": "description", "errors.1": nil})
}

func TestAgentsOfClaudeCodeAreHeldAgainstTheirOwnFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"---\nname: a\ndescription: b\ncolor: red\nhooks: {}\n---\nDo.\n": {},
		"---\nname: My Agent\ndescription: b\n---\nDo.\n":                 {`warning 2:7 name: "My Agent" is not a name of small letters, digits and -`},
		"---\nname: a\ndescription: ''\ntools: 3\nmodell: x\n---\n": {
			"3:14 description: is empty", "4:8 tools: is an integer; it must be a string or a list",
			"warning 5:1 modell: is not a known field",
			"warning 7:1 : has no prompt: the text below the header is empty",
		},
		"---\nname: a\ndescription: Use when: x\n  <example>more: y</example>\nmodel: opus\n---\nDo.\n": {
			"warning 3:1 : is not YAML: mapping values are not allowed in this context",
		},
		"---\n- a: b: c\n---\nDo.\n": {"2:1 : is not YAML: mapping values are not allowed in this context"},
		"words\n":                    {"1:1 : has no header: the first line must be ---, and another line of --- must end it"},
	} {
		if diff := cmp.Diff(want, problemsOf(t, Agent, ".claude/agents/a.md", text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	got := strings.Join(problemsOf(t, Agent, ".fractary/agents/a.md", strings.Replace(claudeAgent, "when:", "when", 1)),
		"\n")
	if !strings.Contains(got, "type: is missing") ||
		!strings.Contains(got, "has the fields of Claude Code's own agents, which lie in .claude/agents") {
		t.Errorf("in Forge's folder:\n%s", got)
	}
}

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
	must.Do(t, err)
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
	operationtest.Same(t, "forks", want, got)
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
		operationtest.Same(t, name, want, got)
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
