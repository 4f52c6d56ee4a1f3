package store

import (
	"context"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestPathsOfPullRequestsAreRememberedByHead(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), newPlace(t)
	infra := gitprovider.RepoRef{Owner: "Joe", Name: "Infra"}
	opened := func() *Store {
		l := newAt(place, Options{})
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	opened().PullPaths("gitea").RememberPaths(ctx, infra, 7, "aaa", []string{"checks/a.md", "checks/b.md"})

	m := opened().PullPaths("gitea") // another process
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
	if _, ok := opened().PullPaths("github").PathsAt(ctx, infra, 7, "bbb"); ok {
		t.Error("another provider's pull request was taken for this one's")
	}
}

func TestPathsOfManyPullRequestsAreRememberedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, l := context.Background(), newAt(newPlace(t), Options{})
	t.Cleanup(func() { _ = l.Close() })
	m, infra := l.PullPaths("gitea"), gitprovider.RepoRef{Owner: "joe", Name: "infra"}
	heads, paths := map[int]string{}, map[int][]string{}
	for number := 1; number <= 2*maxNumbers+1; number++ {
		heads[number], paths[number] = "aaa", []string{"checks/a.md"}
	}
	m.RememberManyPaths(ctx, infra, heads, paths)
	m.RememberPaths(ctx, infra, 7, "bbb", []string{"checks/b.md"})
	got := m.ManyPathsAt(ctx, gitprovider.RepoRef{Owner: "Joe", Name: "Infra"}, heads)
	if _, outdated := got[7]; outdated || len(got) != 2*maxNumbers {
		t.Errorf("%d pull requests, #7 among them: %t", len(got), outdated)
	}
	wantEqual(t, m.ManyPathsAt(ctx, infra, map[int]string{7: "bbb", 9999: "aaa"}), map[int][]string{7: {"checks/b.md"}})
	wantEqual(t, len(m.ManyPathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "other"}, heads)), 0)
}

func TestWhatCannotBeRememberedIsNoFailure(t *testing.T) {
	t.Parallel()
	l := newAt(newPlace(t), Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m, ctx := l.PullPaths("gitea"), context.Background()
	m.RememberPaths(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa", []string{"checks/a.md"})
	if _, ok := m.PathsAt(ctx, gitprovider.RepoRef{Owner: "joe", Name: "infra"}, 7, "aaa"); ok {
		t.Error("a closed store remembered something")
	}
}
