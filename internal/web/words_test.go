package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Messages are put together of parts, and so may say "the the body".
func TestNoMessageAboutABodySaysAWordTwice(t *testing.T) {
	w := newWorld(t, nil)
	w.signedIn()
	word := regexp.MustCompile(`[a-z]+`)
	for _, target := range []string{"/api/v1/prs", "/api/v1/policy/check", "/api/v1/sessions", "/sign-in"} {
		for _, body := range []string{"{", "x", "{}{}", "[]", `{"a":1}`, `{"tier":"x","paths":7}`, strings.Repeat("[", 100), strings.Repeat(" ", 1<<23)} {
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
