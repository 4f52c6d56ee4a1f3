package github_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const branch = "claude-ops/fix/one"

// holding matches GraphQL requests whose body has the text.
func holding(text string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		return err == nil && strings.Contains(string(body), text)
	}
}

// Enterprise Servers of some versions have no updateRefs.
func TestBranchesOfAnOldServerAreReachedByTheirIDs(t *testing.T) {
	s := newScene(t)
	s.s.MakeOld()
	pr := s.propose(branch)
	exec := providertest.Update("playbooks/restart.md", "new\n")
	q := s.query("playbooks/restart.md")
	q.Base = branch
	snapshot, err := s.p.Snapshot(t.Context(), q)
	must.Do(t, err)
	req := gitprovider.CommitRequest{Snapshot: snapshot, Branch: branch, Message: "More",
		Changes: providertest.ChangeSet(t, exec)}
	made, err := s.p.Append(t.Context(), req)
	must.Do(t, err)
	s.same("tip", s.Branches()[branch], made.ID)
	_, err = s.p.Append(t.Context(), req) // the branch has moved
	wantCode(t, err, fault.Conflict)
	wantCode(t, s.p.DeleteBranch(t.Context(), s.Ref(), branch, pr.HeadCommit), fault.Conflict)
	must.Do(t, s.p.DeleteBranch(t.Context(), s.Ref(), branch, made.ID))
	s.gone(branch)
}

// before runs do once, before the mutation.
func (s *scene) before(mutation string, do func(*memhost.Repo)) {
	done := false
	s.configure(func(set *fakegithub.Settings) {
		set.Delays.Before = func(name string, repo *memhost.Repo) {
			if name == mutation && !done {
				done = true
				do(repo)
			}
		}
	})
}

func (s *scene) failsToCommit(req gitprovider.CommitRequest, want fault.Code) *fault.Error {
	s.t.Helper()
	made, err := s.p.Commit(s.t.Context(), req)
	s.same("commit", made, gitprovider.Commit{})
	return wantCode(s.t, err, want)
}

func TestABaseThatMovesWhileWeWriteLeavesNoBranch(t *testing.T) {
	for _, files := range [][]gitprovider.FileChange{nil, {providertest.Update("playbooks/restart.md", "new\n")}} {
		for _, at := range []string{"createRef", "createCommitOnBranch"} {
			if files != nil && at == "createCommitOnBranch" {
				continue // git data has no such step
			}
			s := newScene(t)
			req := s.request(branch, files...)
			s.before(at, func(repo *memhost.Repo) {
				repo.Write(memhost.MainBranch, "a person's", []memhost.File{{Path: "README.md", Content: "moved\n"}})
			})
			s.failsToCommit(req, fault.Conflict)
			if len(s.Branches()) != 1 {
				t.Errorf("%s: branches %v remain", at, s.Branches())
			}
		}
	}
}

func TestABranchThatSomebodyTakesIsLeftAlone(t *testing.T) {
	t.Run("at the base commit", func(t *testing.T) {
		s := newScene(t)
		req := s.request(branch)
		s.before("createRef", func(repo *memhost.Repo) { repo.Branches[branch] = repo.Branches[memhost.MainBranch] })
		s.failsToCommit(req, fault.Conflict)
		s.same("tip", s.Branches()[branch], req.Snapshot.BaseCommit)
	})
	t.Run("between branch and commit", func(t *testing.T) {
		s := newScene(t)
		req, theirs := s.request(branch), ""
		s.before("createCommitOnBranch", func(repo *memhost.Repo) {
			theirs = repo.Write(branch, "a person's", []memhost.File{{Path: "checks/p.md", Content: "p\n"}})
		})
		s.failsToCommit(req, fault.Conflict)
		s.same("tip", s.Branches()[branch], theirs)
	})
}

func TestACommitThatIsRefusedLeavesNoBranch(t *testing.T) {
	s := newScene(t)
	req := s.request(branch)
	s.s.Faults().Plan(holding("createCommitOnBranch("), always(200, nil,
		`{"data":{"createCommitOnBranch":null},"errors":[{"type":"UNPROCESSABLE","path":["createCommitOnBranch"],"message":"no"}]}`))
	s.failsToCommit(req, fault.Conflict)
	s.same("branches", len(s.Branches()), 1)
}

func TestABranchThatCannotBeRemovedAgainMakesTheFailureAmbiguous(t *testing.T) {
	s := newScene(t)
	req := s.request(branch)
	s.s.Faults().Plan(holding("createCommitOnBranch("), always(200, nil,
		`{"errors":[{"type":"UNPROCESSABLE","message":"no"}]}`))
	s.s.Faults().Plan(holding("updateRefs("), httpfault.Fault{Kind: httpfault.ResetBefore})
	e := s.failsToCommit(req, fault.UpstreamError)
	if !strings.Contains(e.Message, branch) {
		t.Errorf("%q does not name the branch", e.Message)
	}
	s.same("tip", s.Branches()[branch], req.Snapshot.BaseCommit)
}

// What may have been done must look so by its code, and is not repeated.
func TestALostAnswerIsAmbiguous(t *testing.T) {
	for _, lost := range []string{"createRef(", "createCommitOnBranch("} {
		for kind, want := range map[httpfault.Kind]fault.Code{
			httpfault.ResetAfter: fault.UpstreamError, httpfault.BadGatewayAfter: fault.UpstreamError,
			httpfault.Truncated: fault.UpstreamError,
		} {
			t.Run(lost+string(kind), func(t *testing.T) {
				s := newScene(t)
				req := s.request(branch)
				s.s.Faults().Plan(holding(lost), httpfault.Fault{Kind: kind})
				s.failsToCommit(req, want)
				if s.Branches()[branch] == "" {
					t.Error("the branch is gone; nobody could look what happened")
				}
			})
		}
	}
}

func TestACommitIsRefusedForGood(t *testing.T) {
	for name, row := range map[string]struct {
		set  func(*fakegithub.Settings)
		want fault.Code
	}{
		"by a rule for branches": {func(s *fakegithub.Settings) { s.Protection.Protected = []string{"claude-ops/*/*"} },
			fault.RepoNotAllowed},
		"by an archived repository": {func(s *fakegithub.Settings) { s.Archived = true }, fault.RepoNotAllowed},
		"for a token that may only read": {func(s *fakegithub.Settings) { s.Token.Permission = "read" },
			fault.ProviderDisabled},
		"for a token without the scope": {func(s *fakegithub.Settings) { s.Token.MissingScopes = true },
			fault.ProviderDisabled},
		"for a repository that is gone": {func(s *fakegithub.Settings) { s.Private, s.Token.Permission = true, "none" },
			fault.NotFound},
	} {
		for _, file := range []string{"checks/disk.md", "playbooks/restart.md"} {
			t.Run(name+" "+file, func(t *testing.T) {
				s := newScene(t)
				req := s.request(branch, providertest.Update(file, "new\n"))
				s.configure(row.set)
				s.failsToCommit(req, row.want)
				s.same("branches", len(s.Branches()), 1)
			})
		}
	}
}

func TestAChangeThatDoesNotFitTheSnapshotIsRefusedWithoutARequest(t *testing.T) {
	s := newScene(t)
	req := s.request(branch, providertest.Create("checks/disk.md", "new\n"))
	s.same("requests", s.cost(func() { s.failsToCommit(req, fault.Conflict) }), 0)
}

func TestAnExecutableFileOfBytesThatAreNoTextIsRefused(t *testing.T) {
	s := newScene(t)
	s.failsToCommit(s.request(branch, providertest.Update("playbooks/restart.md", "\xff\xfe")), fault.InvalidArgument)
}

func TestACommitByGitDataMixesAllActions(t *testing.T) {
	s := newScene(t)
	req := s.request(branch, providertest.Update("playbooks/restart.md", "new\n"), providertest.Delete("checks/disk.md"),
		providertest.Create("checks/new.md", "# New\n"))
	other := setup(t, s.s.URL(), s.s.Token()) // one that has not read the repository
	made, err := other.Commit(t.Context(), req)
	must.Do(t, err)
	s.same("files", s.Files(made.ID), []memhost.File{
		{Path: "README.md", Kind: gitprovider.KindFile, Content: "# Home\n"},
		{Path: "checks/new.md", Kind: gitprovider.KindFile, Content: "# New\n"},
		{Path: "playbooks/restart.md", Kind: gitprovider.KindFile, Content: "new\n", Executable: true},
	})
	s.same("parents", s.Parents(made.ID), []string{req.Snapshot.BaseCommit})
	s.same("tip", s.Branches()[branch], made.ID)
}

func TestABranchIsDeletedOnlyAtItsExpectedTip(t *testing.T) {
	ctx := t.Context()
	t.Run("not when it moves after the look", func(t *testing.T) {
		s := newScene(t)
		made, theirs := s.commit(branch), ""
		s.before("updateRefs", func(repo *memhost.Repo) {
			theirs = repo.Write(branch, "a person's", []memhost.File{{Path: "checks/p.md", Content: "p\n"}})
		})
		wantCode(t, s.p.DeleteBranch(ctx, s.Ref(), branch, made.ID), fault.Conflict)
		s.same("tip", s.Branches()[branch], theirs)
	})
	t.Run("and that it vanishes after the look is not an error", func(t *testing.T) {
		s := newScene(t)
		made := s.commit(branch)
		s.before("updateRefs", func(repo *memhost.Repo) { delete(repo.Branches, branch) })
		must.Do(t, s.p.DeleteBranch(ctx, s.Ref(), branch, made.ID))
	})
	t.Run("and a lost answer is settled by looking", func(t *testing.T) {
		s := newScene(t)
		made := s.commit(branch)
		s.s.Faults().Plan(holding("updateRefs("), httpfault.Fault{Kind: httpfault.ResetAfter})
		must.Do(t, s.p.DeleteBranch(ctx, s.Ref(), branch, made.ID))
	})
	t.Run("and a refusal is told", func(t *testing.T) {
		s := newScene(t)
		made := s.commit(branch)
		s.configure(func(set *fakegithub.Settings) { set.Archived = true })
		wantCode(t, s.p.DeleteBranch(ctx, s.Ref(), branch, made.ID), fault.RepoNotAllowed)
	})
	t.Run("and never without one", func(t *testing.T) {
		s := newScene(t)
		s.commit(branch)
		wantCode(t, s.p.DeleteBranch(ctx, s.Ref(), branch, ""), fault.InvalidArgument)
	})
}
