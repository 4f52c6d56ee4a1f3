package fakegithub

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// scene is a bed with an open pull request, #1, from claude-ops/check/x.
func scene(t *testing.T) *bed {
	b := newBed(t)
	tip := b.push("claude-ops/check/x", "checks/x.md", "x\n")
	w := b.host.World(t, b.ref, nil)
	w.OpenPR("claude-ops/check/x", "Watch x", "claude-ops")
	w.Review(1, "ann", gitprovider.ReviewApproved, "Fine")
	b.Configure(b.ref, func(set *Settings) {
		set.People.Collaborators, set.People.Teams = []string{"ann"}, []string{"crew"}
		set.CI.CheckRuns = map[string][]CheckRun{tip: {{Name: "test", Conclusion: "failure"},
			{Name: "slow", Status: "queued"}}}
		set.CI.Statuses = map[string][]Status{tip: {{Context: "lint", State: "success"}}}
	})
	return b
}

func TestReadsFitTheDescription(t *testing.T) {
	b := scene(t)
	b.Configure(b.ref, func(set *Settings) {
		set.Token.Permission, set.Protection.Protected, set.Protection.RequireReview = "admin", []string{"main"}, true
	})
	tip := b.tip("claude-ops/check/x")
	tree := b.in("GET", "/git/trees/main", nil).at("sha").(string)
	for path, want := range map[string]struct {
		place []any
		value any
	}{
		"":                                 {[]any{"permissions", "admin"}, true},
		"/branches?per_page=1":             {[]any{0, "name"}, "claude-ops/check/x"},
		"/branches/claude-ops%2Fcheck%2Fx": {[]any{"commit", "sha"}, tip},
		"/branches/claude-ops/check/x":     {[]any{"protected"}, false},
		"/branches/main/protection": {[]any{"required_pull_request_reviews", "required_approving_review_count"},
			1.0},
		"/rules/branches/main":                    {[]any{0, "type"}, "creation"},
		"/git/ref/heads/claude-ops/check/x":       {[]any{"object", "sha"}, tip},
		"/git/matching-refs/heads/claude-ops/ch":  {[]any{0, "ref"}, "refs/heads/claude-ops/check/x"},
		"/git/trees/" + tree:                      {[]any{"sha"}, tree},
		"/git/trees/main?recursive=1":             {[]any{"tree", 2, "path"}, ".github/workflows/ci.yml"},
		"/git/commits/" + tip:                     {[]any{"message"}, "pushed"},
		"/git/blobs/" + blobID("# Home\n"):        {[]any{"content"}, "IyBIb21lCg==\n"},
		"/contents/checks?ref=main":               {[]any{0, "type"}, "file"},
		"/contents/checks/disk.md":                {[]any{"encoding"}, "base64"},
		"/contents/checks/link.md":                {[]any{"target"}, "disk.md"},
		"/contents/vendor":                        {[]any{"type"}, "submodule"},
		"/pulls?head=octo:claude-ops/check/x":     {[]any{0, "number"}, 1.0},
		"/pulls?state=all&sort=updated":           {[]any{0, "head", "sha"}, tip},
		"/pulls/1":                                {[]any{"mergeable"}, nil},
		"/pulls/1/files":                          {[]any{0, "filename"}, "checks/x.md"},
		"/pulls/1/reviews":                        {[]any{0, "state"}, "APPROVED"},
		"/pulls/1/requested_reviewers":            {[]any{"users"}, []any{}},
		"/issues/1/labels":                        {[]any{0, "name"}, "claude-ops"},
		"/labels":                                 {[]any{1, "name"}, "automated"},
		"/labels/Claude-Ops":                      {[]any{"name"}, "claude-ops"},
		"/commits/" + tip + "/status":             {[]any{"state"}, "success"},
		"/commits/claude-ops/check/x/check-runs":  {[]any{"total_count"}, 2.0},
		"/commits/main/status":                    {[]any{"state"}, "pending"},
		"/actions/permissions":                    {[]any{"enabled"}, true},
		"/actions/workflows":                      {[]any{"workflows", 0, "path"}, ".github/workflows/ci.yml"},
		"/pulls/1/files?per_page=100&page=2":      {[]any{0}, nil},
		"/commits/main/check-runs?check_name=any": {[]any{"total_count"}, 0.0},
	} {
		got := b.want(b.in("GET", path, nil), 200)
		b.same(path, got.at(want.place...), want.value)
	}
	b.same("viewer", b.want(b.send("GET", "/user", nil), 200).at("login"), any(viewer))
	b.same("limit", b.want(b.send("GET", "/rate_limit", nil), 200).at("rate", "limit"), any(5000.0))
}

func blobID(content string) string { return gitprovider.BlobID([]byte(content), "") }

func TestBytesAreGivenToWhoAsksForThem(t *testing.T) {
	b := newBed(t, memhost.File{Path: "a.bin", Content: "\x00\xff\n"})
	for _, path := range []string{"/git/blobs/" + blobID("\x00\xff\n"), "/contents/a.bin"} {
		got := b.want(b.in("GET", path, nil, "Accept", "application/vnd.github.raw+json"), 200)
		b.same(path, string(got.raw), "\x00\xff\n")
	}
}

func TestACommitIsMadeOfATree(t *testing.T) {
	b := newBed(t)
	base := b.tip("main")
	blob := b.want(b.in("POST", "/git/blobs", map[string]any{"content": "aGk=", "encoding": "base64"}), 201).at("sha")
	tree := b.want(b.in("POST", "/git/trees", map[string]any{"base_tree": base, "tree": []any{
		map[string]any{"path": "run.sh", "mode": "100755", "type": "blob", "content": "new\n"},
		map[string]any{"path": "hi.md", "mode": "100644", "type": "blob", "sha": blob},
		map[string]any{"path": "README.md", "mode": "100644", "type": "blob", "sha": nil},
	}}), 201).at("sha")
	commit := b.want(b.in("POST", "/git/commits", map[string]any{
		"message": "Run", "tree": tree, "parents": []any{base},
		"author": map[string]any{"name": "Ops", "email": "ops@example.org", "date": "2026-03-04T05:06:07Z"},
	}), 201)
	b.same("date", commit.at("author", "date"), any("2026-03-04T05:06:07Z"))
	id := commit.at("sha").(string)
	b.want(b.in("POST", "/git/refs", map[string]any{"ref": "refs/heads/claude-ops/fix/a", "sha": id}), 201)
	w := b.host.World(t, b.ref, nil)
	files := map[string]memhost.File{}
	for _, f := range w.Files(b.tip("claude-ops/fix/a")) {
		files[f.Path] = f
	}
	b.same("script", files["run.sh"], memhost.File{Path: "run.sh", Kind: "file", Executable: true, Content: "new\n"})
	b.same("blob", files["hi.md"].Content, "hi")
	b.same("removed", files["README.md"].Path, "")
	b.same("kept", []gitprovider.EntryKind{files["checks/link.md"].Kind, files["vendor"].Kind},
		[]gitprovider.EntryKind{"symlink", "submodule"})
	b.same("parents", w.Parents(id), []string{base})
}

func TestWritesAreAnsweredAsTheDescriptionHasIt(t *testing.T) {
	b := scene(t)
	b.push("claude-ops/check/y", "checks/y.md", "y\n")
	pr := b.want(b.in("POST", "/pulls", map[string]any{"title": "Y", "head": "claude-ops/check/y", "base": "main",
		"body": "Why", "draft": true}), 201)
	b.same("draft", []any{pr.at("draft"), pr.at("number"), pr.at("user", "login")}, []any{true, 2.0, viewer})
	labels := b.want(b.in("POST", "/issues/2/labels", []string{"CLAUDE-OPS", "brand-new"}), 200)
	b.same("labels", []any{labels.at(0, "name"), labels.at(1, "name")}, []any{"claude-ops", "brand-new"})
	b.want(b.in("GET", "/labels/brand-new", nil), 200)
	b.want(b.in("POST", "/labels", map[string]any{"name": "infra", "color": "ff0000"}), 201)
	asked := b.want(b.in("POST", "/pulls/2/requested_reviewers",
		map[string]any{"reviewers": []string{"ann"}, "team_reviewers": []string{"crew"}}), 201)
	b.same("asked", []any{asked.at("requested_reviewers", 0, "login"), asked.at("requested_teams", 0, "slug")},
		[]any{"ann", "crew"})
	assigned := b.want(b.in("POST", "/issues/2/assignees", map[string]any{"assignees": []string{"ann", "stranger"}}), 201)
	b.same("assigned", []any{assigned.at("assignees", 0, "login"), assigned.at("assignees", 1)}, []any{"ann", nil})
	closed := b.want(b.in("PATCH", "/pulls/2", map[string]any{"state": "closed", "title": "Z"}), 200)
	b.same("closed", []any{closed.at("state"), closed.at("title"), closed.at("merged")}, []any{"closed", "Z", false})
	b.want(b.in("PATCH", "/git/refs/heads/claude-ops/check/y", map[string]any{"sha": b.tip("main"), "force": true}), 200)
	b.want(b.in("DELETE", "/git/refs/heads/claude-ops/check/x", nil), 204)
	b.same("closed with its branch", b.in("GET", "/pulls/1", nil).at("state"), any("closed"))
}

func TestPagesAreLinked(t *testing.T) {
	b := newBed(t)
	for _, name := range []string{"a", "b", "c"} {
		b.push("claude-ops/fix/"+name, "checks/"+name+".md", name)
	}
	first := b.want(b.in("GET", "/branches?per_page=2", nil), 200)
	base := fmt.Sprintf("%s/repositories/%.0f/branches?per_page=2&page=2", b.URL(),
		b.want(b.in("GET", "", nil), 200).at("id"))
	b.same("link", first.header.Get("Link"), "<"+base+`>; rel="next", <`+base+`>; rel="last"`)
	second := b.want(b.in("GET", "/branches?per_page=2&page=2", nil), 200)
	if link := second.header.Get("Link"); strings.Contains(link, `rel="next"`) || !strings.Contains(link, `rel="prev"`) {
		t.Errorf("link of the last page: %s", link)
	}
	for _, name := range []string{"X-Github-Request-Id", "X-Ratelimit-Remaining", "X-Oauth-Scopes"} {
		if second.header.Get(name) == "" {
			t.Errorf("no header %s", name)
		}
	}
}

func TestARenamedRepositoryIsFound(t *testing.T) {
	b := newBed(t)
	b.Configure(b.ref, func(set *Settings) { set.RenamedFrom = []string{"octo/Old"} })
	moved := b.want(b.send("GET", "/repos/octo/old/git/ref/heads/main", nil), 301)
	to, err := url.Parse(moved.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	b.same("there", b.want(b.send("GET", to.Path, nil), 200).at("ref"), any("refs/heads/main"))
	b.want(b.send("POST", "/repos/octo/old/labels", map[string]any{"name": "x"}), http.StatusTemporaryRedirect)
	got := b.ask(`{ repository(owner: "octo", name: "old") { name } }`, nil)
	b.same("GraphQL", got.at("data", "repository", "name"), any(b.ref.Name))
	b.problem(b.ask(`{ repository(owner: "octo", name: "old", followRenames: false) { id } }`, nil), "NOT_FOUND",
		"'octo/old'")
}

// recorder is a test whose failures are wanted.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Errorf(format string, a ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, a...))
}

func TestRequestsThatGitHubDoesNotKnowFailTheTest(t *testing.T) {
	for name, row := range map[string]struct {
		method, path string
		body         any
		want         string
	}{
		"an unknown route":            {"GET", "/zen", nil, "no route"},
		"a wrong method":              {"PUT", "/pulls", nil, "no route"},
		"an unknown query parameter":  {"GET", "/pulls?labels=x", nil, "query parameter labels is unknown"},
		"a query of another type":     {"GET", "/pulls?per_page=many", nil, "per_page"},
		"a value outside an enum":     {"GET", "/pulls?state=merged", nil, "state"},
		"a path of another type":      {"GET", "/pulls/one", nil, "pull_number"},
		"a body without what it must": {"POST", "/pulls", map[string]any{"title": "x", "head": "y"}, "base"},
		"an unknown field": {"POST", "/labels", map[string]any{"name": "x", "colour": "f"},
			"unknown field colour"},
		"a field of another type":   {"POST", "/git/refs", map[string]any{"ref": "refs/heads/x", "sha": 1}, "sha"},
		"a body where none belongs": {"GET", "/labels", map[string]any{}, "where none is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			r := &recorder{TB: t}
			b.Server.t = r
			b.in(row.method, row.path, row.body)
			if len(r.failures) != 1 || !strings.Contains(r.failures[0], row.want) {
				t.Errorf("failures %q, want one that says %q", r.failures, row.want)
			}
		})
	}
}

func TestWhoHasNoTokenIsRefused(t *testing.T) {
	b := newBed(t)
	for header, want := range map[string]string{
		"": "Requires authentication", "Bearer wrong": "Bad credentials", "Basic " + b.Token(): "Bad credentials",
	} {
		for _, path := range []string{"/repos/" + b.ref.String(), "/graphql"} {
			got := b.want(b.send("POST", path, map[string]any{"query": "{ viewer { login } }"}, "Authorization", header), 401)
			b.same(header, got.at("message"), any(want))
		}
	}
	b.want(b.send("GET", "/user", nil, "Authorization", "token "+b.Token()), 200)
}

func TestRefusalsOfREST(t *testing.T) {
	pull := func(title, head, base string) any { return map[string]any{"title": title, "head": head, "base": base} }
	long := strings.Repeat("ä", 257)
	for name, row := range map[string]struct {
		set          func(*Settings)
		method, path string
		body         any
		status       int
		words        string
	}{
		"pull request twice": {nil, "POST", "/pulls", pull("x", "claude-ops/check/x", "main"), 422,
			"A pull request already exists for octo:claude-ops/check/x."},
		"pull request of nothing new": {nil, "POST", "/pulls", pull("x", "same", "main"), 422,
			"No commits between main and same"},
		"pull request of no head":      {nil, "POST", "/pulls", pull("x", "none", "main"), 422, `"field":"head"`},
		"pull request of no base":      {nil, "POST", "/pulls", pull("x", "same", "none"), 422, `"field":"base"`},
		"pull request without a title": {nil, "POST", "/pulls", pull(" ", "same", "main"), 422, `"code":"missing_field"`},
		"pull request with a long title": {nil, "POST", "/pulls", pull(long, "same", "main"), 422,
			"title is too long (maximum is 256 characters)"},
		"draft": {func(s *Settings) { s.NoDrafts = true }, "POST", "/pulls",
			map[string]any{"title": "x", "head": "new", "base": "main", "draft": true}, 422,
			"Draft pull requests are not supported in this repository."},
		"missing pull request": {nil, "GET", "/pulls/99", nil, 404, "Not Found"},
		"reviewer": {nil, "POST", "/pulls/1/requested_reviewers",
			map[string]any{"reviewers": []string{"eve"}}, 422, "is not a collaborator of the octo/"},
		"author as reviewer": {nil, "POST", "/pulls/1/requested_reviewers",
			map[string]any{"reviewers": []string{viewer}}, 422, "from pull request author"},
		"label twice":   {nil, "POST", "/labels", map[string]any{"name": "claude-ops"}, 422, "already_exists"},
		"missing label": {nil, "GET", "/labels/none", nil, 404, "Not Found"},
		"existing reference": {nil, "POST", "/git/refs", map[string]any{"ref": "refs/heads/same", "sha": "TIP"},
			422, "Reference already exists"},
		"reference in the way": {nil, "POST", "/git/refs", map[string]any{"ref": "refs/heads/same/x", "sha": "TIP"},
			422, "Reference update failed"},
		"reference to nothing": {nil, "POST", "/git/refs", map[string]any{"ref": "refs/heads/n", "sha": zeroOid}, 422,
			"Object does not exist"},
		"malformed reference": {nil, "POST", "/git/refs", map[string]any{"ref": "refs/heads/a..b", "sha": "TIP"},
			422, "not a valid ref name"},
		"reference backwards": {nil, "PATCH", "/git/refs/heads/new", map[string]any{"sha": "TIP"}, 422,
			"Update is not a fast forward"},
		"deleting what is gone": {nil, "DELETE", "/git/refs/heads/none", nil, 422, "Reference does not exist"},
		"protected branch": {func(s *Settings) { s.Protection.Protected = []string{"claude-ops/*/*"} }, "POST", "/git/refs",
			map[string]any{"ref": "refs/heads/claude-ops/fix/a", "sha": "TIP"}, 422,
			"Cannot create ref due to creations being restricted."},
		"unprotected branch": {func(s *Settings) { s.Token.Permission = "admin" }, "GET", "/branches/main/protection", nil,
			404, "Branch not protected"},
		"protection, writer": {nil, "GET", "/branches/main/protection", nil, 403, "not accessible by personal access token"},
		"missing branch":     {nil, "GET", "/branches/none", nil, 404, "Branch not found"},
		"archived": {func(s *Settings) { s.Archived = true }, "POST", "/labels",
			map[string]any{"name": "x"}, 403, "Repository was archived so is read-only."},
		"reader": {func(s *Settings) { s.Token.Permission = "read" }, "POST", "/issues/1/labels", []string{"x"},
			403, "not accessible by personal access token"},
		"token without scope": {func(s *Settings) { s.Token.MissingScopes = true }, "POST", "/git/refs",
			map[string]any{"ref": "refs/heads/n", "sha": "TIP"}, 403, "not accessible by personal access token"},
		"private repository": {func(s *Settings) { s.Private, s.Token.MissingScopes = true, true }, "GET", "", nil, 404,
			"Not Found"},
		"empty repository": {func(s *Settings) { s.Empty = true }, "GET", "/git/ref/heads/main", nil, 409,
			"Git Repository is empty."},
		"missing commit": {nil, "GET", "/commits/none/status", nil, 422, "No commit found for SHA: none"},
		"removing no file": {nil, "POST", "/git/trees", map[string]any{"base_tree": "TIP", "tree": []any{
			map[string]any{"path": "none.md", "mode": "100644", "type": "blob", "sha": nil}}}, 422, "GitRPC::BadObjectState"},
	} {
		t.Run(name, func(t *testing.T) {
			b := scene(t)
			tip := b.tip("main")
			err := b.host.Act(b.ref, func(repo *memhost.Repo) error {
				repo.Branches["same"] = tip
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b.push("new", "checks/n.md", "n\n")
			if row.set != nil {
				b.Configure(b.ref, row.set)
			}
			if m, isMap := row.body.(map[string]any); isMap {
				for _, field := range []string{"sha", "base_tree"} {
					if m[field] == "TIP" {
						m[field] = tip
					}
				}
			}
			got := b.want(b.in(row.method, row.path, row.body), row.status)
			if !strings.Contains(string(got.raw), row.words) || got.at("documentation_url") == nil {
				t.Errorf("got %s, want %q", got.raw, row.words)
			}
		})
	}
}

func TestATokenWithoutScopesSaysSo(t *testing.T) {
	b := newBed(t)
	b.Configure(b.ref, func(s *Settings) { s.Token.MissingScopes = true })
	got := b.want(b.in("POST", "/git/refs", map[string]any{"ref": "refs/heads/n", "sha": b.tip("main")}), 403)
	b.same("has and needs", []string{got.header.Get("X-OAuth-Scopes"), got.header.Get("X-Accepted-GitHub-Permissions")},
		[]string{"read:user", "contents=write"})
}
