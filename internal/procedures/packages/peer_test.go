package packages

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// testdata/peer_scores.json holds the answers of the original's score function, by package
// (spazyCZ/agent-package-manager c3bf9a35, run on 22 November 2026).
func TestScoresAreThoseOfTheOriginal(t *testing.T) {
	t.Parallel()
	text := operationtest.ReadFile(t, "testdata/peer_scores.json")
	var packages []struct {
		Name, Description string
		Keywords          []string
		Scores            map[string]int // by the query
	}
	must.Do(t, json.Unmarshal(text, &packages))
	compared := 0
	for _, p := range packages {
		for query, want := range p.Scores {
			got := IndexEntry{Name: p.Name, Description: p.Description, Keywords: p.Keywords}.score(strings.ToLower(query))
			compared++
			// of several words the original takes only the whole
			if got != want && (want != 0 || !strings.Contains(query, " ")) {
				t.Errorf("%q of %s: %d, the original %d", query, p.Name, got, want)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d cases", compared)
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add([]byte(manifestOf("@a/b", "1.0.0", "c", "^1.0.0")))
	f.Add([]byte("name: [\n"))
	f.Add([]byte("artifacts: {skills: [{name: a, path: ../x}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, problems, _ := readManifest(text)
		if len(problems) > 0 {
			return
		}
		if _, err := parseName(m.Name); err != nil {
			t.Error(err)
		}
		for _, list := range m.Artifacts {
			for _, a := range list {
				if badPath(a.Path) != "" || !validArtifactName(a.Name) {
					t.Errorf("taken: %+v", a)
				}
			}
		}
		again, err := m.Marshal()
		must.Do(t, err)
		if _, problems, _ := readManifest(again); len(problems) > 0 {
			t.Errorf("written and read again: %q", problems)
		}
	})
}

func FuzzParseConstraint(f *testing.F) {
	for _, text := range []string{"*", "^1.2.3", ">=1.0.0,<2.0.0", "~0.1.0-beta.1", "==1.0", "!=1", "1 || 2"} {
		f.Add(text, "1.2.3-rc.1")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		c, err := parseConstraint(text)
		v, versionErr := parseVersion(version)
		if err != nil || versionErr != nil {
			return
		}
		if admits := c.Admits(v); admits && v.Prerelease() != "" && !strings.Contains(text, "-") {
			t.Errorf("%q admits %s", text, version)
		}
	})
}

// publishAllKinds publishes the package that was given to the original, too, with what it leaves out of archives, and
// another that it needs.
func (b *bench) publishAllKinds() {
	b.Helper()
	publish(b, b.registry, "latest", "base", "1.0.0")
	dir := operationtest.WriteFiles(b, b.TempDir(), map[string]string{
		"aam.yaml": "name: \"@ops/all-kinds\"\nversion: 1.0.0\ndescription: Every kind of artifact\nauthor: Ann\nkeywords: " +
			"[ops]\nartifacts:\n" +
			"  skills: [{name: weigh, path: skills/weigh/, description: Weigh}]\n  agents: [{name: watch, path: " +
			"agents/watch/, description: Watch}]\n" +
			"  prompts: [{name: tidy, path: prompts/tidy.md, description: Tidy}]\n  instructions: [{name: tone, path: " +
			"instructions/tone.md, description: Tone}]\ndependencies: {base: ^1.0.0}\n",
		"skills/weigh/SKILL.md": "---\nname: weigh\ndescription: Weigh\n---\nWeigh.\n", "skills/weigh/more/table.md": "kg\n",
		"agents/watch/agent.yaml":       "name: watch\ndescription: Watch\nsystem_prompt: system-prompt.md\n",
		"agents/watch/system-prompt.md": "Watch.\n",
		"prompts/tidy.md":               "Tidy.\n", "instructions/tone.md": "Be brief.\n", ".hidden": "h\n",
		"README.md":   "Read.\n",
		".git/config": "x", "node_modules/a/b.js": "x", "dist/x": "x", "build/y": "x", "venv/z": "x",
		"__pycache__/c.pyc": "x",
	})
	must.Do(b, publishFolder(b.Context(), b.registry, "latest", dir, time.Now()))
}

// outlineOf is a document with the types of its values, as the original's was written down.
func outlineOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = outlineOf(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v[:min(len(v), 1)] {
			out = append(out, outlineOf(item))
		}
		return out
	case string, time.Time:
		return "str"
	case int:
		return "int"
	}
	return "NoneType"
}

// testdata/peer_layout.json holds the original's results for the package: its archive, its registry, and the files of
// each platform. Differences are listed in docs/guides/packages.md, and below.
func TestLayoutsAreThoseOfTheOriginal(t *testing.T) {
	t.Parallel()
	var peer struct {
		Archive, Registry []string
		Shapes            map[string]any
		Platforms         map[string]map[string]string
		Home              map[string]string
	}
	text, err := os.ReadFile("testdata/peer_layout.json")
	if err == nil {
		err = json.Unmarshal(text, &peer)
	}
	must.Do(t, err)
	b := newBench(t)
	b.publishAllKinds()
	var names []string
	for _, f := range b.published("@ops/all-kinds", "1.0.0").Files {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(peer.Archive, names); diff != "" {
		t.Errorf("the archive (-original +here):\n%s", diff)
	}
	b.sameRegistry(peer.Registry, peer.Shapes)
	for platform, want := range peer.Platforms {
		t.Run(platform, func(t *testing.T) { samePlatform(t, platform, want, peer.Home) })
	}
}

func (b *bench) sameRegistry(files []string, shapes map[string]any) {
	b.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(b.registry.Dir, name))
		if err != nil {
			b.Errorf("the registry lacks %s", name)
			continue
		}
		want, isYAML := shapes[name].(map[string]any)
		if !isYAML || name == "registry.yaml" { // which is the test's own
			continue
		}
		var document map[string]any
		must.Do(b, yaml.Unmarshal(text, &document))
		if list, ok := document["packages"].([]any); ok { // the one that both have
			document["packages"] = slices.DeleteFunc(list,
				func(e any) bool { return e.(map[string]any)["name"] != "@ops/all-kinds" })
		}
		got := outlineOf(document).(map[string]any)
		for _, entry := range []map[string]any{firstPackage(want), firstPackage(got)} {
			delete(entry, "artifact_types") // always empty there
			delete(entry, "author")         // of the index: not there
		}
		delete(want, "license") // null there, an empty text here
		delete(want, "repository")
		delete(got, "license")
		delete(got, "repository")
		delete(got, "artifact_types")
		delete(want, "author")
		delete(got, "author")
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("%s (-original +here):\n%s", name, diff)
		}
	}
}

// firstPackage is the first package of an index; nothing for other documents.
func firstPackage(document map[string]any) map[string]any {
	list, _ := document["packages"].([]any)
	if len(list) == 0 {
		return nil
	}
	entry, _ := list[0].(map[string]any)
	return entry
}

func samePlatform(t *testing.T, platform string, want, home map[string]string) {
	b := newBench(t)
	b.publishAllKinds()
	if _, err := b.service.Install(t.Context(), Order{Packages: []string{"@ops/all-kinds"}, Platform: platform,
		Person: true}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, text := range b.tree() {
		_, text, _ = strings.Cut(text, " ") // after its mode
		project, isProject := strings.CutPrefix(name, "project/")
		if isProject && !strings.HasPrefix(project, ".aam/") && !strings.HasSuffix(name, "/") {
			got[project] = text
		}
		if rest, isHome := strings.CutPrefix(name, "home/.codex/"); isHome && !strings.HasSuffix(name, "/") {
			got["~/.codex/"+rest] = text
		}
	}
	want = maps.Clone(want)
	if platform == "codex" {
		for name, text := range home {
			want["~/"+name] = text
		}
	}
	if platform == "claude" {
		want[".claude/commands/tidy.md"] = want[".claude/prompts/tidy.md"] // Claude Code does not read .claude/prompts
		delete(want, ".claude/prompts/tidy.md")
	}
	// which these programs read with a header alone
	for _, name := range []string{".claude/agents/watch.md", ".github/agents/watch.agent.md",
		".github/instructions/tone.instructions.md"} {
		if prompt, has := want[name]; has {
			if !strings.HasPrefix(got[name], "---\n") || !strings.HasSuffix(got[name], prompt) {
				t.Errorf("%s is %q", name, got[name])
			}
			want[name] = got[name]
		}
	}
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.Contains(name, "/skills/base/") })
	// the header is the same YAML without quotes, and the original writes a heading over an agent's prompt
	for name, text := range want {
		want[name] = strings.NewReplacer(`description: "Watch"`, "description: Watch", `description: "Tone"`,
			"description: Tone", "# Agent: watch\n\n", "").Replace(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-original +here):\n%s", diff)
	}
}
