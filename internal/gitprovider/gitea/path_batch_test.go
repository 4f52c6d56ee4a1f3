package gitea_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// bulk is a BulkPathMemory that counts how often it is asked and told.
type bulk struct {
	memory
	asked, told int
}

func (m *bulk) ManyPathsAt(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string) map[int][]string {
	m.asked++
	out := map[int][]string{}
	for number, head := range heads {
		if paths, ok := m.PathsAt(ctx, repo, number, head); ok {
			out[number] = paths
		}
	}
	return out
}

func (m *bulk) RememberManyPaths(ctx context.Context, repo gitprovider.RepoRef, heads map[int]string,
	paths map[int][]string) {
	m.told++
	for number := range paths {
		m.RememberPaths(ctx, repo, number, heads[number], paths[number])
	}
}

func TestTheMemoryIsAskedAndToldOnceForAList(t *testing.T) {
	t.Parallel()
	shared := &bulk{memory: memory{paths: map[string][]string{}}}
	remember := func(o *gitea.Options) { o.Paths = shared }
	sc := newScene(t, remember)
	for i := range 20 {
		branch := fmt.Sprintf("claude-ops/check/n%d", i)
		sc.Push(branch, memhost.File{Path: fmt.Sprintf("checks/n%d.md", i), Content: "n"})
		sc.OpenPR(branch, "t", gitprovider.LabelOurs)
	}
	// requests of a new process; how often it was asked and told so far
	for _, want := range [][3]int{{1 + 1 + 20, 1, 1}, {1, 2, 1}} {
		sc.requests()
		prs, err := sc.provider(remember).ListOpen(t.Context(), sc.Ref(), gitprovider.LabelOurs)
		sc.must(err)
		sc.same("cost", [3]int{sc.requests(), shared.asked, shared.told}, want)
		sc.same("paths of the last", prs[19].Paths, []string{"checks/n19.md"})
	}
}
