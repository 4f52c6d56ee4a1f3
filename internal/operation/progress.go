package operation

import (
	"fmt"
	"sync"
	"time"
)

// progressEvery is the interval between progress reports of a running call. Clients of MCP give up after a minute
// without a message.
const progressEvery = 10 * time.Second

// teller tells a client what is being done: never by two at once, and nothing after the end of the call.
type teller struct {
	mu   sync.Mutex
	tell func(phase string) // nil if the client does not want to know, or after the end
	last string             // the last phase
}

func (t *teller) say(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = phase
	if t.tell != nil {
		t.tell(phase)
	}
}

// still says that the last phase still runs.
func (t *teller) still(spent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.tell == nil:
	case t.last == "":
		t.tell(fmt.Sprintf("still running after %s", spent))
	default:
		t.tell(fmt.Sprintf("%s, still running after %s", t.last, spent))
	}
}

func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell = nil
}

// keepTelling says at intervals that a call still runs, until stop is called.
func (t *teller) keepTelling(every time.Duration) (stop func()) {
	if t.tell == nil { // no other goroutine uses the teller yet
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for spent := every; ; spent += every {
			select {
			case <-ticker.C:
				t.still(spent)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
