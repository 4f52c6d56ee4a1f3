package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Messages are put together of parts, and so may say "the the body".
func TestNoMessageAboutABodySaysAWordTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.signedIn()
	word := regexp.MustCompile(`[a-z]+`)
	for _, target := range []string{"/api/v1/prs", "/api/v1/policy/check", "/api/v1/sessions", "/sign-in"} {
		for _, body := range []string{"{", "x", "{}{}", "[]", `{"a":1}`, `{"tier":"x","paths":7}`, strings.Repeat("[", 100),
			strings.Repeat(" ", 1<<23)} {
			a := w.do(http.MethodPost, target, body)
			if a.StatusCode < 400 {
				continue
			}
			before := ""
			for _, now := range word.FindAllString(strings.ToLower(string(a.body)), -1) {
				if now == before && now != "x" {
					t.Errorf("POST %s: %q twice in a row in %s", target, now, a.body)
				}
				before = now
			}
		}
	}
}

// riddles are words that only somebody who has read the code understands. internal/cli has the same list for the
// commands.
func riddles() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(the( \w+)? door|what spoke|for real|remarks?)\b`)
}

func TestPagesAndDescriptionSpeakPlainly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("pages/templates/*.html")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	notes, err := filepath.Glob("dashboard/*.go")
	if err != nil || len(notes) < 10 {
		t.Fatalf("%d files of the dashboard, %v", len(notes), err)
	}
	for _, file := range append(append(files, notes...), "testdata/openapi.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if found := riddles().FindString(line); found != "" {
				t.Errorf("%s:%d says %q", file, n+1, found)
			}
		}
	}
}
