package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// withDefinitions makes a world whose toolset definitions is enabled, over a project and a user's registry with these
// files.
func withDefinitions(t *testing.T, files map[string]string) func(*world) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		files[name] = strings.ReplaceAll(text, "ROOT", root)
	}
	operationtest.WriteFiles(t, root, files)
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
		page := w.page(target, 200)
		page.has(want.has...)
		page.lacks(want.lacks...)
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
		w.page(target, 200).has(want...)
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
		w.page(target, 200).has(want...)
	}
}

func TestWithoutItsToolsetAPageIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.opened(nil)
	for _, target := range []string{"/catalogue", "/catalogue/packages", "/deployments", "/scripts",
		"/pulls/fake/joe/infra/1/deployment"} {
		w.page(target, 404)
	}
	w.page("/", 200).lacks("Catalogue", "Scripts")
	w.page("/pulls/fake/joe/infra/1", 200).lacks("on this machine")
}

// packagesWorld has the toolset packages, over a project, and over a registry unless without says so.
func packagesWorld(t *testing.T, files map[string]string) (*world, *packages.Service, string) {
	t.Helper()
	root := operationtest.WriteFiles(t, t.TempDir(), files)
	service := packages.NewService(packages.Settings{
		Project: filepath.Join(root, "project"), Home: filepath.Join(root, "home"),
		State: filepath.Join(root, "home", ".agentpack"), Now: time.Now,
	})
	return newWorld(t, func(w *world) { w.web.Toolsets.Pages.Packages = packages.NewBrowser(service) }), service, root
}

// publish puts a package with a skill into a registry.
func publish(t *testing.T, registry, name, version, more string) {
	t.Helper()
	source := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"aam.yaml": "name: \"" + name + "\"\nversion: " + version + "\ndescription: Does <b>" + name +
			"</b>\nauthor: Ann\nartifacts:\n  skills: [{name: one, path: s/, description: x}]\n" + more,
		"s/SKILL.md": "Do.",
	})
	archive, err := packages.Pack(source)
	must.Do(t, err)
	packed, err := packages.Unpack(archive)
	must.Do(t, err)
	if _, err := (packages.Registry{Name: "team", Dir: registry}).Publish(t.Context(), packed.Manifest, archive, "latest",
		time.Now()); err != nil {
		t.Fatal(err)
	}
}

func TestTheCatalogueShowsPackagesWithVersionsDependantsAndIntegrity(t *testing.T) {
	t.Parallel()
	w, service, root := packagesWorld(t, map[string]string{
		"project/.aam/config.yaml": "active_platforms: [claude]\n", "registry/registry.yaml": "name: team\n",
	})
	registry := filepath.Join(root, "registry")
	publish(t, registry, "base", "1.0.0", "")
	publish(t, registry, "base", "1.1.0", "")
	publish(t, registry, "@ops/top", "2.0.0", "dependencies: {base: \"^1.0.0\"}\n")
	publish(t, registry, "other", "1.0.0", "")
	team := "  - {name: team, url: " + registry + ", type: local, default: true}\n"
	operationtest.WriteFiles(t, root, map[string]string{
		"home/.aam/config.yaml": "registries:\n  - {name: gone, url: /nowhere/at/all, type: local}\n" + team})
	if _, err := service.Install(t.Context(), packages.Order{Packages: []string{"@ops/top"}, NoDeploy: true}); err == nil {
		t.Fatal("a registry that cannot be read, and that is asked first, is passed over")
	}
	operationtest.WriteFiles(t, root, map[string]string{"home/.aam/config.yaml": "registries:\n" + team})
	if done, err := service.Install(t.Context(), packages.Order{Packages: []string{"@ops/top"},
		NoDeploy: true}); err != nil || len(done.Installed) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	has := func(target string, parts ...string) {
		t.Helper()
		w.page(target, 200).has(parts...)
	}
	has("/catalogue/packages", "1 to 3 of 3 packages", "@ops/top", "Does <b>base</b>", "1.1.0 2 versions",
		"files as installed", "in team")
	if _, rows := w.sorted("/catalogue/packages", "Package", "descending"); !slices.Equal(rows,
		[]string{"other", "base", "@ops/top"}) {
		t.Errorf("packages by name, the last first: %q", rows)
	}
	if _, rows := w.sorted("/catalogue/packages", "Installed", "descending"); rows[2] != "other" {
		t.Errorf("packages by what is installed: %q", rows)
	}
	has("/catalogue/packages?text=BASE", "1 to 1 of 1 package", "@ops/top")
	has("/catalogue/packages?text=nothing", "No package fits")
	has("/catalogue/package?name=base", "1.0.0", "1.1.0", "sha256:", "Needed by @ops/top", "files as installed")
	has("/catalogue/package?name=%40ops%2Ftop", "base ^1.0.0", "no installed package")
	has("/catalogue/package?name=other", "claudeops packages install other")
	for _, target := range []string{"/catalogue/package?name=nobody", "/catalogue/package?name=.."} {
		w.page(target, map[bool]int{true: 400, false: 404}[strings.HasSuffix(target, "..")])
	}
	operationtest.WriteFiles(t, root, map[string]string{"project/.aam/packages/base/s/SKILL.md": "Evil."})
	has("/catalogue/packages", "files changed")
	has("/catalogue/package?name=base", "files changed", "s/SKILL.md")
	must.Do(t, os.RemoveAll(registry))
	has("/catalogue/packages", "team", "cannot be read", "in no registry", "@ops/top")
}

func TestWithoutPackagesThePageSaysHowToBegin(t *testing.T) {
	t.Parallel()
	w, _, root := packagesWorld(t, map[string]string{"project/x": "", "home/x": ""})
	w.page("/catalogue/packages", 200).has("claudeops packages registry add team", "claudeops packages publish")
	operationtest.WriteFiles(t, root, map[string]string{"home/registry/registry.yaml": "name: team\n",
		"home/.aam/config.yaml": "registries:\n  - {name: team, url: " + filepath.Join(root, "home/registry") +
			", type: local}\n"})
	empty := w.page("/catalogue/packages", 200)
	empty.has("no package yet")
	empty.lacks("registry add")
	operationtest.WriteFiles(t, root, map[string]string{"home/.aam/config.yaml": "registries: [\n"})
	w.page("/catalogue/packages", 200).has("Wrong settings")
}
