package github_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// drafts tells for each request that opened a pull request whether it asked for a draft.
func (s *scene) drafts() []bool {
	var out []bool
	for _, r := range s.s.Faults().Requests() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/pulls") {
			var body struct{ Draft bool }
			must(s.t, json.Unmarshal(r.Body, &body))
			out = append(out, body.Draft)
		}
	}
	return out
}

func TestADraftIsOpenedWhereThereAreDrafts(t *testing.T) {
	for _, row := range []struct {
		none bool
		want []bool
	}{{false, []bool{true}}, {true, []bool{true, false}}} {
		s := newScene(t)
		s.configure(func(set *fakegithub.Settings) { set.NoDrafts = row.none })
		s.commit(branch)
		spec := s.spec(branch)
		spec.Draft = true
		pr, err := s.p.OpenPullRequest(t.Context(), spec)
		must(t, err)
		s.same("asked for a draft", s.drafts(), row.want)
		must(t, s.p.Label(t.Context(), s.Ref(), pr.Number, []string{gitprovider.LabelOurs}))
		s.same("list", len(s.list()), 1)
	}
}

func TestAnAmbiguousOpeningIsNotRepeatedAndCanBeFound(t *testing.T) {
	s := newScene(t)
	s.commit(branch)
	s.s.Faults().Plan(nil, httpfault.Fault{Kind: httpfault.BadGatewayAfter})
	_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	wantCode(t, err, fault.UpstreamError)
	found, err := s.p.FindByHead(t.Context(), s.Ref(), branch)
	must(t, err)
	again, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	must(t, err)
	if found == nil || found.Number != 1 || again.Number != 1 {
		t.Errorf("found %+v, again #%d; want #1 both times", found, again.Number)
	}
}

func TestAnOpeningIsRefusedForGood(t *testing.T) {
	for name, row := range map[string]struct {
		set  func(*fakegithub.Settings)
		want fault.Code
	}{
		"in an archived repository": {func(s *fakegithub.Settings) { s.Archived = true }, fault.RepoNotAllowed},
		"for a token without the scope": {func(s *fakegithub.Settings) { s.Token.MissingScopes = true },
			fault.ProviderDisabled},
		"in a repository that is hidden": {func(s *fakegithub.Settings) { s.Private, s.Token.Permission = true, "none" },
			fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit(branch)
			s.configure(row.set)
			_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
			wantCode(t, err, row.want)
		})
	}
}

func TestLabelsThatAreMissingAreNamedAndNotMade(t *testing.T) {
	for name, fresh := range map[string]bool{"as a snapshot knows": true, "as GitHub is asked": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			pr := s.propose(branch)
			if !fresh {
				s.p = setup(t, s.s.URL(), s.s.Token())
			}
			err := s.p.Label(t.Context(), s.Ref(), pr.Number, []string{"Automated", "no-such", "nor-this"})
			if e := wantCode(t, err, fault.NotFound); !strings.Contains(e.Message, "no-such, nor-this") {
				t.Errorf("message %q", e.Message)
			}
			s.same("labels", len(s.status(pr.Number).Labels), 2)
			s.s.Configure(s.Ref(), func(set *fakegithub.Settings) { s.same("defined", len(set.Labels), 2) })
		})
	}
}

func TestLabelsAreMadeIfThePolicySaysSo(t *testing.T) {
	s := newScene(t)
	pr := s.propose(branch)
	p := setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) { o.CreateLabels = func() bool { return true } })
	s.same("requests", s.cost(func() {
		must(t, p.Label(t.Context(), s.Ref(), pr.Number, []string{"brand-new"}))
	}), 1)
	s.same("labels", s.status(pr.Number).Labels, []string{gitprovider.LabelOurs, "brand-new"})
}

func TestASecondRoundOnTheSameFilesStartsFromWhatIsThere(t *testing.T) {
	s := newScene(t)
	first := s.propose(branch, providertest.Create("checks/a.md", "a\n"))
	s.Merge(first.Number)
	s.DeleteBranch(branch)
	second := s.propose(branch, providertest.Update("checks/a.md", "b\n"))
	s.same("paths", s.status(second.Number).Paths, []string{"checks/a.md"})
	s.same("file", s.Files(second.HeadCommit)[1], memhost.File{Path: "checks/a.md", Kind: gitprovider.KindFile,
		Content: "b\n"})
}

func TestAnOldMemoryOfLabelsDoesNotBringBackWhatWasDeleted(t *testing.T) {
	s := newScene(t)
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s.p = setup(t, s.s.URL(), s.s.Token(), func(o *github.Options) { o.Now = func() time.Time { return now } })
	pr := s.propose(branch)
	s.configure(func(set *fakegithub.Settings) { set.Labels = []string{gitprovider.LabelOurs} })
	now = now.Add(2 * time.Minute)
	wantCode(t, s.p.Label(t.Context(), s.Ref(), pr.Number, []string{"automated"}), fault.NotFound)
	s.same("labels", s.status(pr.Number).Labels, []string{gitprovider.LabelOurs})
}
