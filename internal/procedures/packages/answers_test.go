package packages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const everything = `name: %q
version: %s
description: Brings one of each
author: ann
license: MIT
keywords: [demo, Ops]
artifacts:
  agents:
    - {name: helper, path: agents/helper/, description: Helps}
  skills:
    - {name: pdf, path: skills/pdf/, description: Reads PDFs}
  prompts:
    - {name: ask, path: prompts/ask.md, description: Asks}
  instructions:
    - {name: rules, path: instructions/rules.md, description: "Rules: how"}
`

// full publishes a package with one artifact of each type.
func (b *bench) full(name, version string, more string) {
	b.Helper()
	dir := operationtest.WriteFiles(b, b.TempDir(), map[string]string{
		manifestName:               fmt.Sprintf(everything, name, version) + more,
		"agents/helper/agent.yaml": "name: helper\nsystem_prompt: prompt.md\n", "agents/helper/prompt.md": "You help.\n",
		"skills/pdf/SKILL.md":       "---\nname: pdf\ndescription: Reads PDFs\n---\n# PDF " + version + "\n",
		"skills/pdf/scripts/run.sh": "#!/bin/sh\n",
		"prompts/ask.md":            "Ask $1\n", "instructions/rules.md": "Be kind.\n\n",
	})
	must.Do(b, os.Chmod(filepath.Join(dir, "skills/pdf/scripts/run.sh"), 0o755))
	must.Do(b, publishFolder(b.Context(), b.registry, "latest", dir, b.settings.Now()))
}

// file is the content of a file of the project.
func (b *bench) file(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.settings.Project, name))
	if err != nil {
		b.Error(err)
	}
	return string(text)
}

func (b *bench) put(name, text string) {
	b.Helper()
	operationtest.WriteFiles(b, b.settings.Project, map[string]string{name: text})
}

// emptyFolders are a person's, of platforms that packages are put into.
func (b *bench) emptyFolders() {
	b.Helper()
	for _, name := range []string{filepath.Join(b.settings.Home, ".codex"),
		filepath.Join(b.settings.Project, ".github", "prompts"), filepath.Join(b.settings.Project, ".claude", "agents")} {
		must.Do(b, os.MkdirAll(name, 0o755))
	}
}

func TestInstallIntoEveryPlatformAndUninstallLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("@ops/all", "1.0.0", "")
	publish(t, b.registry, "latest", "base", "1.2.0")
	publish(t, b.registry, "latest", "top", "1.0.0", "@ops/all", "^1.0.0", "base", "*")
	b.own("active_platforms: [cursor, claude, copilot, codex, agents]\n")
	b.put(".aam/config.yaml", "")
	b.put("CLAUDE.md", "# Mine, without a line's end")
	b.put(".claude/skills/own/SKILL.md", "mine")
	b.emptyFolders()
	before := b.tree()
	b.same("install", `{"packages":["@ops/all@^1.0.0"]}`, map[string]any{
		"installed.0.name": "@ops/all", "installed.0.version": "1.0.0", "installed.0.source": "dev",
		"installed.0.artifact_count": 4.0,
		"installed.0.artifacts":      map[string]any{"agents": 1.0, "skills": 1.0, "prompts": 1.0, "instructions": 1.0},
		"already_installed":          []any{}, "failed": []any{}, "dependencies_resolved": 0.0,
		"notes.0": "the platform agents has no place for these of @ops/all, so they are left out: agent helper, prompt " +
			"ask, instruction rules", "notes.1": nil,
	})
	// What differs from the original, which peer_test.go compares with.
	for name, want := range map[string]string{
		".cursor/rules/rules.mdc":  "---\ndescription: 'Rules: how'\nalwaysApply: true\n---\n\nBe kind.\n\n",
		".claude/agents/helper.md": "---\nname: helper\ndescription: Helps\n---\n\nYou help.\n",
		"CLAUDE.md": "# Mine, without a line's end\n\n<!-- BEGIN AAM: rules instruction -->\nBe " +
			"kind.\n<!-- END AAM: rules instruction -->\n",
		".github/agents/helper.agent.md":             "---\nname: helper\ndescription: Helps\n---\n\nYou help.\n",
		".github/instructions/rules.instructions.md": "---\napplyTo: '**'\n---\n\nBe kind.\n\n",
		".agents/skills/pdf/SKILL.md":                "---\nname: pdf\ndescription: Reads PDFs\n---\n# PDF 1.0.0\n",
		".agents/skills/pdf/scripts/run.sh":          "#!/bin/sh\n",
	} {
		operationtest.Same(t, name, want, b.file(name))
	}
	if info, err := os.Stat(filepath.Join(b.settings.Project, ".claude/skills/pdf/scripts/run.sh")); err != nil ||
		info.Mode()&0o100 == 0 {
		t.Errorf("the script is not executable: %v", err)
	}
	b.same("doctor", `{}`, map[string]any{"healthy": true, "summary": "7 passed, 0 warnings, 0 failed"})
	b.same("install", `{"packages":["@ops/all"]}`,
		map[string]any{"already_installed": []any{"@ops/all"}, "installed": []any{}})
	b.same("install", `{"packages":["top"]}`, map[string]any{
		"installed.0.name": "base", "installed.1.name": "top", "installed.2": nil, "dependencies_resolved": 1.0,
		"failed": []any{},
	})
	b.same("list", `{}`, map[string]any{"result.0.name": "@ops/all", "result.0.artifact_count": 4.0,
		"result.1.name": "base", "result.2.name": "top", "result.3": nil})
	b.same("uninstall", `{"package_name":"base"}`,
		map[string]any{"package_name": "base", "version": "1.2.0", "dependents_warning": []any{"top"}, "notes": nil})
	b.same("uninstall", `{"package_name":"@ops/all"}`,
		map[string]any{"dependents_warning": []any{"top"}, "files_removed": 29.0})
	b.same("uninstall", `{"package_name":"top"}`, map[string]any{"dependents_warning": []any{}})
	b.unchanged("the tree is not what it was", before)
	if len(b.rows) != 6 || b.rows[0].Outcome != record.OutcomeDone || b.rows[0].Paths[0] != b.settings.Project {
		t.Errorf("rows %+v", b.rows)
	}
}

func TestADryRunWritesNothingAndSaysTheSame(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.authority.DryRun = true
	before := b.tree()
	b.same("install", `{"packages":["all"]}`, map[string]any{"installed.0.name": "all", "installed.0.artifact_count": 4.0,
		"dry_run": true})
	b.put("aam.yaml", manifestOf("mine", "1.0.0"))
	b.put("skills/look/SKILL.md", "x")
	before["project/aam.yaml"] = "-rw-r--r-- " + manifestOf("mine", "1.0.0")
	before["project/skills/"], before["project/skills/look/"] = "", ""
	before["project/skills/look/SKILL.md"] = "-rw-r--r-- x"
	b.same("publish", `{}`, map[string]any{"package_name": "mine", "dry_run": true})
	b.same("config_set", `{"key":"author.name","value":"ann"}`,
		map[string]any{"value": "ann", "source": "global", "dry_run": true})
	b.asPerson(func() {
		b.same("registry_add", `{"name":"more","url":"."}`, map[string]any{"name": "more", "dry_run": true})
	})
	b.same("create_package", `{"path":"skills"}`, map[string]any{"total_artifacts": 1.0, "dry_run": true})
	b.unchanged("something was written", before)
	if index, err := b.registry.Index(); err != nil || len(index.Packages) != 1 {
		t.Errorf("%+v, %v", index, err)
	}
}

func TestFilesOfPeopleAreNeverReplacedOrRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.full("all", "2.0.0", "")
	for name, text := range map[string]string{
		".claude/agents/helper.md": "mine", ".claude/commands/ask.md": "Ask $1\n", ".claude/skills/pdf/notes.md": "mine",
		"CLAUDE.md": "<!-- BEGIN AAM: rules instruction -->\nmine\n<!-- END AAM: rules instruction -->\n",
	} {
		b.put(name, text)
		before := b.tree()
		answer, _ := b.ask("install", `{"packages":["all"]}`)
		if part(answer, "failed.0.code") != "AAM_NAME_CONFLICT" ||
			!strings.Contains(fmt.Sprint(part(answer, "failed.0.message")), filepath.FromSlash(name)) {
			t.Errorf("%s: %v", name, answer)
		}
		b.unchanged(name+": something was written", before)
		must.Do(t, os.Remove(filepath.Join(b.settings.Project, name)))
		_ = os.Remove(filepath.Join(b.settings.Project, filepath.Dir(name)))
	}
	b.put("CLAUDE.md", "# Mine\n")
	b.same("install", `{"packages":["all@1.0.0"]}`, map[string]any{"installed.0.version": "1.0.0"})
	b.put(".claude/agents/helper.md", "edited")
	b.put("CLAUDE.md", b.file("CLAUDE.md")+"\nmore of mine\n")
	b.same("install", `{"packages":["all"]}`, map[string]any{"installed.0.version": "2.0.0"})
	if b.file(".claude/agents/helper.md") != "edited" ||
		!strings.Contains(b.file(".claude/skills/pdf/SKILL.md"), "PDF 2.0.0") {
		t.Error("the edited file was replaced, or the other was not")
	}
	answer, _ := b.ask("uninstall", `{"package_name":"all"}`)
	if notes := fmt.Sprint(answer["notes"]); !strings.Contains(notes, "helper.md was changed") ||
		b.file(".claude/agents/helper.md") != "edited" {
		t.Errorf("notes %s", notes)
	}
	if got := b.file("CLAUDE.md"); got != "# Mine\n\nmore of mine\n" {
		t.Errorf("CLAUDE.md is %q", got)
	}
}

func TestASectionThatSomebodyHasChangedStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.full("all", "1.1.0", "")
	b.same("install", `{"packages":["all@1.0.0"]}`, map[string]any{"failed": []any{}})
	b.put("CLAUDE.md", strings.Replace(b.file("CLAUDE.md"), "Be kind.", "Be strict.", 1))
	b.same("install", `{"packages":["all"]}`, map[string]any{"failed.0.code": "AAM_NAME_CONFLICT",
		"failed.0.details.path": "CLAUDE.md", "installed": []any{}})
	b.same("list", `{}`, map[string]any{"result.0.version": "1.0.0"})
	answer, _ := b.ask("uninstall", `{"package_name":"all"}`)
	if !strings.Contains(fmt.Sprint(answer["notes"]), "was changed") ||
		!strings.Contains(b.file("CLAUDE.md"), "Be strict.") {
		t.Errorf("%v", answer)
	}
}

func TestTwoPackagesThatWantOneNameAreRefusedWithBoth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("one", "1.0.0", "")
	b.full("two", "1.0.0", "")
	publish(t, b.registry, "latest", "@a/b", "1.0.0")
	publish(t, b.registry, "latest", "ontwo", "1.0.0", "two", "*")
	b.same("install", `{"packages":["one","ontwo","@a/b"]}`, map[string]any{
		"installed.0.name": "one", "installed.1.name": "@a/b", "installed.2": nil, "failed.0.package": "ontwo",
		"failed.0.code": "AAM_NAME_CONFLICT", "failed.1": nil,
	})
	before := b.tree()
	b.same("install", `{"packages":["two"]}`, map[string]any{
		"installed": []any{}, "failed.0.package": "two", "failed.0.code": "AAM_NAME_CONFLICT",
		"failed.0.details.packages": []any{"one", "two"}, "failed.0.hint": "uninstall one of the two",
	})
	b.fails("install", `{"packages":["two"],"platform":"nowhere"}`, InvalidArgument, "cursor, claude, copilot, codex, agents")
	b.unchanged("something was written", before)
	b.same("install", `{"packages":["two"],"platform":"cursor"}`, map[string]any{"installed.0.name": "two"})
}

func TestWhatCannotBeInstalledSaysWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, p := range [][]string{
		{"lib", "1.0.0"}, {"lib", "2.0.0"}, {"good", "1.0.0"}, {"needs1", "1.0.0", "lib", "^1.0.0"},
		{"needs2", "1.0.0", "lib", "^2.0.0"}, {"orphan", "1.0.0", "gone", "*"}, {"bad", "1.0.0"},
		{"onbad", "1.0.0", "bad", "*"},
	} {
		publish(t, b.registry, "latest", p[0], p[1], p[2:]...)
	}
	operationtest.WriteFiles(t, b.registry.Dir, map[string]string{"packages/bad/versions/1.0.0.aam": "x"})
	b.same("install", `{"packages":["gone","good@^9.0.0","A b","orphan","onbad","good"],"no_deploy":true}`, map[string]any{
		"installed.0.name": "good", "installed.1": nil,
		"failed.0.package": "A b", "failed.0.code": "AAM_INVALID_ARGUMENT",
		"failed.1.package": "gone", "failed.1.code": "AAM_PACKAGE_NOT_FOUND",
		"failed.1.message": "no registry has a package gone", "failed.1.hint": "search for it with aam_search",
		"failed.1.details.registries": []any{"dev"},
		"failed.2.package":            "good@^9.0.0", "failed.2.code": "AAM_PACKAGE_NOT_FOUND",
		"failed.3.package": "orphan", "failed.3.code": "AAM_PACKAGE_NOT_FOUND",
		"failed.3.message": "no registry has the package gone, which orphan 1.0.0 depends on",
		"failed.4.package": "onbad", "failed.4.code": "AAM_INTEGRITY_ERROR", "failed.5": nil,
	})
	b.fails("install", `{"packages":["needs1","needs2"],"no_deploy":true}`, DependencyConflict,
		"Because needs1 1.0.0 needs lib ^1.0.0 and needs2 1.0.0 needs lib ^2.0.0, needs1 1.0.0 and needs2 1.0.0 do not go together.")
	b.same("install", `{"packages":["needs1"],"no_deploy":true}`,
		map[string]any{"installed.0.name": "lib", "installed.0.version": "1.0.0", "installed.1.name": "needs1"})
	b.fails("install", `{"packages":["needs2"],"no_deploy":true}`, DependencyConflict, "needs1 1.0.0 is installed")
	b.fails("install", `{"packages":["lib@2.0.0"],"no_deploy":true}`, DependencyConflict, "^1.0.0")
	b.same("install", `{"packages":["lib@^1.0.0"],"no_deploy":true}`, map[string]any{"already_installed": []any{"lib"}})
	b.fails("install", `{"packages":[]}`, InvalidArgument, "packages")
	b.fails("uninstall", `{"package_name":"gone"}`, PackageNotInstalled, "gone")
	must.Do(t, os.RemoveAll(filepath.Join(b.settings.Project, ".aam")))
	before := b.tree()
	b.fails("install", `{"packages":["good"]}`, NotInitialized, ".aam")
	b.same("list", `{}`, map[string]any{"result": []any{}})
	b.fails("uninstall", `{"package_name":"good"}`, PackageNotInstalled, "good")
	b.unchanged("something was written", before)
}

func TestChecksumsAreVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	publish(t, b.registry, "latest", "p", "1.0.0")
	name := filepath.Join(b.registry.Dir, "packages/p/metadata.yaml")
	text := operationtest.ReadFile(t, name)
	m, err := b.registry.readMetadata(Name{Bare: "p"})
	must.Do(t, err)
	none := strings.Replace(string(text), m.Versions[0].Checksum, `""`, 1)
	operationtest.WriteFiles(t, b.registry.Dir, map[string]string{"packages/p/metadata.yaml": none})
	b.same("install", `{"packages":["p"]}`, map[string]any{"failed.0.code": "AAM_INTEGRITY_ERROR", "installed": []any{}})
	b.fails("config_set", `{"key":"security.require_checksum","value":"false"}`, PermissionDenied, "a person")
	b.door = record.DoorCLI
	b.same("config_set", `{"key":"security.require_checksum","value":"false"}`,
		map[string]any{"value": false, "key": "security.require_checksum"})
	b.same("install", `{"packages":["p"]}`, map[string]any{"installed.0.name": "p", "installed.0.checksum": ""})
	b.same("doctor", `{}`, map[string]any{"healthy": true})
	b.put(".aam/packages/p/skills/look/SKILL.md", "changed")
	b.same("doctor", `{}`, map[string]any{"healthy": false})
	b.same("install", `{"packages":["p"],"platform":"cursor"}`, map[string]any{"failed.0.code": "AAM_INTEGRITY_ERROR"})
	b.same("install", `{"packages":["p"],"force":true}`, map[string]any{"installed.0.name": "p"})
	b.same("doctor", `{}`, map[string]any{"healthy": true})
	b.same("config_set", `{"key":"security.require_signature","value":"true"}`, nil)
	b.same("install", `{"packages":["p"],"force":true}`,
		map[string]any{"installed.0.name": "p",
			"notes.0": "packages have no signatures, which the configuration asks for; their checksums were verified"})
	b.same("config_set", `{"key":"security.on_signature_failure","value":"error"}`, nil)
	b.same("install", `{"packages":["p"],"force":true}`, map[string]any{"failed.0.code": "AAM_INTEGRITY_ERROR"})
}

func TestSearchInfoAndRegistries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.same("search", `{"query":""}`, map[string]any{"result": []any{}})
	b.full("pdf", "1.0.0", "")
	b.full("pdf-tools", "1.0.0", "dependencies: {pdf: \"^1.0.0\"}\nplatforms: {cursor: {skill_scope: project}}\n")
	b.full("my-pdf", "1.0.0", "")
	b.full("other", "1.0.0", "")
	b.same("search", `{"query":"PDF"}`, map[string]any{
		"result.0.name": "pdf", "result.1.name": "pdf-tools", "result.2.name": "my-pdf", "result.3": nil,
		"result.0.author": "ann", "result.0.registry": "dev",
		"result.0.version": "1.0.0", "result.0.description": "Brings one of each",
		"result.0.artifact_types": []any{"agent", "instruction", "prompt", "skill"},
	})
	b.same("search", `{"query":"ops","limit":1}`, map[string]any{"result.0.name": "my-pdf", "result.1": nil})
	b.same("search", `{"query":"brings one"}`, map[string]any{"result.3.name": "pdf-tools"})
	b.same("search", `{"query":"pdf demo"}`, map[string]any{"result.2.name": "pdf-tools", "result.3": nil})
	b.same("search", `{"query":"nothing"}`, map[string]any{"result": []any{}})
	b.same("search", `{"query":"pdf","package_type":"skill"}`, map[string]any{"result.2.name": "my-pdf"})
	b.fails("search", `{"query":"pdf","package_type":"tool"}`, InvalidArgument, "package_type")
	b.fails("search", `{"query":"pdf","limit":51}`, InvalidArgument, "limit")
	b.same("info", `{"package_name":"pdf-tools"}`, map[string]any{
		"name": "pdf-tools", "version": "1.0.0", "description": "Brings one of each", "author": "ann", "license": "MIT",
		"installed": false, "installed_version": nil,
		"artifacts.skills.0": map[string]any{"name": "pdf", "path": "skills/pdf/", "description": "Reads PDFs"},
		"dependencies":       map[string]any{"pdf": "^1.0.0"},
		"platforms":          map[string]any{"cursor": map[string]any{"skill_scope": "project"}},
	})
	b.full("pdf", "2.0.0", "")
	b.same("install", `{"packages":["pdf@1.0.0"]}`, nil)
	b.same("info", `{"package_name":"pdf"}`, map[string]any{"version": "1.0.0", "installed": true,
		"installed_version": "1.0.0"})
	b.same("info", `{"package_name":"pdf","version":"latest"}`,
		map[string]any{"version": "2.0.0", "installed": true, "installed_version": "1.0.0"})
	b.fails("info", `{"package_name":"pdf","version":"3.0.0"}`, PackageNotFound, "2.0.0, 1.0.0")
	b.fails("info", `{"package_name":"nope"}`, PackageNotFound, "nope")
	b.door = record.DoorCLI
	more := filepath.Join(b.settings.Home, "more")
	operationtest.WriteFiles(t, more, map[string]string{".keep": ""})
	b.same("registry_add", fmt.Sprintf(`{"name":"more","url":%q,"set_default":true}`, "file://"+more), map[string]any{
		"name": "more", "url": more, "type": "local", "is_default": true, "accessible": true,
	})
	b.same("registry_list", `{}`, map[string]any{"result.0.name": "dev", "result.0.is_default": false,
		"result.1.name": "more", "result.1.is_default": true, "result.1.url": more})
	b.fails("registry_add", fmt.Sprintf(`{"name":"more","url":%q}`, more), InvalidArgument, "already")
	b.fails("registry_add", `{"name":"x","url":"/does/not/exist"}`, RegistryUnreachable, "/does/not/exist")
	b.fails("registry_add", `{"name":"x","url":"https://example.com/r"}`, RegistryUnreachable, "folders")
	b.door = record.DoorMCP
	for _, dir := range []string{"/etc", more, ".", "/does/not/exist"} {
		b.fails("registry_add", fmt.Sprintf(`{"name":"x","url":%q}`, dir), PermissionDenied, "operator")
	}
	b.door = record.DoorCLI
	b.fails("registry_add", `{"name":"../x","url":"."}`, InvalidArgument, "name")
	must.Do(t, os.RemoveAll(more))
	b.fails("search", `{"query":"pdf"}`, RegistryUnreachable, `"more"`)
	b.same("registry_list", `{}`, map[string]any{"result.1.accessible": false})
	b.same("doctor", `{}`, map[string]any{"healthy": false})
	_, text := b.ask("registry_list", `{}`)
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 2 {
		t.Errorf("the text is not a bare list: %s", text)
	}
}

func TestSettingsHaveCheckedValuesAndTrueSources(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for key, want := range map[string][2]any{
		"default_platform": {"cursor", "default"}, "active_platforms": {[]any{"claude"}, "project"},
		"author.name": {nil, "default"}, "author": {map[string]any{"name": nil, "email": nil}, "default"},
		"security.require_checksum": {true, "default"},
		"registries": {[]any{map[string]any{"name": "dev", "url": b.registry.Dir, "type": "local",
			"default": true}}, "global"},
	} {
		b.same("config_get", fmt.Sprintf(`{"key":%q}`, key), map[string]any{"key": key, "value": want[0], "source": want[1]})
	}
	b.same("config_get", `{}`, map[string]any{"key": nil, "source": "merged", "value.default_platform": "cursor",
		"value.security.on_signature_failure": "warn"})
	b.door = record.DoorCLI
	b.same("config_set", `{"key":"security.on_signature_failure","value":"ignore"}`,
		map[string]any{"key": "security.on_signature_failure", "value": "ignore", "source": "global"})
	b.same("config_get", `{"key":"security"}`, map[string]any{"source": "merged"})
	b.same("config_set", `{"key":"active_platforms","value":"cursor, codex"}`,
		map[string]any{"value": []any{"cursor", "codex"},
			"notes.0": "the project's configuration has another value, which counts here: " + configFile(b.settings.Project)})
	before := b.tree()
	for key, value := range map[string]string{
		"default_platform": "klingon", "security.require_checksum": "maybe", "registries": "x", "nothing": "1",
		"security": "x", "active_platforms": "cursor,klingon", "publish.default_scope": "A B",
	} {
		b.fails("config_set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), InvalidArgument, "")
	}
	_, text := b.ask("config_get", `{"key":"nothing"}`)
	if !strings.Contains(text, "default_platform, active_platforms, registries") {
		t.Errorf("the valid keys are not named: %s", text)
	}
	b.unchanged("something was written", before)
	operationtest.WriteFiles(t, b.settings.Home,
		map[string]string{".aam/config.yaml": "# mine\nunknown: 1\nauthor:\n  name: ann # me\n"})
	b.same("config_set", `{"key":"author.email","value":"a@example.com"}`, nil)
	text = b.file("../home/.aam/config.yaml")
	if want := "# mine\nunknown: 1\nauthor:\n  name: ann # me\n  email: a@example.com\n"; text != want {
		t.Errorf("the file is %q", text)
	}
	operationtest.WriteFiles(t, b.settings.Home, map[string]string{".aam/config.yaml": "default_platform: [1"})
	b.fails("config_get", `{}`, ConfigInvalid, "config.yaml")
	b.fails("config_set", `{"key":"author.email","value":"b"}`, ConfigInvalid, "config.yaml")
	b.same("doctor", `{}`, map[string]any{"healthy": false})
	b.settings.Home = t.TempDir()
	b.service = NewService(b.settings)
	b.same("config_get", `{}`, nil)
	b.same("search", `{"query":"x"}`, nil)
	b.same("registry_list", `{}`, nil)
	b.same("doctor", `{}`, nil)
	if entries, err := os.ReadDir(b.settings.Home); err != nil || len(entries) != 0 {
		t.Errorf("reading made %v, %v", entries, err)
	}
}

func TestMakeValidateAndPublishAPackage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fails("create_package", `{}`, InvalidArgument, "no skills")
	b.fails("publish", `{}`, ManifestNotFound, "aam.yaml")
	b.same("validate", `{}`, map[string]any{"valid": false, "package_name": nil, "errors.0": "No aam.yaml found at " +
		b.settings.Project})
	b.put("skills/PDF Reader/SKILL.md", "---\nname: x\ndescription: Reads PDFs\n---\n")
	b.put(".agents/skills/look/SKILL.md", "---\nname: look\ndescription: Looks\n---\n")
	b.put(".claude/skills/mend/SKILL.md", "---\nname: mend\ndescription: Mends\n---\n")
	b.put("prompts/ask.md", "# Ask people\n")
	b.put(".cursor/rules/agent-ops.mdc", "x")
	b.put("node_modules/skills/x/SKILL.md", "x")
	b.fails("create_package", `{"artifact_types":["tool"]}`, InvalidArgument, "tool")
	b.fails("create_package", `{"path":"/etc"}`, PermissionDenied, "/etc")
	b.fails("create_package", `{"name":"Bad Name"}`, InvalidArgument, "Bad Name")
	b.same("create_package", `{"name":"@ops/mine","artifact_types":["skill","prompt"],"description":"Mine"}`,
		map[string]any{
			"manifest_path": filepath.Join(b.settings.Project, "aam.yaml"), "package_name": "@ops/mine", "version": "0.1.0",
			"artifacts_included": map[string]any{"skills": 3.0, "prompts": 1.0}, "total_artifacts": 4.0,
		})
	b.fails("create_package", `{}`, InvalidArgument, "already")
	b.same("validate", `{"path":"aam.yaml"}`, map[string]any{"valid": true, "package_name": "@ops/mine",
		"package_version": "0.1.0", "errors": []any{}, "artifact_count": 4.0, "artifacts_valid": true,
		"warnings.0": "No author provided"})
	b.fails("validate", `{"path":"../.."}`, PermissionDenied, "")
	b.same("publish", `{"tag":"beta"}`, map[string]any{"package_name": "@ops/mine", "version": "0.1.0", "registry": "dev"})
	b.fails("publish", `{}`, VersionExists, "0.1.0")
	b.fails("publish", `{"registry":"nope"}`, RegistryNotFound, "nope")
	b.fails("publish", `{"tag":"1.0"}`, InvalidArgument, "tag")
	b.put("aam.yaml", strings.Replace(b.file("aam.yaml"), "skills/PDF Reader/", "skills/gone/", 1))
	b.same("validate", `{}`, map[string]any{"valid": false, "artifacts_valid": false,
		"errors.0": "Artifact path 'skills/gone/' does not exist", "package_name": "@ops/mine"})
	b.fails("publish", `{}`, ManifestInvalid, "skills/gone/")
	b.put("aam.yaml", "name: [")
	answer, _ := b.ask("validate", `{}`)
	if !strings.HasPrefix(fmt.Sprint(part(answer, "errors.0")), "YAML parse error: ") {
		t.Errorf("%v", answer)
	}
	operationtest.WriteFiles(t, b.settings.Home, map[string]string{".aam/config.yaml": ""})
	b.put("aam.yaml", manifestOf("mine", "1.0.0"))
	b.put("skills/look/SKILL.md", "x")
	b.fails("publish", `{}`, RegistryNotConfigured, "no registry")
}

// Arguments that the contract types as "or None" may be null, which is the same as leaving them out.
func TestNullIsTheSameAsNothingWhereTheContractHasIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("pdf", "1.0.0", "")
	b.put("skills/mine/SKILL.md", "---\nname: mine\ndescription: Mine\n---\n")
	b.same("search", `{"query":"pdf","package_type":null}`, map[string]any{"result.0.name": "pdf"})
	b.same("info", `{"package_name":"pdf","version":null}`, map[string]any{"version": "1.0.0"})
	b.same("config_get", `{"key":null}`, map[string]any{"key": nil, "source": "merged"})
	b.same("create_package", `{"name":null,"version":null,"description":null,"artifact_types":null}`, map[string]any{
		"package_name": "project", "version": "0.1.0", "total_artifacts": 1.0,
	})
	b.same("publish", `{"registry":null}`, map[string]any{"package_name": "project", "registry": "dev"})
	b.same("install", `{"packages":["pdf"],"platform":null}`, map[string]any{"installed.0.name": "pdf"})
	for tool, arguments := range map[string]string{
		"search": `{"query":null}`, "install": `{"packages":null}`, "info": `{"package_name":null}`,
		"publish":  `{"tag":null}`,
		"validate": `{"path":null}`, "create_package": `{"path":null}`, "registry_add": `{"name":"x","url":null}`,
		"config_set": `{"key":"default_platform","value":null}`,
	} {
		b.fails(tool, arguments, InvalidArgument, "must not be null")
	}
}
