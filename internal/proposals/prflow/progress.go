package prflow

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
)

// defaultProgressEvery is the default of Options.ProgressEvery. Clients of MCP give up after a minute without a word.
const defaultProgressEvery = 10 * time.Second

// progress tells a caller how far its creation is.
type progress struct {
	caller operation.Caller
	every  time.Duration // how often it hears that a write still takes; 0: defaultProgressEvery
	one    sync.Mutex    // one call at a time
	asked  bool          // the door has let the caller in once more, so that it may write
}

// admitted asks the door, once, whether the caller may still propose: after all waiting, and before the first write.
// See operation.Caller.
func (p *progress) admitted(ctx context.Context) error {
	if p.asked {
		return nil
	}
	err := p.caller.Admitted(ctx)
	p.asked = err == nil
	return err
}

func (p *progress) phase(name string) {
	p.one.Lock()
	defer p.one.Unlock()
	if p.caller.Progress != nil {
		p.caller.Progress(name)
	}
}

// during tells of a phase that writes at the provider, and every few seconds that it still takes, until done is called.
func (p *progress) during(name, provider string) (done func()) {
	p.phase(name)
	if p.caller.Progress == nil {
		return func() {}
	}
	began, over := time.Now(), make(chan struct{})
	ticker := time.NewTicker(cmp.Or(p.every, defaultProgressEvery))
	var ticks sync.WaitGroup
	ticks.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case now := <-ticker.C:
				p.phase(fmt.Sprintf("%s: waiting for %s, %d seconds", name, provider, int(now.Sub(began)/time.Second)))
			}
		}
	})
	return func() {
		close(over)
		ticks.Wait()
	}
}
