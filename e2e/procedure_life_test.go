//go:build e2e && linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// procedure is a skill as it is at a time of its life. All three descriptions are different, so that what a client
// tells its model says which one it has.
func procedure(says string) string {
	return "---\nname: free-disk\ndescription: " + says + "\n---\nFree room.\n"
}

const (
	lifeFirst     = "Free room by removing every journal"
	lifeCorrected = "Free room by keeping a week of journals"
	lifeRevised   = "Free room by keeping a week of journals and looking at df"
	lifeFile      = ".claude-ops/skills/free-disk/SKILL.md"
)

// A procedure that is found to be wrong is proposed, reviewed on a line, revised, merged, deployed, packaged, installed
// elsewhere and rolled back; the real Claude CLI and the real Codex CLI list it as it is at each time.
func TestTheLifeOfAProcedure(t *testing.T) {
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "pr,deploy,packages", "true"
	codexModel := newOtherModel(t, scripted())
	w.project(t, map[string]string{
		".codex/config.toml": codex().around("", codexModel.URL), "registry/.keep": "", "project/.aam/.keep": "",
		".agentpack/.keep": "",
		"work/.git/HEAD":   "ref: refs/heads/main\n", "work/.git/config": "[core]\n\trepositoryformatversion = 0\n",
		"work/.git/objects/.keep": "", "work/.git/refs/.keep": "",
	})
	git := func(folder string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join(w.home, folder)
		cmd.Env = append(w.environment(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	say := func(folder string, args ...string) string {
		t.Helper()
		got := run(t, program{path: claudeops(t), args: args, dir: filepath.Join(w.home, folder), env: w.environment()})
		if got.code != 0 {
			t.Fatalf("claudeops %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
		return got.stdout
	}
	const checkout = ".agentpack/repo"
	git(".agentpack", "clone", "-q", w.repo, "repo")
	w.project(t, map[string]string{
		checkout + "/" + lifeFile: procedure(lifeFirst),
		checkout + "/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {codex: {scope: " +
			"user}, claude_code: {options: {write_repo_skills: true}}}\n" +
			"modules: [{id: \"skill:free-disk\", type: skill, tags: [x], source: {local_path: {path: " +
			".claude-ops/skills/free-disk}}}]\n",
	})
	git(checkout, "add", "-A")
	git(checkout, "commit", "-q", "-m", "The first procedure")
	git(checkout, "push", "-q", "origin", "HEAD:main")

	first := w.deploys(t, "apply", "--yes")
	w.bothTell(t, codexModel, lifeFirst)

	// It is found to be wrong where it is deployed, and proposed from there.
	deployed := filepath.Join(w.home, "work", ".claude", "skills", "free-disk", "SKILL.md")
	if err := os.WriteFile(deployed, []byte(procedure(lifeCorrected)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := say("work", "deploy", "explain", deployed, "--line", "3"); !strings.Contains(out,
		"-> upstream source "+lifeFile+", line 3") {
		t.Errorf("explain: %s", out)
	}
	if out := say("work", "deploy", "propose", "--title", "Keep a week of journals"); !strings.Contains(out,
		"Proposed: #1 of demo/home-cluster") {
		t.Fatalf("propose: %s", out)
	}

	// It is reviewed on a line, revised with an answer, and merged.
	say("work", "review", "comment", "1", "--repo", "demo/home-cluster", "--line",
		lifeFile+":3:Say how to see it.")
	say("work", "review", "request-changes", "1", "--repo", "demo/home-cluster", "--comment", "One thing.")
	comment := regexp.MustCompile(`"id": "([^"]+)"`).FindStringSubmatch(say("work", "pr", "status", "1", "--repo",
		"demo/home-cluster", "--json"))
	if comment == nil {
		t.Fatal("the comment has no id")
	}
	w.project(t,
		map[string]string{"revision.json": `{"repo_owner":"demo","repo_name":"home-cluster","title":"Keep a week of journals","body":"Says how to see it.","change_type":"skill","revises":1,` +
			`"replies":[{"comment":"` + comment[1] + `","text":"By df."}],"files":[{"path":"` + lifeFile +
			`","action":"update","content":"` + strings.ReplaceAll(procedure(lifeRevised), "\n", `\n`) + `"}]}`})
	say("work", "pr", "create", "--from", filepath.Join(w.home, "revision.json"))
	say("work", "review", "approve", "1", "--repo", "demo/home-cluster")
	say("work", "review", "merge", "1", "--repo", "demo/home-cluster")

	// It is deployed, and both clients have it.
	git(checkout, "pull", "-q", "--ff-only", "origin", "main")
	w.deploys(t, "apply", "--yes")
	if out := say("work", "deploy", "status", "--only", "modified"); !strings.Contains(out, "No drift") {
		t.Errorf("status: %s", out)
	}
	w.bothTell(t, codexModel, lifeRevised)

	// It is packaged, published and installed elsewhere.
	git("", "clone", "-q", w.repo, "package")
	say("package", "packages", "registry", "add", "team", filepath.Join(w.home, "registry"))
	say("package", "packages", "create", "--name", "free-disk", "--version", "1.0.0", "--description", "Frees room")
	say("package", "packages", "publish")
	say("project", "packages", "install", "free-disk", "--platform", "claude")
	if skills, _ := w.claudeHas(t); !slices.Contains(skills, "free-disk") {
		t.Errorf("elsewhere: skills %v", skills)
	}

	// It is rolled back where it was deployed.
	w.deploys(t, "rollback", "--yes", "--to", first)
	w.bothTell(t, codexModel, lifeFirst)
	say("work", "audit", "verify")
}

// bothTell holds that the real Claude CLI and the real Codex CLI, started in the folder work, tell their models of one
// of the descriptions, and of no other.
func (w *world) bothTell(t *testing.T, codexModel *otherModel, want string) {
	t.Helper()
	for client, told := range map[string]string{"Claude": w.offers(t), "Codex": w.sends(t, codexModel)} {
		for _, says := range []string{lifeFirst, lifeCorrected, lifeRevised} {
			_, rest, has := strings.Cut(told, says)
			if says == lifeCorrected { // which the revised one begins with
				has = has && !strings.HasPrefix(rest, strings.TrimPrefix(lifeRevised, lifeCorrected))
			}
			if has != (says == want) {
				t.Errorf("%s is told %q: %t, while %q is deployed", client, says, has, want)
			}
		}
	}
}
