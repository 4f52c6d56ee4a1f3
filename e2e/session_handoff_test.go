//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"
)

// handoffFile is where the first message lets an agent write its handoff.
func handoffFile(asked string) string {
	_, after, _ := strings.Cut(asked, "write the handoff to ")
	path, _, _ := strings.Cut(after, "handoff.json")
	return path + "handoff.json"
}

// An agent that leaves an unusable handoff is told so after its Write and again when it is about to end, by hooks of
// the real CLI that call this binary. It mends it, and ends with its report once more.
func TestAnAgentHearsOfAnUnusableHandoffAndMendsIt(t *testing.T) {
	o := newOperator(t)
	const report = "## Status\nattention, the disk warning comes too late"
	told := ""
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		write := func(text string) reply {
			return free("Write", map[string]any{"file_path": handoffFile(asked), "content": text})
		}
		switch {
		case strings.Contains(asked, "untrusted_handoff"):
			return say("investigated")
		case len(results) == 0:
			return write("I found that the disk warning comes too late.")
		case len(results) == 1 && !strings.Contains(asked, "Stop hook feedback"):
			told = asked
			return say("this report comes before the handoff is mended")
		case len(results) == 1:
			return write(
				"```json\n{\"version\":\"1\",\"recommended_tier\":\"2\",\"findings\":[{\"key\":\"disk-late\",\"text\":\"warned " +
					"too late\"}]}\n```")
		}
		return say(report)
	}, "--tier", "1")
	if out.code != 0 || len(got.Sessions) != 2 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	const unusable = "handoff.json cannot be used as a handoff: the handoff is no JSON object"
	if !strings.Contains(told, unusable) {
		t.Errorf("after its Write the agent was not told %q", unusable)
	}
	first := got.Sessions[0]
	if first.State != "succeeded" || first.HandoffProblem != "" || first.Report != report ||
		!strings.HasPrefix(first.Escalation, "escalated to tier 2") ||
		len(first.Handoff.Findings) != 1 || first.Handoff.Findings[0] != (found{"disk-late", "warned too late"}) {
		t.Errorf("recorded %+v", first)
	}
}

// An agent that does not listen is not kept for ever, and its session has not succeeded.
func TestASessionWhoseHandoffStaysUnusableFails(t *testing.T) {
	o := newOperator(t)
	turns := 0
	got, out := o.run(t, func(asked string, results []seenResult) reply {
		if turns++; len(results) == 0 {
			return free("Write", map[string]any{"file_path": handoffFile(asked), "content": `{"recommended_tier":2}`})
		}
		return say("done")
	}, "--tier", "1")
	if out.code != 1 || len(got.Sessions) != 1 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if s := got.Sessions[0]; s.State != "failed" || !strings.Contains(s.Reason, "`findings` has no entry") ||
		s.Next != "" || turns != 3 {
		t.Errorf("after %d turns recorded %+v", turns, s)
	}
}
