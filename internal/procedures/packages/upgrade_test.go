package packages

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// has holds the installed packages against what they should be.
func (b *bench) has(want map[string]string) {
	b.Helper()
	installed, err := b.service.Installed()
	must.Do(b, err)
	got := map[string]string{}
	for _, p := range installed {
		got[p.Name] = p.Version
		if p.ForOthers {
			got[p.Name] += " for others"
		}
	}
	operationtest.Same(b, "installed", want, got)
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
	t.Parallel()
	b := upgradable(t)
	before := b.tree()
	b.same("outdated", `{}`, map[string]any{"result": []any{
		map[string]any{"name": "charts", "installed": "1.0.0", "wanted": "1.1.0", "newest": "2.0.0", "registry": "dev",
			"for_others": true},
		map[string]any{"name": "mailer", "installed": "1.0.0", "wanted": "1.0.1", "newest": "1.0.1", "registry": "dev",
			"for_others": false},
	}, "notes": nil})
	b.unchanged("outdated has written", before)
}

func TestUpgradeTakesAllToTheNewestThatGoTogether(t *testing.T) {
	t.Parallel()
	b := upgradable(t)
	before := b.tree()
	b.authority.DryRun = true
	want := []any{
		map[string]any{"name": "mailer", "from": "1.0.0", "to": "1.0.1", "source": "dev"},
		map[string]any{"name": "charts", "from": "1.0.0", "to": "1.1.0", "source": "dev"},
	}
	b.same("upgrade", `{}`, map[string]any{"upgraded": want, "dry_run": true})
	b.unchanged("a dry run has written", before)
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

func TestConstraints(t *testing.T) {
	t.Parallel()
	for constraint, c := range map[string]struct{ in, out string }{
		"*":                    {"0.0.1 1.0.0 9.9.9", "1.0.0-beta.1"},
		"1.2.3":                {"1.2.3", "1.2.4 1.2.3-rc.1"},
		"=1.2.3":               {"1.2.3", "1.2.4"},
		"== 1.0":               {"1.0.0", "1.0.1"},
		"^1.2.3":               {"1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-rc.1 1.3.0-rc.1"},
		"^0.2.3":               {"0.2.3 0.2.9", "0.3.0 0.2.2"},
		"^0.0.3":               {"0.0.3", "0.0.4"},
		"~1.2.3":               {"1.2.3 1.2.9", "1.3.0 1.2.2"},
		">=1.0.0,<2.0.0":       {"1.0.0 1.9.9", "2.0.0 0.9.0 2.0.0-rc.1"},
		" > 1.0.0 , <= 1.5.0 ": {"1.0.1 1.5.0", "1.0.0 1.5.1"},
		"^1.0.0,<1.5.0":        {"1.4.9", "1.5.0"},
		"1.2.0-beta.1":         {"1.2.0-beta.1", "1.2.0 1.2.0-beta.2"},
		">=1.2.0-beta.1":       {"1.2.0-beta.1 1.2.0-rc.1 1.2.0 3.0.0", "1.2.0-alpha 1.3.0-beta.1"},
		"^1.2.0-beta.1":        {"1.2.0-beta.2 1.2.0 1.9.0", "1.3.0-beta.1 2.0.0"},
	} {
		parsed, err := parseConstraint(constraint)
		if err != nil {
			t.Errorf("%s: %v", constraint, err)
			continue
		}
		check := func(versions string, want bool) {
			for _, text := range strings.Fields(versions) {
				v, err := parseVersion(text)
				must.Do(t, err)
				if parsed.Admits(v) != want {
					t.Errorf("%s admits %s: %v, want %v", constraint, text, !want, want)
				}
			}
		}
		check(c.in, true)
		check(c.out, false)
	}
	for _, bad := range []string{"", " ", "!=1.0.0", "1.x", ">=1 <2", "^", "latest", "v1.0.0", "1.0.0 || 2.0.0", "1.0.0,",
		"1!2.0", "^*", "1.2.3.4", "\n1.0.0x"} {
		if c, err := parseConstraint(bad); codeOfError(err) != InvalidArgument {
			t.Errorf("%q: %v, %v", bad, c, err)
		}
	}
}

func TestNamesAndSpecs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a ", "my-pkg": "my-pkg ", "@s/p": "@s/p ", "@s_1/p@1.0.0": "@s_1/p 1.0.0", "p@^1.0.0": "p ^1.0.0",
		"p@latest": "p latest", "p@ >=1.0.0,<2 ": "p >=1.0.0,<2",
	} {
		s, err := parseSpec(text)
		if got := s.Name.String() + " " + s.Want; err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "@", "@s/", "A", "a_b", "-a", "a\n", "@s/p/q", "../x", "a@", "@s/p@", "@S/p", "a b",
		strings.Repeat("a", 65)} {
		if s, err := parseSpec(bad); codeOfError(err) != InvalidArgument {
			t.Errorf("%q: %v, %v", bad, s, err)
		}
	}
	for text, want := range map[string]string{"@a/b": "a--b", "a--b": "a--b", "x": "x"} {
		n, err := parseName(text)
		if err != nil || n.folderName() != want || n.String() != text {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
}
