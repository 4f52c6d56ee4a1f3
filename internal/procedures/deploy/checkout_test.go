package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// repo is the configuration's checkout.
func (f *forge) repo() string { return filepath.Join(f.dir, "agentpack", "repo") }

// inTheCheckout returns the checkout's files, its commit, and the output of git status.
func (f *forge) inTheCheckout() (files map[string]string, head, status string) {
	f.Helper()
	files = f.tree("agentpack", "repo")
	for name := range files {
		if strings.Contains(name, "/.git/") {
			delete(files, name)
		}
	}
	return files, git(f, f.repo(), "rev-parse", "HEAD"), git(f, f.repo(), "status", "--porcelain")
}

func TestAnUpdateBringsTheCheckoutForward(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	same, err := f.service.Update(t.Context())
	if err != nil || same.Branch != "main" || same.From != same.To {
		t.Fatalf("%+v, %v", same, err)
	}
	operationtest.WriteFiles(t, f.work, map[string]string{"modules/old.md": "x"})
	f.commit("main", map[string]string{"modules/deep/new.md": "new\n", "modules/fix.md": "changed\n"})
	must.Do(t, os.Remove(filepath.Join(f.work, "modules", "old.md")))
	head := f.commit("main", map[string]string{"last.md": "x"})
	done, err := f.service.Update(t.Context())
	files, at, status := f.inTheCheckout()
	if err != nil || done.To != head || at != head || done.From != same.To || status != "" {
		t.Fatalf("%+v, %v, at %s, %s", done, err, at, status)
	}
	if files["agentpack/repo/modules/deep/new.md"] != "new\n" || files["agentpack/repo/modules/fix.md"] != "changed\n" ||
		files["agentpack/repo/modules/old.md"] != "" {
		t.Errorf("%v", files)
	}
}

func TestAnUpdateNeverTouchesWhatAPersonHasInTheCheckout(t *testing.T) {
	t.Parallel()
	edit := func(name, text string) func(f *forge) {
		return func(f *forge) { operationtest.WriteFiles(f, f.repo(), map[string]string{name: text}) }
	}
	for name, c := range map[string]struct {
		do   func(f *forge)
		code Code
		why  string
	}{
		"a changed file":             {edit("modules/fix.md", "mine\n"), CheckoutNotReady, "changed_files"},
		"a new file":                 {edit("modules/mine.md", "mine\n"), CheckoutNotReady, "changed_files"},
		"a new file where one comes": {edit("modules/new.md", "mine\n"), CheckoutNotReady, "changed_files"},
		"a removed file": {func(f *forge) { _ = os.Remove(filepath.Join(f.repo(), "modules", "fix.md")) },
			CheckoutNotReady, "changed_files"},
		"a staged file": {func(f *forge) { edit("mine.md", "x")(f); git(f, f.repo(), "add", "-A") },
			CheckoutNotReady, "changed_files"},
		"a staged change that was undone": {func(f *forge) {
			edit("modules/fix.md", "x")(f)
			git(f, f.repo(), "add", "-A")
			git(f, f.repo(), "show", "HEAD:modules/fix.md")
			edit("modules/fix.md", "---\ndescription: Fix\n---\nFix it.\n")(f)
		}, CheckoutNotReady, "changed_files"},
		"a commit of one's own": {func(f *forge) {
			edit("mine.md", "x")(f)
			git(f, f.repo(), "add", "-A")
			git(f, f.repo(), "commit", "-q", "-m", "x")
		}, CheckoutNotReady, "diverged"},
		"no branch": {func(f *forge) { git(f, f.repo(), "checkout", "-q", "--detach") }, CheckoutNotReady,
			"detached"},
		"no remote": {func(f *forge) { git(f, f.repo(), "remote", "remove", "origin") }, CheckoutNotReady,
			"no_remote"},
		"a remote that is a program": {func(f *forge) {
			git(f, f.repo(), "remote", "set-url", "origin",
				"ext::touch "+f.dir+"/run")
		}, CheckoutNotReady, "no_remote"},
		"a remote that is an option": {func(f *forge) {
			git(f, f.repo(), "config", "remote.origin.url",
				"--upload-pack=touch "+f.dir+"/run")
		}, CheckoutNotReady, "no_remote"},
		"a remote that is gone": {func(f *forge) { git(f, f.repo(), "remote", "set-url", "origin", f.dir+"/gone") },
			GitFailed, "git_failed"},
		"a git at work": {edit(".git/index.lock", ""), CheckoutNotReady, "busy"},
		"no checkout": {func(f *forge) { _ = os.RemoveAll(filepath.Join(f.repo(), ".git")) }, CheckoutNotReady,
			"not_a_checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForgeAhead(t, map[string]string{"modules/new.md": "new\n"})
			c.do(f)
			before := f.tree("agentpack", "repo")
			_, err := f.service.Update(t.Context())
			if codeOfFault(err) != c.code || operation.FaultOf(err).Details["reason_code"] != c.why {
				t.Errorf("%v", err)
			}
			after := f.tree("agentpack", "repo")
			for at := range after {
				if strings.Contains(at, "/.git/objects/") {
					delete(after, at)
				}
			}
			for at := range before {
				if strings.Contains(at, "/.git/objects/") {
					delete(before, at)
				}
			}
			operationtest.Same(t, "the checkout was changed", before, after)
			if _, err := os.Stat(filepath.Join(f.dir, "run")); err == nil {
				t.Error("a program was run")
			}
		})
	}
}

func TestAnUpdateRunsNoProgramOfTheCheckout(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	head := f.commit("main", map[string]string{"modules/new.md": "new\n",
		".gitattributes": "*.md filter=evil diff=evil merge=evil\n"})
	run := "touch " + f.dir + "/run"
	for _, name := range []string{
		"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "core.fsmonitor",
		"core.sshCommand", "core.pager", "core.editor",
		"remote.origin.uploadpack", "credential.helper", "uploadpack.packObjectsHook", "core.alternateRefsCommand",
		"gpg.program",
	} {
		git(t, f.repo(), "config", name, run)
	}
	hooks := map[string]string{}
	for _, hook := range []string{"post-checkout", "post-merge", "reference-transaction", "post-index-change",
		"pre-auto-gc", "fsmonitor-watchman"} {
		hooks[".git/hooks/"+hook] = "#!/bin/sh\n" + run + "\n"
	}
	operationtest.WriteExecutables(t, f.repo(), hooks)
	done, err := f.service.Update(t.Context())
	if err != nil || done.To != head {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "run")); err == nil {
		t.Error("a program of the checkout's configuration was run")
	}
	if text, err := os.ReadFile(filepath.Join(f.repo(), "modules", "new.md")); string(text) != "new\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAnUpdateThatWasKilledIsMended leaves the checkout as a git does that is killed while it goes from one commit to
// the next.
func TestAnUpdateThatWasKilledIsMended(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(f *forge, to string){
		"some files are new": func(f *forge, _ string) {
			operationtest.WriteFiles(f, f.repo(), map[string]string{"modules/new.md": "new\n"})
		},
		"files and index are new": func(f *forge, to string) {
			git(f, f.repo(), "fetch", "-q")
			git(f, f.repo(), "read-tree", "-m", "-u", "HEAD", to)
		},
		"files, index and branch are new":   func(f *forge, _ string) { git(f, f.repo(), "pull", "-q", "--ff-only") },
		"what was fetched is there already": func(f *forge, _ string) { git(f, f.repo(), "fetch", "-q") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newForgeAhead(t, map[string]string{"modules/new.md": "new\n", "modules/fix.md": "changed\n"})
			to := f.ahead
			left(f, to)
			if _, err := f.service.Update(t.Context()); err != nil {
				t.Fatal(err)
			}
			files, at, status := f.inTheCheckout()
			if at != to || status != "" || files["agentpack/repo/modules/fix.md"] != "changed\n" {
				t.Errorf("at %s, %s", at, status)
			}
		})
	}
}

// afar makes a repository with a command, and gives its newest commit. It is changed by each call.
func (b *bench) afar(text string) string {
	b.Helper()
	far := filepath.Join(b.dir, "far")
	if !fileset.Exists(filepath.Join(far, ".git")) {
		git(b, b.dir, "init", "--quiet", "--initial-branch=main", far)
	}
	b.change("far/fix.md", "---\ndescription: Fix\n---\n"+text+"\n")
	git(b, far, "add", ".")
	git(b, far, "commit", "--quiet", "-m", text)
	return git(b, far, "rev-parse", "HEAD")
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
	t.Parallel()
	b, first := updating(t)
	before := b.tree("agentpack", "repo")
	shown := b.mustOK(NameUpdate, `{}`)
	want := []any{map[string]any{"module": "command:fix", "url": b.dir + "/far", "ref": "main", "to": first}}
	if diff := cmp.Diff(want, shown["modules"]); diff != "" || shown["written"] != false ||
		len(shown["changes"].([]any)) == 0 {
		t.Errorf("%v (-want +got):\n%s", shown, diff)
	}
	b.unchanged("looking has written", before, "agentpack", "repo")
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
	t.Parallel()
	b, first := updating(t)
	b.change("agentpack/repo/"+lockName,
		`{"version":1,"note":"kept","modules":[{"id":"gone","type":"prompt","resolved_version":"local","mine":[1]},`+
			`{"id":"command:fix","type":"command","resolved_source":{"git":{"url":"`+b.dir+`/far","commit":"`+first+
			`","subdir":"fix.md"}},"resolved_version":"`+first+`","sha256":"x"}]}`)
	second := b.afar("two")
	b.mustOK(NameUpdate, `{"yes":true}`)
	text := operationtest.ReadFile(t, filepath.Join(b.dir, "agentpack", "repo", lockName))
	var lock struct {
		Version     int
		GeneratedAt string `json:"generated_at"`
		Note        string
		Modules     []map[string]any
	}
	must.Do(t, json.Unmarshal(text, &lock))
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
	t.Parallel()
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
