package fakegithub

import (
	"strings"
	"testing"
)

func TestInvalidDocumentsAreAnsweredWithErrorsOnly(t *testing.T) {
	b := newBed(t)
	for name, row := range map[string]struct{ query, want string }{
		"no syntax": {"{ repository {", "Parse error"},
		"an unknown field": {`{ repository(owner: "a", name: "b") { secret } }`,
			"Field 'secret' doesn't exist on type 'Repository'"},
		"a missing argument": {`{ repository(owner: "a") { id } }`, "missing required arguments: name"},
		"an unused variable": {`query($x: Int) { repository(owner: "a", name: "b") { id } }`, "never used"},
		"an argument's type": {`{ repository(owner: 1, name: "x") { id } }`, "String"},
		"an unknown enum": {`{ repository(owner: "a", name: "b") { pullRequests(states: DRAFT, first: 1) { totalCount } } }`,
			"DRAFT"},
		"two operations":      {`query A { nodes(ids: []) { id } } query B { nodes(ids: []) { id } }`, "operation name"},
		"a selection missing": {`{ nodes(ids: []) }`, "selection"},
	} {
		got := b.ask(row.query, nil)
		message, _ := got.at("errors", 0, "message").(string)
		data, has := got.json.(map[string]any)["data"]
		if !strings.Contains(message, row.want) || has {
			t.Errorf("%s: got %s with data %v, want an error with %q", name, got.raw, data, row.want)
		}
	}
	got := b.ask(`query($oid: GitObjectID!) { repository(owner: "a", name: "b") { object(oid: $oid) { ... on Commit { oid } } } }`,
		map[string]any{"oid": "main"})
	b.same("variable", got.at("errors", 0, "message"),
		any("Variable $oid of type GitObjectID! was provided invalid value"))
}

func TestRequestsThatAreNoDocumentsAreRefused(t *testing.T) {
	b := newBed(t)
	b.same("no query", b.want(b.send("POST", "/graphql", map[string]any{"variables": map[string]any{}}),
		400).at("message"),
		any("A query attribute must be specified and must be a string."))
	b.same("no JSON object", b.want(b.send("POST", "/graphql", "{"), 400).at("message"), any("Problems parsing JSON"))
}

func TestRefusalsOfQueries(t *testing.T) {
	b := newBed(t)
	repo := `repository(owner: "` + b.ref.Owner + `", name: "` + b.ref.Name + `")`
	for query, want := range map[string][2]string{
		`{ repository(owner: "octo", name: "none") { id } }`: {"NOT_FOUND",
			"Could not resolve to a Repository with the name 'octo/none'."},
		`{ ` + repo + ` { pullRequest(number: 7) { id } } }`: {"NOT_FOUND",
			"Could not resolve to a PullRequest with the number of 7."},
		`{ ` + repo + ` { pullRequests(first: 101) { totalCount } } }`: {"EXCESSIVE_PAGINATION",
			"Requesting 101 records on the `pullRequests` connection exceeds"},
		`{ ` + repo + ` { pullRequests { totalCount } } }`: {"MISSING_PAGINATION_BOUNDARIES",
			"You must provide a `first` or `last` value"},
		`{ ` + repo + ` { labels(first: 1, after: "x") { totalCount } } }`: {"INVALID_CURSOR_ARGUMENTS",
			"`x` does not appear to be a valid cursor."},
		`{ ` + repo + ` { refs(refPrefix: "heads", first: 1) { totalCount } } }`: {"UNPROCESSABLE", "refPrefix"},
	} {
		b.problem(b.ask(query, nil), want[0], want[1])
	}
}

func TestWhatIsFoundIsGivenBesideWhatIsNot(t *testing.T) {
	b := newBed(t)
	got := b.ask(`query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, map[string]any{"ids": []string{b.id(), "nonsense"}})
	b.same("nodes", got.at("data", "nodes"), any([]any{map[string]any{"id": b.id()}, nil}))
	b.same("path", got.at("errors", 0, "path"), any([]any{"nodes", 1.0}))
}

func TestRefusalsOfMutations(t *testing.T) {
	archived := func(s *Settings) { s.Archived = true }
	reader := func(s *Settings) { s.Token.Permission = "read" }
	fenced := func(s *Settings) { s.Protection.Protected = []string{"claude-ops/*/*", "main"} }
	commit := func(changes map[string]any) func(*bed) reply {
		return func(b *bed) reply {
			return b.mutate("createCommitOnBranch", map[string]any{
				"branch":          map[string]any{"repositoryNameWithOwner": b.ref.String(), "branchName": "main"},
				"expectedHeadOid": b.tip("main"), "message": map[string]any{"headline": "x"}, "fileChanges": changes,
			}, "commit { oid }")
		}
	}
	ref := func(name string) func(*bed) reply {
		return func(b *bed) reply {
			return b.mutate("createRef", map[string]any{"repositoryId": b.id(), "name": name, "oid": b.tip("main")},
				"ref { id }")
		}
	}
	move := func(name, before, after string) func(*bed) reply {
		return func(b *bed) reply {
			return b.mutate("updateRefs", map[string]any{"repositoryId": b.id(), "refUpdates": []any{
				map[string]any{"name": name, "beforeOid": before, "afterOid": after},
			}}, "clientMutationId")
		}
	}
	file := func(path, contents string) map[string]any { return map[string]any{"path": path, "contents": contents} }
	other := strings.Repeat("ab", 20)
	for name, row := range map[string]struct {
		set        func(*Settings)
		do         func(*bed) reply
		typ, words string
	}{
		"reference exists": {nil, ref("refs/heads/main"), "UNPROCESSABLE",
			`A ref named "refs/heads/main" already exists in the repository.`},
		"reference in the way": {nil, ref("refs/heads/main/x"), "UNPROCESSABLE", "Ref cannot be created"},
		"reference malformed":  {nil, ref("main2"), "UNPROCESSABLE", "not a valid ref name"},
		"reference fenced":     {fenced, ref("refs/heads/claude-ops/fix/a"), "UNPROCESSABLE", "creations being restricted"},
		"archived":             {archived, ref("refs/heads/x"), "UNPROCESSABLE", "Repository was archived so is read-only."},
		"reader": {reader, ref("refs/heads/x"), "FORBIDDEN",
			"Resource not accessible by personal access token"},
		"moved since":  {nil, move("refs/heads/main", other, zeroOid), "STALE_DATA", "expected refs/heads/main"},
		"gone already": {nil, move("refs/heads/none", other, zeroOid), "UNPROCESSABLE", "Reference does not exist"},
		"to no commit": {nil, move("refs/heads/new", zeroOid, other), "UNPROCESSABLE",
			"does not exist in the repository"},
		"deletion of no file": {nil, commit(map[string]any{"deletions": []any{map[string]any{"path": "none.md"}}}),
			"UNPROCESSABLE", "A path was requested for deletion which does not exist as of commit oid"},
		"a path twice": {nil, commit(map[string]any{"additions": []any{file("a", ""), file("a", "")}}),
			"UNPROCESSABLE", "more than once"},
		"a path that is no path": {nil, commit(map[string]any{"additions": []any{file("a/../b", "")}}),
			"UNPROCESSABLE", "not valid"},
		"commit on a fence": {fenced, commit(map[string]any{"additions": []any{file("a", "")}}), "UNPROCESSABLE",
			"through a pull request"},
		"no branch": {nil, func(b *bed) reply {
			return b.mutate("createCommitOnBranch", map[string]any{
				"branch":          map[string]any{"repositoryNameWithOwner": b.ref.String(), "branchName": "none"},
				"expectedHeadOid": other, "message": map[string]any{"headline": "x"},
			}, "commit { oid }")
		}, "NOT_FOUND", "'none'"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if row.set != nil {
				b.Configure(b.ref, row.set)
			}
			main := b.tip("main")
			got := row.do(b)
			b.problem(got, row.typ, row.words)
			b.same("main", b.tip("main"), main)
			b.same("branches", len(b.host.World(t, b.ref, nil).Branches()), 1)
		})
	}
}
