package gitea_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// looking is a script in which everything but the tree is there and empty.
func looking(more routes) routes {
	script := routes{"GET " + repoPath: repository(), "GET " + repoPath + "/pulls": list(0)}
	maps.Copy(script, more)
	return script
}

func entry(path, mode, id string) object { return object{"path": path, "mode": mode, "sha": id} }

// treePages cuts a tree into pages as the server does.
func treePages(id string, per int, entries ...object) func(*http.Request) reply {
	return func(r *http.Request) reply {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		from := min((page-1)*per, len(entries))
		to := min(from+per, len(entries))
		return reply{body: object{"sha": id, "tree": entries[from:to], "truncated": to < len(entries), "page": page,
			"total_count": len(entries)}}
	}
}

func (s *scripted) snapshot(t *testing.T, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	q.Repo = ref()
	return s.provider(t).Snapshot(t.Context(), q)
}

func TestATreeOfSomePagesIsReadWhole(t *testing.T) {
	t.Parallel()
	entries := []object{entry("a", "100644", otherID), entry("checks", "040000", otherID),
		entry("checks/deep", "040000", otherID),
		entry("checks/deep/x.md", "100644", otherID), entry("checks/z.md", "100755", otherID)}
	s := serve(t, looking(routes{
		"GET " + repoPath + "/git/trees/HEAD":          treePages(baseCommit, 2, entries...),
		"GET " + repoPath + "/git/trees/" + baseCommit: treePages(baseCommit, 2, entries...),
	}))
	snap, err := s.snapshot(t, gitprovider.SnapshotQuery{Paths: []gitprovider.Path{providertest.Path(t, "checks/new.md")}})
	wantCode(t, err, "")
	want := []string{"a", "checks", "checks/deep", "checks/z.md"}
	if got := slices.Sorted(maps.Keys(snap.Tree)); !slices.Equal(got, want) || !snap.Tree["checks/z.md"].Executable {
		t.Errorf("tree %v, want %v", snap.Tree, want)
	}
}

func TestAHugeTreeIsReadFolderByFolder(t *testing.T) {
	t.Parallel()
	var many []object
	for i := range 50 {
		many = append(many, entry(fmt.Sprintf("a/%02d", i), "100644", otherID))
	}
	const checks, deep = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	s := serve(t, looking(routes{
		"GET " + repoPath + "/git/trees/HEAD": treePages(baseCommit, 5, many...),
		"GET " + repoPath + "/git/trees/" + baseCommit: treePages(baseCommit, 5,
			entry("a", "040000", otherID), entry("checks", "040000", checks)),
		"GET " + repoPath + "/git/trees/" + checks: treePages(checks, 2, entry("deep", "040000", deep),
			entry("one.md", "100644", otherID), entry("two.md", "120000", otherID)),
		"GET " + repoPath + "/git/trees/" + deep: treePages(deep, 5, entry("x.md", "100644", otherID)),
	}))
	snap, err := s.snapshot(t, gitprovider.SnapshotQuery{Paths: []gitprovider.Path{
		providertest.Path(t, "checks/deep/new.md"), providertest.Path(t, "missing/new.md")}})
	wantCode(t, err, "")
	want := []string{"a", "checks", "checks/deep", "checks/deep/x.md", "checks/one.md", "checks/two.md"}
	if got := slices.Sorted(maps.Keys(snap.Tree)); !slices.Equal(got, want) {
		t.Errorf("tree %v, want %v", got, want)
	}
}

func TestABaseWithASlashIsFoundThroughAProxyThatUndoesTheEscaping(t *testing.T) {
	t.Parallel()
	s := serve(t, looking(routes{
		"GET " + repoPath + "/branches/releases/1.x":   object{"name": "releases/1.x", "commit": object{"id": baseCommit}},
		"GET " + repoPath + "/git/trees/" + baseCommit: object{"sha": baseCommit, "tree": []object{}},
	}))
	snap, err := s.snapshot(t, gitprovider.SnapshotQuery{Base: "releases/1.x"})
	wantCode(t, err, "")
	if snap.BaseCommit != baseCommit {
		t.Errorf("base commit %s", snap.BaseCommit)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	t.Parallel()
	tree := "GET " + repoPath + "/git/trees/HEAD"
	fine := object{"sha": baseCommit, "tree": []object{}}
	off := repository()
	off["has_pull_requests"] = false
	for name, tc := range map[string]struct {
		script routes
		want   fault.Code
		says   string
	}{
		"a missing repository, whatever else fails": {routes{"GET " + repoPath: asRefusal(404, "not found"),
			tree: reply{status: 500}},
			fault.NotFound, "joe/home-cluster"},
		"pull requests that are switched off": {routes{"GET " + repoPath: off, tree: fine,
			"GET " + repoPath + "/pulls": asRefusal(404, "not found")}, fault.RepoNotAllowed, "switched off"},
		"a tree without a commit": {routes{tree: object{"sha": "main"}}, fault.UpstreamError, "which commit"},
		"another program at the address": {routes{"GET " + repoPath: reply{status: 404, body: "<html>nginx</html>"},
			tree: fine},
			fault.ProviderDisabled, "GITEA_URL"},
		"a page instead of an answer": {routes{"GET " + repoPath: reply{body: "<html>sign in</html>"}, tree: fine},
			fault.UpstreamError, "GITEA_URL"},
		"a limit": {routes{"GET " + repoPath: reply{status: 429, header: map[string]string{"Retry-After": "600"}},
			tree: fine},
			fault.RateLimited, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, looking(tc.script)).snapshot(t, gitprovider.SnapshotQuery{})
			wantCode(t, err, tc.want)
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "<html>") {
				t.Errorf("the message is %q; want %q in it", err, tc.says)
			}
		})
	}
}

func TestContentsThatTheServerLeavesOutAreReadOneByOne(t *testing.T) {
	t.Parallel()
	one, two := gitprovider.BlobID([]byte("one"), baseCommit), gitprovider.BlobID([]byte("two"), baseCommit)
	tree := object{"sha": baseCommit, "tree": []object{entry("checks", "040000", otherID),
		entry("checks/1.md", "100644", one),
		entry("checks/2.md", "100644", two), entry("checks/link.md", "120000", otherID),
		{"path": "checks/big.md", "mode": "100644", "sha": otherID, "size": gitprovider.MaxContentRead + 1}}}
	encode := base64.StdEncoding.EncodeToString
	blob := func(content string) object { return object{"content": encode([]byte(content)), "encoding": "base64"} }
	paths := []gitprovider.Path{providertest.Path(t, "checks/1.md"), providertest.Path(t, "checks/2.md"),
		providertest.Path(t, "checks/link.md"), providertest.Path(t, "checks/big.md"), providertest.Path(t, "checks/none.md")}
	for name, tc := range map[string]struct {
		atOnce any
		second string
		want   fault.Code
	}{
		"an older server": {reply{status: 404, body: "404 page not found\n"}, "two", ""},
		"one is left out": {[]any{object{"path": "checks/1.md", "content": encode([]byte("one"))}, nil}, "two", ""},
		"one is of another commit": {[]any{object{"path": "checks/1.md", "content": encode([]byte("one"))},
			object{"path": "checks/2.md", "content": encode([]byte("else"))}}, "two", ""},
		"bytes that do not fit their id": {reply{status: 404, body: "404 page not found\n"}, "else", fault.UpstreamError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, looking(routes{
				"GET " + repoPath + "/git/trees/HEAD": tree, "GET " + repoPath + "/file-contents": tc.atOnce,
				"GET " + repoPath + "/git/blobs/" + one: blob("one"), "GET " + repoPath + "/git/blobs/" + two: blob(tc.second),
			}))
			snap, err := s.snapshot(t, gitprovider.SnapshotQuery{Paths: paths, Contents: true})
			wantCode(t, err, tc.want)
			if err == nil && (len(snap.Contents) != 2 || string(snap.Contents[paths[0]]) != "one" ||
				string(snap.Contents[paths[1]]) != "two") {
				t.Errorf("contents %v", snap.Contents)
			}
		})
	}
}

func TestContentsOfManyFilesCostAFewRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old  bool
		want int
	}{"at once": {false, 4 + 3}, "by a server without file-contents, three tries and then one by one": {true,
		4 + 3 + 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			var files []memhost.File
			var changes []gitprovider.FileChange
			for i := range 50 {
				files = append(files, memhost.File{Path: fmt.Sprintf("checks/n%d.md", i), Content: fmt.Sprint(i)})
				changes = append(changes, providertest.Update(files[i].Path, ""))
			}
			sc.Push(memhost.MainBranch, files...)
			sc.configure(func(s *fakegitea.Settings) { s.Features.NoFileContents = tc.old })
			q := sc.query(changes)
			q.Contents = true
			snap, err := sc.p.Snapshot(t.Context(), q)
			sc.must(err)
			sc.same("files", len(snap.Contents), 50)
			if n := sc.requests(); n > tc.want {
				t.Errorf("%d requests, want %d at most", n, tc.want)
			}
			snap, err = sc.p.Snapshot(t.Context(), q)
			sc.must(err)
			sc.same("files", len(snap.Contents), 50)
			if n := sc.requests(); tc.old && n > 4+50 {
				t.Errorf("%d requests of a server that is known, want %d at most", n, 4+50)
			}
		})
	}
}

func TestAListThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	t.Parallel()
	page := func(total int, from, to int) reply {
		var prs []object
		for i := from; i <= to; i++ {
			prs = append(prs, pull(i, nil))
		}
		return list(total, prs...)
	}
	read := 0
	script := routes{"GET " + repoPath + "/pulls": func(r *http.Request) reply {
		read++
		switch {
		case read == 2:
			return page(59, 52, 60) // somebody closed one of the first page: number 51 slipped past
		case r.URL.Query().Get("page") == "1":
			return page(60, 1, 50)
		default:
			return page(60, 51, 60)
		}
	}}
	for i := 1; i <= 60; i++ {
		script[fmt.Sprintf("GET %s/pulls/%d/files", repoPath, i)] = list(0)
	}
	prs, err := serve(t, script).provider(t).ListOpen(t.Context(), ref(), gitprovider.LabelOurs)
	wantCode(t, err, "")
	if len(prs) != 60 || prs[50].Number != 51 {
		t.Errorf("%v", numbers(prs))
	}
}

func TestAListThatNeverSettlesIsAFailure(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{"GET " + repoPath + "/pulls": func(r *http.Request) reply {
		if r.URL.Query().Get("page") == "1" {
			return list(2, pull(1, nil))
		}
		return list(3)
	}})
	_, err := s.provider(t).ListOpen(t.Context(), ref(), gitprovider.LabelOurs)
	wantCode(t, err, fault.UpstreamError)
}

func TestAListWithoutATotalIsReadToItsEmptyPage(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{
		"GET " + repoPath + "/pulls": func(r *http.Request) reply {
			switch r.URL.Query().Get("page") {
			case "1":
				return reply{body: []object{pull(1, nil)}}
			case "2":
				return reply{body: []object{pull(2, nil)}}
			}
			return reply{body: []object{}}
		},
		"GET " + repoPath + "/pulls/1/files": list(0), "GET " + repoPath + "/pulls/2/files": list(0),
	})
	prs, err := s.provider(t).ListOpen(t.Context(), ref(), gitprovider.LabelOurs)
	wantCode(t, err, "")
	if !slices.Equal(numbers(prs), []int{1, 2}) {
		t.Errorf("%v", numbers(prs))
	}
}

func TestAStrangersForkNeverLooksLikeOurs(t *testing.T) {
	t.Parallel()
	fork := func(repo any, id int) object {
		return object{"head": object{"label": ourBranch, "ref": ourBranch, "sha": madeCommit, "repo_id": id, "repo": repo},
			"labels": []object{}, "user": object{"login": "eve"}}
	}
	s := serve(t, routes{"GET " + repoPath +
		"/pulls": list(2, pull(1, fork(object{"owner": object{"login": "mallory"}}, 2)),
		pull(2, fork(nil, 0)))})
	found, err := s.provider(t).FindByHead(t.Context(), ref(), ourBranch)
	wantCode(t, err, "")
	if found != nil {
		t.Errorf("found %+v", found)
	}
}

func TestNullsInListsArePassedOver(t *testing.T) {
	t.Parallel()
	null := []any{nil}
	script := looking(routes{
		"GET " + repoPath + "/git/trees/HEAD":                    object{"sha": baseCommit, "tree": null},
		"GET " + repoPath + "/pulls":                             []any{nil, pull(1, object{"labels": null})},
		"GET " + repoPath + "/pulls/1":                           pull(1, object{"labels": null}),
		"GET " + repoPath + "/pulls/1/files":                     null,
		"GET " + repoPath + "/pulls/1/reviews":                   null,
		"GET " + repoPath + "/commits/" + madeCommit + "/status": object{"statuses": null},
	})
	for route, body := range script {
		if body, isPage := body.([]any); isPage {
			script[route] = reply{header: map[string]string{"X-Total-Count": fmt.Sprint(len(body))}, body: body}
		}
	}
	p := serve(t, script).provider(t)
	if _, err := p.Status(t.Context(), ref(), 1); err != nil {
		t.Error(err)
	}
	// The nulls make the list shorter than its total: it is read again, and then the call fails rather than lose one.
	_, err := p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref()})
	wantCode(t, err, fault.UpstreamError)
	for _, answer := range []any{object{}, nil} {
		_, err := serve(t, looking(routes{"GET " + repoPath: answer,
			"GET " + repoPath + "/git/trees/HEAD": object{"sha": baseCommit}})).snapshot(t, gitprovider.SnapshotQuery{})
		wantCode(t, err, fault.UpstreamError)
	}
}
