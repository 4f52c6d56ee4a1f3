package mcpio_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/base/mcpio"
)

func TestNoMoreRunAtATimeThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	const room, all = 3, 50
	own := mcpio.NewTurns(room)
	var running, most, ran atomic.Int64
	var wait sync.WaitGroup
	for range all {
		wait.Go(func() {
			own.Do(func() {
				now := running.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				ran.Add(1)
				running.Add(-1)
			})
		})
	}
	wait.Wait()
	if ran.Load() != all || most.Load() > room {
		t.Errorf("%d ran, %d at a time", ran.Load(), most.Load())
	}
	mcpio.Turns(nil).Do(func() { ran.Add(1) })
	if ran.Load() != all+1 {
		t.Error("without a bound nothing ran")
	}
}

func TestAPanicIsTheCallersAndGivesTheTurnBack(t *testing.T) {
	t.Parallel()
	own := mcpio.NewTurns(1)
	for range 2 {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "it broke\n") || !strings.Contains(p, "turns_test.go") {
					t.Errorf("recovered %q", p)
				}
			}()
			own.Do(func() { panic("it broke") })
		}()
	}
}
