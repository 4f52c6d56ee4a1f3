package github

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

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

// Six openers of one pull request met it once: the refusal of one was read after the answer of another.
func TestARefusalFromBeforeAnotherRequestWasShownTheObjectProvesNothing(t *testing.T) {
	t.Parallel()
	o := newObjects{made: forge.NewLRU[string, time.Time](maxNew, nil), now: time.Now,
		sleep: func(context.Context, time.Duration) {}}
	o.add("branch")
	refused, calls := errors.New("no such branch"), 0
	do := func() error {
		if calls++; calls == 1 {
			o.markShown("branch") // to another request, while this one is refused
			return refused
		}
		return nil
	}
	isRefused := func(err error) bool { return errors.Is(err, refused) }
	if late, err := o.retryUntilKnown(t.Context(), "branch", isRefused, do); late || err != nil {
		t.Errorf("after a refusal that is old: late %t, %v", late, err)
	}
	do = func() error { return refused }
	if late, err := o.retryUntilKnown(t.Context(), "branch", isRefused, do); late || err == nil {
		t.Errorf("a refusal of what was shown before: late %t, %v", late, err)
	}
}
