//go:build e2e && linux

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// The story of one change, played by the real CLI: each session knows what to do from its first message and its tools
// alone.
func TestAReviewedChangeIsRevisedMergedAndReportedAsDone(t *testing.T) {
	o := newOperator(t)

	found, told := o.tell(t, storyTeller(t))
	if len(found) != 2 || found[1].Counts.Opened != 1 || !strings.HasPrefix(found[0].Escalation, "escalated to tier 2") {
		t.Fatalf("the first cycle is recorded as %+v", found)
	}
	assertTold(t, told[2], "disk-warns-late", "untrusted_handoff")
	const proposed = "claude-ops/check/warn-about-disks-at-85"
	if got := o.git(t, "", "show", proposed+":checks/disk.md"); got != "# Disk\n\nWarn at 85 %.\n" {
		t.Errorf("proposed is %q", got)
	}

	waiting, _ := o.tell(t, storyTeller(t))
	if len(waiting) != 1 || !strings.Contains(waiting[0].Escalation, "still open: disk-warns-late") {
		t.Fatalf("while the pull request waits, the cycle is recorded as %+v", waiting)
	}

	const words = "Say at which figure it becomes urgent."
	o.review(t, "request-changes", "--comment", words)
	revised, told := o.tell(t, storyTeller(t))
	if len(revised) != 2 || !strings.Contains(revised[1].Report, "revised #1") {
		t.Fatalf("the cycle after the review is recorded as %+v", revised)
	}
	assertTold(t, told[1], "changes_requested", words)
	if branches := o.branches(t); len(branches) != 1 || branches[0] != proposed {
		t.Errorf("branches beside main are %v", branches)
	}
	if got := o.git(t, "", "show", proposed+":checks/disk.md"); got != "# Disk\n\nWarn at 85 %, urgent at 95 %.\n" {
		t.Errorf("revised it is %q", got)
	}
	if got := strings.TrimSpace(o.git(t, "", "rev-list", "--count", "main.."+proposed)); got != "2" {
		t.Errorf("%s has %s commits of its own, want 2", proposed, got)
	}

	answered, _ := o.tell(t, storyTeller(t))
	if len(answered) != 1 {
		t.Errorf("after the revision, before a person looked, the cycle is recorded as %+v", answered)
	}

	o.review(t, "approve")
	o.review(t, "merge")
	done, told := o.tell(t, storyTeller(t))
	if len(done) != 1 || done[0].State != "succeeded" || done[0].Handoff != nil ||
		!strings.Contains(done[0].Report, "#1 is merged: done") {
		t.Errorf("the last cycle is recorded as %+v", done)
	}
	assertTold(t, told[1], `\"state\": \"merged\"`)
	if got := o.git(t, "", "show", "main:checks/disk.md"); got != "# Disk\n\nWarn at 85 %, urgent at 95 %.\n" {
		t.Errorf("main has %q", got)
	}
}

// tell plays one cycle that begins at tier 1, and notes what the session of each tier was asked first.
func (o operator) tell(t *testing.T, m sessionModel) (ran []recorded, told map[int]string) {
	t.Helper()
	told = map[int]string{}
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		tier := 1
		if strings.Contains(asked, "<untrusted_handoff>") {
			tier = 2
		}
		if told[tier] == "" {
			told[tier] = asked
		}
		return m(asked, results)
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) == 0 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	return got.Sessions, told
}

// storyTeller stands in for a model that goes by what it is told: it hands over what it finds and what a review asks
// for, proposes once, answers a review by a revision, and reports a merged change as done.
func storyTeller(t *testing.T) sessionModel {
	return func(asked string, results []seenResult) reply {
		reviewed := strings.Contains(asked, "changes_requested")
		if !strings.Contains(asked, "<untrusted_handoff>") {
			return observes(asked, results, reviewed)
		}
		for _, r := range results {
			if r.isError {
				t.Errorf("a call of tier 2 was refused: %s", r.text)
			}
		}
		switch {
		case len(results) == 0 && reviewed:
			status := ofFirstPR()
			status["include"] = []string{"files"}
			return use("get_pr_status", status)
		case len(results) == 0:
			return use("create_pr", edited(nil, "Warn at 90 %.", "Warn at 85 %."))
		case len(results) == 1 && reviewed:
			revision := edited(1, "Warn at 85 %.", "Warn at 85 %, urgent at 95 %.")
			if sha := regexp.MustCompile(`"base_sha":"([0-9a-f]{40})"`).FindStringSubmatch(results[0].text); sha != nil {
				revision["files"].([]any)[0].(map[string]any)["base_sha"] = sha[1]
			}
			return use("create_pr", revision)
		case reviewed:
			return say("## Proposal\nrevised #1")
		}
		return say("## Proposal\nopened #1")
	}
}

// observes is tier 1.
func observes(asked string, results []seenResult, reviewed bool) reply {
	if strings.Contains(asked, `\"state\": \"merged\"`) {
		return say("## Status\nok, #1 is merged: done")
	}
	if len(results) > 0 {
		return say("## Status\nattention\n## Escalate\ntier 2")
	}
	key := "disk-warns-late"
	if reviewed {
		key = "pr-1-review"
	}
	handoff := `{"version":1,"recommended_tier":2,"services":["disk"],"findings":[{"key":"` + key +
		`","text":"see checks/disk.md"}]}`
	return free("Write", map[string]any{"file_path": handoffFile(asked), "content": handoff})
}

// edited is a proposal of tier 2 that replaces a part of a check; revises is the number of a pull request that it
// revises, or nil.
func edited(revises any, old, replacement string) map[string]any {
	args := ofRepository()
	args["title"], args["change_type"] = "Warn about disks at 85 %", "check"
	args["body"] = "## Observed\nA disk filled overnight.\n## Why\n90 % leaves too little time.\n## What\n" + replacement +
		"\n## Impact\nMore warnings."
	args["files"] = []any{map[string]any{
		"path": "checks/disk.md", "action": "update", "edits": []any{map[string]any{"old": old, "new": replacement}},
	}}
	if revises != nil {
		args["revises"] = revises
	}
	return args
}
