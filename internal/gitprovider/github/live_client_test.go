package github_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// call is one request of REST as somebody. path may have a query; the segments before it are escaped. An answer that is
// a success is decoded into into, unless that is nil. The transport waits when headers say for how long; here it is
// waited when only the words say that we come too often.
func (h *live) call(t testing.TB, as livePerson, method, path string, body, into any) (status int, answer string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // cleanups make requests too
	for try := 1; ; try++ {
		status, raw, wait := h.send(ctx, t, as, method, path, body)
		if wait > 0 && try < 5 {
			h.sleep(ctx, wait)
			continue
		}
		if into != nil && status < 300 {
			if err := json.Unmarshal(raw, into); err != nil {
				t.Fatalf("%s %s: %v in %.300s", method, path, err, raw)
			}
		}
		return status, string(raw)
	}
}

// tooOften is how long somebody has to stay away after an answer, or 0.
func tooOften(as livePerson, resp *http.Response, answer []byte) time.Duration {
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	if f := as.client.StatusFault(resp, string(answer)); f != nil && f.Code == fault.RateLimited {
		return f.RetryAfter
	}
	return 0
}

// send makes the request once, the transport's own repetitions aside. wait is how long to stay away then, or 0.
func (h *live) send(ctx context.Context, t testing.TB, as livePerson, method, path string, body any) (
	status int, answer []byte, wait time.Duration) {
	t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	path, query, _ := strings.Cut(path, "?")
	address := transport.URL(h.set.api, strings.Split(path, "/")...)
	address.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, address.String(), in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	resp, err := as.client.Client().Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer, tooOften(as, resp, answer)
}

// must is call for a request that has to succeed.
func (h *live) must(t testing.TB, as livePerson, method, path string, body, into any) {
	t.Helper()
	if status, answer := h.call(t, as, method, path, body, into); status >= 300 {
		t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
	}
}

// What is not there at once is looked for so often, with so much time in between.
const (
	liveLooks = 30
	livePause = time.Second
)

// eventually looks until done says so, and says whether it did: what GitHub shows of a push, and of all that follows
// from it, comes some seconds later.
func (h *live) eventually(t testing.TB, done func() bool) bool {
	t.Helper()
	for range liveLooks {
		if done() {
			return true
		}
		h.sleep(context.WithoutCancel(t.Context()), livePause)
	}
	return false
}
