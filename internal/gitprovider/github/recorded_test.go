package github_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// recordedAnswer is an answer of GitHub's, from the recordings that the fake is held to.
func recordedAnswer(t *testing.T, file string, at int) httpfault.Fault {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "testkit", "forgetest", "fakegithub", "testdata", "recorded",
		file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Response struct {
			Status  int
			Headers map[string]string
			Body    json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	answer := list[at].Response
	header := http.Header{}
	for name, value := range answer.Headers {
		header.Set(name, value)
	}
	return httpfault.Fault{Kind: httpfault.Status, Status: answer.Status, Header: header, Body: string(answer.Body)}
}

func TestRecordedAnswersAreUnderstood(t *testing.T) {
	tests := map[string]struct {
		file string
		at   int
		code fault.Code // "" for success
		says string
	}{
		"labels that were set":             {"add-labels-to-issue", 2, "", ""},
		"a refusal that names a field":     {"errors", 1, fault.InvalidArgument, "Validation Failed; color is invalid"},
		"a write under a former name":      {"rename-repository", 4, fault.Conflict, "renamed or moved"},
		"what is not there, said in words": {"branch-protection", 3, fault.NotFound, "no pull request"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			faults, root := script(t, http.NotFoundHandler())
			answer := recordedAnswer(t, tt.file, tt.at)
			answer.Header.Set("Location", strings.ReplaceAll(answer.Header.Get("Location"), "https://api.github.com", root))
			faults.Plan(nil, answer)
			p := setup(t, root, "ghp_token", func(o *github.Options) { o.CreateLabels = func() bool { return true } })
			err := p.Label(t.Context(), repo(), 1, []string{"Foo", "bAr", "baZ"})
			if tt.code == "" {
				must(t, err)
				return
			}
			if f := wantCode(t, err, tt.code); !strings.Contains(f.Message, tt.says) {
				t.Errorf("the message is %q", f.Message)
			}
			if n := len(faults.Requests()); n != 1 {
				t.Errorf("%d requests: a write was made again", n)
			}
		})
	}
}
