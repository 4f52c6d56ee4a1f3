package places_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/procedures/definitions"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func listed(paths ...string) (out []gitprovider.ListedFile) {
	for _, path := range paths {
		out = append(out, gitprovider.ListedFile{Path: path})
	}
	return out
}

func find(files []gitprovider.ListedFile) []places.Place {
	return places.Find(gitprovider.RepoRef{Owner: "joe", Name: "home-cluster"}, files)
}

func TestARepositoryOfRunbooksIsKnownByItsName(t *testing.T) {
	files := listed("alerts/a.md", "alerts/b/c.md", "alerts/d.md", "contributing/x.md", "README.md")
	for name, known := range map[string]bool{"runbooks": true, "acme-Runbooks": true, "site": false} {
		found := places.Find(gitprovider.RepoRef{Owner: "acme", Name: name}, files)
		if len(found) != 1 || found[0].Folder != "alerts" || found[0].Known != known {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestPlacesAreFoundAndAPolicyOpensWhatWasChosen(t *testing.T) {
	found := find(listed("README.md", "docs/a.md", "docs/b.md", "docs/c.md", "docs/runbooks/x.md",
		"docs/runbooks/db/y.md", ".claude/skills/one/SKILL.md", ".claude/skills/two/SKILL.md", ".claude/skills/two/run.sh",
		".claude/settings.json", ".agents/skills/one/SKILL.md", ".claude/agents/r.md", "src/one.md", "ops/CLAUDE.md",
		"checks/disk.md", ".github/runbooks/a.md", "charts/templates/x.yaml"))
	const want = ".claude/skills: 2 skills|docs/runbooks: 2 Markdown files|.agents/skills: 1 skill|.claude/agents: 1 agent|" +
		"checks: 1 Markdown file|docs: 3 Markdown files"
	var words []string
	for _, p := range found {
		words = append(words, p.Words())
	}
	must.Equal(t, strings.Join(words, "|"), want)
	if text := places.Describe(found, true); !strings.Contains(text, "playbooks: none") ||
		strings.Contains(text, "checks: none") {
		t.Error(text)
	}
	for tier, skills := range map[gitprovider.Tier]bool{2: true, 3: true} {
		chosen, err := places.Choose(found, "auto")
		if err != nil || len(chosen) != 5 {
			t.Fatalf("auto: %v, %v", chosen, err)
		}
		kinds := append(definitions.SkillFileKinds(), definitions.ClaudeFileKind())
		p, err := policy.Parse("policy.yaml", []byte(places.Policy(chosen, tier)), kinds...)
		if err != nil {
			t.Fatalf("%v\n%s", err, places.Policy(chosen, tier))
		}
		for path, allowed := range map[string]bool{
			"docs/runbooks/x.md": true, "docs/runbooks/db/y.md": true, "checks/disk.md": true,
			".claude/skills/one/SKILL.md": skills, ".agents/skills/one/SKILL.md": skills, ".claude/agents/r.md": tier == 3,
			"docs/a.md": false, ".claude/settings.json": false, "playbooks/a.md": false,
		} {
			if answer := p.CheckPaths(tier, []string{path}); answer.Allowed != allowed {
				t.Errorf("tier %d, %s: %+v", tier, path, answer)
			}
		}
	}
	one, err := places.Choose(found, "docs, checks/")
	if err != nil || len(one) != 2 {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := places.Choose(found, "src"); err == nil || !strings.Contains(err.Error(), "docs/runbooks") {
		t.Errorf("a folder that was not found: %v", err)
	}
}

// Names of files are of others: they become no pattern, no line of their own and no more than a bounded list.
func TestHostileNamesOfFilesOpenNothing(t *testing.T) {
	var files []gitprovider.ListedFile
	for _, path := range []string{"runbooks*/a.md", "**/runbooks/a.md", "x\n  allow: [\"**\"]/runbooks/a.md",
		"run\u200cbooks/a.md", "runbooks\"]/a.md", "-x/runbooks/a.md", "a/../runbooks/a.md", "prompts/runbooks/a.md",
		".github/runbooks/a.md", strings.Repeat("d", 130) + "/runbooks/a.md", ".CLAUDE/skills/a/SKILL.md",
		"x/.claude/skills/a/SKILL.md", "a/b/c/d/e/runbooks/x.md", "runbooks/x/CLAUDE.md"} {
		files = append(files, gitprovider.ListedFile{Path: path})
	}
	if found := find(files); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	for i := range 500 {
		files = append(files, listed(fmt.Sprintf("d%d/runbooks/a.md", i))...)
	}
	if found := find(files); len(found) != 20 {
		t.Errorf("%d places", len(found))
	}
}
