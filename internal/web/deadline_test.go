package web_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
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
	t.Parallel()
	var statuses []int
	// A busy machine may take longer than the time-out to send a body. One that is cut since it waits is cut whatever the
	// time-out.
	for _, readTimeout := range []time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 3200 * time.Millisecond} {
		if statuses = proposeAtOnce(t, readTimeout); !slices.Contains(statuses, http.StatusBadRequest) {
			break
		}
	}
	for _, status := range statuses {
		if status != http.StatusCreated {
			t.Errorf("status %d, want 201", status)
		}
	}
}

// proposeAtOnce makes one proposal more than are judged at the same time, each of which is judged for longer than the
// time-out.
func proposeAtOnce(t *testing.T, readTimeout time.Duration) (all []int) {
	const atOnce = 9
	w := newWorld(t, func(w *world) { w.flow.History = slowHistory{w.flow.History, 3 * readTimeout} })
	l := w.listen(func(s *http.Server) { s.ReadTimeout = readTimeout })
	statuses := make(chan int, atOnce)
	var group sync.WaitGroup
	for i := range atOnce {
		// more than fits into a buffer
		body := change(fmt.Sprintf("checks/slow-%d.md", i), strings.Repeat(fmt.Sprintf("long-%d ", i), 1<<13))
		group.Go(func() { statuses <- post(t, "http://"+l.addr+"/api/v1/prs", w.person, body) })
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		all = append(all, status)
	}
	return all
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
