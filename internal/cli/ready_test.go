package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

// get reads from the server, with the token that the operator has given it or that it has made itself.
func (f *forged) get(path string) (status int, body string) {
	f.Helper()
	return f.ask(http.MethodGet, path, "")
}

func TestAServerSaysWhetherTheForgeServesItAndHowLongThatTook(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"github", "gitea"} {
		t.Run(source, func(t *testing.T) {
			f := newForged(t, source)
			f.serve()
			if status, body := f.get("/readyz?providers=1"); status != 200 ||
				!strings.Contains(body, `{"name":"`+source+`","state":"ok"}`) {
				t.Errorf("got %d %s", status, body)
			}
			want := `claudeops_provider_request_duration_seconds_count{outcome="2xx",provider="` + source + `"} 1`
			if _, body := f.get("/metrics"); !strings.Contains(body, want) {
				t.Errorf("the metrics lack %s", want)
			}
		})
	}
}

func TestAServerWhoseTokenIsRefusedIsNotReadyForProviders(t *testing.T) {
	t.Parallel()
	f := newForged(t, "gitea")
	const revoked = "a-token-that-was-revoked-0123456789"
	f.env["GITEA_TOKEN"] = revoked
	f.serve()
	status, body := f.get("/readyz?providers=1")
	if status != 503 || !strings.Contains(body, `"code":"provider_disabled","rule":"gitea"`) ||
		strings.Contains(body, revoked) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := f.get("/readyz"); status != 200 {
		t.Errorf("a probe that did not ask: %d %s", status, body)
	}
	want := `claudeops_provider_request_duration_seconds_count{outcome="4xx",provider="gitea"} 1`
	if _, body := f.get("/metrics"); !strings.Contains(body, want) {
		t.Errorf("the metrics lack %s", want)
	}
}
