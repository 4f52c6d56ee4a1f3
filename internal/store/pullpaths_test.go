package store

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestPathsOfPullRequestsAreRememberedByHead(t *testing.T) {
	ctx, place := context.Background(), newPlace(t)
	infra := gitprovider.RepoRef{Owner: "Joe", Name: "Infra"}
	lazy := func() *Lazy {
		l := lazyPlace(place, Options{})
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	lazy().PullPaths("gitea").RememberPaths(ctx, infra, 7, "aaa", []string{"checks/a.md", "checks/b.md"})

	m := lazy().PullPaths("gitea") // another process
	want := func(number int, head string, want []string, known bool) {
		t.Helper()
		paths, ok := m.PathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, number, head)
		wantEqual(t, ok, known)
		wantEqual(t, paths, want)
	}
	want(7, "aaa", []string{"checks/a.md", "checks/b.md"}, true)
	want(7, "bbb", nil, false)
	want(8, "aaa", nil, false)
	m.RememberPaths(ctx, infra, 7, "bbb", nil)
	want(7, "aaa", nil, false)
	want(7, "bbb", []string{}, true)
	if _, ok := lazy().PullPaths("github").PathsAt(ctx, infra, 7, "bbb"); ok {
		t.Error("another provider's pull request was taken for this one's")
	}
}

func TestWhatCannotBeRememberedIsNoFailure(t *testing.T) {
	l := lazyPlace(newPlace(t), Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m, ctx := l.PullPaths("gitea"), context.Background()
	m.RememberPaths(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa", []string{"checks/a.md"})
	if _, ok := m.PathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa"); ok {
		t.Error("a closed store remembered something")
	}
}
