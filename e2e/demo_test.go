//go:build e2e && linux

package e2e

import (
	"bufio"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The demo's server stays up with something to see, and ends with its demo.
func TestDemoStaysUpWithSomethingToSee(t *testing.T) {
	home := t.TempDir()
	cmd := command(t, program{
		path: "claudeops", args: []string{"demo", "--serve", "--dir", home + "/demo"}, dir: home,
		env: []string{path(), "HOME=" + home, "CLAUDEOPS_ADDR=127.0.0.1:0"},
		may: browsing,
	})
	out := must.Get(cmd.StdoutPipe())(t)
	launch(t, cmd)
	lines := bufio.NewReader(out)
	var said strings.Builder
	for !strings.Contains(said.String(), "Ctrl-C ends the server") {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("the demo ended: %v\n%s", err, said.String())
		}
	}
	address, err := url.Parse(regexp.MustCompile(`http://127\.0\.0\.1:\d+/sign-in\?code=\S+`).FindString(said.String()))
	if err != nil || address.Host == "" {
		t.Fatalf("it prints no address to sign in at: %s", said.String())
	}
	client := signedIn(t, address)
	for page, want := range map[string]string{
		"changes": "Warn three weeks before a certificate ends",
		"":        "Look at failed timers, too",
	} {
		if got := pageText(t, client, "http://"+address.Host+"/"+page); !strings.Contains(got, want) {
			t.Errorf("/%s does not show %q:\n%s", page, want, got)
		}
	}
	assertHints(t, said.String(), home, "http://"+address.Host)
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// assertHints runs each command that the demo prints, word for word but for the name of a person.
func assertHints(t *testing.T, said, home, server string) {
	t.Helper()
	_, hints, _ := strings.Cut(said, "Or look around in a second terminal, in the same folder:\n\n")
	hints, _, _ = strings.Cut(hints, "\n\n")
	hints = strings.Join(regexp.MustCompile(`(?m)^  git -C .*$`).FindAllString(said, -1), "\n") + "\n" +
		strings.ReplaceAll(hints, "--name NAME", "--name ann")
	if strings.Count(hints, "git -C") < 2 || strings.Count(hints, "claudeops ") < 4 ||
		!strings.Contains(hints, "--max-tier 2") {
		t.Fatalf("the demo gives these hints:\n%s", hints)
	}
	got := run(t, program{path: "bash", args: []string{"-c", "set -eu\n" + hints}, dir: home,
		env: []string{path(), "HOME=" + home}, may: browsing})
	if got.code != 0 {
		t.Fatalf("exit %d of\n%s\n%s%s", got.code, hints, got.stdout, got.stderr)
	}
	token := regexp.MustCompile(`(?m)^cops_\S+$|^\S{30,}$`).FindAllString(got.stdout, -1)
	if len(token) == 0 {
		t.Fatalf("no token was made:\n%s", got.stdout)
	}
	if me := fetched(t, server+"/api/v1/me", token[len(token)-1]); !strings.Contains(me, `"ann"`) ||
		!strings.Contains(me, `"max_tier":2`) {
		t.Errorf("the server knows the token as %s", me)
	}
}

// signedIn is a client that has signed in by a one-time address, as a browser without scripts does.
func signedIn(t *testing.T, address *url.URL) *http.Client {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar}
	if page := pageText(t, client, address.String()); !strings.Contains(page, address.Query().Get("code")) {
		t.Fatalf("the page has no code: %s", page)
	}
	form := url.Values{"code": {address.Query().Get("code")}}.Encode()
	if status, _ := exchange(t, client, http.MethodPost, "http://"+address.Host+"/sign-in", form, "Content-Type",
		"application/x-www-form-urlencoded"); status != http.StatusOK {
		t.Fatalf("signing in: %d", status)
	}
	return client
}

// pageText gets a page.
func pageText(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	status, text := exchange(t, client, http.MethodGet, url, "")
	if status != http.StatusOK {
		t.Fatalf("%s: %d\n%s", url, status, text)
	}
	return text
}
