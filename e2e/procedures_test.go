//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
	git := func(folder string, args ...string) { t.Helper(); w.gitIn(t, folder, args...) }
	say := func(folder string, args ...string) string { t.Helper(); return w.doesIn(t, folder, nil, args...) }
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
	must.Do(t, os.WriteFile(deployed, []byte(procedure(lifeCorrected)), 0o600))
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

// project writes files below the folder that the server works in.
func (w *world) project(t *testing.T, files map[string]string) {
	t.Helper()
	operationtest.WriteFiles(t, w.home, files)
}

// agentDefinition is a sound agent with one more line.
func agentDefinition(name, version, more string) string {
	return "name: " + name + "\ntype: agent\ndescription: The agent " + name +
		"\nllm: {provider: anthropic, model: claude-sonnet}\ntools: []\nversion: " +
		version + "\ntags: [demo]\nsystem_prompt: Do it.\n" + more + "\n"
}

func definitionsOfADemo() map[string]string {
	return map[string]string{
		".fractary/agents/base.yaml":   agentDefinition("base", "1.0.0", ""),
		".fractary/agents/child.yaml":  agentDefinition("child", "1.1.0", "extends: base"),
		".fractary/agents/orphan.yaml": agentDefinition("orphan", "1.0.0", "extends: nobody"),
		".fractary/agents/broken.yaml": "name: broken\n\tversion: 1\n",
		".fractary/agents/fork.yaml": agentDefinition("fork", "1.0.0",
			"fork_of: {name: team, version: 1.0.0}"),
		".fractary/registry/agents/team@1.0.0/agent.yaml": agentDefinition("team", "1.0.0", ""),
		".fractary/registry/agents/team@2.0.0/agent.yaml": agentDefinition("team", "2.0.0", ""),
		".fractary/agents/a-long-name-for-narrow-pages.yaml": agentDefinition("a-long-name-for-narrow-pages", "1.0.0",
			"extra: 1"),
	}
}

func TestCatalogueIsAmongTheProcedures(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,definitions")
	d.world.project(t, definitionsOfADemo())
	for name, address := range map[string]string{"catalogue": "/catalogue",
		"definition": "/catalogue/definitions/agent/child",
		"forks":      "/catalogue/forks"} {
		d.run(chromedp.Navigate(d.url + address))
		d.amongTheProcedures(address)
		d.picture(name)
	}
	d.quiet("the catalogue")
}

// amongTheProcedures holds what the navigation shows.
func (d *dashboard) amongTheProcedures(about string) {
	d.Helper()
	if found := d.value(`document.querySelector("nav [aria-current]").textContent`); found != "Procedures" {
		d.Errorf("%s: the navigation shows %v", about, found)
	}
}

// The real Claude CLI has the skills and the commands of a package that was made, published and installed, and no
// longer once it is uninstalled.
func TestClaudeHasTheSkillsOfInstalledPackages(t *testing.T) {
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "packages", "true"
	w.project(t, map[string]string{
		"registry/.keep": "", "project/.aam/.keep": "",
		"source/skills/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
		"source/prompts/tidy-logs.md": "Tidy the logs.\n",
	})
	packages := func(folder string, args ...string) {
		t.Helper()
		w.doesIn(t, folder, nil, append([]string{"packages"}, args...)...)
	}
	packages("source", "registry", "add", "team", filepath.Join(w.home, "registry"))
	packages("source", "create", "--name", "@ops/disks")
	packages("source", "publish")
	packages("project", "install", "@ops/disks", "--platform", "claude")
	skills, commands := w.claudeHas(t)
	if !slices.Contains(skills, "weigh-disks") || !slices.Contains(commands, "tidy-logs") {
		t.Errorf("installed: skills %v, commands %v", skills, commands)
	}
	packages("project", "uninstall", "@ops/disks")
	skills, commands = w.claudeHas(t)
	if slices.Contains(skills, "weigh-disks") || slices.Contains(commands, "tidy-logs") || len(commands) == 0 {
		t.Errorf("uninstalled: skills %v, commands %v", skills, commands)
	}
}

// claudeHas returns the skills and commands that the Claude CLI reports when it is started in the folder project.
func (w *world) claudeHas(t *testing.T) (skills, commands []string) {
	t.Helper()
	stub := newMessagesStub(t, scripted())
	stub.asked = func(string, []seenResult) reply { return say("done") }
	said := w.looksAfter(t, stub, filepath.Join(w.home, "project"))
	for line := range strings.Lines(said) {
		if !strings.Contains(line, `"subtype":"init"`) {
			continue
		}
		start := decode[struct {
			Skills   []string `json:"skills"`
			Commands []string `json:"slash_commands"`
		}](t, line)
		return start.Skills, start.Commands
	}
	t.Fatalf("it did not say what it has\n%s", said)
	return nil, nil
}

// sharePackages publishes two packages, of which one needs the other, and installs both in the server's working folder.
func (w *world) sharePackages(t *testing.T) {
	t.Helper()
	w.project(t, map[string]string{
		"registry/.keep": "", ".aam/.keep": "",
		"base/skills/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
		"top/prompts/tidy-logs.md": "Tidy the logs.\n",
	})
	more := []string{"CLAUDEOPS_TIER=3", "CLAUDEOPS_ALLOW_WRITE=true", "CLAUDEOPS_TOOLSETS=packages"}
	packages := func(folder string, args ...string) {
		t.Helper()
		w.doesIn(t, folder, more, append([]string{"packages"}, args...)...)
	}
	packages(".", "registry", "add", "team", filepath.Join(w.home, "registry"))
	for _, one := range []string{"base", "top"} {
		packages(one, "create", "--name", "@ops/"+one)
		if one == "top" {
			text := strings.TrimSuffix(readFile(t, filepath.Join(w.home, "top/aam.yaml")), "\n")
			w.project(t, map[string]string{"top/aam.yaml": text + "\ndependencies:\n  \"@ops/base\": ^0.1.0\n"})
		}
		packages(one, "publish")
	}
	packages(".", "install", "@ops/top", "--platform", "claude")
}

func TestPackagesPagesSayWhatIsShared(t *testing.T) {
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,packages")
	look := func(address, say string) {
		t.Helper()
		d.run(chromedp.Navigate(d.url + address))
		d.amongTheProcedures(address)
		d.says(say)
	}
	look("/catalogue/packages", "registry add")
	d.shoot("packages-none")
	d.world.sharePackages(t)
	look("/catalogue/package?name=%40ops%2Fbase", "files as installed")
	d.picture("package")
	look("/catalogue/packages", "files as installed")
	d.picture("packages")
}
