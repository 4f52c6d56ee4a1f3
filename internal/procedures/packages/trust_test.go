package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// doors are those whose callers take the project's word for nothing.
func doors() []record.Door {
	return []record.Door{record.DoorMCP, record.DoorREST, record.DoorWeb, record.DoorCLI}
}

// notUsed holds that a registry named x is listed and neither read nor written, whatever is asked.
func (b *bench) notUsed(outside, why string) {
	b.Helper()
	before := operationtest.ReadFiles(b, outside)
	b.same("registry_list", `{}`, map[string]any{"result.0.name": "x", "result.0.accessible": false,
		"result.0.is_default": false})
	for tool, arguments := range map[string]string{
		"registry_list": `{}`, "doctor": `{}`, "search": `{"query":"p"}`, "install": `{"packages":["p"]}`,
		"info": `{"package_name":"p"}`, "publish": `{"registry":"x"}`,
	} {
		answer, text := b.ask(tool, arguments)
		if !strings.Contains(text, "not used: only a file of the project names") || !strings.Contains(text, why) {
			b.Errorf("%s does not say why: %s", tool, text)
		}
		if part(answer, "installed.0") != nil || part(answer, "result.0.version") != nil || part(answer, "name") != nil ||
			part(answer, "checksum") != nil {
			b.Errorf("%s used it: %s", tool, text)
		}
	}
	if shelf, err := NewBrowser(b.service).Browse(b.Context(), Browsing{Limit: 10}); err != nil || shelf.Total != 0 ||
		!strings.Contains(fmt.Sprint(shelf.Problems), why) {
		b.Errorf("the page shows %+v, %v", shelf, err)
	}
	if diff := cmp.Diff(before, operationtest.ReadFiles(b, outside)); diff != "" {
		b.Errorf("it was written:\n%s", diff)
	}
}

func TestARegistryThatOnlyAProjectNamesIsNotUsedOutsideOfIt(t *testing.T) {
	t.Parallel()
	for _, door := range doors() {
		b := newBench(t)
		b.door = door
		outside := filepath.Join(b.settings.Home, "someone's") // below the home as well
		b.put(manifestName, manifestOf("mine", "1.0.0"))
		b.put("skills/look/SKILL.md", "x")
		publish(t, Registry{Name: "x", Dir: operationtest.WriteFiles(t, outside, map[string]string{".keep": ""})}, "latest",
			"p", "1.0.0")
		must.Do(t, os.Symlink(outside, filepath.Join(b.settings.Project, ".aam", "link")))
		urls := []string{outside, "file://" + outside, "~/someone's", "../home/someone's", ".aam/link",
			".aam/link/../link", "https://example.com/r"}
		if door != record.DoorMCP {
			urls = urls[:1] // the address is judged alike at each door
		}
		for _, url := range urls {
			b.put(".aam/config.yaml",
				fmt.Sprintf("active_platforms: [claude]\nregistries: [{name: x, url: %q, default: true}]\n", url))
			b.notUsed(outside, "sources allow")
		}
	}
}

// A relative path begins in the folder that holds the configuration: the user's home, or the project.
func TestARelativeRegistryBeginsWhereItsFileIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for root, version := range map[string]string{b.settings.Home: "1.0.0", b.settings.Project: "2.0.0"} {
		dir := operationtest.WriteFiles(t, filepath.Join(root, "reg"), map[string]string{".keep": ""})
		publish(t, Registry{Name: "x", Dir: dir}, "latest", "p", version)
	}
	for _, url := range []string{"reg", "./reg", "~/reg"} {
		operationtest.WriteFiles(t, b.settings.Home,
			map[string]string{".aam/config.yaml": fmt.Sprintf("registries: [{name: x, url: %q}]\n", url)})
		b.same("info", `{"package_name":"p"}`, map[string]any{"version": "1.0.0"})
	}
	b.put(".aam/config.yaml", "registries: [{name: y, url: reg}]\n")
	b.same("info", `{"package_name":"p"}`, map[string]any{"version": "2.0.0"})
}

func TestWhatAProjectMayNameAsARegistry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inside := operationtest.WriteFiles(t, filepath.Join(b.settings.Project, "reg"), map[string]string{".keep": ""})
	publish(t, Registry{Name: "x", Dir: inside}, "latest", "p", "1.0.0")
	outside := t.TempDir()
	publish(t, Registry{Name: "x", Dir: outside}, "latest", "p", "2.0.0")
	publish(t, b.registry, "latest", "p", "3.0.0")
	list := sources.List{}
	b.settings.Sources = func() sources.List { return list }
	b.service = NewService(b.settings)
	for _, c := range []struct{ name, url, version string }{
		{"x", "reg", "1.0.0"},            // its own data
		{"x", inside, "1.0.0"},           // by its path
		{"dev", b.registry.Dir, "3.0.0"}, // the user's
		{"x", b.registry.Dir, "3.0.0"},   // by another name
		{"x", outside, "2.0.0"},          // that the operator's list has
	} {
		if c.url == outside {
			list = sources.List{{Origin: "file://" + filepath.Dir(outside)}}
		}
		b.put(".aam/config.yaml", fmt.Sprintf("registries: [{name: %s, url: %q}]\n", c.name, c.url))
		b.same("search", `{"query":"p"}`, map[string]any{"result.0.name": "p", "result.0.registry": c.name,
			"result.0.version": c.version, "notes": nil})
		b.same("info", `{"package_name":"p"}`, map[string]any{"version": c.version, "registry": c.name})
	}
	// the user's name for another folder
	b.put(".aam/config.yaml", fmt.Sprintf("registries: [{name: dev, url: %q}]\n", inside))
	_, text := b.ask("search", `{"query":"p"}`)
	if !strings.Contains(text, "is your own registry at "+b.registry.Dir) {
		t.Errorf("%s", text)
	}
	b.put(manifestName, manifestOf("mine", "1.0.0"))
	b.put("skills/look/SKILL.md", "x")
	elsewhere := t.TempDir()
	must.Do(t, os.Symlink(elsewhere, filepath.Join(outside, "link")))
	publish(t, Registry{Name: "x", Dir: elsewhere}, "latest", "p", "1.0.0")
	list = sources.List{{Origin: "file://" + outside}}
	b.put(".aam/config.yaml", fmt.Sprintf("registries: [{name: x, url: %q}]\n", filepath.Join(outside, "link")))
	b.notUsed(elsewhere, "sources allow")
}

// A registry in the project may have links and files of any kind; what is outside is neither read nor written by way of
// them.
func TestARegistryInTheProjectDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(manifestName, manifestOf("mine", "1.0.0"))
	b.put("skills/look/SKILL.md", "x")
	outside := t.TempDir()
	publish(t, Registry{Name: "x", Dir: outside}, "latest", "p", "1.0.0")
	precious := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"keys": "ssh-ed25519 AAAA\n"})
	reg := operationtest.WriteFiles(t, filepath.Join(b.settings.Project, "reg"), map[string]string{".keep": ""})
	b.put(".aam/config.yaml", "registries: [{name: x, url: reg}]\n")
	for name, to := range map[string]string{".lock": filepath.Join(precious, "keys"),
		".unfinished": filepath.Join(precious, "keys"), "packages": filepath.Join(outside, "packages"),
		"index.yaml": filepath.Join(outside, "index.yaml")} {
		before := operationtest.ReadFiles(t, outside)
		must.Do(t, os.Symlink(to, filepath.Join(reg, name)))
		b.ask("publish", `{}`)
		if answer, text := b.ask("search", `{"query":"p"}`); part(answer, "result.0.name") == "p" {
			t.Errorf("%s: %s", name, text)
		}
		if text, err := os.ReadFile(filepath.Join(precious, "keys")); err != nil || string(text) != "ssh-ed25519 AAAA\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if diff := cmp.Diff(before, operationtest.ReadFiles(t, outside)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		must.Do(t, os.RemoveAll(reg))
		operationtest.WriteFiles(t, reg, map[string]string{".keep": ""})
	}
}

// The first registry that has a package decides; one further down cannot have a higher version installed, whatever is
// asked for.
func TestTheOrderOfRegistriesDecidesBeforeVersions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	public := filepath.Join(b.settings.Home, "public")
	b.asPerson(func() {
		operationtest.WriteFiles(t, public, map[string]string{".keep": ""})
		b.same("registry_add", fmt.Sprintf(`{"name":"public","url":%q}`, public), nil)
	})
	publish(t, b.registry, "latest", "lib", "1.2.0")
	for _, version := range []string{"1.3.0", "9.0.0"} {
		publish(t, Registry{Name: "public", Dir: public}, "latest", "lib", version)
	}
	publish(t, Registry{Name: "public", Dir: public}, "latest", "app", "1.0.0", "lib", ">=1.0.0")
	publish(t, Registry{Name: "public", Dir: public}, "latest", "greedy", "1.0.0", "lib", "^9.0.0")
	b.same("search", `{"query":"lib"}`, map[string]any{"result.0.version": "1.2.0", "result.0.registry": "dev"})
	b.same("info", `{"package_name":"lib"}`, map[string]any{"version": "1.2.0", "registry": "dev"})
	b.fails("info", `{"package_name":"lib","version":"9.0.0"}`, PackageNotFound, "1.2.0")
	b.same("install", `{"packages":["lib@^1.3.0"]}`,
		map[string]any{"installed": []any{}, "failed.0.code": "AAM_PACKAGE_NOT_FOUND"})
	b.fails("install", `{"packages":["greedy"]}`, DependencyConflict, "there are 1.2.0")
	b.same("install", `{"packages":["app"]}`, map[string]any{
		"installed.0.name": "lib", "installed.0.version": "1.2.0", "installed.0.source": "dev", "installed.1.name": "app",
		"installed.1.source": "public",
	})
}

// What a project's file says makes nothing less secure than the user has it. It may ask for more.
func TestAProjectMakesNothingLessSecure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.own("security: {require_signature: true, on_signature_failure: error}\n")
	b.put(".aam/config.yaml",
		"security: {require_checksum: false, require_signature: false, on_signature_failure: ignore}\n")
	b.same("config_get", `{"key":"security"}`,
		map[string]any{"value": map[string]any{"require_checksum": true, "require_signature": true,
			"on_signature_failure": "error"}})
	b.same("doctor", `{}`, map[string]any{"healthy": true})
	if _, text := b.ask("doctor", `{}`); !strings.Contains(text, "not used: security.require_checksum") {
		t.Errorf("%s", text)
	}
	publish(t, b.registry, "latest", "p", "1.0.0")
	b.same("install", `{"packages":["p"]}`, map[string]any{"failed.0.code": "AAM_INTEGRITY_ERROR"})
	b = newBench(t)
	b.put(".aam/config.yaml", "security: {require_signature: true, on_signature_failure: error}\n")
	b.same("config_get", `{"key":"security.on_signature_failure"}`, map[string]any{"value": "error", "source": "project"})
}

func TestCallersNameNothingOutsideOfTheProject(t *testing.T) {
	t.Parallel()
	for _, door := range doors()[:3] {
		b := newBench(t)
		b.door = door
		b.own("security: {require_signature: true, on_signature_failure: error}\n")
		other := operationtest.WriteFiles(t, filepath.Join(b.settings.Home, "other"),
			map[string]string{manifestName: manifestOf("other", "1.0.0"), "prompts/a.md": "x"})
		before := operationtest.ReadFiles(t, b.settings.Home)
		for _, path := range []string{other, "~/other", "../home/other", "~", filepath.Join(other, manifestName)} {
			b.fails("validate", fmt.Sprintf(`{"path":%q}`, path), PermissionDenied, "does not lie in the project")
			b.fails("create_package", fmt.Sprintf(`{"path":%q}`, path), PermissionDenied, "does not lie in the project")
		}
		must.Do(t, os.Symlink(other, filepath.Join(b.settings.Project, "link")))
		b.fails("validate", `{"path":"link"}`, PermissionDenied, "does not lie in the project")
		for key, value := range map[string]string{
			"security.require_checksum": "false", "security.require_signature": "false", "security.on_signature_failure": "warn",
			"default_platform": "codex", "active_platforms": "claude,codex",
		} {
			b.fails("config_set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), PermissionDenied, "person")
		}
		b.fails("config_set", `{"key":"registries","value":"/x"}`, InvalidArgument, "")
		if diff := cmp.Diff(before, operationtest.ReadFiles(t, b.settings.Home)); diff != "" {
			t.Errorf("%s: something was written:\n%s", door, diff)
		}
		b.same("config_set", `{"key":"security.require_checksum","value":"true"}`, map[string]any{"value": true})
		list := sources.List{{Origin: "file://" + b.registry.Dir}}
		b.settings.Sources = func() sources.List { return list }
		b.service = NewService(b.settings)
		b.fails("registry_add", fmt.Sprintf(`{"name":"again","url":%q,"set_default":true}`, b.registry.Dir), PermissionDenied,
			"default")
		b.same("registry_add", fmt.Sprintf(`{"name":"again","url":%q}`, b.registry.Dir), map[string]any{"name": "again"})
	}
}

// A link of the project that names its target in full, and stays, is followed like a relative one.
func TestAPackageIsInstalledThroughALinkThatStays(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		b := newBench(t)
		b.full("all", "1.0.0", "")
		b.put("real/.keep", "")
		target := "real"
		if whole {
			target = filepath.Join(b.settings.Project, target)
		}
		must.Do(t, os.Symlink(target, filepath.Join(b.settings.Project, ".claude")))
		b.same("install", `{"packages":["all"]}`, map[string]any{"installed.0.name": "all"})
		if got := b.file("real/skills/pdf/SKILL.md"); got == "" {
			t.Errorf("%s: the skill is not there", target)
		}
		b.same("uninstall", `{"package_name":"all"}`, nil)
	}
}

// Codex reads skills and prompts in the user's home. A project, or an agent, has none put there that were not there
// before.
func TestOnlyTheUserHasFilesPutOutsideOfTheProject(t *testing.T) {
	t.Parallel()
	skill := "../home/.codex/skills/pdf/SKILL.md"
	there := func(b *bench) bool { return fileset.Exists(filepath.Join(b.settings.Project, skill)) }
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.full("all", "1.1.0", "")
	b.put(".aam/config.yaml", "active_platforms: [claude, codex]\n")
	b.asPerson(func() {
		b.same("install", `{"packages":["all@1.0.0"]}`, map[string]any{"installed.0.name": "all"})
	})
	if there(b) || !strings.Contains(b.file("AGENTS.md"), "Be kind.") {
		t.Errorf("a project's word put a skill into the home: %v", there(b))
	}
	b.same("install", `{"packages":["all"],"platform":"codex","force":true}`,
		map[string]any{"installed.0.version": "1.1.0"})
	answer, _ := b.ask("install", `{"packages":["all"],"platform":"codex","force":true}`)
	if there(b) || !strings.Contains(fmt.Sprint(part(answer, "notes")),
		"your own configuration does not name the platform codex") {
		t.Errorf("an agent's word put a skill into the home: %v, %v", there(b), answer)
	}
	b.asPerson(func() { b.same("install", `{"packages":["all@1.0.0"],"platform":"codex","force":true}`, nil) })
	if !there(b) {
		t.Fatal("a person's word did not")
	}
	b.same("install", `{"packages":["all@1.1.0"]}`, map[string]any{"notes": nil}) // what is there is kept up to date
	if !strings.Contains(b.file(skill), "1.1.0") {
		t.Error("what a person has put there is not kept up to date")
	}
	b.same("uninstall", `{"package_name":"all"}`, nil)
	if there(b) {
		t.Error("it stays")
	}
	b.own("active_platforms: [codex]\n")
	b.put(".aam/config.yaml", "")
	b.same("install", `{"packages":["all"]}`, map[string]any{"notes": nil})
	if !there(b) {
		t.Error("the user's configuration names it")
	}
}

// A checkout can bring a change that was cut off. Finishing it puts nothing outside of the project.
func TestAChangeThatAProjectBringsPutsNothingOutside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.own("active_platforms: [codex]\n")
	b.put(".aam/config.yaml", "")
	b.service.fault = func(step string) error {
		if step == "transaction" {
			return died{}
		}
		return nil
	}
	b.ask("install", `{"packages":["all"]}`)
	brought := newBench(t)
	for name, text := range operationtest.ReadFiles(t, b.settings.Project) {
		brought.put(name, text)
	}
	publish(t, brought.registry, "latest", "q", "1.0.0")
	answer, text := brought.ask("install", `{"packages":["q"]}`)
	if !strings.Contains(fmt.Sprint(part(answer, "notes")), "cut off was finished") {
		t.Fatalf("the change was not found: %s", text)
	}
	if fileset.Exists(filepath.Join(brought.settings.Home, ".codex")) {
		t.Error("it put something into the home")
	}
}
