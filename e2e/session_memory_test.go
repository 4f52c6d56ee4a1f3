//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"
)

// reports is a session of tier 1 that hands the finding over to tier 2, where the proposal is made, and notes what each
// was told.
func (o operator) reports(t *testing.T, p *proposal, text string) (ran []recorded, told map[int]string) {
	t.Helper()
	told = map[int]string{}
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		if strings.Contains(asked, "<untrusted_handoff>") {
			if len(results) == 0 && p != nil {
				told[2] = asked
				return use("create_pr", p)
			}
			return say("## Proposal\nsee the pull request")
		}
		if len(results) == 0 {
			told[1] = asked
			handoff := `{"version":1,"recommended_tier":2,"services":["disk"],"findings":[{"key":"disk-warns-late","text":"` +
				text + `"}]}`
			return free("Write", map[string]any{"file_path": handoffFile(asked), "content": handoff})
		}
		if len(results) == 1 {
			return free("Write", map[string]any{"file_path": strings.Replace(handoffFile(asked), "handoff.json", "journal.txt",
				1), "content": "checks/disk.md: " + text})
		}
		return say("## Status\nattention: " + text)
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) == 0 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	return got.Sessions, told
}

func assertTold(t *testing.T, told string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(told, word) {
			t.Errorf("the agent was not told %q", word)
		}
	}
}

// Each session of the real CLI is told of those before it, and a finding that was handed over starts no second session
// before a person has said something about what came of it.
func TestSessionsKnowThoseBeforeThemAndHandAFindingOverOnce(t *testing.T) {
	o := newOperator(t)
	p := quieterDisk()
	first, told := o.reports(t, &p, "at 91 % on Monday")
	if len(first) != 2 || first[1].Counts.Opened != 1 {
		t.Fatalf("recorded %+v", first)
	}
	assertTold(t, told[1], "at most 60 turns, 30m", "No shell command is permitted", "checks/*.md, playbooks/*.md")
	assertTold(t, told[2], "at most 3 files in one pull request of your tier", "disk-warns-late")

	again, told := o.reports(t, &p, "at 93 % on Tuesday")
	if len(again) != 1 || again[0].Next != "" ||
		!strings.Contains(again[0].Escalation, "still open: disk-warns-late (tier 2 since ") ||
		!strings.Contains(again[0].Escalation, "pull request demo/home-cluster#1") {
		t.Fatalf("recorded %+v", again)
	}
	assertTold(t, told[1], "attention: at 91 % on Monday", "see the pull request", "untrusted_journal",
		"Z checks/disk.md: at 91 % on Monday", `demo/home-cluster#1`, `\"state\": \"open\"`, "untrusted_open_findings")

	o.review(t, "approve")
	o.review(t, "merge")
	third, told := o.reports(t, nil, "at 95 % on Wednesday")
	if len(third) != 2 {
		t.Errorf("after the merge recorded %+v", third)
	}
	assertTold(t, told[1], `\"state\": \"merged\"`, "at 93 % on Tuesday", "checks/disk.md: at 93 % on Tuesday")
}

// review is what a person does to the first pull request.
func (o operator) review(t *testing.T, verb string, more ...string) {
	t.Helper()
	args := append([]string{"review", verb, "1", "--repo", "demo/home-cluster"}, more...)
	got := run(t, program{path: claudeops(t), args: args, dir: t.TempDir(), env: o.world.environment()})
	if got.code != 0 {
		t.Fatalf("review %s: exit %d: %s%s", verb, got.code, got.stdout, got.stderr)
	}
}
