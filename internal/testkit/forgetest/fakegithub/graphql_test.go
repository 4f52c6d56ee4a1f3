package fakegithub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
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
		"a path that is not a path": {nil, commit(map[string]any{"additions": []any{file("a/../b", "")}}),
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

// walker visits every type of object that can be reached from a root.
type walker struct {
	b     *bed
	args  args
	found map[string]*gql.Object
}

func (w *walker) visit(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			w.visit(item)
		}
	case *gql.Object:
		if v == nil || (w.found[v.Type] != nil && !w.lacksEdge(v.Type)) {
			return
		}
		w.found[v.Type] = v
		for _, name := range slices.Sorted(maps.Keys(v.Fields)) {
			field := v.Fields[name]
			if compute, isLazy := field.(lazy); isLazy && v.Type != "Mutation" {
				var err error
				if field, err = compute(maps.Clone(w.args)); err != nil {
					w.b.t.Errorf("%s.%s: %v", v.Type, name, err)
				}
			}
			w.visit(field)
		}
	}
}

// lacksEdge reports whether all connections of a type were empty so far.
func (w *walker) lacksEdge(typ string) bool {
	name, isConnection := strings.CutSuffix(typ, "Connection")
	return isConnection && w.found[name+"Edge"] == nil
}

// explore is a bed where something of every type exists, and a walk through it.
func explore(t *testing.T) *walker {
	b := newBed(t)
	tip := b.push("claude-ops/check/x", "checks/x.md", "x\n")
	world := b.host.World(t, b.ref, nil)
	number := world.OpenPR("claude-ops/check/x", "Watch x", "claude-ops")
	world.ReviewLines(number, "ann", "approved", "Fine", gitprovider.LineComment{Path: "checks/x.md", Line: 1,
		Body: "This"})
	world.Comment(number, "ann", "Why?")
	b.Configure(b.ref, func(set *Settings) {
		set.Token.Permission, set.Protection.Protected, set.Archived = "admin", []string{"ma*", "claude-ops/check/*"}, true
		set.CI.CheckRuns = map[string][]CheckRun{tip: {{Name: "a test", Conclusion: "failure"}}}
		set.CI.Statuses = map[string][]Status{tip: {{Context: "lint", State: "success"}}}
		set.People.Collaborators, set.People.Teams = []string{"ann"}, []string{"crew"}
	})
	w := &walker{b: b, found: map[string]*gql.Object{}, args: args{
		"owner": b.ref.Owner, "name": b.ref.Name, "first": 10, "number": number, "path": "vendor",
		"qualifiedName": "refs/heads/claude-ops/check/x", "refPrefix": "refs/heads/", "expression": "main:checks",
		"id": b.id(), "ids": []any{b.id()},
	}}
	b.host.Locked(func() {
		p := b.repos.find(b.ref.Owner, b.ref.Name, false)
		st := p.pull(p.repo.PR(number))
		st.reviewers, st.teams, st.assignees = []string{"ann"}, []string{"crew"}, []string{"ann"}
		w.visit(p.graph().repo())
		w.visit(b.graph.queryRoot())
		w.visit(b.graph.mutationRoot())
		delete(w.found, "Commit") // the one so far was the first, without parents and checks
		w.visit(p.git().commit(tip))
		w.visit(p.graph().label("claude-ops"))
		w.visit(p.graph().team("crew"))
		w.visit(p.git().expression(args{"expression": "main:README.md"}))
	})
	return w
}

func TestEveryFieldOfTheSchemaHasAValue(t *testing.T) {
	w := explore(t)
	for typ, want := range w.b.graph.schema.ObjectTypes() {
		obj := w.found[typ]
		if obj == nil {
			if !slices.Contains([]string{"Bot", "Mannequin"}, typ) && !strings.HasSuffix(typ, "Payload") {
				t.Errorf("no %s was reached", typ) // there are no bots here
			}
			continue
		}
		have := slices.Sorted(maps.Keys(obj.Fields))
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s has values for %v, the schema fields %v", typ, have, want)
		}
	}
}

func TestValuesAreOfTheTypesThatTheSchemaHas(t *testing.T) {
	w := explore(t)
	for _, typ := range slices.Sorted(maps.Keys(w.found)) {
		id, isNode := w.found[typ].Fields["id"].(string)
		if !isNode || typ == "Query" {
			continue
		}
		var leaves []string
		for name, value := range w.found[typ].Fields {
			if _, isLazy := value.(lazy); !isLazy {
				if _, isObject := value.(*gql.Object); !isObject {
					leaves = append(leaves, name)
				}
			}
		}
		roots := gql.Roots{Around: func(do func()) { do() },
			Query: &gql.Object{Type: "Query", Fields: fields{"nodes": []any{w.found[typ]}}}}
		out := w.b.graph.schema.Execute(gql.Request{
			Query: fmt.Sprintf(`{ nodes(ids: [%q]) { ... on %s { %s } } }`, id, typ, strings.Join(leaves, " ")),
		}, roots)
		if len(out.Problems)+len(out.Defects) > 0 || !out.Executed {
			t.Errorf("%s: %v %v", typ, out.Problems, out.Defects)
		}
	}
}
