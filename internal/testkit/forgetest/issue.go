package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// IssueAnswers are what a server says about #7 of joe/infra, "Slow": by the end of the path, which ends with ? and the
// number of the page where one is asked for, a status alone or a body.
type IssueAnswers map[string]string

// With has other answers at paths: pairs are a path and what is answered there.
func (a IssueAnswers) With(pairs ...string) IssueAnswers {
	out := maps.Clone(a)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// Replaced has other words in the answer at a path.
func (a IssueAnswers) Replaced(path, old, by string) IssueAnswers {
	return a.With(path, strings.ReplaceAll(a[path], old, by))
}

// Serve starts a server below a path, which demands that everything asked for is there and only read, and returns its
// address. look sees each request first.
func (a IssueAnswers) Serve(t *testing.T, below string, look func(http.ResponseWriter, *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, below+"/repos/joe/infra")
		path = strings.TrimPrefix(path, below)
		if page := r.URL.Query().Get("page"); page != "" {
			path += "?" + page
		}
		body, known := a[path]
		if !known || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, path)
		}
		look(w, r)
		w.Header().Set("Content-Type", "application/json")
		status := http.StatusOK
		if _, err := fmt.Sscanf(body, "%d", &status); err == nil {
			body = `{"message":"no","url":"x"}`
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// ReadsIssue holds that the reader finds the act, or fails with the code.
func ReadsIssue(t *testing.T, name string, from gitprovider.IssueReader, q gitprovider.IssueQuery,
	want gitprovider.IssueAct, code fault.Code) {
	t.Helper()
	got, err := from.ReadIssue(t.Context(), gitprovider.RepoRef{Owner: "joe", Name: "infra"}, q)
	switch diff := cmp.Diff(want, got.Act); {
	case fault.CodeOf(err) != code:
		t.Errorf("%s: %v, want %q", name, err, code)
	case err != nil:
	case diff != "":
		t.Errorf("%s: %s", name, diff)
	case got.Title != "Slow" || got.Body != "Since Tuesday" || got.Pull || len(got.Labels) != 1:
		t.Errorf("%s: the issue is %+v", name, got)
	}
}
