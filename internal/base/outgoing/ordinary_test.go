package outgoing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/outgoing"
)

func TestOrdinaryBodiesStayAsTheyAre(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/ordinary/*.md", "../../../checks/*.md", "../../../playbooks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 3 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimRight(string(raw), " \t\r\n")
		got, warnings := outgoing.Rules{}.Body(text)
		if got != text || len(warnings) > 0 {
			t.Errorf("%s was changed: %q\n%s", file, warnings, got)
		}
	}
}

func TestOrdinaryTitlesStayAsTheyAre(t *testing.T) {
	for _, title := range []string{
		"Warn about inodes on barn at 70 percent", "fix(checks): raise the limit (#12)", "Use `df -i` in checks/disk.md",
		"Revert \"Warn about inodes\"",
		"Fixes the disk check", "Skip CI hosts in the check", "Update ops@example.org", "docs: x < y, a && b",
		"[barn] raise 70 % → 80 %", "C:\\Temp is full",
	} {
		if got, warnings := (outgoing.Rules{}).Title(title); got != title || len(warnings) > 0 {
			t.Errorf("%q became %q: %q", title, got, warnings)
		}
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var body strings.Builder
	for n := range 2000 {
		body.WriteString("@a" + strings.Repeat("b", n%40) + string(rune('a'+n%26)) + "\n\n")
	}
	_, warnings := outgoing.Rules{}.Body(body.String())
	if len(warnings) != 21 || !strings.Contains(warnings[20], "more changes") {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func TestThePolicyMayAllow(t *testing.T) {
	rules := outgoing.Rules{Mentions: []string{"ann", "org/team", "claude"}, ClosingKeywords: true}
	for _, text := range []string{"@Ann and @org/team: fixes #1, resolves [#2](https://example.org)",
		"@claude `@claude`"} {
		if got, warnings := rules.Body(text); got != text || len(warnings) > 0 {
			t.Errorf("%q became %q: %q", text, got, warnings)
		}
		if got, warnings := rules.Title(text); got != text || len(warnings) > 0 {
			t.Errorf("the title %q became %q: %q", text, got, warnings)
		}
	}
}
