package fakegithub

import (
	"strings"
	"testing"
)

func TestASnapshotIsReadInOneQuery(t *testing.T) {
	b := newBed(t)
	tip := b.push("claude-ops/check/x", "checks/x.md", "x\n")
	number := b.host.World(t, b.ref, nil).OpenPR("claude-ops/check/x", "Watch x", "claude-ops")
	got := b.repo(`name isArchived isFork viewerPermission url
		defaultBranchRef { name target { oid ... on Commit {
			tree { entries { name mode oid } }
			checks: file(path: "checks") { mode object { __typename ... on Tree { entries { ...entry } } } }
			none: file(path: "none/such") { name }
		} } }
		taken: ref(qualifiedName: "refs/heads/claude-ops/check/x") { target { oid } }
		free: ref(qualifiedName: "refs/heads/claude-ops/check") { target { oid } }
		label(name: "CLAUDE-OPS") { name } lost: label(name: "nobody") { name }
		pullRequests(states: OPEN, first: 100, orderBy: {field: CREATED_AT, direction: ASC}) {
			totalCount pageInfo { hasNextPage endCursor }
			nodes { number headRefName headRefOid isCrossRepository labels(first: 10) { nodes { name } }
				files(first: 100) { nodes { path changeType } } mergeable again: mergeable }
		} } } fragment entry on TreeEntry { name mode object { ... on Blob { text byteSize }`)
	b.same("name", got.at("name"), any(b.ref.Name))
	b.same("base", got.at("defaultBranchRef", "target", "oid"), any(b.tip("main")))
	b.same("folder", got.at("defaultBranchRef", "target", "checks", "object", "entries", 0), any(map[string]any{
		"name": "disk.md", "mode": float64(0o100644),
		"object": map[string]any{"text": "# Disk\n\ndf -h\n", "byteSize": float64(14)},
	}))
	b.same("link", got.at("defaultBranchRef", "target", "checks", "object", "entries", 1, "mode"), any(float64(0o120000)))
	b.same("missing", got.at("defaultBranchRef", "target", "none"), nil)
	b.same("tip", got.at("taken", "target", "oid"), any(tip))
	b.same("free and unknown", []any{got.at("free"), got.at("lost")}, []any{nil, nil})
	b.same("label", got.at("label", "name"), any("claude-ops"))
	pr := got.at("pullRequests", "nodes", 0).(map[string]any)
	b.same("pull request", pr, map[string]any{
		"number": float64(number), "headRefName": "claude-ops/check/x", "headRefOid": tip, "isCrossRepository": false,
		"labels":    map[string]any{"nodes": []any{map[string]any{"name": "claude-ops"}}},
		"files":     map[string]any{"nodes": []any{map[string]any{"path": "checks/x.md", "changeType": "ADDED"}}},
		"mergeable": "UNKNOWN", "again": "UNKNOWN",
	})
}

func TestMutationsRunInTurnAndLeaveTheEarlierOnesDone(t *testing.T) {
	b := newBed(t)
	base := b.tip("main")
	doc := `mutation($ref: CreateRefInput!, $commit: CreateCommitOnBranchInput!) {
		createRef(input: $ref) { ref { name } }
		createCommitOnBranch(input: $commit) { commit { oid parents(first: 2) { nodes { oid } } } }
	}`
	vars := func(branch, expected string) map[string]any {
		return map[string]any{
			"ref": map[string]any{"repositoryId": b.id(), "name": "refs/heads/" + branch, "oid": base},
			"commit": map[string]any{
				"branch":          map[string]any{"repositoryNameWithOwner": b.ref.String(), "branchName": branch},
				"expectedHeadOid": expected, "message": map[string]any{"headline": "One", "body": "Two"},
				"fileChanges": map[string]any{
					"additions": []any{map[string]any{"path": "checks/new.md", "contents": "bmV3Cg=="}},
					"deletions": []any{map[string]any{"path": "README.md"}},
				},
			},
		}
	}
	good := b.ask(doc, vars("claude-ops/fix/a", base))
	b.same("tip", good.at("data", "createCommitOnBranch", "commit", "oid"), any(b.tip("claude-ops/fix/a")))
	b.same("parent", good.at("data", "createCommitOnBranch", "commit", "parents", "nodes", 0, "oid"), any(base))
	w := b.host.World(t, b.ref, nil)
	b.same("message", w.Message(b.tip("claude-ops/fix/a")), "One\n\nTwo")

	stale := b.ask(doc, vars("claude-ops/fix/b", strings.Repeat("ab", 20)))
	b.problem(stale, "STALE_DATA", "but it did not.  Pull and try again.")
	b.same("path", stale.at("errors", 0, "path"), any([]any{"createCommitOnBranch"}))
	b.same("first", stale.at("data", "createRef", "ref", "name"), any("claude-ops/fix/b"))
	b.same("second", stale.at("data", "createCommitOnBranch"), nil)
	b.same("branch", b.tip("claude-ops/fix/b"), base)
}
