package cli_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/cli"
)

// healthOf runs `claudeops health` against an address.
func healthOf(t *testing.T, env map[string]string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = cli.Run(t.Context(), []string{"health"}, cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return code, stdout.String(), stderr.String()
}

func TestHealthIsWhatTheServerSaysOfItself(t *testing.T) {
	t.Parallel()
	status, asked := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Location", "/healthz")
		w.WriteHeader(status)
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, listening := range []string{addr, "0.0.0.0:" + port, ":" + port, "localhost:" + port} {
		code, out, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": listening, "CLAUDEOPS_BASE_PATH": "/ops"})
		if code != fault.ExitDone || !strings.Contains(out, "is ready") || asked != "/ops/readyz" {
			t.Errorf("%s: exit %d, asked for %q: %s%s", listening, code, asked, out, errOut)
		}
	}
	for _, status = range []int{http.StatusServiceUnavailable, http.StatusNotFound, http.StatusFound,
		http.StatusForbidden} {
		if code, out, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": addr}); code != 1 || out != "" ||
			!strings.Contains(errOut, "not ready") {
			t.Errorf("status %d: exit %d: %s%s", status, code, out, errOut)
		}
	}
}

func TestHealthOfNoServer(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": addr}); code != 1 ||
		!strings.Contains(errOut, "no server answers on "+addr) {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if code, _, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": "nonsense"}); code != fault.ExitUsage ||
		!strings.Contains(errOut, "CLAUDEOPS_ADDR") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
