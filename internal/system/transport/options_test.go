package transport_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

func TestNewRefusesWhatWouldEndanger(t *testing.T) {
	tests := []struct {
		name  string
		base  string
		token string
		plain bool
		says  string // "" is accepted
	}{
		{"https", "https://api.example.test/v3", "t0ken", false, ""},
		{"plain http to this machine", "http://127.0.0.1:3000/git", "t0ken", false, ""},
		{"plain http to this machine by IPv6", "http://[::1]:3000", "t0ken", false, ""},
		{"plain http to this machine by name", "http://LocalHost:3000", "t0ken", false, ""},
		{"plain http to a network that was allowed", "http://gitea.lan", "t0ken", true, ""},
		{"plain http to a network", "http://gitea.lan", "t0ken", false, "GITEA_URL is plain http"},
		{"a name that only begins like this machine's", "http://localhost.example.test", "t0ken", false,
			"GITEA_URL is plain http"},
		{"another scheme", "ftp://gitea.lan", "", true, "GITEA_URL is not an address"},
		{"no host", "https:///api", "", false, "GITEA_URL is not an address"},
		{"a path only", "/api", "", false, "GITEA_URL is not an address"},
		{"opaque", "https:gitea.lan", "", false, "GITEA_URL is not an address"},
		{"a password", "https://joe:sesame@gitea.lan", "", false, "GITEA_URL holds a user name or password"},
		{"a query", "https://gitea.lan/?token=sesame", "", false, "GITEA_URL has a query"},
		{"a line break in the token", "https://gitea.lan", "sesame\n", false, "GITEA_TOKEN holds"},
		{"a token beyond ASCII", "https://gitea.lan", "sesamé", false, "GITEA_TOKEN holds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := transport.New(transport.Options{
				Name: "gitea", Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"},
				Base: mustURL(t, tt.base), Token: tt.token, Network: transport.Network{AllowPlainHTTP: tt.plain},
			})
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault.CodeOf(err) != fault.ProviderDisabled || !strings.Contains(err.Error(), tt.says) ||
				strings.Contains(err.Error(), "sesam") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := transport.New(transport.Options{}); fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("no base: %v", err)
	}
}

func TestURLKeepsEachSegmentOne(t *testing.T) {
	tests := []struct {
		name     string
		base     string
		segments []string
		want     string
	}{
		{"plain names", "https://h", []string{"repos", "joe", "home"}, "https://h/repos/joe/home"},
		{"a base below a path", "https://h/git/", []string{"api", "v1"}, "https://h/git/api/v1"},
		{"a base with escapes", "https://h/a%2Fb", []string{"c"}, "https://h/a%2Fb/c"},
		{"a slash in a segment", "https://h", []string{"branches", "claude-ops/fix/a"},
			"https://h/branches/claude-ops%2Ffix%2Fa"},
		{"segments that would move", "https://h/x", []string{"..", ".", "..."}, "https://h/x/%2E%2E/%2E/..."},
		{"moves inside a segment", "https://h/x", []string{"../../etc"}, "https://h/x/..%2F..%2Fetc"},
		{"an escape in a segment", "https://h", []string{"a%2Fb"}, "https://h/a%252Fb"},
		{"the end of a path in a segment", "https://h", []string{"a?b#c"}, "https://h/a%3Fb%23c"},
		{"a space, a plus and letters", "https://h", []string{"a b+ü"}, "https://h/a%20b+%C3%BC"},
		{"a segment like a scheme", "https://h", []string{"https://evil.test"}, "https://h/https:%2F%2Fevil.test"},
		{"an empty last segment", "https://h", []string{"a", ""}, "https://h/a/"},
		{"no segment", "https://h/a/", nil, "https://h/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := transport.URL(mustURL(t, tt.base), tt.segments...)
			if got.String() != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if again, err := url.Parse(got.String()); err != nil || again.EscapedPath() != got.EscapedPath() {
				t.Errorf("%s does not survive being written and read", got)
			}
		})
	}
}

func TestAnEscapedPathArrivesAsItWasMade(t *testing.T) {
	b := newBed(t, hello)
	u := transport.URL(mustURL(t, b.srv.URL), "..", "a/b", "c")
	req, _ := http.NewRequestWithContext(t.Context(), "GET", u.String(), nil)
	if got := b.send(req); got.status != 200 || b.Requests()[0].Path != "/%2E%2E/a%2Fb/c" {
		t.Errorf("got %v, path %s", got.fault, b.Requests()[0].Path)
	}
}

func TestSleepEndsWithTheTimeOrTheContext(t *testing.T) {
	clock := transport.Clock{}.WithDefaults()
	clock.Sleep(t.Context(), time.Nanosecond)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	clock.Sleep(ended, 24*time.Hour)
}

func TestEachRequestIsObservedOnceHoweverOftenItIsTried(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	status := func(n int) httpfault.Fault { return httpfault.Fault{Kind: httpfault.Status, Status: n} }
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		method string
		faults []httpfault.Fault
		want   string
	}{
		{"an answer", t.Context(), "GET", nil, "2xx 1s"},
		{"an answer at the second try", t.Context(), "GET", []httpfault.Fault{{Kind: httpfault.ResetBefore}}, "2xx 1s"},
		{"a refusal", t.Context(), "POST", []httpfault.Fault{status(422)}, "4xx 1s"},
		{"a redirect to nowhere", t.Context(), "POST", []httpfault.Fault{status(304)}, "3xx 1s"},
		{"a failure", t.Context(), "POST", []httpfault.Fault{status(500)}, "5xx 1s"},
		{"a connection that broke", t.Context(), "POST", []httpfault.Fault{{Kind: httpfault.ResetAfter}},
			"upstream_error 1s"},
		{"a caller who went away", cancelled, "GET", nil, "timeout 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			var read atomic.Int64 // each look at the clock finds it a second later
			b := newBed(t, hello, func(o *transport.Options) {
				o.Clock.Now = func() time.Time { return time.Unix(min(read.Add(1), 2), 0) }
				o.Observe = func(outcome string, took time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, outcome+" "+took.String())
				}
			})
			for _, f := range tt.faults {
				b.Plan(func(*http.Request) bool { return true }, f)
			}
			b.do(tt.ctx, tt.method, "/")
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(seen, ", "); got != tt.want {
				t.Errorf("observed %s, want %s", got, tt.want)
			}
		})
	}
}
