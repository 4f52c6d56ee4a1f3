package fakegitea

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exchange is one recorded request and its answer.
type exchange struct {
	Name    string `json:"name"`
	Request struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	} `json:"request"`
	Response heard `json:"response"`
}

// heard is what is compared of an answer.
type heard struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    any               `json:"body"`
}

// recordings lists the files in the order in which they were recorded, which is that of their numbers and ids.
func recordings() []string {
	return strings.Fields(`version repo-get repo-missing repo-renamed bad-token branch-get branch-missing labels-list git-tree
		contents-get contents-get-missing label-create contents-post-multi contents-post-branch-exists
		contents-post-wrong-sha contents-post-without-sha contents-post-without-dates contents-post-missing-base
		contents-post-create-existing contents-post-update-missing contents-post-delete-missing contents-post-empty-files
		contents-post-identical contents-post-paths contents-post-parallel pulls-post pulls-post-duplicate
		pulls-post-unknown-label pulls-post-head-missing pulls-post-no-difference pulls-post-draft pulls-post-parallel
		pull-files reader errors-not-json pulls-list-open-pages pulls-list-labels pull-get-open pull-get-missing
		pull-get-recheck pull-get-conflict pull-get-merged pull-get-closed pull-head-deleted pulls-list-closed
		pull-reviews commit-status protected-branch archived-repo empty-repo`)
}

// outOfScope gives the reason why a recorded exchange is not held against the fake: nil for nearly all.
func outOfScope() map[string]string {
	const people = "the adapter may not call this route; people act through the host, and this refusal concerns them alone"
	const renamed = "the host cannot rename: the repository has its new name from the start, and Settings.RenamedFrom"
	return map[string]string{
		"contents-post-branch-exists 1": people,
		"reader 7":                      people,
		"pull-reviews 21":               people,
		"repo-renamed 0":                renamed,
		"repo-renamed 1":                renamed,
	}
}

// replay is a server that the recorded exchanges are played against.
type replay struct {
	t       *testing.T
	s       *Server
	ids     *bijection
	like    patterns
	pending map[string]heard // answers to requests that another exchange sent already
	reports []string
}

func TestTheFakeAnswersAsTheRealServerWasRecorded(t *testing.T) {
	r := newReplay(t)
	played, skipped := 0, outOfScope()
	for _, file := range recordings() {
		for i, e := range load(t, file) {
			at := fmt.Sprintf("%s %d", file, i)
			if skipped[at] != "" {
				delete(skipped, at)
				continue
			}
			r.before(at)
			got := r.act(at, e)
			if problems := r.compare(e.Response, got); len(problems) > 0 {
				t.Errorf("%s: %s (%s %s)\n  %s", at, e.Name, e.Request.Method, e.Request.Path, strings.Join(problems, "\n  "))
			}
			played++
		}
	}
	if len(skipped) > 0 {
		t.Errorf("these exchanges do not exist: %v", skipped)
	}
	if files, _ := filepath.Glob("testdata/recorded/*.json"); len(files) != len(recordings()) || played < 230 {
		t.Errorf("%d files of %d and %d exchanges were played", len(recordings()), len(files), played)
	}
	r.checkReports()
}

// checkReports demands the complaints about those recorded requests that are not as described, and no others.
func (r *replay) checkReports() {
	r.t.Helper()
	expected := []string{
		`POST /api/v1/repos/joe/home-cluster/pulls: the body is not as described`, // label names
		`GET /api/v1/nope has no route`,
		`PUT /api/v1/repos/joe/home-cluster/pulls has no route`,
		`/contents: the body is not as described`, // unknown operation
	}
	for _, report := range r.reports {
		known := false
		for i, want := range expected {
			if want != "" && strings.Contains(report, want) {
				expected[i], known = "", true
				break
			}
		}
		if !known {
			r.t.Errorf("unexpected complaint: %s", report)
		}
	}
	if left := strings.Join(expected, ""); left != "" {
		r.t.Errorf("a complaint is missing: %q", expected)
	}
}

func load(t *testing.T, file string) []exchange {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []exchange
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return list
}

// act plays one exchange: a setup step of people's as they would do it, everything else as a request.
func (r *replay) act(at string, e exchange) heard {
	r.t.Helper()
	if got, sent := r.pending[at]; sent {
		return got
	}
	if step := r.peoplesStep(e); step != nil {
		return step(e)
	}
	return r.send(e.Request.Method, e.Request.Path, e.Request.Body, senderOf(r.s, e.Name))
}

// senderOf is the token of the user whom the exchange's name ends in.
func senderOf(s *Server, name string) string {
	switch {
	case strings.HasSuffix(name, "[reviewer]"):
		return "token-of-reviewer"
	case strings.HasSuffix(name, "[no token]"):
		return ""
	case strings.HasSuffix(name, "[bad token]"):
		return "wrong"
	default:
		return s.Token()
	}
}

// send sends a request in which ids are the recorded ones.
func (r *replay) send(method, path string, body json.RawMessage, token string) heard {
	r.t.Helper()
	var content io.Reader
	if len(body) > 0 && string(body) != "null" {
		content = strings.NewReader(r.toOurs(string(body)))
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.s.URL()+r.toOurs(path), content)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	out := heard{Status: resp.StatusCode, Headers: map[string]string{}}
	for _, name := range []string{"Content-Type", "Link", "X-Total-Count", "Location"} {
		if value := resp.Header.Get(name); value != "" {
			out.Headers[name] = value
		}
	}
	if len(raw) > 0 && json.Unmarshal(raw, &out.Body) != nil {
		out.Body = string(raw)
	}
	return out
}
