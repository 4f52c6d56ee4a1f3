package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The page takes the browser back once, with the state that it was sent away with; no other request ends the wait.
func TestThePageOfAGitHubAppTakesOneAnswer(t *testing.T) {
	t.Parallel()
	web := must.Get(url.Parse("https://github.example/"))(t)
	const own = "http://127.0.0.1:4711"
	f := must.Get(newAppForm(NewGitHubApp{Owner: "octo", Organisation: true}, false, web, own))(t)
	var codes []string
	f.exchange = func(code string) (githubapp.Registered, error) {
		codes = append(codes, code)
		return githubapp.Registered{Page: "https://github.example/apps/x"}, nil
	}
	get := func(method, address string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(method, address, nil))
		return w
	}
	start := get("GET", own+f.start)
	for _, want := range []string{
		`action="https://github.example/organizations/octo/settings/apps/new?state=` + f.state + `"`,
		`&#34;redirect_url&#34;:&#34;` + own + f.back, `&#34;public&#34;:false`,
	} {
		if start.Code != http.StatusOK || !strings.Contains(start.Body.String(), want) {
			t.Errorf("%d, without %s: %s", start.Code, want, start.Body)
		}
	}
	if policy := start.Header().Get("Content-Security-Policy"); !strings.HasSuffix(
		policy,
		"form-action https://github.example",
	) {
		t.Errorf("the policy is %s", policy)
	}
	for _, c := range []struct {
		name, method, address string
		status                int
	}{
		{"another path", "GET", own + "/", 404},
		{"another name of this machine", "GET", "http://localhost:4711" + f.start, 404},
		{"another host", "GET", "http://evil.example" + f.back + "?code=x&state=" + f.state, 404},
		{"a post", "POST", own + f.back + "?code=x&state=" + f.state, 404},
		{"another state", "GET", own + f.back + "?code=x&state=y", 400},
		{"no state", "GET", own + f.back + "?code=x", 400},
		{"no code", "GET", own + f.back + "?state=" + f.state, 400},
		{"a path as code", "GET", own + f.back + "?code=../x&state=" + f.state, 400},
	} {
		if got := get(c.method, c.address); got.Code != c.status || len(codes) > 0 {
			t.Errorf("%s: %d, %v", c.name, got.Code, codes)
		}
	}
	got := get("GET", own+f.back+"?code=c-1&state="+f.state)
	if got.Code != http.StatusSeeOther ||
		got.Header().Get("Location") != "https://github.example/apps/x/installations/new" ||
		got.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the answer: %d %v", got.Code, got.Header())
	}
	<-f.done
	if got := get("GET", own+f.back+"?code=c-2&state="+f.state); got.Code != http.StatusGone || len(codes) != 1 {
		t.Errorf("a second answer: %d, %v", got.Code, codes)
	}
}

func TestThePageOfAGitHubAppSaysWhatFailed(t *testing.T) {
	t.Parallel()
	web := must.Get(url.Parse("https://github.example/"))(t)
	failed := errors.New("disk full")
	returned := make(chan error, 1)
	show := func(address, _ string) {
		go func() { returned <- comeBack(address) }()
	}
	_, err := askForApp(t.Context(), NewGitHubApp{Owner: "octo", Show: show}, true, web,
		func(string) (githubapp.Registered, error) { return githubapp.Registered{}, failed })
	if came := <-returned; !errors.Is(err, failed) || came != nil {
		t.Errorf("it ends with %v, and the browser with %v", err, came)
	}
}

// comeBack does what GitHub has the browser do that has opened the form.
func comeBack(form string) error {
	answer, err := http.Get(form)
	if err != nil {
		return err
	}
	page, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	state := regexp.MustCompile(`state=(\w+)`).FindSubmatch(page)
	back := regexp.MustCompile(`redirect_url&#34;:&#34;(.*?)&#34;`).FindSubmatch(page)
	if err != nil || state == nil || back == nil || !bytes.Contains(page, []byte("&#34;members&#34;:&#34;read&#34;")) {
		return fmt.Errorf("the page is %s, %w", page, err)
	}
	answer, err = http.Get(string(back[1]) + "?code=c&state=" + string(state[1]))
	if err != nil {
		return err
	}
	page, err = io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadGateway || !bytes.Contains(page, []byte("Look at the terminal")) {
		return fmt.Errorf("%d %s, %w", answer.StatusCode, page, err)
	}
	return err
}
