package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/cli"
)

// startedServer is a `claudeops serve` in this process, in a state folder.
type startedServer struct {
	said string // what it printed when it began to listen
	stop func() (code int)
}

func serveIn(t *testing.T, state string) startedServer {
	t.Helper()
	env := map[string]string{"CLAUDEOPS_STATE_DIR": state, "CLAUDEOPS_ADDR": "127.0.0.1:0", "PATH": os.Getenv("PATH"),
		"HOME": t.TempDir()}
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, []string{"serve"}, cli.Streams{In: strings.NewReader(""), Out: writer, Err: io.Discard},
			func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		_ = writer.Close()
	}()
	var said strings.Builder
	lines := bufio.NewReader(reader)
	for !strings.Contains(said.String(), "token") { // which its last line names
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("it ended: %q, %v", said.String(), err)
		}
	}
	s := startedServer{said: said.String(), stop: func() int { cancel(); return <-ended }}
	t.Cleanup(cancel)
	return s
}

func TestTheFirstStartMakesATokenAndPrintsAnAddressThatSignsInOnce(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	s := serveIn(t, state)
	file := filepath.Join(state, "operator-token")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	secret, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`^cops_[A-Za-z0-9_-]{43}\n$`).Match(secret) ||
		strings.Contains(s.said, strings.TrimSpace(string(secret))) {
		t.Fatalf("the token %q, %v; it said %s", secret, err, s.said)
	}
	address := regexp.MustCompile(`http://\S+/sign-in\?code=\S+`).FindString(s.said)
	parsed, err := url.Parse(address)
	if address == "" || err != nil {
		t.Fatalf("it said %s", s.said)
	}
	base, code := "http://"+parsed.Host, parsed.Query().Get("code")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if status, page := fetchPage(t, client, http.MethodGet, address, nil); status != 200 || !strings.Contains(page, code) {
		t.Fatalf("%d %s", status, page)
	}
	if status, _ := fetchPage(t, client, http.MethodGet, base+"/api/v1/me", nil); status != 401 {
		t.Errorf("looking at the address has signed in: %d", status)
	}
	if status, page := fetchPage(t, client, http.MethodPost, base+"/sign-in", url.Values{"code": {code}}); status != 200 ||
		!strings.Contains(page, "<h1>Overview</h1>") {
		t.Fatalf("%d %s", status, page)
	}
	if status, page := fetchPage(t, client, http.MethodGet, base+"/api/v1/me", nil); status != 200 ||
		!strings.Contains(page, `"name":"operator"`) {
		t.Errorf("%d %s", status, page)
	}
	if status, _ := fetchPage(t, http.DefaultClient, http.MethodPost, base+"/sign-in",
		url.Values{"code": {code}}); status != 401 {
		t.Errorf("the code was good twice: %d", status)
	}
	if exit := s.stop(); exit != 0 {
		t.Errorf("it ended with %d", exit)
	}

	again := serveIn(t, state)
	if kept, err := os.ReadFile(file); err != nil || string(kept) != string(secret) ||
		!strings.Contains(again.said, "/sign-in?code=") || strings.Contains(again.said, code) {
		t.Errorf("another token %v, or no other code: %s", err, again.said)
	}
	if exit := again.stop(); exit != 0 {
		t.Errorf("it ended with %d", exit)
	}
}

// A server that was killed between the two has left the file alone; its token is the one that the next start makes
// known.
func TestATokenThatWasNotMadeKnownYetIsFoundAgain(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	const secret = "cops_0123456789012345678901234567890123456789012"
	if err := os.WriteFile(filepath.Join(state, "operator-token"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, state)
	address := regexp.MustCompile(`http://[^/]+`).FindString(s.said)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/v1/me", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
	s.stop()
}

func TestAServerThatCannotKeepItsTokenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problems strings.Builder
	env := map[string]string{"CLAUDEOPS_STATE_DIR": state, "CLAUDEOPS_ADDR": "127.0.0.1:0"}
	code := cli.Run(t.Context(), []string{"serve"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems},
		func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if code == fault.ExitDone || out.Len() > 0 || !strings.Contains(problems.String(), state) {
		t.Errorf("exit %d: %s%s", code, out.String(), problems.String())
	}
}

func fetchPage(t *testing.T, client *http.Client, method, address string, form url.Values) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
