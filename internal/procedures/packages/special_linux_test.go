package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// within is the answer of a call that waits for nothing.
func (b *bench) within(tool, arguments string) (text string) {
	b.Helper()
	operationtest.InTime(b, 2*time.Minute, tool, func() { _, text = b.ask(tool, arguments) })
	return text
}

// Whatever lies where a file or a folder is expected, every call ends at once and names it.
func TestWhatIsNoFileEndsEachCall(t *testing.T) {
	t.Parallel()
	registry, project := "../home/registry/", ""
	for name, c := range map[string]struct {
		tool, arguments string
		says            string // in the answer; "" for the last part of the name
	}{
		project + manifestName:               {tool: "validate", arguments: `{}`},
		project + manifestName + " publish":  {tool: "publish", arguments: `{}`},
		project + "skills/look/run.sh":       {tool: "publish", arguments: `{}`},
		project + "skills/look/run.sh check": {tool: "validate", arguments: `{}`},
		project + ".aam/aam-lock.yaml":       {tool: "list", arguments: `{}`},
		project + ".aam/aam-lock.yaml in":    {tool: "install", arguments: `{"packages":["p"]}`},
		project + ".aam/config.yaml":         {tool: "config_get", arguments: `{}`},
		project + ".aam/config.yaml doctor":  {tool: "doctor", arguments: `{}`},
		project + ".aam":                     {tool: "install", arguments: `{"packages":["p"]}`, says: ".aam"},
		"../home/.aam/config.yaml":           {tool: "search", arguments: `{"query":"p"}`},
		registry + "index.yaml":              {tool: "search", arguments: `{"query":"p"}`},
		registry + "packages/p/metadata.yaml": {
			tool: "install", arguments: `{"packages":["p"]}`, says: "metadata.yaml"},
		registry + "packages/p/versions/1.0.0.aam": {tool: "info", arguments: `{"package_name":"p"}`,
			says: "archive cannot be read"},
		registry + "packages/p/versions": {tool: "info", arguments: `{"package_name":"p"}`,
			says: "archive cannot be read"},
		registry + ".lock":    {tool: "publish", arguments: `{}`, says: "cannot be written"},
		registry + "packages": {tool: "publish", arguments: `{}`, says: "packages"},
		"../home/registry":    {tool: "search", arguments: `{"query":"p"}`, says: "cannot be read"},
		"CLAUDE.md":           {tool: "install", arguments: `{"packages":["p"]}`, says: "CLAUDE.md"},
	} {
		name, _, _ = strings.Cut(name, " ")
		for kind, make := range operationtest.Special() {
			t.Run(c.tool+" "+name+" "+kind, func(t *testing.T) {
				b := newBench(t)
				b.full("p", "1.0.0", "")
				b.put(manifestName, manifestOf("mine", "1.0.0"))
				b.put("skills/look/SKILL.md", "x")
				path := filepath.Join(b.settings.Project, name)
				must.Do(t, os.RemoveAll(path), make(path))
				text := b.within(c.tool, c.arguments)
				says := c.says
				if says == "" {
					says = filepath.Base(name)
				}
				if !strings.Contains(text, says) || strings.Contains(text, `"name":"mine"`) ||
					strings.Contains(text, `"installed":[{`) {
					t.Errorf("the answer is %s", text)
				}
				b.within("doctor", `{}`)
			})
		}
	}
}

// What was put into a platform can have been replaced by anything, and a checkout can bring anything in the workspace's
// folders.
func TestWhatIsNoFileAmongInstalledOnes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".claude/skills/pdf/SKILL.md", ".aam/packages/p/skills/pdf/SKILL.md",
		".aam/packages/p/aam.yaml", ".aam/packages/p", ".aam/.tmp/transaction.json", ".claude/skills/pdf"} {
		for kind, make := range operationtest.Special() {
			t.Run(name+" "+kind, func(t *testing.T) {
				b := newBench(t)
				b.full("p", "1.0.0", "")
				b.same("install", `{"packages":["p"]}`, map[string]any{"installed.0.name": "p"})
				path := filepath.Join(b.settings.Project, name)
				must.Do(t, os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o750), make(path))
				for _, call := range [][2]string{{"doctor", `{}`}, {"list", `{}`}, {"info", `{"package_name":"p"}`},
					{"install", `{"packages":["p"],"force":true}`}, {"uninstall", `{"package_name":"p"}`}} {
					b.within(call[0], call[1])
				}
				if _, err := NewBrowser(b.service).Browse(t.Context(), Browsing{Limit: 10}); err != nil &&
					!strings.Contains(err.Error(), "lock") {
					t.Error(err)
				}
			})
		}
	}
}
