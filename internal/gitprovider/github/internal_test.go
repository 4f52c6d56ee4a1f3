package github

import "testing"

func TestTheBranchOfADeletedForkIsNobodysOfOurs(t *testing.T) {
	n := &pullNode{IsCrossRepository: true, HeadRefName: "claude-ops/fix/one"}
	if got := n.branch(); got != "unknown:claude-ops/fix/one" {
		t.Errorf("branch %q", got)
	}
}

func TestAReviewOfAStateThatIsNewToUsIsAComment(t *testing.T) {
	for state, want := range map[string]string{"PENDING": "pending", "SOMETHING_NEW": "commented"} {
		if got := reviewState(state); string(got) != want {
			t.Errorf("%s became %s, want %s", state, got, want)
		}
	}
}
