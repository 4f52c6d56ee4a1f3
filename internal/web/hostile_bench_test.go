//go:build unix

package web_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web"
)

// mebibyte is about how large a hostile body is, unless the bound of its route is smaller.
const mebibyte = 1 << 20

// hostileBodies are JSON whose only purpose is to cost the reader time, of at most size bytes. %s stands where a
// route's first member is.
func hostileBodies(size int) map[string]string {
	times := func(s string) string { return strings.TrimSuffix(strings.Repeat(s, (size-200)/len(s)), ",") }
	unknown := make([]string, 0, size/12)
	for i := range cap(unknown) {
		unknown = append(unknown, fmt.Sprintf(`"k%06d":1`, i))
	}
	return map[string]string{
		"unknown_keys":      "{" + strings.Join(unknown[:max(len(unknown)-20, 1)], ",") + "}",
		"keys_nearly_meant": "{" + times(`"titel":1,`) + "}",
		"one_key":           "{" + times(`"title":1,`) + "}",
		"a_long_key":        `{"` + times("k") + `":1}`,
		"brackets":          times("["),
		"objects":           times(`{"a":`),
		"empty_arrays":      `{"x":[` + times("[],") + "]}",
		"numbers":           `{"x":[` + times("1,") + "]}",
		"a_long_number":     `{"tier":` + times("9") + "}",
		"escapes":           `{"title":"` + times(`\u0041`) + `"}`,
		"short_escapes":     `{"title":"` + times(`\n`) + `"}`,
		"files":             `{"files":[` + times(`{"path":"a","action":"create","content":""},`) + "]}",
		"empty_files":       `{"files":[` + times("{},") + "]}",
		"paths":             `{"paths":[` + times(`"",`) + "]}",
		"a_long_body":       `{"body":"` + times("a") + `"}`,
	}
}

// BenchmarkHostileBodies measures what such bodies cost at each entrance, the record of the refusal included;
// docs/explain/benchmarks.md says what they may.
func BenchmarkHostileBodies(b *testing.B) {
	for _, route := range []struct {
		path string
		size int
	}{
		{"/sign-in", 4 << 10}, {"/api/v1/prs", mebibyte}, {"/api/v1/policy/check", 256 << 10}, {"/api/v1/sessions", 64 << 10},
		{"/webhooks/github", mebibyte},
	} {
		for name, body := range hostileBodies(route.size) {
			b.Run(strings.Trim(route.path, "/")+"/"+name, func(b *testing.B) { postAgain(b, route.path, body) })
		}
	}
}

func postAgain(b *testing.B, path, body string) {
	w := newWorld(b, func(w *world) { w.web.Webhooks.Senders = web.KnownWebhooks(hookSecret) })
	w.signedIn()
	w.build()
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(body))
	began, posted := processorTime(b), 0
	for b.Loop() {
		posted += len(body)
		r := httptest.NewRequest("POST", "http://127.0.0.1:8080"+path, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:50000"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.person)
		r.Header.Set("X-GitHub-Delivery", "1")
		r.Header.Set("X-GitHub-Event", "pull_request")
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)
		if out.Code < 400 && path != "/webhooks/github" {
			b.Fatalf("%d %s", out.Code, out.Body)
		}
	}
	b.ReportMetric(0, "ns/op") // of the clock: on a busy machine it says nothing
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/1000/(float64(posted)/mebibyte), "cpu-ms/MiB")
}

// processorTime returns the processor time that this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
