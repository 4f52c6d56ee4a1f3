package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// doomed is a test that has to fail.
type doomed struct {
	testing.TB
	said string
}

func (d *doomed) Fatalf(format string, a ...any) {
	d.said = fmt.Sprintf(format, a...)
	panic(d)
}

// fatal runs what has to fail the test that it is given, and tells with which message it did.
func fatal(t *testing.T, do func(testing.TB)) (said string) {
	t.Helper()
	d := &doomed{TB: t}
	defer func() {
		switch got := recover(); got {
		case nil:
			t.Error("the test did not fail")
		case d:
			said = d.said
		default:
			panic(got)
		}
	}()
	do(d)
	return ""
}

func TestTheLiveSettingsSayWhatIsMissing(t *testing.T) {
	full := map[string]string{
		"GITHUB_TOKEN": "token-1", "GITHUB_LIVE_OWNER": "scratch", "GITHUB_REVIEWER_TOKENS": "token-2, token-3",
		"GITHUB_API_URL": "https://github.example/api/v3/",
	}
	for name, row := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"everything there": {nil, nil},
		"github.com":       {map[string]string{"GITHUB_API_URL": ""}, nil},
		"nothing there": {map[string]string{"GITHUB_TOKEN": "", "GITHUB_LIVE_OWNER": "", "GITHUB_REVIEWER_TOKENS": ""},
			[]string{"GITHUB_TOKEN", "GITHUB_LIVE_OWNER", "GITHUB_REVIEWER_TOKENS"}},
		"no token": {map[string]string{"GITHUB_TOKEN": ""}, []string{"GITHUB_TOKEN"}},
		"no owner": {map[string]string{"GITHUB_LIVE_OWNER": ""}, []string{"GITHUB_LIVE_OWNER"}},
		"one reviewer": {map[string]string{"GITHUB_REVIEWER_TOKENS": "token-2"},
			[]string{"GITHUB_REVIEWER_TOKENS"}},
		"an empty reviewer": {map[string]string{"GITHUB_REVIEWER_TOKENS": "token-2,"},
			[]string{"GITHUB_REVIEWER_TOKENS"}},
		"three reviewers":         {map[string]string{"GITHUB_REVIEWER_TOKENS": "a,b,c"}, []string{"GITHUB_REVIEWER_TOKENS"}},
		"an address that is none": {map[string]string{"GITHUB_API_URL": "https://host:port/"}, []string{"GITHUB_API_URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := liveSettingsFrom(func(name string) string {
				if value, changed := row.change[name]; changed {
					return value
				}
				return full[name]
			})
			if (err == nil) != (len(row.want) == 0) {
				t.Fatalf("error %v", err)
			}
			if err == nil {
				if set.reviewers != [2]string{"token-2", "token-3"} || set.api.Scheme != "https" {
					t.Errorf("settings %+v", set)
				}
				return
			}
			for _, variable := range row.want {
				if want := "set " + variable + " to"; !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Count(err.Error(), "\n") != len(row.want) || strings.Contains(err.Error(), "token-") {
				t.Errorf("%q says more than it should", err)
			}
		})
	}
}

func TestTheLiveHarnessWantsThreePeople(t *testing.T) {
	h, s, n := liveOnFake(t, "ops-bot")
	for name, reviewers := range map[string][2]string{
		"the token's owner reviews":  {s.Token(), s.TokenOf("grace")},
		"one person reviews as both": {s.TokenOf("grace"), s.TokenOf("grace")},
	} {
		t.Run(name, func(t *testing.T) {
			set := h.set
			set.reviewers = reviewers
			if said := fatal(t, func(t testing.TB) { newLive(t, set, n.sleep) }); !strings.Contains(said, "three users") {
				t.Errorf("it says %q", said)
			}
		})
	}
}

func TestTheLiveHarnessRehearsesTheRemoval(t *testing.T) {
	h, s, _ := liveOnFake(t, "ops-bot")
	s.Faults().Plan(func(r *http.Request) bool { return r.Method == http.MethodDelete },
		always(403, nil, `{"message": "Must have admin rights to Repository."}`))
	said := fatal(t, h.rehearse)
	for _, want := range []string{"ops-bot/" + livePrefix, "delete_repo", "Must have admin rights"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

func TestTheLiveHarnessRemovesNoRepositoryOfOthers(t *testing.T) {
	h, s, _ := liveOnFake(t, "octo")
	ref := s.AddRepo(providertest.File{Path: "README.md", Content: "# Home\n"})
	before := len(s.Faults().Requests())
	if said := fatal(t, func(t testing.TB) { h.remove(t, ref.Name) }); !strings.Contains(said,
		"no repository of this test's") {
		t.Errorf("it says %q", said)
	}
	if n := len(s.Faults().Requests()); n != before {
		t.Errorf("it asked GitHub %d times", n-before)
	}
}

func TestTheLiveHarnessWorksInAnOrganisation(t *testing.T) {
	h, s, _ := liveOnFake(t, "octo-org")
	s.SetInitialBranch(providertest.MainBranch) // one that needs no other name
	w := h.NewRepo(t, providertest.File{Path: "README.md", Content: "# Home\n"})
	tip := w.Push("claude-ops/fix/a", providertest.File{Path: "checks/a.md", Content: "a\n"})
	if branches := w.Branches(); len(branches) != 2 || branches["claude-ops/fix/a"] != tip {
		t.Errorf("branches %v", branches)
	}
	if got := w.Parents(w.Branches()[providertest.MainBranch]); len(got) != 0 {
		t.Errorf("the first commit has the parents %v", got)
	}
	number := w.OpenPR("claude-ops/fix/a", "Add a", gitprovider.LabelOurs)
	w.Review(number, "bob", gitprovider.ReviewCommented, "Why?")
	status, err := w.Provider().Status(t.Context(), w.Ref(), number)
	must(t, err)
	if len(status.Reviews) != 1 || status.Reviews[0].Author != "grace" {
		t.Errorf("reviews %+v", status.Reviews)
	}
}
