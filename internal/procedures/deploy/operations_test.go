package deploy

import (
	or "cmp"
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// bench is the toolset over a home and a project, with an audit in memory.
type bench struct {
	testing.TB
	dir       string
	authority operation.Authority
	rows      []record.Attempt
	settings  Settings
	door      record.Door // "" for MCP
	propose   Proposer
}

func (b *bench) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	b.rows = append(b.rows, a)
	return nil
}

// newBench has the files below agentpack, user and project.
func newBench(t testing.TB, files map[string]string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	operationtest.WriteFiles(t, dir, map[string]string{"user/.keep": "", "project/.keep": ""})
	operationtest.WriteFiles(t, dir, files)
	return &bench{
		TB: t, dir: dir, authority: operation.Authority{Enabled: func(string) bool { return true }, Tier: 3,
			AllowWrite: true},
		settings: Settings{
			Home: filepath.Join(dir, "agentpack"), UserHome: filepath.Join(dir, "user"), Folder: filepath.Join(dir, "project"),
			Machine: []string{"Box"},
			Git:     GitCommand{Path: gitProgram(t), Env: gitEnv()}, Version: "1.2.3", Now: time.Now,
		},
	}
}

// apply deploys what the repository has, and returns what was done.
func apply(t *testing.T, s *Service, approval fileset.Approval) *fileset.Done {
	t.Helper()
	_, done, err := s.Apply(t.Context(), Request{}, approval, false)
	must.Do(t, err)
	return done
}

func (b *bench) toolset() operation.Toolset {
	service := NewService(b.settings)
	return Toolset("1.2.3", operationtest.Kernel(b, b.authority, b), func() *Service { return service }, b.propose)
}

// ask calls a tool and gives the envelope, which matches the output schema.
func (b *bench) ask(tool, arguments string) (out Envelope[map[string]any]) {
	b.Helper()
	_, text, cause := operationtest.Ask(b, b.toolset(), or.Or(b.door, record.DoorMCP), arguments, tool)
	must.Do(b, json.Unmarshal(text, &out))
	if out.OK != (len(out.Errors) == 0) || out.OK != (cause == nil) || out.SchemaVersion != 1 || out.Version != "1.2.3" {
		b.Errorf("%s", text)
	}
	return out
}

// mustOK is ask for a call that succeeds.
func (b *bench) mustOK(tool, arguments string) map[string]any {
	b.Helper()
	out := b.ask(tool, arguments)
	if !out.OK {
		b.Fatalf("%s %s: %+v", tool, arguments, out.Errors)
	}
	return out.Data
}

// tree are all files below the bench, by their path.
func (b *bench) tree(below ...string) map[string]string {
	b.Helper()
	out := map[string]string{}
	from := path.Join(below...)
	for name, text := range operationtest.ReadFiles(b, filepath.Join(b.dir, from)) {
		out[path.Join(from, name)] = text
	}
	return out
}

// unchanged holds the files against what they were.
func (b *bench) unchanged(about string, before map[string]string, below ...string) {
	b.Helper()
	operationtest.Same(b, about, before, b.tree(below...))
}

func TestSchemas(t *testing.T) { operationtest.Schemas(t, newBench(t, nil).toolset()) }

// describeAsOurs copies the descriptions of properties for which the contract has none.
func describeAsOurs(contract, ours any) {
	want, _ := contract.(map[string]any)["properties"].(map[string]any)
	got, _ := ours.(map[string]any)["properties"].(map[string]any)
	for name, property := range want {
		have, _ := property.(map[string]any)
		our, _ := got[name].(map[string]any)
		if have["description"] == nil && our["description"] != nil {
			have["description"] = our["description"]
		}
		if have["const"] == true && have["type"] == nil { // clients want a type of each
			have["type"] = "boolean"
		}
	}
}

// The contract has properties without a description, or without a type; there ours has one.
func TestInputSchemasAreTheContractsToTheLetter(t *testing.T) {
	t.Parallel()
	set := newBench(t, nil).toolset()
	tools := slices.DeleteFunc(slices.Clone(set.Operations),
		func(o operation.Operation) bool { return o.Tool.Title == "" })
	if len(tools) != 6 {
		t.Errorf("%d tools", len(tools))
	}
	for _, o := range tools {
		text := operationtest.ReadFile(t, filepath.Join("testdata", "contract", o.Name+".json"))
		ours, err := set.Schema(o, "input")
		must.Do(t, err)
		var want, got any
		if json.Unmarshal(text, &want) != nil || json.Unmarshal(ours, &got) != nil {
			t.Fatal(o.Name)
		}
		describeAsOurs(want, got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-contract +ours):\n%s", o.Name, diff)
		}
	}
}

// life is a configuration with a module of each type, for all targets.
func life() map[string]string {
	return map[string]string{
		"agentpack/repo/" + configName: `
version: 1
profiles: {default: {include_tags: [base]}, more: {include_tags: [base, more]}}
targets: {codex: {scope: both}, claude_code: {options: {write_repo_skills: true}}, cursor: {}, vscode: {}}
modules:
  - {id: "instructions:a", type: instructions, tags: [base], source: {local_path: {path: modules/a}}}
  - {id: "skill:look", type: skill, tags: [base], source: {local_path: {path: modules/look}}}
  - {id: "command:fix", type: command, tags: [base], source: {local_path: {path: modules/fix.md}}}
  - {id: "prompt:ask", type: prompt, tags: [more], source: {local_path: {path: modules/ask.md}}}
`,
		"agentpack/repo/modules/a/AGENTS.md":   "# Rules\n",
		"agentpack/repo/modules/look/SKILL.md": "---\nname: look\ndescription: Look\n---\n",
		"agentpack/repo/modules/fix.md":        "---\ndescription: Fix\n---\nFix it.\n",
		"agentpack/repo/modules/ask.md":        "Ask.\n",
	}
}

func TestTheLifeOfADeployment(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	fresh := b.tree("project")
	plan := b.mustOK(ToolPlan, `{}`)
	if diff := cmp.Diff(map[string]any{"create": 8.0, "update": 0.0, "delete": 0.0}, plan["summary"]); diff != "" {
		t.Errorf("plan: %s", diff)
	}
	first := plan["changes"].([]any)[0].(map[string]any)
	want := map[string]any{
		"target": "claude_code", "op": "create", "path": b.dir + "/project/.claude/commands/fix.md",
		"path_posix":    b.dir + "/project/.claude/commands/fix.md",
		"before_sha256": nil, "after_sha256": fileset.Hash([]byte("---\ndescription: Fix\n---\nFix it.\n")),
		"reason": "is not there",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("a change: %s", diff)
	}
	if diff := cmp.Diff(fresh, b.tree("project")); diff != "" {
		t.Errorf("plan has written: %s", diff)
	}
	diff := b.mustOK(ToolDiff, `{"target":"claude_code"}`)
	if files := diff["files"].([]any); len(files) != 2 ||
		!strings.Contains(files[0].(map[string]any)["unified"].(string), "@@ -0,0 +1,4 @@") {
		t.Errorf("diff: %v", diff)
	}
	if dry := b.mustOK(ToolApply, `{"yes":true,"dry_run":true}`); dry["applied"] != false || dry["reason"] != nil ||
		len(b.tree("project")) != len(fresh) {
		t.Errorf("dry run: %v", dry)
	}
	done := b.mustOK(ToolApply, `{"yes":true}`)
	id, _ := done["snapshot_id"].(string)
	if done["applied"] != true || id == "" {
		t.Errorf("%v", done)
	}
	if again := b.mustOK(ToolApply, `{"yes":true}`); again["applied"] != false || again["reason"] != "no_changes" {
		t.Errorf("again: %v", again)
	}
	more := b.mustOK(ToolApply, `{"yes":true,"profile":"more"}`)
	if len(more["changes"].([]any)) != 2 {
		t.Errorf("%v", more)
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/AGENTS.md": "drift",
		"project/.claude/skills/mine/SKILL.md": "mine"})
	status := b.mustOK(ToolStatus, `{"profile":"more","only":["modified"]}`)
	if diff := cmp.Diff([]any{map[string]any{"modified": 1.0, "missing": 0.0, "extra": 0.0},
		map[string]any{"modified": 1.0, "missing": 0.0, "extra": 1.0}},
		[]any{status["summary"], status["summary_total"]}); diff != "" {
		t.Errorf("status: %s\n%v", diff, status)
	}
	back := b.mustOK(ToolRollback, `{"to":"`+id+`","yes":true}`)
	if back["rolled_back_to"] != id || back["event_snapshot_id"] == "" {
		t.Errorf("%v", back)
	}
	if status := b.mustOK(ToolStatus, `{}`); status["summary"].(map[string]any)["modified"] != 0.0 {
		t.Errorf("after the rollback: %v", status)
	}
	if doctor := b.mustOK(ToolDoctor, `{}`); doctor["machine_id"] != "box" || len(doctor["roots"].([]any)) != 10 {
		t.Errorf("doctor: %v", doctor)
	}
	outcomes := ""
	for _, row := range b.rows {
		outcomes += row.Action + " " + string(row.Outcome) + "; "
	}
	if outcomes != "deploy_apply dry_run; deploy_apply done; deploy_apply done; deploy_apply done; rollback done; " {
		t.Errorf("audit: %s", outcomes)
	}
	if row := b.rows[1]; !strings.Contains(row.Message, id) || len(row.Paths) != 8 {
		t.Errorf("audit: %+v", row)
	}
}

func TestRefusalsWriteNothingAndAreRecorded(t *testing.T) {
	t.Parallel()
	adopt := life()
	adopt["project/AGENTS.md"] = "a person's"
	for name, c := range map[string]struct {
		tool, arguments string
		change          func(b *bench)
		code            Code
		reason          string
		row             bool
	}{
		"no yes": {ToolApply, `{}`, nil, ConfirmRequired, "confirm_required", true},
		"no yes beside other faults": {ToolApply, `{"nonsense":1,"target":"x"}`,
			func(b *bench) { _ = os.RemoveAll(filepath.Join(b.dir, "agentpack/repo")) }, ConfirmRequired, "confirm_required",
			true},
		"no yes in a dry run":  {ToolApply, `{"dry_run":true}`, nil, ConfirmRequired, "confirm_required", true},
		"yes false":            {ToolApply, `{"yes":false}`, nil, ConfirmRequired, "confirm_required", true},
		"yes as a text":        {ToolApply, `{"yes":"true"}`, nil, ConfirmRequired, "confirm_required", true},
		"rollback without yes": {ToolRollback, `{"to":"1"}`, nil, ConfirmRequired, "confirm_required", true},
		"adoption":             {ToolApply, `{"yes":true}`, nil, AdoptConfirmRequired, "adopt_confirm_required", true},
		"no such snapshot": {ToolRollback, `{"to":"../../x","yes":true}`, nil, SnapshotNotFound,
			"snapshot_not_found", true},
		"writing is not allowed": {ToolApply, `{"yes":true,"adopt":true}`,
			func(b *bench) { b.authority.AllowWrite = false }, notAllowed, "read_only", true},
		"the tier is too low": {ToolRollback, `{"to":"1","yes":true}`, func(b *bench) { b.authority.Tier = 2 },
			notAllowed, "tier_denied", true},
		"a target that is none":       {ToolPlan, `{"target":"emacs"}`, nil, TargetUnsupported, "target_unsupported", false},
		"an argument that is unknown": {ToolPlan, `{"nonsense":1}`, nil, argumentsInvalid, "arguments_invalid", false},
		"no configuration": {ToolPlan, `{}`,
			func(b *bench) { _ = os.RemoveAll(filepath.Join(b.dir, "agentpack/repo")) }, ConfigMissing, "config_missing", false},
		"a repository of one's own": {ToolPlan, `{"repo":"/nowhere"}`, nil, SourceNotAllowed, "source_not_allowed", true},
		"an unknown profile":        {ToolStatus, `{"profile":"x"}`, nil, ConfigInvalid, "config_invalid", false},
		"a profile that is too long": {ToolPlan, `{"profile":"` + strings.Repeat("x", 5000) + `"}`, nil, argumentsInvalid,
			"arguments_invalid", false},
		"a NUL": {ToolPlan, `{"repo":"a\u0000b"}`, nil, argumentsInvalid, "arguments_invalid", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, adopt)
			if c.change != nil {
				c.change(b)
			}
			before := b.tree("project")
			got := b.ask(c.tool, c.arguments)
			if got.OK || got.Errors[0].Code != c.code || got.Errors[0].Details["reason_code"] != c.reason ||
				got.Errors[0].Details["next_actions"] == nil {
				t.Errorf("%+v", got.Errors)
			}
			b.unchanged("a refusal has written", before, "project")
			if snapshots, _ := filepath.Glob(filepath.Join(b.dir, "agentpack/state/snapshots/*")); len(snapshots) > 0 {
				t.Errorf("%v", snapshots)
			}
			if (len(b.rows) == 1) != c.row {
				t.Errorf("audit: %+v", b.rows)
			}
		})
	}
}

func TestAnEnvelopeOfAFailureHasTheCommandsName(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	got := b.ask(ToolApply, `{}`)
	if got.Command != "deploy" || got.CommandID != "deploy --apply" ||
		cmp.Diff([]string{"deploy", "--apply"}, got.CommandPath) != "" ||
		got.Errors[0].Details["command"] != "deploy --apply" {
		t.Errorf("%+v", got)
	}
	b.settings.Home = filepath.Join(b.dir, "elsewhere")
	if got := b.ask(ToolPlan, `{}`); got.Command != "plan" || got.Errors[0].Code != ConfigMissing {
		t.Errorf("%+v", got)
	}
}

func TestAReadOnlyServerFinishesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	service := NewService(b.settings)
	service.engine.KillAt(func(step string) bool { return strings.HasPrefix(step, "step 1") })
	if _, _, err := service.Apply(t.Context(), Request{}, fileset.Approval{}, false); !fileset.WasKilled(err) {
		t.Fatal(err)
	}
	half := b.tree("project")
	b.settings.NoWriting = func() string { return "the server is read-only" }
	out := b.ask(ToolPlan, `{}`)
	if diff := cmp.Diff(half, b.tree("project")); diff != "" ||
		!strings.Contains(strings.Join(out.Warnings, ""), "read-only") {
		t.Errorf("%v (-before +after):\n%s", out.Warnings, diff)
	}
	b.settings.NoWriting = nil
	if out := b.ask(ToolPlan, `{}`); len(out.Data["changes"].([]any)) != 0 ||
		!strings.Contains(strings.Join(out.Warnings, ""), "was finished") {
		t.Errorf("%+v", out)
	}
}

func TestALargeAnswerSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	files := life()
	for i := range 1500 {
		files["agentpack/repo/modules/look/f/"+strings.Repeat("x", 100)+string(rune('a'+i%26))+
			strings.Repeat("y", i/26)] = "x"
	}
	out := newBench(t, files).ask(ToolPlan, `{"target":"claude_code"}`)
	changes := out.Data["changes"].([]any)
	if !out.OK || len(changes) == 0 || len(changes) > 1000 ||
		!strings.Contains(strings.Join(out.Warnings, ""), "left out") ||
		out.Data["summary"].(map[string]any)["create"] != 1502.0 {
		t.Errorf("%d changes, %v, %v", len(changes), out.Warnings, out.Data["summary"])
	}
}
