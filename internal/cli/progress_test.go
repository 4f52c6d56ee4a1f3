package cli

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// firstWrite tells when something is written first.
type firstWrite struct {
	strings.Builder
	once  sync.Once
	wrote chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	w.once.Do(func() { close(w.wrote) })
	return n, err
}

func TestWorkThatTakesLongShowsALineThatGoesAway(t *testing.T) {
	t.Parallel()
	out := &firstWrite{wrote: make(chan struct{})}
	began, ended := time.Now(), make(chan struct{})
	var stopped sync.WaitGroup
	stopped.Go(func() { showProgress(out, "Install packages", ended) })
	<-out.wrote
	if took := time.Since(began); took < progressAfter {
		t.Errorf("the line came after %s", took)
	}
	close(ended)
	stopped.Wait()
	if got := out.String(); !strings.Contains(got, "Install packages: ") || !strings.HasSuffix(got, "\r\x1b[K") ||
		strings.Contains(got, "\n") {
		t.Errorf("the terminal shows %q", got)
	}
	quick := &firstWrite{wrote: make(chan struct{})}
	showProgress(quick, "Install packages", ended)
	if quick.Len() > 0 {
		t.Errorf("what is quick shows %q", quick.String())
	}
}
