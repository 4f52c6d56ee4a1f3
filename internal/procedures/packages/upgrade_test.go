package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// versions are the installed packages.
func (b *bench) versions() map[string]string {
	b.Helper()
	installed, err := b.service.Installed()
	if err != nil {
		b.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range installed {
		out[p.Name] = p.Version
		if p.ForOthers {
			out[p.Name] += " for others"
		}
	}
	return out
}

func (b *bench) has(want map[string]string) {
	b.Helper()
	if diff := cmp.Diff(want, b.versions()); diff != "" {
		b.Errorf("(-want +got):\n%s", diff)
	}
}

// upgradable has report, which needs charts, and mailer, both installed at their first versions, and newer ones.
func upgradable(t *testing.T) *bench {
	b := newBench(t)
	for _, p := range [][]string{{"lines", "1.0.0"}, {"charts", "1.0.0", "lines", "^1.0.0"},
		{"report", "1.0.0", "charts", "^1.0.0"}, {"mailer", "1.0.0"}} {
		publish(t, b.registry, "latest", p[0], p[1], p[2:]...)
	}
	b.same("install", `{"packages":["report","mailer"]}`, map[string]any{"failed": []any{}, "dependencies_resolved": 2.0})
	b.has(map[string]string{"report": "1.0.0", "mailer": "1.0.0", "charts": "1.0.0 for others",
		"lines": "1.0.0 for others"})
	b.same("outdated", `{}`, map[string]any{"result": []any{}, "notes": nil})
	publish(t, b.registry, "latest", "charts", "1.1.0") // which needs no lines
	publish(t, b.registry, "latest", "charts", "2.0.0")
	publish(t, b.registry, "latest", "mailer", "1.0.1")
	publish(t, b.registry, "next", "mailer", "2.0.0-beta.1")
	return b
}

func TestOutdatedSaysWhatAnUpgradeComesTo(t *testing.T) {
	b := upgradable(t)
	before := b.tree()
	b.same("outdated", `{}`, map[string]any{"result": []any{
		map[string]any{"name": "charts", "installed": "1.0.0", "wanted": "1.1.0", "newest": "2.0.0", "registry": "dev",
			"for_others": true},
		map[string]any{"name": "mailer", "installed": "1.0.0", "wanted": "1.0.1", "newest": "1.0.1", "registry": "dev",
			"for_others": false},
	}, "notes": nil})
	if diff := cmp.Diff(before, b.tree()); diff != "" {
		t.Errorf("outdated has written:\n%s", diff)
	}
}

func TestUpgradeTakesAllToTheNewestThatGoTogether(t *testing.T) {
	b := upgradable(t)
	before := b.tree()
	b.authority.DryRun = true
	want := []any{
		map[string]any{"name": "mailer", "from": "1.0.0", "to": "1.0.1", "source": "dev"},
		map[string]any{"name": "charts", "from": "1.0.0", "to": "1.1.0", "source": "dev"},
	}
	b.same("upgrade", `{}`, map[string]any{"upgraded": want, "dry_run": true})
	if diff := cmp.Diff(before, b.tree()); diff != "" {
		t.Errorf("a dry run has written:\n%s", diff)
	}
	b.authority.DryRun = false
	b.same("upgrade", `{}`, map[string]any{"upgraded": want, "failed": []any{},
		"notes.0": "nothing needs these any more: lines; claudeops packages autoremove removes them"})
	b.has(map[string]string{"report": "1.0.0", "mailer": "1.0.1", "charts": "1.1.0 for others",
		"lines": "1.0.0 for others"})
	b.same("upgrade", `{}`, map[string]any{"upgraded": []any{}})
	b.same("autoremove", `{}`, map[string]any{"removed.0.name": "lines", "removed.0.files_removed": 5.0, "removed.1": nil})
	b.has(map[string]string{"report": "1.0.0", "mailer": "1.0.1", "charts": "1.1.0 for others"})
	b.same("autoremove", `{}`, map[string]any{"removed": []any{}})
	b.same("doctor", `{}`, map[string]any{"healthy": true})
}

func TestUpgradeOfNamedPackagesTakesNothingAlong(t *testing.T) {
	b := upgradable(t)
	b.same("upgrade", `{"packages":["mailer"]}`, map[string]any{"upgraded.0.name": "mailer", "upgraded.1": nil})
	b.has(map[string]string{"report": "1.0.0", "mailer": "1.0.1", "charts": "1.0.0 for others",
		"lines": "1.0.0 for others"})
	b.same("upgrade", `{"packages":["charts"]}`, map[string]any{"upgraded.0.to": "1.1.0", "upgraded.1": nil})
	b.has(map[string]string{"report": "1.0.0", "mailer": "1.0.1", "charts": "1.1.0 for others",
		"lines": "1.0.0 for others"})
	b.fails("upgrade", `{"packages":["nothing"]}`, PackageNotInstalled, "nothing is not installed")
}

func TestUpgradeNeverGoesBack(t *testing.T) {
	b := upgradable(t)
	b.same("install", `{"packages":["mailer@next"]}`, map[string]any{"failed": []any{}})
	b.has(map[string]string{"report": "1.0.0", "mailer": "2.0.0-beta.1", "charts": "1.0.0 for others",
		"lines": "1.0.0 for others"})
	b.same("upgrade", `{"packages":["mailer"]}`, map[string]any{"upgraded": []any{}})
	publish(t, b.registry, "old", "mailer", "2.0.0")
	b.same("upgrade", `{"packages":["mailer"]}`,
		map[string]any{"upgraded.0.from": "2.0.0-beta.1", "upgraded.0.to": "2.0.0"})
}

func TestUninstallNamesWhatStays(t *testing.T) {
	b := upgradable(t)
	b.same("uninstall", `{"package_name":"report"}`, map[string]any{
		"notes": []any{"these came with it and stay, though nothing needs them any more: charts, lines; claudeops packages " +
			"autoremove removes them"},
	})
	b.same("uninstall", `{"package_name":"mailer"}`, map[string]any{"notes": nil}) // they did not come with it
	b.same("autoremove", `{}`, map[string]any{"removed.0.name": "charts", "removed.1.name": "lines", "removed.2": nil})
	b.has(map[string]string{})
}

func TestUpgradeStaysInItsPlatforms(t *testing.T) {
	b := newBench(t)
	b.full("all", "1.0.0", "")
	b.same("install", `{"packages":["all"],"platform":"cursor"}`, map[string]any{"failed": []any{}})
	b.full("all", "1.1.0", "")
	b.same("upgrade", `{}`, map[string]any{"upgraded.0.to": "1.1.0"})
	files := b.tree()
	if _, there := files["project/.claude/skills/pdf/SKILL.md"]; there {
		t.Error("it was put into another platform")
	}
	if got := b.file(".cursor/skills/pdf/SKILL.md"); got != "---\nname: pdf\ndescription: Reads PDFs\n---\n# PDF 1.1.0\n" {
		t.Errorf("%q", got)
	}
}
