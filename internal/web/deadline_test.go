package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
)

// slowHistory takes its time to say where the record stands, unless its caller goes.
type slowHistory struct {
	prflow.History
	takes time.Duration
}

func (l slowHistory) Position(ctx context.Context) (record.Position, error) {
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return l.History.Position(ctx)
}

func TestAProposalThatWaitsForOthersIsStillReadAsAWhole(t *testing.T) {
	const readTimeout, atOnce = 200 * time.Millisecond, 9 // one more than are judged at the same time
	w := newWorld(t, func(w *world) { w.flow.History = slowHistory{w.flow.History, 3 * readTimeout} })
	l := w.listen(func(s *http.Server) { s.ReadTimeout = readTimeout })
	statuses := make(chan int, atOnce)
	var group sync.WaitGroup
	for i := range atOnce {
		body := change(fmt.Sprintf("checks/slow-%d.md", i), strings.Repeat(fmt.Sprintf("long-%d ", i), 1<<13)) // more than fits into a buffer
		group.Go(func() { statuses <- post(t, "http://"+l.addr+"/api/v1/prs", w.person, body) })
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		if status != http.StatusCreated {
			t.Errorf("status %d, want 201", status)
		}
	}
}

func change(path, text string) string {
	return fmt.Sprintf(`{"repo_owner":"joe","repo_name":"infra","title":"Add %s","body":"b",`+
		`"files":[{"path":%q,"action":"create","content":%q}]}`, path, path, text)
}

func post(t *testing.T, url, token, body string) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
