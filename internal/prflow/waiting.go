package prflow

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// progressEvery is the default of Options.ProgressEvery. Clients of MCP give up after a minute without a word.
const progressEvery = 10 * time.Second

// waiting tells the caller of a phase that writes, and every few seconds that it still takes, until done is called.
func (c *creation) waiting(phase string) (done func()) {
	c.progress(phase)
	if c.caller.Progress == nil {
		return func() {}
	}
	began, over := time.Now(), make(chan struct{})
	ticker := time.NewTicker(cmp.Or(c.ProgressEvery, progressEvery))
	var teller sync.WaitGroup
	teller.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case now := <-ticker.C:
				c.progress(fmt.Sprintf("%s: waiting for %s, %d seconds", phase, c.resolution.Provider.Name(),
					int(now.Sub(began)/time.Second)))
			}
		}
	})
	return func() {
		close(over)
		teller.Wait()
	}
}
