package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
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
	body := string(answer.Body)
	var text string
	if json.Unmarshal(answer.Body, &text) == nil { // bytes of a file
		body = text
	}
	return httpfault.Fault{Kind: httpfault.Status, Status: answer.Status, Header: header, Body: body}
}

func TestRecordedAnswersAreUnderstood(t *testing.T) {
	tests := map[string]struct {
		file string
		at   int
		code fault.Code // "" for success
		says string
	}{
		"labels that were set":         {"add-labels-to-issue", 2, "", ""},
		"a refusal that names a field": {"errors", 1, fault.InvalidArgument, "Validation Failed; color is invalid"},
		"a refusal of what exists already": {"release-assets-conflict", 0, fault.InvalidArgument,
			"Validation Failed; name is already_exists"},
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

// A file whose text GraphQL does not give is read by REST, under a former name of the repository, too. The list that was
// recorded with it says which bytes it must be.
func TestARecordedFileIsReadUnderAFormerName(t *testing.T) {
	var listed []struct {
		Name, SHA string
		Size      int
	}
	must(t, json.Unmarshal([]byte(recordedAnswer(t, "get-content", 0).Body), &listed))
	faults, root := script(t, http.NotFoundHandler())
	file := fmt.Sprintf(`{"name":%q,"mode":33188,"oid":%q,"object":{"byteSize":%d,"text":null}}`, listed[0].Name,
		listed[0].SHA, listed[0].Size)
	faults.Plan(nil, always(http.StatusOK, nil, `{"data":{"repository":{"id":"R_1","databaseId":1,"name":"hello-world",
		"owner":{"login":"octokit-fixture-org"},"defaultBranchRef":{"name":"master","target":{"oid":"`+
		strings.Repeat("1", 40)+`","tree":{"oid":"`+strings.Repeat("2", 40)+`","entries":[]},"file0":`+file+`}}}}}`))
	moved := recordedAnswer(t, "rename-repository", 2)
	moved.Header.Set("Location", strings.ReplaceAll(moved.Header.Get("Location"), "https://api.github.com", root))
	faults.Plan(nil, moved)
	faults.Plan(nil, recordedAnswer(t, "get-content", 1))
	path := providertest.Path(t, "README.md")
	got, err := setup(t, root, "ghp_token").Snapshot(t.Context(), gitprovider.SnapshotQuery{
		Repo: repo(), Paths: []gitprovider.Path{path}, Contents: true, FilesOnly: true,
	})
	must(t, err)
	if string(got.Contents[path]) != "# hello-world" {
		t.Errorf("it holds %q", got.Contents[path])
	}
	seen := faults.Requests()
	if len(seen) != 3 || !strings.HasPrefix(seen[2].Path, "/repositories/") {
		t.Errorf("requests: %+v", seen)
	}
}
