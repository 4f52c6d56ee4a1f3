package scripts

import (
	"fmt"
	"strings"
	"testing"
)

func TestAdviceNamesWhatATierMayRun(t *testing.T) {
	l := Listing{Scripts: []Script{
		{Name: "check_disk", Description: Description{Synopsis: "Check the disk.\nAnd more."},
			ScriptSettings: ScriptSettings{Tier: 1}},
		{Name: "restart", Path: "/s/restart.sh", ScriptSettings: ScriptSettings{Tier: 2}},
		{Name: "raised", Description: Description{Synopsis: strings.Repeat("ü", 200)},
			ScriptSettings: ScriptSettings{Tier: 1}},
	}}
	least := func(tool string) int { return map[string]int{"raised": 3}[tool] }
	for tier, names := range map[int]string{0: "", 1: "check_disk", 2: "check_disk restart",
		3: "check_disk restart raised"} {
		got := l.Advice("claudeops", tier, least)
		for _, s := range l.Scripts {
			if strings.Contains(got, "`mcp__claudeops__"+s.Name+"`") != strings.Contains(names, s.Name) {
				t.Errorf("tier %d is told\n%s", tier, got)
			}
		}
		if (got == "") != (names == "") || names != "" && !strings.Contains(got, "not a shell command") {
			t.Errorf("tier %d is told\n%s", tier, got)
		}
	}
	for _, line := range []string{"- `mcp__claudeops__check_disk`: Check the disk. From tier 1.\n",
		"- `mcp__claudeops__restart`: Run /s/restart.sh. From tier 2.\n", "ü ... From tier 3.\n"} {
		if got := l.Advice("claudeops", 3, least); !strings.Contains(got, line) {
			t.Errorf("not told is %q, but\n%s", line, got)
		}
	}
	for i := range 1000 {
		l.Scripts = append(l.Scripts, Script{Name: fmt.Sprint("n", i), ScriptSettings: ScriptSettings{Tier: 1}})
	}
	if got := l.Advice("claudeops", 1, least); !strings.Contains(got, "961 more") || len(got) > 10<<10 {
		t.Errorf("of many scripts: %d bytes\n%.300s", len(got), got)
	}
}
