//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"
)

// A person types the two prompts as commands of Claude Code, and the model gets their texts: what to do to propose, and
// what a review says with the files that it is about.
func TestPromptsStartWhatAPersonAsksFor(t *testing.T) {
	w := newWorld(t, "2")
	proposed := agent{world: w, says: "/mcp__claudeops__propose-change demo/home-cluster"}.
		converse(t, scripted(use("create_pr", edited(nil, "Warn at 90 %.", "Warn at 85 %."))))
	if text := proposed.seen.everything(); !strings.Contains(text,
		"as one pull request, which a person reviews and merges") ||
		!strings.Contains(text, "repo_owner demo, repo_name home-cluster") {
		t.Errorf("the model was not told how to propose: %s", text)
	}
	operator{w, w.home}.review(t, "request-changes", "--line", "checks/disk.md:3:Say at which figure it becomes urgent.")
	answered := agent{world: w, says: "/mcp__claudeops__answer-review demo/home-cluster 1"}.converse(t,
		answersTheReview(t))
	text := answered.seen.everything()
	for _, want := range []string{"untrusted_review_to_answer", "Say at which figure it becomes urgent.",
		"Warn at 85 %."} {
		if !strings.Contains(text, want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if last := answered.results[len(answered.results)-1].text; !strings.Contains(last, `"revised":true`) {
		t.Errorf("the review was answered by %s", last)
	}
}
