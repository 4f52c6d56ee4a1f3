package fakegithub

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

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
