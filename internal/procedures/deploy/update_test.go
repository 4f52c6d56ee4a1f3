package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// afar makes a repository with a command, and gives its newest commit. It is changed by each call.
func (b *bench) afar(text string) string {
	b.Helper()
	far := filepath.Join(b.dir, "far")
	fresh := os.MkdirAll(far, 0o700) == nil
	git := func(args ...string) string {
		out, err := exec.Command(b.settings.Git.Path,
			append([]string{"-C", far, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			b.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := os.Stat(filepath.Join(far, ".git")); fresh && err != nil {
		git("init", "--quiet", "--initial-branch=main")
	}
	b.change("far/fix.md", "---\ndescription: Fix\n---\n"+text+"\n")
	git("add", ".")
	git("commit", "--quiet", "-m", text)
	return git("rev-parse", "HEAD")
}

// updating has a command of another repository, which is locked to its first commit, and a lock with more than that.
func updating(t *testing.T) (b *bench, first string) {
	t.Helper()
	files := life()
	b = newBench(t, files)
	first = b.afar("one")
	b.change("agentpack/repo/"+configName, strings.Replace(files["agentpack/repo/"+configName],
		"source: {local_path: {path: modules/fix.md}}", `source: {git: {url: "`+b.dir+`/far", subdir: fix.md}}`, 1))
	return b, first
}

func TestUpdateShowsThePlanBeforeItLocks(t *testing.T) {
	b, first := updating(t)
	before := b.tree("agentpack", "repo")
	shown := b.mustOK(NameUpdate, `{}`)
	want := []any{map[string]any{"module": "command:fix", "url": b.dir + "/far", "ref": "main", "to": first}}
	if diff := cmp.Diff(want, shown["modules"]); diff != "" || shown["written"] != false ||
		len(shown["changes"].([]any)) == 0 {
		t.Errorf("%v (-want +got):\n%s", shown, diff)
	}
	if diff := cmp.Diff(before, b.tree("agentpack", "repo")); diff != "" {
		t.Errorf("looking has written:\n%s", diff)
	}
	if done := b.mustOK(NameUpdate, `{"yes":true}`); done["written"] != true {
		t.Errorf("%v", done)
	}
	b.mustOK(ToolApply, `{"yes":true}`)
	second := b.afar("two")
	if plan := b.mustOK(ToolPlan, `{}`); len(plan["changes"].([]any)) != 0 {
		t.Errorf("the lock does not hold: %v", plan)
	}
	shown = b.mustOK(NameUpdate, `{"modules":["command:fix"]}`)
	if m := shown["modules"].([]any)[0].(map[string]any); m["from"] != first || m["to"] != second ||
		len(shown["changes"].([]any)) != 1 {
		t.Errorf("%v", shown)
	}
	if done := b.mustOK(NameUpdate, `{"yes":true}`); done["written"] != true || len(done["changes"].([]any)) != 1 {
		t.Errorf("%v", done)
	}
	if last := b.rows[len(b.rows)-1]; last.Action != NameUpdate ||
		!strings.Contains(last.Message, "command:fix to "+second[:12]) {
		t.Errorf("%+v", last)
	}
	if plan := b.mustOK(ToolPlan, `{}`); len(plan["changes"].([]any)) != 1 {
		t.Errorf("%v", plan)
	}
	if again := b.mustOK(NameUpdate, `{"yes":true}`); again["written"] != false {
		t.Errorf("nothing is newer, and the lock was written: %v", again)
	}
}

func TestUpdateKeepsWhatElseTheLockHas(t *testing.T) {
	b, first := updating(t)
	b.change("agentpack/repo/"+lockName,
		`{"version":1,"note":"kept","modules":[{"id":"gone","type":"prompt","resolved_version":"local","mine":[1]},`+
			`{"id":"command:fix","type":"command","resolved_source":{"git":{"url":"`+b.dir+`/far","commit":"`+first+
			`","subdir":"fix.md"}},"resolved_version":"`+first+`","sha256":"x"}]}`)
	second := b.afar("two")
	b.mustOK(NameUpdate, `{"yes":true}`)
	text, err := os.ReadFile(filepath.Join(b.dir, "agentpack", "repo", lockName))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Version     int
		GeneratedAt string `json:"generated_at"`
		Note        string
		Modules     []map[string]any
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	ids := []any{}
	for _, m := range lock.Modules {
		ids = append(ids, m["id"])
	}
	if diff := cmp.Diff([]any{"command:fix", "gone", "instructions:a", "prompt:ask", "skill:look"}, ids); diff != "" ||
		lock.Note != "kept" || lock.Version != 1 || lock.GeneratedAt == "" {
		t.Errorf("%s\n%s", diff, text)
	}
	fix := lock.Modules[0]
	source := map[string]any{"git": map[string]any{"url": b.dir + "/far", "commit": second, "subdir": "fix.md"}}
	if diff := cmp.Diff(source, fix["resolved_source"]); diff != "" || fix["resolved_version"] != second {
		t.Errorf("%s\n%v", diff, fix)
	}
	if file := fix["file_manifest"].([]any)[0].(map[string]any); file["path"] != "fix.md" || file["bytes"] != 29.0 ||
		len(file["sha256"].(string)) != 64 {
		t.Errorf("%v", file)
	}
	if lock.Modules[1]["mine"] == nil || lock.Modules[2]["resolved_version"] != "local" {
		t.Errorf("%v", lock.Modules)
	}
}

func TestUpdateIsRefusedWhereNothingMayBeWritten(t *testing.T) {
	b, _ := updating(t)
	for arguments, want := range map[string]Code{`{"modules":["none"]}`: argumentsInvalid,
		`{"modules":["skill:look"]}`: argumentsInvalid} {
		if out := b.ask(NameUpdate, arguments); out.OK || out.Errors[0].Code != want {
			t.Errorf("%s: %+v", arguments, out.Errors)
		}
	}
	b.authority.AllowWrite = false
	if out := b.ask(NameUpdate, `{"yes":true}`); out.OK || out.Errors[0].Code != notAllowed {
		t.Errorf("%+v", out.Errors)
	}
	b.authority.AllowWrite, b.authority.DryRun = true, true
	if out := b.mustOK(NameUpdate, `{"yes":true}`); out["written"] != false {
		t.Errorf("a dry run has written: %v", out)
	}
}
