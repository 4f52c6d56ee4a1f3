package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/records/store"
)

// measureAll prints a line for each kind of request and number of clients.
func measureAll(ctx context.Context, s *server, each time.Duration) error {
	deep, err := s.deepCursor(ctx)
	if err != nil {
		return err
	}
	proposals := func(query string) requestMaker { return s.get("/api/v1/proposals?" + query) }
	fmt.Printf("%-34s %8s %10s %10s %10s\n", "request", "clients", "per s", "median ms", "p99 ms")
	for _, kind := range []struct {
		name string
		make requestMaker
	}{
		{"GET /healthz", s.get("/healthz")},
		{"POST /api/v1/prs, dry run", s.dryRun},
		{"GET proposals, first page", proposals("limit=50")},
		{"GET proposals, half-way down", proposals("limit=50&cursor=" + deep)},
		{"GET proposals, gate and repo", proposals("limit=50&gate=content&repo=filled/repo-7")},
		{"GET proposals, q that finds none", proposals("q=nothing-is-called-so")},
		{"the same, another q each time", s.searches},
		{"GET / (overview)", s.get("/")},
		{"GET /healthz again", s.get("/healthz")},
	} {
		for _, clients := range []int{1, 8} {
			took, elapsed, err := measure(ctx, kind.make, clients, each)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			ms := func(share float64) float64 {
				return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
			}
			fmt.Printf("%-34s %8d %10.0f %10.2f %10.2f\n", kind.name, clients, float64(len(took))/elapsed.Seconds(), ms(.5),
				ms(.99))
		}
	}
	now, most := s.memory()
	fmt.Printf("resident memory of the server: %s, at most %s\n", now, most)
	return nil
}

// measure lets clients send requests for a time, and returns what each took, the shortest first.
func measure(ctx context.Context, make requestMaker, clients int, each time.Duration) (took []time.Duration,
	elapsed time.Duration, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	next.Store(time.Now().UnixNano()) // no two measurements propose the same
	if _, err := send(ctx, client, make, next.Add(1)); err != nil {
		return nil, 0, err // and the first request of all is not counted
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range clients {
		group.Go(func() {
			for time.Since(began) < each {
				one, failed := send(ctx, client, make, next.Add(1))
				mu.Lock()
				if took = append(took, one); failed != nil {
					err = failed
				}
				mu.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	group.Wait()
	elapsed = time.Since(began)
	slices.Sort(took)
	return took, elapsed, err
}

// send sends one request and reads its answer, which must be 200.
func send(ctx context.Context, client *http.Client, make requestMaker, n int64) (time.Duration, error) {
	r, err := make(ctx, n)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %.500s", answer.StatusCode, body)
	}
	return time.Since(began), err
}

func (s *server) get(target string) requestMaker {
	return func(ctx context.Context, _ int64) (*http.Request, error) {
		return s.newRequest(ctx, http.MethodGet, target, "")
	}
}

// searches looks for something that nobody has looked for before, so that no answer is kept.
func (s *server) searches(ctx context.Context, n int64) (*http.Request, error) {
	return s.newRequest(ctx, http.MethodGet, fmt.Sprintf("/api/v1/proposals?q=nothing-is-called-%d", n), "")
}

// newRequest is a request with the server's token, which takes what is sent compressed as a browser does. The client
// does not read it, so that its own work is not measured.
func (s *server) newRequest(ctx context.Context, method, target, body string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+target, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Content-Type", "application/json")
		if target == "/" || strings.HasPrefix(target, "/changes") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
	}
	return r, err
}

// dryRun proposes two files of 4 KB that nobody has proposed before.
func (s *server) dryRun(ctx context.Context, n int64) (*http.Request, error) {
	prose := strings.Repeat("Look at what fills the disk, and say so.\n", 100)
	body, err := json.Marshal(map[string]any{
		"repo_owner": "bench", "repo_name": "infra", "title": fmt.Sprintf("Watch disk %d", n), "body": "Disks fill up.\n",
		"files": []map[string]string{
			{"path": fmt.Sprintf("checks/a-%d.md", n), "action": "create", "content": fmt.Sprintf("# A %d\n%s", n, prose)},
			{"path": fmt.Sprintf("checks/b-%d.md", n), "action": "create", "content": fmt.Sprintf("# B %d\n%s", n, prose)},
		},
	})
	if err != nil {
		return nil, err
	}
	return s.newRequest(ctx, http.MethodPost, "/api/v1/prs", string(body))
}

// deepCursor follows the listing half-way down.
func (s *server) deepCursor(ctx context.Context) (cursor string, err error) {
	client := &http.Client{}
	defer client.CloseIdleConnections()
	total, seen := 0, 0
	for seen <= total/2 {
		r, err := s.get("/api/v1/proposals?limit=200&cursor="+cursor)(ctx, 0)
		if err != nil {
			return "", err
		}
		if cursor == "" {
			r.URL.RawQuery = "limit=200"
		}
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		var page struct {
			Proposals []struct{ Seq int }
			Next      string `json:"next_cursor"`
		}
		err = json.NewDecoder(answer.Body).Decode(&page)
		if _ = answer.Body.Close(); err != nil {
			return "", err
		}
		if page.Next == "" {
			return "", fmt.Errorf("the listing ends after %d", seen+len(page.Proposals))
		}
		if total == 0 {
			total = page.Proposals[0].Seq
		}
		seen, cursor = seen+len(page.Proposals), page.Next
	}
	return cursor, nil
}

// What fillOne makes of a number with this last digit.
const (
	openedDigit  = 0
	dryRunDigit  = 2
	refusedDigit = 6
)

// measureFresh prints a line for each kind of request of one client, with something recorded before each. Only the
// request is measured.
func measureFresh(ctx context.Context, s *server, state string, each time.Duration) error {
	recorder, err := store.Open(ctx, state, recordsOf())
	if err != nil {
		return err
	}
	defer func() { _ = recorder.Close() }()
	fmt.Printf("\n%-34s %10s %10s %10s %10s\n", "request after a record", "record", "median ms", "p99 ms", "x healthz")
	floor := 0.0
	for _, kind := range []struct {
		name, recorded string
		digit          int
		target         string
	}{
		{"GET /healthz", "refused", refusedDigit, "/healthz"},
		{"GET / (overview)", "refused", refusedDigit, "/"},
		{"GET / (overview)", "dry run", dryRunDigit, "/"},
		{"GET / (overview)", "opened", openedDigit, "/"},
		{"GET /changes", "refused", refusedDigit, "/changes"},
		{"GET /changes", "opened", openedDigit, "/changes"},
		{"GET /changes, that wait", "opened", openedDigit, "/changes?tab=waiting"},
		{"GET /changes, refused, by code", "refused", refusedDigit, "/changes?tab=refused&code=scope_denied"},
		{"GET /changes, of a repository", "refused", refusedDigit, "/changes?repo=filled/repo-7"},
		{"GET /outcomes", "refused", refusedDigit, "/outcomes"},
		{"GET /outcomes", "opened", openedDigit, "/outcomes"},
		{"GET /outcomes, 90 days, repos", "opened", openedDigit, "/outcomes?days=90&by=repository"},
		{"GET /audit", "refused", refusedDigit, "/audit"},
		{"GET /sessions", "refused", refusedDigit, "/sessions"},
		{"GET proposals, first page", "refused", refusedDigit, "/api/v1/proposals?limit=50"},
		{"GET proposals, first page", "opened", openedDigit, "/api/v1/proposals?limit=50"},
		{"GET proposals, q that finds none", "refused", refusedDigit, "/api/v1/proposals?q=nothing-is-called-so"},
		{"GET /healthz again", "refused", refusedDigit, "/healthz"},
	} {
		took, err := measureOneFresh(ctx, recorder, s.get(kind.target), kind.digit, each)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		ms := func(share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
		}
		if floor == 0 {
			floor = ms(.5)
		}
		fmt.Printf("%-34s %10s %10.2f %10.2f %10.1f\n", kind.name, kind.recorded, ms(.5), ms(.99), ms(.5)/floor)
	}
	return nil
}

// measureOneFresh returns what each request took, the shortest first.
func measureOneFresh(ctx context.Context, recorder *store.Store, make requestMaker, digit int,
	each time.Duration) (took []time.Duration, err error) {
	client := &http.Client{}
	defer client.CloseIdleConnections()
	first := int(time.Now().UnixMicro()) // nothing is recorded twice
	began := time.Now()
	for n := 0; len(took) == 0 || time.Since(began) < each; n++ {
		if err := fillOne(ctx, recorder, (first+n)*10+digit, time.Now()); err != nil {
			return nil, err
		}
		one, err := send(ctx, client, make, int64(n))
		if err != nil {
			return nil, err
		}
		if n > 0 { // the first request of all makes its connection
			took = append(took, one)
		}
	}
	slices.Sort(took)
	return took, nil
}
