package fakegithub

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// recorded is one exchange of testdata/recorded.
type recorded struct {
	Request struct {
		Method, Path string
		Body         json.RawMessage
	}
	Response heard
}

// heard holds the compared parts of an answer.
type heard struct {
	Status  int
	Headers map[string]string
	Body    any
}

// recordings lists the files, each about a repository of its own.
func recordings() []string {
	return strings.Fields(`add-and-remove-repository-collaborator add-labels-to-issue branch-protection create-file create-status
		errors get-content get-repository git-refs labels paginate-issues release-assets-conflict rename-repository`)
}

// outOfScope gives the reason why a recorded exchange is not held against the fake.
func outOfScope() map[string]string {
	const route = "no client of ours asks for this route"
	return map[string]string{
		"add-and-remove-repository-collaborator 2": route, "add-and-remove-repository-collaborator 4": route,
		"add-and-remove-repository-collaborator 5": route, "add-and-remove-repository-collaborator 6": route,
		"branch-protection 2": route, "create-status 4": route, "get-content 0": route, "get-content 1": route,
		"git-refs 3": route, "git-refs 6": route, "labels 4": route, "labels 5": route,
		"release-assets-conflict 0": route, "rename-repository 5": route,
	}
}

// replay is a server that a file's exchanges are played against.
type replay struct {
	t     *testing.T
	s     *Server
	file  string
	repo  gitprovider.RepoRef
	ours  map[string]string // ids of the fake by recorded ids
	names *strings.Replacer // recorded names to the fake's
	wrong []string
}

func TestTheFakeAnswersAsGitHubWasRecorded(t *testing.T) {
	skipped, played := outOfScope(), 0
	for _, file := range recordings() {
		t.Run(file, func(t *testing.T) {
			r := newReplay(t, file)
			for i, e := range loadRecorded(t, file) {
				at := fmt.Sprintf("%s %d", file, i)
				if _, out := skipped[at]; out {
					delete(skipped, at)
					continue
				}
				if got, asked := r.play(e); asked {
					r.compare(e.Response, got)
				}
				if len(r.wrong) > 0 {
					t.Errorf("%s: %s %s\n  %s", at, e.Request.Method, e.Request.Path, strings.Join(r.wrong, "\n  "))
				}
				r.wrong = nil
				played++
			}
		})
	}
	if len(skipped) > 0 {
		t.Errorf("these exchanges do not exist: %v", skipped)
	}
	if files, _ := filepath.Glob("testdata/recorded/*.json"); len(files) != len(recordings()) || played < 40 {
		t.Errorf("%d files of %d and %d exchanges were played", len(recordings()), len(files), played)
	}
}

func newReplay(t *testing.T, file string) *replay {
	r := &replay{t: t, s: New(t), file: file, ours: map[string]string{}}
	name := "tmp-" + file
	if file == "get-repository" {
		name = "hello-world"
	}
	r.repo = gitprovider.RepoRef{Owner: organisation, Name: name}
	r.names = strings.NewReplacer("octokit-fixture-org", organisation, "octokit-fixture-user-b", "ann",
		"octokit-fixture-user-a", viewer)
	r.s.TokenOf("ann")
	if file == "get-repository" {
		r.s.host.Add(organisation, name, memhost.File{Path: "README.md", Content: "# hello-world"})
		r.s.Configure(r.repo, func(set *Settings) { set.Token.Permission = "admin" })
		r.s.host.Locked(func() { r.s.repos.place(r.s.host.Repo(r.repo)).rename(memhost.MainBranch, "master") })
	}
	if file == "paginate-issues" {
		r.s.host.Add(organisation, name, memhost.File{Path: "README.md", Content: "x"})
	}
	return r
}

func loadRecorded(t *testing.T, file string) []recorded {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []recorded
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return list
}

var objectID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// toOurs replaces recorded names and ids by the fake's.
func (r *replay) toOurs(text string) string {
	text = r.names.Replace(text)
	text = objectID.ReplaceAllStringFunc(text, func(id string) string {
		if ours, known := r.ours[id]; known {
			return ours
		}
		return id
	})
	for theirs, ours := range r.ours {
		if len(theirs) < 40 {
			text = strings.ReplaceAll(text, theirs, ours)
		}
	}
	return text
}

// send sends a recorded request with a token.
func (r *replay) send(e recorded, token string) heard {
	r.t.Helper()
	return r.request(e.Request.Method, r.toOurs(e.Request.Path), r.toOurs(string(e.Request.Body)), token)
}

func (r *replay) request(method, path, body, token string) heard {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.s.URL()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
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
	for name := range resp.Header {
		out.Headers[name] = resp.Header.Get(name)
	}
	if len(raw) > 0 && json.Unmarshal(raw, &out.Body) != nil {
		out.Body = string(raw)
	}
	return out
}
