//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The real Claude CLI has the skills and the commands of a package that was made, published and installed, and no
// longer once it is uninstalled.
func TestClaudeHasTheSkillsOfInstalledPackages(t *testing.T) {
	w := newWorld(t, "3")
	w.vars["CLAUDEOPS_TOOLSETS"], w.vars["CLAUDEOPS_ALLOW_WRITE"] = "packages", "true"
	for name, text := range map[string]string{
		"registry/.keep": "", "project/.aam/.keep": "",
		"source/skills/weigh-disks/SKILL.md": "---\nname: weigh-disks\ndescription: Weigh the disks of the attic " +
			"host\n---\nWeigh them.\n",
		"source/prompts/tidy-logs.md": "Tidy the logs.\n",
	} {
		name = filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packages := func(folder string, args ...string) {
		t.Helper()
		got := run(t, program{path: claudeops(t), args: append([]string{"packages"}, args...),
			dir: filepath.Join(w.home, folder), env: w.environment()})
		if got.code != 0 {
			t.Fatalf("packages %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
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
	got := run(t, program{
		path: installed(t, "@anthropic-ai/claude-code-linux-*/claude"),
		args: []string{"-p", "Look after the cluster.", "--output-format", "stream-json", "--verbose"},
		dir:  filepath.Join(w.home, "project"),
		env: w.environment("ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=dummy",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"),
	})
	for line := range strings.Lines(got.stdout) {
		if !strings.Contains(line, `"subtype":"init"`) {
			continue
		}
		start := decode[struct {
			Skills   []string `json:"skills"`
			Commands []string `json:"slash_commands"`
		}](t, line)
		return start.Skills, start.Commands
	}
	t.Fatalf("claude: exit %d, and it did not say what it has\n%s%s", got.code, got.stdout, got.stderr)
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
	env := append(w.environment(), "CLAUDEOPS_TIER=3", "CLAUDEOPS_ALLOW_WRITE=true", "CLAUDEOPS_TOOLSETS=packages")
	packages := func(folder string, args ...string) {
		t.Helper()
		got := run(t, program{path: claudeops(t), args: append([]string{"packages"}, args...),
			dir: filepath.Join(w.home, folder), env: env})
		if got.code != 0 {
			t.Fatalf("packages %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	packages(".", "registry", "add", "team", filepath.Join(w.home, "registry"))
	for _, one := range []string{"base", "top"} {
		packages(one, "create", "--name", "@ops/"+one)
		if one == "top" {
			name := filepath.Join(w.home, "top/aam.yaml")
			manifest, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.TrimSuffix(string(manifest), "\n") + "\ndependencies:\n  \"@ops/base\": ^0.1.0\n"
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		packages(one, "publish")
	}
	packages(".", "install", "@ops/top", "--platform", "claude")
}

func TestPackagesPagesAreAccessible(t *testing.T) {
	axe, err := os.ReadFile(installed(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDashboard(t, "CLAUDEOPS_TOOLSETS=pr,packages")
	look := func(say string, addresses ...string) {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 1200} {
				d.run(
					emulation.SetDeviceMetricsOverride(width, 800, 1, width < 500),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
						Value: scheme}}),
				)
				for _, address := range addresses {
					about := fmt.Sprintf("%s, %s, %d wide", address, scheme, width)
					d.run(chromedp.Navigate(d.url + address))
					d.examine(about, string(axe))
					if wide := d.value(`document.documentElement.scrollWidth`).(float64); int64(wide) > width {
						t.Errorf("%s: the page is %.0f wide", about, wide)
					}
					if found := d.value(`document.querySelector("nav [aria-current]").textContent`); found != "Procedures" {
						t.Errorf("%s: the navigation shows %v", about, found)
					}
					if text := d.value(`document.querySelector("main").textContent`).(string); !strings.Contains(text, say) {
						t.Errorf("%s: the page lacks %q: %s", about, say, text)
					}
				}
			}
		}
	}
	look("registry add", "/catalogue/packages")
	d.picture("packages-none")
	d.world.sharePackages(t)
	look("files as installed", "/catalogue/packages", "/catalogue/package?name=%40ops%2Fbase")
	d.picture("package")
	d.run(chromedp.Navigate(d.url + "/catalogue/packages"))
	d.picture("packages")
	d.quiet("packages")
}
