//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The real Claude CLI offers deployed files to its model, and no longer after a rollback.
func TestClaudeOffersWhatWasDeployed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
	w.project(t, map[string]string{
		"work/.keep": "",
		".agentpack/repo/agentpack.yaml": `version: 1
profiles: {default: {include_tags: [base]}, first: {include_modules: ["command:tidy-logs"]}}
targets: {claude_code: {scope: project, options: {write_repo_skills: true}}}
modules:
  - {id: "command:tidy-logs", type: command, tags: [base], source: {local_path: {path: modules/tidy-logs.md}}}
  - {id: "command:free-inodes", type: command, tags: [base], source: {local_path: {path: modules/free-inodes.md}}}
  - {id: "skill:weigh-disks", type: skill, tags: [base], source: {local_path: {path: modules/weigh-disks}}}
`,
		".agentpack/repo/modules/tidy-logs.md":   "---\ndescription: Tidy the logs of the kitchen host\n---\nTidy them.\n",
		".agentpack/repo/modules/free-inodes.md": "---\ndescription: Free inodes on the cellar host\n---\nFree them.\n",
		".agentpack/repo/modules/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
	})
	first := w.deploys(t, "apply", "--yes", "--profile", "first")
	w.deploys(t, "apply", "--yes")
	for what, want := range map[string]bool{"the kitchen host": true, "the cellar host": true, "the attic host": true} {
		if got := strings.Contains(w.offers(t), what); got != want {
			t.Errorf("after the deployment: %s is offered: %t", what, got)
		}
	}
	w.deploys(t, "rollback", "--yes", "--to", first)
	offered := w.offers(t)
	for what, want := range map[string]bool{"the kitchen host": true, "the cellar host": false, "the attic host": false} {
		if got := strings.Contains(offered, what); got != want {
			t.Errorf("after the rollback: %s is offered: %t", what, got)
		}
	}
}

// deploys runs claudeops deploy in the folder work, and gives the snapshot that it made.
func (w *world) deploys(t *testing.T, args ...string) string {
	t.Helper()
	return w.deploysAs(t, nil, args...)
}

// deploysAs is deploys with more settings than those of the world.
func (w *world) deploysAs(t *testing.T, more []string, args ...string) string {
	t.Helper()
	return decode[struct {
		Data struct {
			SnapshotID string `json:"snapshot_id"`
		} `json:"data"`
	}](t, w.doesIn(t, "work", more, append([]string{"deploy", "--json"}, args...)...)).Data.SnapshotID
}

// offers is all that the Claude CLI, started in the folder work, sends to its model: system prompt, messages and tools.
func (w *world) offers(t *testing.T) string {
	t.Helper()
	stub := newMessagesStub(t, scripted())
	stub.asked = func(string, []seenResult) reply { return say("done") }
	w.looksAfter(t, stub, filepath.Join(w.home, "work"))
	var all strings.Builder
	for _, r := range stub.requests(t) {
		all.WriteString(r.everything())
		for _, tool := range r.Tools {
			all.WriteString(tool.Description)
		}
	}
	return all.String()
}

// The real Codex CLI sends deployed files to its model, and no longer after a rollback.
func TestCodexSendsWhatWasDeployed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
	model := newOtherModel(t, scripted())
	w.project(t, map[string]string{
		"work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/config": "[core]\n\trepositoryformatversion = 0\n",
		"work/.git/objects/.keep": "", "work/.git/refs/.keep": "",
		".codex/config.toml": codex().around("", model.URL),
		".agentpack/repo/agentpack.yaml": `version: 1
profiles: {default: {include_tags: [base]}, first: {include_modules: [rules]}}
targets: {codex: {scope: both}}
modules:
  - {id: rules, type: instructions, tags: [base], source: {local_path: {path: modules/rules}}}
  - {id: more, type: instructions, tags: [base], source: {local_path: {path: modules/more}}}
  - {id: "skill:weigh-disks", type: skill, tags: [base], source: {local_path: {path: modules/weigh-disks}}}
`,
		".agentpack/repo/modules/rules/AGENTS.md": "Never restart the kitchen host.\n",
		".agentpack/repo/modules/more/AGENTS.md":  "Ask before you touch the cellar host.\n",
		".agentpack/repo/modules/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
	})
	before := w.sends(t, model)
	first := w.deploys(t, "apply", "--yes", "--profile", "first")
	w.deploys(t, "apply", "--yes")
	all := w.sends(t, model)
	w.deploys(t, "rollback", "--yes", "--to", first)
	after := w.sends(t, model)
	for what, want := range map[string][3]bool{
		"Never restart the kitchen host": {false, true, true}, "you touch the cellar host": {false, true, false},
		"the disks of the attic host": {false, true, false},
	} {
		for i, sent := range []string{before, all, after} {
			if got := strings.Contains(sent, what); got != want[i] {
				t.Errorf("%s is sent %t, want %t, in step %d", what, got, want[i], i)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(w.home, ".codex", "skills", "weigh-disks")); err == nil {
		t.Error("the skill is still there")
	}
}

// sends is all that the Codex CLI, started in the folder work, sends to its model.
func (w *world) sends(t *testing.T, model *otherModel) string {
	t.Helper()
	before, _ := model.told()
	got := run(t, program{
		path: installed(t, ".bin/codex"), args: []string{"exec", "--skip-git-repo-check", "go"},
		dir: filepath.Join(w.home, "work"),
		env: w.environment("STUB_KEY=x"),
	})
	all, _ := model.told()
	sent := strings.TrimPrefix(all, before)
	if got.code != 0 || sent == "" {
		t.Fatalf("codex: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	return sent
}

// fullDisk mounts a file system of 1 MiB over a folder, in a name space of its own, fills it up to so many KiB, and
// deploys and rolls back with it; the folder's files come along.
const fullDisk = `set -u
mkdir -p "$FULL" "$KEPT"; cp -a "$FULL/." "$KEPT/"; mount -t tmpfs -o size=1m,mode=755 none "$FULL"; cp -a "$KEPT/." "$FULL/"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -exec sha256sum {} + | sort > "$KEPT.before"
head -c 2000000 /dev/zero > "$FULL/.filler" 2>/dev/null
"$PROGRAM" deploy apply --yes --json && echo "APPLIED on a full disk"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -not -name .filler -exec sha256sum {} + | sort > "$KEPT.after"
cmp "$KEPT.before" "$KEPT.after" || echo "CHANGED by a deployment that failed"
rm "$FULL/.filler"
"$PROGRAM" deploy apply --yes --json > "$KEPT.first" || { cat "$KEPT.first"; echo "NOT APPLIED with room"; }
first=$(sed -n 's/.*"snapshot_id": "\([0-9]*\)".*/\1/p' "$KEPT.first")
cp "$NEXT" "$MODULE"
"$PROGRAM" deploy apply --yes --json > /dev/null || echo "NOT APPLIED again"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -exec sha256sum {} + | sort > "$KEPT.before"
head -c 2000000 /dev/zero > "$FULL/.filler" 2>/dev/null
"$PROGRAM" deploy rollback --yes --to "$first" --json && echo "ROLLED BACK on a full disk"
find "$WORK" "$CODEX" -type f -not -path '*/state/*' -not -name .filler -exec sha256sum {} + | sort > "$KEPT.after"
cmp "$KEPT.before" "$KEPT.after" || echo "CHANGED by a rollback that failed"
rm "$FULL/.filler"
"$PROGRAM" deploy rollback --yes --to "$first" --json > /dev/null || echo "NOT ROLLED BACK with room"
cmp "$CODEX/AGENTS.md" "$ORIGINAL" || echo "OTHER bytes after the rollback"
echo finished
`

// TestAFullDiskChangesNothing fills a real file system: that of the targets, and that of the state.
func TestAFullDiskChangesNothing(t *testing.T) {
	for name, full := range map[string]string{"of the targets": ".codex", "of the state": ".agentpack/state"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "3")
			text := strings.Repeat("Never restart the kitchen host.\n", 6000)
			w.project(t, map[string]string{
				"work/.keep": "", ".codex/config.toml": "model = \"gpt-5\"\n", ".agentpack/state/.keep": "", "next.md": "Short.\n",
				"original.md": text,
				".agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [base]}}\ntargets: " +
					"{codex: {scope: user}}\nmodules:\n  - {id: rules, type: instructions, tags: [base], source: {local_path: " +
					"{path: modules/rules}}}\n",
				".agentpack/repo/modules/rules/AGENTS.md": text,
			})
			in := func(name string) string { return filepath.Join(w.home, filepath.FromSlash(name)) }
			w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy", "true"
			args := []string{"--mount", "sh", "-c", fullDisk}
			if os.Geteuid() != 0 {
				args = append([]string{"--user", "--map-root-user"}, args...)
			}
			got := run(t, program{path: "/usr/bin/unshare", args: args, dir: in("work"), env: w.environment(
				"PROGRAM="+claudeops(t), "FULL="+in(full), "KEPT="+in("kept"), "WORK="+in("work"), "CODEX="+in(".codex"),
				"NEXT="+in("next.md"),
				"MODULE="+in(".agentpack/repo/modules/rules/AGENTS.md"), "ORIGINAL="+in("original.md"))})
			if got.code != 0 || !strings.HasSuffix(got.stdout, "finished\n") ||
				strings.Count(got.stdout, "no space left on device") != 2 {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			for _, bad := range []string{"APPLIED", "CHANGED", "ROLLED BACK", "OTHER", "mount:"} {
				if strings.Contains(got.stdout+got.stderr, bad) {
					t.Errorf("%s", got.stdout)
				}
			}
		})
	}
}

// procedureHeader begins the files of deployTwice.
const procedureHeader = "---\ndescription: d\n---\n"

// deployTwice deploys one command and then another beside it, and changes the first where it is deployed.
func (w *world) deployTwice(t *testing.T) {
	t.Helper()
	w.project(t, map[string]string{
		"work/.keep": "", ".agentpack/repo/a.md": procedureHeader + "one\n", ".agentpack/repo/b.md": procedureHeader,
		".agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}, first: {include_modules: " +
			"[a]}}\ntargets: {claude_code: {scope: user}}\nmodules:\n" +
			"- {id: a, type: command, tags: [x], source: {local_path: {path: a.md}}}\n- {id: b, type: command, tags: [x], " +
			"source: {local_path: {path: b.md}}}\n",
	})
	more := []string{"CLAUDEOPS_TOOLSETS=pr,deploy", "CLAUDEOPS_ALLOW_WRITE=true", "CLAUDEOPS_TIER=3"}
	w.deploysAs(t, more, "apply", "--yes", "--profile", "first")
	w.deploysAs(t, more, "apply", "--yes")
	w.project(t, map[string]string{".claude/commands/a.md": procedureHeader + "drifted\n"})
}

func TestDeploymentsAreRolledBackByAClick(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,deploy")
	w := d.world
	w.deployTwice(t)
	d.run(chromedp.Navigate(d.url + "/deployments"))
	d.picture("deployments")
	d.run(chromedp.Click(`main a.btn[href*="rollback"]`), chromedp.WaitVisible(`#yes`))
	d.picture("rollback")
	d.run(chromedp.Click(`#yes`), chromedp.Click(`form[action$="rollback"] button`), chromedp.WaitVisible(`.answer.yes`))
	text, err := os.ReadFile(filepath.Join(w.home, ".claude/commands/a.md"))
	if err != nil || string(text) != procedureHeader+"one\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".claude/commands/b.md")); err == nil {
		t.Error("b.md is still there")
	}
}

// A person sees on the pull request what it would change on this machine, merges it, and finds it in place, or waiting
// for them.
func TestAMergeIsForetoldAndDeployed(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,deploy", "CLAUDEOPS_DEPLOY_AFTER_MERGE=true")
	w := d.world
	w.project(t, map[string]string{".agentpack/.keep": "", ".codex/prompts/ask.md": "a person's\n",
		"ask.md": "# Ask\n\nAsk before you touch the cellar host.\n"})
	const checkout = ".agentpack/repo"
	w.gitIn(t, "", "clone", "-q", w.repo, checkout)
	w.project(t, map[string]string{checkout + "/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}}\n" +
		"targets: {codex: {scope: user}}\n" +
		"modules: [{id: ask, type: prompt, tags: [x], source: {local_path: {path: checks/ask.md}}}]\n"})
	w.gitIn(t, checkout, "add", "-A")
	w.gitIn(t, checkout, "commit", "-q", "-m", "x")
	w.gitIn(t, checkout, "push", "-q", "origin", "HEAD:main")
	w.does(t, "--tier", "2", "pr", "create", "--repo", "demo/home-cluster", "--title", "Ask first", "--body", "why",
		"--create", "checks/ask.md="+filepath.Join(w.home, "ask.md"))
	d.run(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(d.url+"/pulls/local/demo/home-cluster/1"),
		chromedp.WaitVisible(`#deployment table`))
	text := d.value(`document.querySelector("#deployment").innerText`).(string)
	for _, part := range []string{"create 0 files, update 1 and delete 0", "ask.md", "adopt"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not say %q: %s", part, text)
		}
	}
	d.examine("a pull request of a deploy repository")
	if text, err := os.ReadFile(filepath.Join(w.home, ".codex", "prompts", "ask.md")); err != nil ||
		string(text) != "a person's\n" {
		t.Errorf("looking has changed it: %q, %v", text, err)
	}
	w.does(t, "review", "merge", "1", "--repo", "demo/home-cluster")
	d.loads("/", `document.body.innerText.includes("is merged and not deployed")`)
	d.run(chromedp.Navigate(d.url+"/deployments"), chromedp.WaitVisible(`#waiting`))
	d.examine("a merge that waits")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"], w.vars["CLAUDEOPS_TIER"] = "pr,deploy", "true", "3"
	w.project(t, map[string]string{"work/.keep": ""})
	w.deploys(t, "apply", "--yes", "--adopt")
	d.loads("/", `!document.body.innerText.includes("is merged and not deployed")`)
	if text, err := os.ReadFile(filepath.Join(w.home, ".codex", "prompts", "ask.md")); err != nil ||
		!strings.Contains(string(text), "the cellar host") {
		t.Errorf("%q, %v", text, err)
	}
}
