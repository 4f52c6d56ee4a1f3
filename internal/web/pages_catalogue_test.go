package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/procedures/definitions"
)

// withDefinitions makes a world whose toolset definitions is enabled, over a project and a user's registry with these
// files.
func withDefinitions(t *testing.T, files map[string]string) func(*world) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "ROOT", root)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	service := definitions.NewService(definitions.Settings{
		Project: filepath.Join(root, "project"), Home: filepath.Join(root, "home"), Transport: http.DefaultTransport,
		Now:   time.Now,
		Token: func(string) string { return "" },
	})
	return func(w *world) { w.web.Toolsets.Pages.Definitions = service }
}

func agentFile(name, version string, more ...string) string {
	return "name: " + name + "\ntype: agent\ndescription: The agent " + name +
		"\nllm: {provider: anthropic, model: m}\ntools: []\nversion: " +
		version + "\ntags: [demo]\nsystem_prompt: Do **it**.\n" + strings.Join(more, "\n") + "\n"
}

func catalogueWorld(t *testing.T) *world {
	t.Helper()
	const agents, registry = "project/.fractary/agents/", "home/.fractary/registry/agents/"
	return newWorld(t, withDefinitions(t, map[string]string{
		agents + "base.yaml":   agentFile("base", "1.0.0"),
		agents + "child.yaml":  agentFile("child", "1.1.0", "extends: base"),
		agents + "orphan.yaml": agentFile("orphan", "1.0.0", "extends: nobody"),
		agents + "odd.yaml":    agentFile("odd", "1.0.0", "extra: <script>alert(1)</script>"),
		agents + "broken.yaml": "name: broken\n\tversion: 1\n",
		agents + "fork.yaml": agentFile("fork", "1.0.0", "author: Ann",
			"fork_of: {name: team, version: 1.0.0}"),
		registry + "team@1.0.0/agent.yaml":      agentFile("team", "1.0.0"),
		registry + "team@2.0.0/agent.yaml":      agentFile("team", "2.0.0"),
		"project/.fractary/tools/<b>/tool.yaml": "name: '<b>'\ntype: tool\nversion: 1.0.0\n",
	}))
}

func TestTheCatalogueShowsDefinitionsWithSourceVersionAndProblems(t *testing.T) {
	t.Parallel()
	w := catalogueWorld(t)
	for target, want := range map[string]struct{ has, lacks []string }{
		"/catalogue": {
			[]string{"1 to 8 of 8 definitions", "child agent", "extends base", "global", "1 warning", "broken.yaml, line 2",
				"<b> tool"}, nil,
		},
		"/catalogue?kind=agent&source=global": {[]string{"1 to 2 of 2", "team"}, []string{"child"}},
		"/catalogue?text=CHILD":               {[]string{"1 to 1 of 1", "child agent"}, []string{"base agent"}},
		"/catalogue?broken=1":                 {[]string{"odd agent"}, []string{"child agent"}},
		"/catalogue?text=nothing+fits":        {[]string{"No definition fits"}, []string{"child agent"}},
		"/catalogue/forks": {[]string{"fork agent", "new major version", "2.0.0"},
			[]string{"child agent"}},
	} {
		text := w.page(target, 200).text
		for _, part := range want.has {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q: %s", target, part, text)
			}
		}
		for _, part := range want.lacks {
			if strings.Contains(text, part) {
				t.Errorf("%s has %q", target, part)
			}
		}
	}
}

func TestADefinitionHasItsChainItsProblemsAndItsDifference(t *testing.T) {
	t.Parallel()
	w := catalogueWorld(t)
	for target, want := range map[string][]string{
		"/catalogue/definitions/agent/child": {"child@1.1.0 base@1.0.0", "Do it",
			"None: the definition is valid"},
		"/catalogue/definitions/agent/orphan": {"what is extended was not found", "nobody",
			"line 9"},
		"/catalogue/definitions/agent/odd": {"extra: ", "line 9"},
		"/catalogue/definitions/agent/fork": {"Made from team 1.0.0", "a new major version",
			"author: Ann"},
		"/catalogue/definitions/agent/team?source=global&version=1.0.0": {"1.0.0", "global"},
	} {
		text := w.page(target, 200).text
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q: %s", target, part, text)
			}
		}
	}
	for _, target := range []string{"/catalogue/definitions/agent/nobody", "/catalogue/definitions/thing/child",
		"/catalogue/definitions/agent/..%2F..%2Fetc"} {
		w.page(target, 404)
	}
}

func TestTheCatalogueShowsRegistriesAndThoseThatAreNotUsed(t *testing.T) {
	t.Parallel()
	const plugins = `{"plugins":[{"name":"@a/b","version":"1.0.0","manifest_url":"plugin.json"}]}`
	w := newWorld(t, withDefinitions(t, map[string]string{
		"home/.fractary/config.json":         `{"registries":[{"name":"corp","url":"../r"}]}`,
		"project/.fractary/config.json":      `{"registries":[{"name":"corp","url":"ROOT/home/r"},{"name":"<evil>","url":"https://evil.example/r.json"}]}`,
		"home/r/registry.json":               plugins,
		"home/r/plugin.json":                 `{"name":"@a/b","version":"1.0.0","agents":[{"name":"far","version":"2.0.0","source":"far.yaml"}]}`,
		"home/r/far.yaml":                    agentFile("far", "2.0.0"),
		"project/.fractary/agents/fork.yaml": agentFile("fork", "1.0.0", "fork_of: {name: far, version: 1.0.0}"),
	}))
	for target, want := range map[string][]string{
		"/catalogue": {"stockyard corp", "What was left out", `the registry "<evil>" of`,
			"is not used: only a file of the project names https://evil.example/r.json",
			"claudeops sources allow https://evil.example/r.json"},
		"/catalogue/forks":                 {"2.0.0 in corp", `the registry "<evil>" of`},
		"/catalogue/definitions/agent/far": {"stockyard corp"},
	} {
		text := w.page(target, 200).text
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q: %s", target, part, text)
			}
		}
	}
}

func TestWithoutTheToolsetThereIsNoCatalogue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/catalogue", 404)
	if text := w.page("/", 200).text; strings.Contains(text, "Catalogue") {
		t.Error("the navigation has it")
	}
}
