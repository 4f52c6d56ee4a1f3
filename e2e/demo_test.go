//go:build e2e && linux

package e2e

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The demo's server stays up with something to see, and ends with its demo.
func TestDemoStaysUpWithSomethingToSee(t *testing.T) {
	home := t.TempDir()
	cmd := command(t, program{
		path: "claudeops", args: []string{"demo", "--serve", "--dir", home + "/demo"}, dir: home,
		env: []string{path(), "HOME=" + home, "CLAUDEOPS_ADDR=127.0.0.1:0"},
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
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
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(said.String())
	for page, want := range map[string]string{
		"proposals": "Warn three weeks before a certificate ends",
		"pulls":     "Warn three weeks before a certificate ends",
		"":          "Look at failed timers, too",
	} {
		if got := pageText(t, url+page); !strings.Contains(got, want) {
			t.Errorf("/%s does not show %q:\n%s", page, want, got)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// pageText gets a page.
func pageText(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", url, answer.StatusCode, err, text)
	}
	return string(text)
}
