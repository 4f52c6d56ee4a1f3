package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
)

const ticket = "cops_secret-of-a-test"

// dial connects, with bounds that a test does not wait for.
func dial(t testing.TB, address, ticket string, l remote.Limits) (connect.Conn, error) {
	t.Helper()
	conn, err := connect.Dial(context.Background(), address, connect.Hello{Ticket: ticket}, remote.Transports(l))
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	if err != nil && strings.Contains(err.Error(), "cops_") {
		t.Errorf("the token is in %v", err)
	}
	return conn, err
}

func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"https://ops.example.org": true, "https://ops.example.org/": true, "https://ops.example.org:8443/base/": true, "https://[2001:db8::1]": true,
		"http://localhost:8080": true, "http://127.0.0.1:8080/ops": true, "http://[::1]:8080": true, "http://LOCALHOST": true,
		"http://ops.example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false, "http://10.0.0.1": false,
		"http://0.0.0.0": false, "https://ann:secret@ops.example.org": false, "https://ops.example.org?token=x": false, "https://ops.example.org#x": false,
		"https://": false, "https:ops.example.org": false, "https:///base": false, "https://[::1": false, "https://:8080": false,
		"ftp://ops.example.org": false, "ops.example.org": false, "unix:/x": false, "": false,
	} {
		err := remote.Check(address)
		var malformed *connect.AddressError
		if (err == nil) != good || err != nil && !errors.As(err, &malformed) {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is in %v", err)
		}
	}
}

func TestAConnectionNeedsAToken(t *testing.T) {
	for _, ticket := range []string{"", "two words", "line\nbreak", "ümlaut"} {
		var unusable *connect.UsageError
		if _, err := dial(t, "https://ops.example.org", ticket, remote.Limits{}); !errors.As(err, &unusable) {
			t.Errorf("%q: %v", ticket, err)
		}
	}
}

// answers serves the same to every request, and remembers what tokens it was shown.
func answers(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

func says(status int, kind, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestWhatIsFinalAndWhatIsTriedAgain(t *testing.T) {
	const problems = "application/problem+json"
	hello := `data: {"claudeops":1,"ok":true,"connection":"x"}` + "\n\n"
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		code   string // "" for an error that is no refusal
		retry  bool
		said   string
	}{
		"a token that is refused": {says(401, problems, `{"code":"unauthenticated","detail":"no good"}`), "unauthenticated", false, "no good"},
		"too many connections":    {says(429, problems, `{"code":"limit_reached","detail":"8","retryable":true}`), "limit_reached", true, "8"},
		"a fault of the server":   {says(500, problems, `{"code":"internal","detail":"x"}`), "internal", true, "x"},
		"a proxy's sign-in":       {says(401, "text/html", "<p>Sign in"), "forbidden", false, "a proxy in front of it"},
		"a proxy that forbids":    {says(403, "text/html", "<p>No"), "forbidden", false, "a proxy in front of it"},
		"a redirect":              {says(302, "text/html", "", "Location", "https://login.example.org/x?state=1"), "misconfigured", false, "to https://login.example.org/x. "},
		"a redirect to nothing":   {says(301, "text/html", ""), "misconfigured", false, "malformed"},
		"a redirect of the body":  {says(307, "text/html", "", "Location", "https://evil.example.org/"), "misconfigured", false, "https://evil.example.org/"},
		"a proxy without server":  {says(502, "text/html", "<p>Bad Gateway"), "", true, "502 Bad Gateway"},
		"another program":         {says(404, "text/plain", "404"), "", true, "is it served there"},
		"a page":                  {says(200, "text/html", "<p>Hello"), "", true, "is it served there"},
		"another stream":          {says(200, remote.EventsType, "data: {}\n\n"), "", true, "not understood"},
		"an empty stream":         {says(200, remote.EventsType, ""), "", true, "did not greet"},
		"a stream without end":    {says(200, remote.EventsType, "data: "+strings.Repeat("x", 1<<20)), "", true, "too long"},
		"another release":         {says(200, remote.EventsType, strings.Replace(hello, "1", "2", 1)), "", true, "not understood"},
		"a connection cut off":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", true, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, answers(t, c.handle), ticket, remote.Limits{})
			var refused *connect.RefusedError
			switch isRefusal := errors.As(err, &refused); {
			case err == nil || !strings.Contains(err.Error(), c.said) || isRefusal != (c.code != ""):
				t.Errorf("got %v", err)
			case isRefusal && (refused.Code != c.code || refused.Retry != c.retry):
				t.Errorf("got %+v", refused)
			}
			if err != nil && strings.Contains(err.Error(), "state=") {
				t.Errorf("the query of a redirect is in %v", err)
			}
		})
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	shown := ""
	other := answers(t, func(_ http.ResponseWriter, r *http.Request) { shown += r.Method + r.Header.Get("Authorization") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		if _, err := dial(t, answers(t, says(status, "text/plain", "", "Location", other)), ticket, remote.Limits{}); err == nil {
			t.Error("a redirect was followed")
		}
	}
	if shown != "" {
		t.Errorf("the other address was asked: %s", shown)
	}
}

func TestACertificateOfNobodyIsRefused(t *testing.T) {
	server := httptest.NewTLSServer(says(200, remote.EventsType, ""))
	defer server.Close()
	server.Config.ErrorLog = nil
	_, err := dial(t, server.URL, ticket, remote.Limits{})
	var refused *connect.RefusedError
	if !errors.As(err, &refused) || refused.Retry || !strings.Contains(refused.Message, "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatIsHeldBackIsNotWaitedForForever(t *testing.T) {
	address := answers(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", remote.EventsType)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, err := dial(t, address, ticket, remote.Limits{Handshake: 20 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "must not hold answers back") {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionThatFallsSilentIsBroken(t *testing.T) {
	address := answers(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", remote.EventsType)
		_, _ = io.WriteString(w, `data: {"claudeops":1,"ok":true,"connection":"x"}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	conn, err := dial(t, address, ticket, remote.Limits{Silent: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("something was read")
	}
}
