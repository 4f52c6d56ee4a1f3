package follow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/webhook"
	"github.com/claudeops/claudeops/internal/proposals/follow"
)

func delivery(id string, numbers ...int) webhook.Delivery {
	return webhook.Delivery{ID: id, Event: "pull_request", Owner: "joe", Repo: "infra", Numbers: numbers}
}

func TestADeliveryLeadsToOneLookAtWhatIsOurs(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.host.merge(7, "ann")
	w.host.set(9, func(st *gitprovider.Status) { st.State = gitprovider.StateOpen }) // somebody else's
	for _, row := range []struct {
		id      string
		numbers []int
		taken   bool
		code    fault.Code
	}{
		{"a", []int{7, 9}, true, ""}, {"b", []int{9}, false, ""}, {"b", []int{9}, false, ""}, {"c", nil, false, ""},
		{"a", []int{7}, false, fault.Conflict}, {"a", []int{8}, false, fault.Conflict}, {"d", []int{7}, true, ""},
	} {
		taken, err := w.deliver(row.id, row.numbers...)
		if taken != row.taken || fault.CodeOf(err) != row.code {
			t.Errorf("%v: taken %t, %v", row, taken, err)
		}
	}
	w.same("looks before anybody serves", w.host.looks(), []int(nil))
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	other := delivery("e", 7)
	other.Repo = "other"
	if taken, err := w.follow.Accept(t.Context(), "github", other); taken || err != nil {
		t.Errorf("another repository: %t, %v", taken, err)
	}
	if taken, err := w.follow.Accept(t.Context(), "gitea", delivery("f", 7)); taken ||
		fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("a provider that is disabled: %t, %v", taken, err)
	}
	w.served()
	w.same("looks after all", w.host.looks(), []int(nil))
}

func TestAPushToTheBranchOfAPullRequestRecordsItsNewHead(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.host.set(7, func(st *gitprovider.Status) { st.HeadCommit = "beef" })
	push := func(id, branch string) bool {
		t.Helper()
		taken, err := w.follow.Accept(t.Context(), "github", webhook.Delivery{ID: id, Event: "push", Owner: "Joe",
			Repo: "INFRA", Branch: branch})
		if err != nil {
			t.Error(err)
		}
		return taken
	}
	w.same("taken", []bool{push("a", "branch-7"), push("b", "branch-9"), push("c", "BRANCH-7")},
		[]bool{true, false, false})
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("head", w.record(7).Head, "beef")
	w.host.merge(7, "ann")
	w.round()
	w.same("a push to what was merged is taken", push("d", "branch-7"), false)
}

func TestDeliveriesThatComeInAnyOrderLeadToTheSameRecord(t *testing.T) {
	for _, order := range [][]string{{"opened", "merged", "pushed"}, {"merged", "pushed", "opened"},
		{"pushed", "opened", "merged"}} {
		w := newWorld(t, 7)
		w.host.merge(7, "ann")
		for _, id := range order {
			if _, err := w.deliver(id, 7); err != nil {
				t.Error(err)
			}
			w.served()
		}
		w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
		w.same("notices", w.told(), []string{`merged {"number":7,"by":"ann"}`})
	}
}

func TestAnEventDuringALookLeadsToAnother(t *testing.T) {
	w := newWorld(t, 7)
	first := true
	w.host.after = func(int) {
		if !first {
			return
		}
		first = false
		w.host.merge(7, "ann")
		if taken, err := w.deliver("b", 7); !taken || err != nil {
			t.Error(taken, err)
		}
	}
	_, _ = w.deliver("a", 7)
	w.served()
	w.same("looks", w.host.looks(), []int{7, 7})
	w.same("state", w.record(7).State, gitprovider.StateMerged)
}

func TestWhatIsTooMuchIsLeftToThePoll(t *testing.T) {
	var numbers []int
	for n := range 260 {
		numbers = append(numbers, n+1)
	}
	w := newWorld(t)
	w.options.Records = everything{w.store.Pulls}
	w.follow = follow.New(w.options)
	for _, n := range numbers {
		if taken, err := w.deliver(fmt.Sprint(n), n); !taken || err != nil {
			t.Fatal(taken, err)
		}
	}
	w.served()
	w.same("looks", w.host.looks(), numbers[:256])
}

func TestAServerThatEndsLooksFirst(t *testing.T) {
	w := newWorld(t, 7, 8)
	entered, release := make(chan int), make(chan struct{})
	w.host.before = func(_ context.Context, number int) {
		entered <- number
		<-release
	}
	ctx, stop := context.WithCancel(t.Context())
	w.follow.Begin(ctx)
	_, _ = w.deliver("a", 7)
	w.same("entered", <-entered, 7)
	_, _ = w.deliver("b", 8)
	stop()
	ended := make(chan struct{})
	go func() {
		w.follow.Finish()
		close(ended)
	}()
	release <- struct{}{}
	w.same("entered", <-entered, 8)
	release <- struct{}{}
	<-ended
	w.same("looks", w.host.looks(), []int{7, 8})
}

func TestAServerThatEndsDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.options.Drain = time.Millisecond
	w.follow = follow.New(w.options)
	entered := make(chan struct{})
	w.host.before = func(ctx context.Context, _ int) {
		close(entered)
		<-ctx.Done()
	}
	w.host.fail(7, fault.New(fault.Timeout, "cancelled"))
	w.follow.Begin(t.Context())
	_, _ = w.deliver("a", 7)
	<-entered
	_, _ = w.deliver("b", 8)
	w.follow.Finish()
	w.same("looks", w.host.looks(), []int{7})
}

// A process may be killed between a delivery and the look. The sender does not send it again, and without polling no
// other look would happen.
func TestWhatWasTakenAndNotLookedAtIsLookedAtByTheNextProcess(t *testing.T) {
	w := newWorld(t, 7, 8)
	w.round() // looks at both
	w.host.looks()
	w.advance(time.Minute)
	w.host.merge(7, "ann")
	if taken, err := w.deliver("a", 7); !taken || err != nil {
		t.Fatal(taken, err)
	}
	w.options.Every = 0
	w.follow = follow.New(w.options) // of another process
	w.served()
	w.same("looks", w.host.looks(), []int{7})
	w.same("audit", w.rows(), []string{`pull.merged #7 webhook by "ann"`})
	w.served()
	w.same("looks after that", w.host.looks(), []int(nil))
}
