package fakegithub

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func TestTheMergeabilityIsUnknownForSomeReadsAfterAChange(t *testing.T) {
	b := scene(t)
	b.Configure(b.ref, func(set *Settings) { set.Delays.MergeableReads = 2 })
	read := func() any {
		return b.repo(`pullRequest(number: 1) { mergeable }`).at("pullRequest", "mergeable")
	}
	b.same("reads", []any{read(), b.in("GET", "/pulls/1", nil).at("mergeable"), read()},
		[]any{"UNKNOWN", nil, "MERGEABLE"})
	b.push("main", "checks/x.md", "other\n")
	b.same("reads after a push", []any{read(), read(), read()}, []any{"UNKNOWN", "UNKNOWN", "CONFLICTING"})
}

func TestTheStateOfAMergeHasAReason(t *testing.T) {
	for want, set := range map[string]func(*Settings){
		"UNSTABLE": func(*Settings) {},
		"BLOCKED":  func(s *Settings) { s.Protection.RequireReview = true },
		"CLEAN":    func(s *Settings) { s.CI.CheckRuns = nil },
	} {
		b := scene(t)
		b.Configure(b.ref, func(s *Settings) { s.Delays.MergeableReads = 0; set(s) })
		if want == "BLOCKED" {
			b.host.World(t, b.ref, nil).Review(1, "ann", "dismissed", "")
		}
		b.same(want, b.in("GET", "/pulls/1", nil).at("mergeable_state"), any(lower(want)))
	}
}

func TestAPullRequestFromAForkIsMarkedAsOne(t *testing.T) {
	b := newBed(t)
	number := b.OpenFromFork(b.ref, "eve", "claude-ops/fix/a", "Trust me",
		memhost.File{Path: "checks/e.md", Content: "e\n"})
	got := b.repo(`refs(refPrefix: "refs/heads/", first: 9) { totalCount } pullRequest(number: ` + fmt.Sprint(number) + `) {
		isCrossRepository headRefName headRepository { owner { login } } headRef { name }
		files(first: 9) { nodes { path } } author { login } }`)
	pr := got.at("pullRequest").(map[string]any)
	b.same("pull request", pr, map[string]any{
		"isCrossRepository": true, "headRefName": "claude-ops/fix/a", "headRef": nil,
		"headRepository": map[string]any{"owner": map[string]any{"login": "eve"}}, "author": map[string]any{"login": "eve"},
		"files": map[string]any{"nodes": []any{map[string]any{"path": "checks/e.md"}}},
	})
	b.same("branches", got.at("refs", "totalCount"), any(1.0))
	b.same("by our head", len(b.in("GET", "/pulls?head=octo:claude-ops/fix/a", nil).json.([]any)), 0)
	b.same("by their head", len(b.in("GET", "/pulls?head=eve:claude-ops/fix/a", nil).json.([]any)), 1)
}

func TestARenamedFileHasBothNamesInREST(t *testing.T) {
	b := newBed(t)
	base := b.tip("main")
	b.mutate("createRef", map[string]any{"repositoryId": b.id(), "name": "refs/heads/r", "oid": base}, "ref { id }")
	b.mutate("createCommitOnBranch", map[string]any{
		"branch":          map[string]any{"repositoryNameWithOwner": b.ref.String(), "branchName": "r"},
		"expectedHeadOid": base, "message": map[string]any{"headline": "x"}, "fileChanges": map[string]any{
			"deletions": []any{map[string]any{"path": "checks/disk.md"}},
			"additions": []any{
				map[string]any{"path": "checks/storage.md", "contents": "IyBEaXNrCgpkZiAtaCAvCg=="},
				map[string]any{"path": "run.sh", "contents": "IyEvYmluL3NoCg=="},
			},
		},
	}, "commit { oid }")
	number := b.host.World(t, b.ref, nil).OpenPR("r", "Rename")
	files := b.in("GET", fmt.Sprintf("/pulls/%d/files", number), nil)
	b.same("renamed", []any{files.at(0, "status"), files.at(0, "filename"), files.at(0, "previous_filename")},
		[]any{"renamed", "checks/storage.md", "checks/disk.md"})
	b.same("its lines", []any{files.at(0, "additions"), files.at(0, "deletions")}, []any{1.0, 1.0})
	b.same("mode lost", []any{files.at(1, "status"), files.at(1, "filename")}, []any{"changed", "run.sh"})
}

func TestLargeAndBinaryBlobsHaveNoWholeText(t *testing.T) {
	b := newBed(t, memhost.File{Path: "large", Content: strings.Repeat("x", maxText+1)},
		memhost.File{Path: "binary", Content: "a\x00b"})
	got := b.repo(`large: object(expression: "main:large") { ... on Blob { text byteSize } }
		binary: object(expression: "HEAD:binary") { ... on Blob { text byteSize } }`)
	b.same("large", []any{len(got.at("large", "text").(string)), got.at("large", "byteSize")},
		[]any{maxText, float64(maxText + 1)})
	b.same("binary", got.at("binary", "text"), nil)
}

func TestTheNewestChangeComesFirst(t *testing.T) {
	b := newBed(t)
	w := b.host.World(t, b.ref, nil)
	for _, name := range []string{"a", "b", "c"} {
		b.push(name, name, name)
		w.OpenPR(name, name)
	}
	w.Close(2)
	b.in("GET", "", nil) // the server notices changes when it is asked
	w.SetBody(1, "edited")
	got := b.repo(`pullRequests(first: 2, orderBy: {field: UPDATED_AT, direction: DESC}) {
		nodes { number } pageInfo { endCursor hasNextPage } }`)
	b.same("first page", got.at("pullRequests", "nodes"), any([]any{
		map[string]any{"number": 1.0}, map[string]any{"number": 2.0},
	}))
	next := b.repo(`pullRequests(first: 2, after: "` + got.at("pullRequests", "pageInfo", "endCursor").(string) + `",
		orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { number } pageInfo { hasNextPage } }`)
	b.same("last page", next.at("pullRequests"), any(map[string]any{
		"nodes": []any{map[string]any{"number": 3.0}}, "pageInfo": map[string]any{"hasNextPage": false},
	}))
}

func TestSomebodyCanActBetweenTwoMutations(t *testing.T) {
	b := newBed(t)
	b.Configure(b.ref, func(set *Settings) {
		set.Delays.Before = func(mutation string, repo *memhost.Repo) {
			if mutation == "createRef" {
				repo.Write("main", "meanwhile", []memhost.File{{Path: "README.md", Content: "moved\n"}})
			}
		}
	})
	base := b.tip("main")
	got := b.mutate("createRef", map[string]any{"repositoryId": b.id(), "name": "refs/heads/x", "oid": base},
		"ref { repository { defaultBranchRef { target { oid } } } }")
	moved := got.at("data", "createRef", "ref", "repository", "defaultBranchRef", "target", "oid")
	b.same("main as the payload shows it", moved, any(b.tip("main")))
	if moved == any(base) {
		t.Error("main did not move")
	}
}

func TestOfManyWhoCreateOneBranchOneSucceeds(t *testing.T) {
	b := newBed(t)
	id, base := b.id(), b.tip("main")
	results := make([]reply, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			if i%2 == 0 {
				results[i] = b.in("POST", "/git/refs", map[string]any{"ref": "refs/heads/x", "sha": base})
			} else {
				results[i] = b.mutate("createRef", map[string]any{"repositoryId": id, "name": "refs/heads/x", "oid": base},
					"ref { id }")
			}
		})
	}
	wg.Wait()
	winners := 0
	for _, r := range results {
		if r.status == 201 || r.at("data", "createRef", "ref") != nil {
			winners++
		}
	}
	b.same("winners", winners, 1)
}
