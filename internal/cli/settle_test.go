package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"
)

// A branch of ours whose records are lost goes away in a round of a server.
func TestAServersRoundsSettleWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t)
	w.env["CLAUDEOPS_REPOS"] = "local:joe/infra"
	w.propose("old")
	if err := os.RemoveAll(w.env["CLAUDEOPS_STATE_DIR"]); err != nil {
		t.Fatal(err)
	}
	a := &commandLine{streams: Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}},
		lookup: w.lookup}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = p.Store.Close() })
	p.Flow.Clock.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	ticks := make(chan time.Time)
	rounds := p.NewRounds()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { rounds.Run(ctx, ticks); close(done) }()
	ticks <- time.Now()
	ticks <- time.Now() // the first round has ended
	end()
	<-done
	if left := w.git("-C", w.repo, "for-each-ref", "refs/heads/claude-ops/"); left != "" {
		t.Errorf("left: %s", left)
	}
}
