package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/apispec"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// answers is read once, since it is large.
var answers = sync.OnceValues(func() (*apispec.Spec, error) { return describe("testdata/openapi-answers.json") })

// bed is a server with one repository, which holds its answers against the descriptions too.
type bed struct {
	*Server
	t   *testing.T
	ref gitprovider.RepoRef
}

func newBed(t *testing.T, files ...memhost.File) *bed {
	t.Helper()
	s := New(t)
	var err error
	if s.rest.answers, err = answers(); err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		files = []memhost.File{
			{Path: "README.md", Content: "# Home\n"}, {Path: "checks/disk.md", Content: "# Disk\n\ndf -h\n"},
			{Path: "run.sh", Content: "#!/bin/sh\n", Executable: true},
			{Path: "checks/link.md", Kind: gitprovider.KindSymlink, Content: "disk.md"},
			{Path: "vendor", Kind: gitprovider.KindSubmodule},
			{Path: ".github/workflows/ci.yml", Content: "on: pull_request\n"},
		}
	}
	return &bed{Server: s, t: t, ref: s.AddRepo(files...)}
}

// reply is an answer of REST, or the data and errors of GraphQL.
type reply struct {
	status int
	header http.Header
	raw    []byte
	json   any
}

// at reads a value deep inside an answer: names of fields and places in lists.
func (r reply) at(place ...any) any {
	v := r.json
	for _, part := range place {
		switch part := part.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[part]
		case int:
			list, _ := v.([]any)
			if part >= len(list) {
				return nil
			}
			v = list[part]
		}
	}
	return v
}

// send makes a request with the headers, in pairs of name and value, besides the token.
func (b *bed) send(method, path string, body any, headers ...string) reply {
	b.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.URL()+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.Token())
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode, header: resp.Header}
	if out.raw, err = io.ReadAll(resp.Body); err != nil {
		b.t.Fatal(err)
	}
	if len(out.raw) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(out.raw, &out.json); err != nil {
			b.t.Fatalf("%s %s: %v in %s", method, path, err, out.raw)
		}
	}
	return out
}

// in makes a request about the repository.
func (b *bed) in(method, path string, body any, headers ...string) reply {
	b.t.Helper()
	return b.send(method, "/repos/"+b.ref.String()+path, body, headers...)
}

// want demands a status.
func (b *bed) want(r reply, status int) reply {
	b.t.Helper()
	if r.status != status {
		b.t.Fatalf("got status %d, want %d: %s", r.status, status, r.raw)
	}
	return r
}

// ask executes a document.
func (b *bed) ask(query string, vars map[string]any) reply {
	b.t.Helper()
	return b.want(b.send(http.MethodPost, "/graphql", map[string]any{"query": query, "variables": vars}), 200)
}

// repo asks about the repository; it must succeed.
func (b *bed) repo(selection string) reply {
	b.t.Helper()
	r := b.ask(`query($o: String!, $n: String!) { repository(owner: $o, name: $n) { `+selection+` } }`,
		map[string]any{"o": b.ref.Owner, "n": b.ref.Name})
	if r.at("errors") != nil {
		b.t.Fatalf("errors: %s", r.raw)
	}
	r.json = r.at("data", "repository")
	return r
}

// mutate executes one mutation.
func (b *bed) mutate(name string, input map[string]any, selection string) reply {
	b.t.Helper()
	typ := strings.ToUpper(name[:1]) + name[1:] + "Input!"
	return b.ask(`mutation($in: `+typ+`) { `+name+`(input: $in) { `+selection+` } }`, map[string]any{"in": input})
}

// problem demands one error of a type, with a message that has the words.
func (b *bed) problem(r reply, typ, words string) {
	b.t.Helper()
	message, _ := r.at("errors", 0, "message").(string)
	if r.at("errors", 0, "type") != any(typ) || !strings.Contains(message, words) {
		b.t.Fatalf("want the error %s %q in %s", typ, words, r.raw)
	}
}

func (b *bed) same(what string, got, want any) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// push writes a file to a branch behind the doors.
func (b *bed) push(branch, path, content string) string {
	b.t.Helper()
	return b.host.World(b.t, b.ref, nil).Push(branch, memhost.File{Path: path, Content: content})
}

// tip is the commit of a branch.
func (b *bed) tip(branch string) (out string) {
	b.host.Locked(func() { out = b.host.Repo(b.ref).Branches[branch] })
	return out
}

// id is the node id of the repository.
func (b *bed) id() string { return b.repo(`id`).at("id").(string) }

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
