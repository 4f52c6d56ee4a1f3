package gitea_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// pullsOfEveryKind opens a pull request for each way in which a path can change, all on one merge base that the base
// branch then leaves behind, and returns their paths, oldest first.
func pullsOfEveryKind(sc *scene) (want [][]string) {
	open := func(branch string, paths ...string) {
		sc.OpenPR(branch, branch, gitprovider.LabelOurs)
		want = append(want, paths)
	}
	sc.Push("claude-ops/check/new", memhost.File{Path: "checks/new.md", Content: "n\n"})
	open("claude-ops/check/new", "checks/new.md")
	sc.Push("claude-ops/check/changed", memhost.File{Path: "checks/disk.md", Content: "n\n"})
	open("claude-ops/check/changed", "checks/disk.md")
	sc.Push("claude-ops/check/mode", memhost.File{Path: "checks/disk.md", Content: "old\n", Executable: true})
	open("claude-ops/check/mode", "checks/disk.md")
	sc.Push("claude-ops/check/type", memhost.File{Path: "checks/disk.md", Content: "memory.md",
		Kind: gitprovider.KindSymlink})
	open("claude-ops/check/type", "checks/disk.md")
	sc.Push("claude-ops/check/twice", memhost.File{Path: "checks/disk.md", Content: "n\n"})
	sc.Push("claude-ops/check/twice", memhost.File{Path: "a/b/deep.md", Content: "n\n"})
	open("claude-ops/check/twice", "a/b/deep.md", "checks/disk.md")
	_, err := sc.commit(sc.p, "claude-ops/check/moved", providertest.Delete("checks/memory.md"),
		providertest.Create("checks/ram.md", "old\n"))
	sc.must(err)
	open("claude-ops/check/moved", "checks/memory.md", "checks/ram.md")
	sc.Push(memhost.MainBranch, memhost.File{Path: "README.md", Content: "# Moved on\n"})
	return want
}

func TestTheFilesOfManyPullRequestsOnOneBaseAreThoseThatTheServerLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files int // more in the base
		fails int // from which tree on they cannot be read; 0: none
		lists int // how many lists of files are asked for
	}{
		"by trees":                  {},
		"a large tree":              {files: 250, lists: 6},
		"trees that cannot be read": {fails: 1, lists: 6},
		"heads that cannot be read": {fails: 2, lists: 6},
		"a tree that is not large":  {files: 240},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			var more []memhost.File
			for i := range tc.files {
				more = append(more, memhost.File{Path: fmt.Sprintf("docs/n%03d.md", i), Content: "n\n"})
			}
			if len(more) > 0 {
				sc.Push(memhost.MainBranch, more...)
			}
			want := pullsOfEveryKind(sc)
			p := sc.provider()
			sc.requests()
			trees := map[*http.Request]bool{}
			refused := func(r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/git/trees/") {
					return false
				}
				trees[r] = true
				return len(trees) >= tc.fails
			}
			if tc.fails > 0 {
				for range 10 {
					sc.s.Faults().Plan(refused, httpfault.Fault{Kind: httpfault.Status, Status: 404, Body: `{"message":"not found"}`})
				}
			}
			prs, err := p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			var got [][]string
			for _, pr := range prs {
				got = append(got, pr.Paths)
			}
			sc.same("paths", got, want)
			lists := slices.DeleteFunc(sc.asked(), func(r string) bool { return !strings.HasSuffix(r, "/files") })
			sc.same("lists of files", len(lists), tc.lists)
			_, err = p.ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
			sc.must(err)
			sc.same("requests of the second call", sc.requests(), 1)
		})
	}
}
