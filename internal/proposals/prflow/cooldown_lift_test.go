package prflow_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// lift has ann lift the cooldown of #1.
func (b *bench) lift() {
	b.Helper()
	key := record.PullKey{Provider: "fake", Owner: "joe", Repo: "infra", Number: 1}
	err := b.store.Ledger.LiftCooldown(context.Background(), key, record.Attempt{
		Time: b.clock.Now(), RequestID: b.options.NewID(), Door: record.DoorCLI, Caller: "ann",
		Action: "review.lift-cooldown", Provider: "fake", Owner: "joe",
		Repo: "infra", PRNumber: 1, Outcome: record.OutcomeDone,
	})
	if err != nil {
		b.Fatal(err)
	}
}

func TestACooldownThatAPersonHasLiftedIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lift func(b *bench)
		says string
	}{
		"by hand": {(*bench).lift, "lifted by ann"},
		"by a label": {func(b *bench) { b.must(b.fake.Label(context.Background(), infra, 1, []string{"Try-Again"})) },
			"by its label try-again"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.options.Authority.Policy.Limits.CooldownLabel = "try-again"
			b.mustOpen(request(nil))
			b.world().Close(1)
			b.clock.advance(time.Minute)
			b.mustRefuse(request(nil), fault.CooldownActive)
			c.lift(b)
			if result := b.mustOpen(request(nil)); result.Number != 2 {
				t.Fatalf("%+v", result)
			}
			for _, v := range b.attempts()[0].Verdicts {
				if v.Gate == record.GateCooldown && !strings.Contains(v.Detail, c.says) {
					t.Errorf("the record says %q, want %q", v.Detail, c.says)
				}
			}
		})
	}
}

func TestWhatIsClosedAgainAfterItsCooldownWasLiftedRestsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
	b.lift() // before anybody has closed it
	b.clock.advance(time.Minute)
	b.world().Close(1)
	b.clock.advance(time.Minute)
	b.mustRefuse(request(nil), fault.CooldownActive)
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
