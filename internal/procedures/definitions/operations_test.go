package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// bench is the toolset over a project, a home and perhaps registries, with an audit in memory.
type bench struct {
	testing.TB
	settings  Settings
	authority operation.Authority
	variables map[string]string
	rows      []record.Attempt
	service   *Service
}

func (b *bench) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	b.rows = append(b.rows, a)
	return nil
}

func newBench(t testing.TB, project, home map[string]string) *bench {
	b := &bench{TB: t, variables: map[string]string{}}
	b.settings = Settings{
		Project: operationtest.WriteFiles(t, t.TempDir(), project), Home: operationtest.WriteFiles(t, t.TempDir(), home),
		Transport: http.DefaultTransport, Now: time.Now,
		Token: func(name string) string { return b.variables[name] },
	}
	b.authority = operation.Authority{Enabled: func(string) bool { return true }, Tier: 2}
	return b
}

func (b *bench) toolset() operation.Toolset {
	if b.service == nil {
		b.service = NewService(b.settings)
	}
	return Toolset(operationtest.Kernel(b, b.authority, b), func() *Service { return b.service })
}

// ask calls a tool and gives its answer, or its failure in the contract's form, as JSON has it.
func (b *bench) ask(tool, arguments string) (out map[string]any) {
	b.Helper()
	_, text, _ := operationtest.Ask(b, b.toolset(), "", arguments, "fractary_forge_"+tool)
	must.Do(b, json.Unmarshal(text, &out))
	return out
}

// same holds parts of an answer, which are named by paths such as agents.0.name, against what they should be.
func (b *bench) same(tool, arguments string, want map[string]any) {
	b.Helper()
	answer := b.ask(tool, arguments)
	for path, value := range want {
		if diff := cmp.Diff(value, operationtest.Part(answer, path)); diff != "" {
			text, _ := json.Marshal(answer)
			b.Errorf("%s %s: %s (-want +got):\n%s\n%.600s", tool, arguments, path, diff, text)
		}
	}
}

func TestSchemas(t *testing.T) { operationtest.Schemas(t, newBench(t, nil, nil).toolset()) }

// contractTools returns the contract of each tool: input, then output. A question mark follows what may be missing; a
// type or the values of an enumeration follow a colon.
func contractTools() map[string][2]string {
	list := "tags?:array source?:local|global|stockyard|all limit?:number offset?:number"
	entry := ":array %[1]s[].name:string %[1]s[].version:string %[1]s[].description?:string %[1]s[].tags?:array " +
		"%[1]s[].source:local|global|stockyard %[1]s[].path:string total:number limit:number offset:number"
	named := "name:string version?:string source?:local|global|stockyard|all"
	info := "name:string version:string description?:string author?:string license?:string tags?:array " +
		"source:local|global|stockyard path:string "
	validated := "valid:boolean path:string errors:array errors[].field:string errors[].message:string " +
		"errors[].severity:error|warning " +
		"warnings:array warnings[].field:string warnings[].message:string schema_version:string"
	fork := "name:string type:agent|tool path:string localVersion:string hasUpstreamUpdate:boolean "
	return map[string][2]string{
		"agent_list": {list, fmt.Sprintf("agents"+entry, "agents")},
		"agent_info": {named, info +
			"tools?:array extends?:string prompt?:string dependencies?:array dependencies[].name:string " +
			"dependencies[].version:string dependencies[].type:tool|agent"},
		"agent_validate": {"path?:string name?:string strict?:boolean", validated},
		"tool_list":      {list, fmt.Sprintf("tools"+entry, "tools")},
		"tool_info":      {named, info + "inputSchema?:object outputSchema?:object"},
		"tool_validate":  {"path?:string name?:string strict?:boolean", validated},
		"plugin_list": {"scope?:global|local|all outdated?:boolean",
			"plugins:array plugins[].name:string plugins[].version:string " +
				"plugins[].scope:global|local plugins[].path:string plugins[].hasUpdate?:boolean plugins[].latestVersion?:string " +
				"total:number"},
		"plugin_info": {"plugin:string version?:string remote?:boolean",
			"name:string version:string description?:string author?:string license?:string " +
				"homepage?:string repository?:string keywords?:array components:object components.agents:array " +
				"components.tools:array " +
				"components.workflows:array components.hooks:array components.commands:array dependencies?:object " +
				"installed?:object " +
				"installed.scope:global|local installed.path:string installed.installedVersion:string availableVersions?:array"},
		"plugin_search": {"query:string tags?:array limit?:number offset?:number",
			"results:array results[].name:string results[].version:string " +
				"results[].description?:string results[].author?:string results[].tags?:array results[].downloads?:number " +
				"results[].registry:string " +
				"total:number query:string"},
		"config_get": {"key:string", "key:string value: exists:boolean"},
		"config_show": {"includeDefaults?:boolean format?:json|yaml",
			"config:object config.registries:array config.registries[].name:string " +
				"config.registries[].url:string config.registries[].priority:number config.cache?:object " +
				"config.cache.directory:string config.cache.ttl:number " +
				"config.resolution?:object config.resolution.local:boolean config.resolution.global:boolean " +
				"config.resolution.stockyard:boolean sources:array"},
		"config_registry_list": {"",
			"registries:array registries[].name:string registries[].url:string registries[].priority:number " +
				"registries[].authenticated:boolean"},
		"cache_clear": {"type?:manifests|downloads|all olderThan?:number",
			"success:boolean cleared:object cleared.manifests:number " +
				"cleared.downloads:number cleared.totalSize:string"},
		"cache_stats": {"",
			"manifests:object manifests.count:number manifests.size:string manifests.oldestEntry:string " +
				"manifests.newestEntry:string " +
				"downloads:object downloads.count:number downloads.size:string totalSize:string location:string"},
		"fork_list": {"type?:agent|tool|all",
			"forks:array forks[].name:string forks[].type:agent|tool forks[].upstream:object " +
				"forks[].upstream.name:string forks[].upstream.version:string forks[].localVersion:string forks[].path:string " +
				"forks[].hasUpstreamUpdate:boolean total:number"},
		"fork_info": {"name:string", fork +
			"upstream:object upstream.name:string upstream.version:string upstream.currentVersion:string createdAt:string " +
			"lastMerged?:string"},
		"fork_diff": {"name:string format?:unified|json",
			"name:string upstreamVersion:string localVersion:string differences:array differences[].field:string " +
				"differences[].local: differences[].upstream: differences[].changeType:added|removed|modified summary:object " +
				"summary.added:number " +
				"summary.removed:number summary.modified:number"},
		"fork_check": {"name?:string",
			"updates:array updates[].name:string updates[].type:agent|tool updates[].localVersion:string " +
				"updates[].upstreamVersion:string updates[].breakingChanges:boolean total:number hasUpdates:boolean"},
	}
}

// ours lists the fields of our answers beyond the contract. All of them may be missing.
func ours() []string {
	return []string{
		"notes", "errors[].line", "errors[].column", "errors[].suggestion", "warnings[].line", "warnings[].column",
		"warnings[].suggestion",
		"yaml", "unified", "registries[].disabled", "dry_run",
		"format", "agents[].format", "registry", "agents[].registry", "tools[].registry", "plugins[].registry",
		"forks[].registry", "updates[].registry", "registries[].not_used",
		"config.registries[].not_used", "error", "code", "message", "details", "suggestions",
	}
}

func TestEveryToolHasTheFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	set := newBench(t, nil, nil).toolset()
	tools := contractTools()
	set.Operations = slices.DeleteFunc(set.Operations, func(o operation.Operation) bool { return !InContract(o) })
	if len(set.Operations) != 18 || len(tools) != 18 {
		t.Fatalf("%d tools, %d in the contract", len(set.Operations), len(tools))
	}
	described := 0
	for _, o := range set.Operations {
		described += len(o.Tool.Description)
		want, known := tools[strings.TrimPrefix(o.Name, "fractary_forge_")]
		if !known || !set.Listed(o) || (o.Effect == operation.Read) != (o.Name != "fractary_forge_cache_clear") {
			t.Errorf("%s is not the contract's", o.Name)
		}
		operationtest.Contract(t, set, o, want, func(name, kind string) bool {
			return strings.HasPrefix(kind, "?") && slices.Contains(ours(), name)
		})
	}
	if described > 18*600 {
		t.Errorf("descriptions have %d bytes a tool", described/18)
	}
}

// Skills are found in both places of the project and of the home, and held against the published format.
func TestSkillsOfBothPlaces(t *testing.T) {
	t.Parallel()
	skill := func(name, more string) string {
		return "---\nname: " + name + "\ndescription: When a disk fills up\nlicense: MIT\n" + more + "---\n\n# " + name + "\n"
	}
	b := newBench(t, map[string]string{
		".claude/skills/disk/SKILL.md": skill("disk", "allowed-tools: Read, Grep\n"), ".claude/skills/disk/run.sh": "x",
		".claude/skills/loose.md": skill("loose", ""), ".claude/skills/empty/README.md": "x",
		".agents/skills/disk/SKILL.md": skill("disk", ""), ".agents/skills/wrong/SKILL.md": skill("other", ""),
		".agents/skills/none/SKILL.md": "# No header\n", ".agents/agents/x.md": skill("x", ""),
		".fractary/skills/forge/SKILL.md": skill("forge", ""),
	}, map[string]string{".agents/skills/mine/SKILL.md": "---\nname: mine\ndescription: When: it is mine\n---\n"})
	first, second := filepath.Join(b.settings.Project, ".claude/skills/disk/SKILL.md"),
		filepath.Join(b.settings.Project, ".agents/skills/disk/SKILL.md")
	b.same("skill_list", `{}`, map[string]any{
		"total": 3.0, "skills.0.name": "disk", "skills.0.path": first, "skills.0.source": "local",
		"skills.1.path": second, "skills.1.description": "When a disk fills up",
		"skills.2.name": "mine", "skills.2.source": "global", "skills.3": nil,
	})
	b.same("skill_list", `{"source":"global","limit":1}`, map[string]any{"total": 1.0, "skills.0.name": "mine"})
	b.same("skill_info", `{"name":"disk"}`, map[string]any{"path": first, "also.0": second, "also.1": nil,
		"license": "MIT", "text": "\n# disk\n", "allowed_tools.1": "Grep"})
	b.same("skill_info", `{"name":"disk@.agents"}`, map[string]any{"path": second, "also.0": first, "allowed_tools": nil})
	b.same("skill_info", `{"name":"mine@.claude"}`, map[string]any{"code": "SKILL_NOT_FOUND"})
	b.same("skill_info", `{"name":"dick"}`, map[string]any{"code": "SKILL_NOT_FOUND"})
	b.same("skill_info", `{"name":"other"}`, map[string]any{"code": "VALIDATION_ERROR"})
	b.same("skill_validate", `{"name":"mine"}`, map[string]any{"valid": true, "errors": []any{}, "warnings.0.line": 3.0})
	b.same("skill_validate", `{"path":".agents/skills/disk/SKILL.md","strict":true}`, map[string]any{"valid": true,
		"path": second, "warnings": []any{}})
	b.same("skill_validate", `{"name":"wrong"}`, map[string]any{"valid": false,
		"errors.0.message": `the name "other" is not that of its folder, "wrong"`, "errors.0.suggestion": "write name: wrong"})
	b.same("skill_validate", `{"name":".agents/skills/none/SKILL.md"}`, map[string]any{"valid": false})
	b.same("skill_validate", `{"path":"/etc/passwd"}`, map[string]any{"code": "PERMISSION_DENIED"})
	b.same("agent_list", `{}`, map[string]any{"total": 0.0})
	b.same("tool_list", `{}`, map[string]any{"total": 0.0})
	listing, err := b.service.Select(t.Context(), Selection{Kind: Skill, Broken: true})
	if err != nil || listing.Total != 2 || listing.Entries[0].Name != "mine" || listing.Entries[1].Name != "other" ||
		listing.Entries[1].Folder() != ".agents" {
		t.Errorf("%+v, %v", listing, err)
	}
}
