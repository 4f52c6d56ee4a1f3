package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func spec() gitprovider.PullRequestSpec {
	return gitprovider.PullRequestSpec{Repo: repo(), Base: "main", Head: "claude-ops/fix/archived-scope", Title: "t",
		Body: "b"}
}

// After a definite refusal the caller need not check whether GitHub acted; after an ambiguous failure it must.
func TestRESTRefusalsOfAWriteHaveTheirCode(t *testing.T) {
	header := func(pairs ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	said := func(message string) string { return `{"message":` + strconv.Quote(message) + `}` }
	for name, row := range map[string]struct {
		status int
		header http.Header
		body   string
		want   fault.Code
		words  string // that the message has
	}{
		"a refused token":      {401, header(), said("Bad credentials"), fault.ProviderDisabled, "GITHUB_TOKEN"},
		"a missing repository": {404, header(), said("Not Found"), fault.NotFound, "may not see it"},
		"an archived repository": {403, header(), said("Repository was archived so is read-only."), fault.RepoNotAllowed,
			"archived"},
		"a fine-grained permission": {403, header(), said("Resource not accessible by personal access token"),
			fault.ProviderDisabled, "Pull requests: read and write"},
		"a permission in a header": {403, header("X-Accepted-GitHub-Permissions", "pull_requests=write"), said("No"),
			fault.ProviderDisabled, "pull_requests=write"},
		"a classic scope": {403, header("X-OAuth-Scopes", "gist, read:org", "X-Accepted-OAuth-Scopes", "repo"), said("No"),
			fault.ProviderDisabled, `one of "repo"`},
		"no rights at all": {403, header(), said("Must have push access to the repository"), fault.ProviderDisabled,
			"GITHUB_TOKEN"},
		"single sign-on": {403, header("X-GitHub-SSO", "required"),
			said("Resource protected by organization SAML enforcement."),
			fault.ProviderDisabled, "single sign-on"},
		"an address that is not let in": {403, header(), said("Although you appear to have the correct authorization " +
			"credentials, the `octo` organization has an IP allow list enabled, and your IP address is not permitted to " +
			"access this resource."), fault.ProviderDisabled, "added to the organisation's IP allow list"},
		"a classic token where none is taken": {403, header(), said("`octo` forbids access via a personal access token " +
			"(classic). Please use a GitHub App, OAuth App, or a personal access token with fine-grained permissions."),
			fault.ProviderDisabled, "takes no classic tokens"},
		"a token that lasts too long": {403, header(), said("The 'octo' organization forbids access via a fine-grained " +
			"personal access tokens if the token's lifetime is greater than 366 days."),
			fault.ProviderDisabled, "make one that expires sooner"},
		"a managed user": {403, header(), said("Unauthorized: As an Enterprise Managed User, you cannot access this content"),
			fault.ProviderDisabled, "token of another account"},
		"a blocked repository": {403, header(), `{"message":"Repository access blocked","block":{"reason":"tos"}}`,
			fault.RepoNotAllowed, "for everybody"},
		"a used-up limit": {403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset",
			strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)), said("API rate limit exceeded"), fault.RateLimited, ""},
		"a secondary limit": {403, header(), said("You have exceeded a secondary rate limit."), fault.RateLimited, ""},
		"a secondary limit by its documentation": {403, header("Retry-After", "90"),
			`{"message":"slow","documentation_url":` +
				`"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			fault.RateLimited, ""},
		"a second factor": {401, header("X-GitHub-OTP", "required; app"), said("Must specify two-factor code"),
			fault.ProviderDisabled, "GITHUB_TOKEN"},
		"too many requests": {429, header("Retry-After", "120"), said("slow down"), fault.RateLimited, ""},
		"too quick creations": {422, header(),
			`{"message":"Validation Failed","errors":[{"message":"was submitted too quickly"}]}`,
			fault.RateLimited, ""},
		"a state in the way":     {409, header(), said("Git Repository is empty."), fault.Conflict, ""},
		"a feature switched off": {410, header(), said("Pull requests are off"), fault.RepoNotAllowed, ""},
		"a legal block":          {451, header(), said("Repository access blocked"), fault.RepoNotAllowed, ""},
		"a rule of the repository": {422, header(), said("Repository rule violations found"), fault.RepoNotAllowed,
			"rule of the repository"},
		"a malformed title": {422, header(),
			`{"message":"Validation Failed","errors":[{"field":"title","code":"missing_field"}]}`,
			fault.InvalidArgument, "title is missing_field"},
		"a renamed repository": {301, header("Location", "/repositories/1/pulls"), said("Moved Permanently"),
			fault.Conflict, "renamed"},
		"another server":      {405, header(), `<html>`, fault.ProviderDisabled, "GITHUB_API_URL"},
		"a failure":           {500, header(), said("Server Error"), fault.UpstreamError, ""},
		"a bad gateway":       {502, header(), `<html>`, fault.UpstreamError, ""},
		"a gateway's timeout": {504, header(), ``, fault.Timeout, ""},
		"a page":              {200, header(), `<html>`, fault.UpstreamError, "GITHUB_API_URL"},
		"an empty answer":     {201, header(), `{}`, fault.UpstreamError, ""},
		"work for later":      {202, header(), `{}`, fault.UpstreamError, ""},
		"a branch named after a refusal": {422, header(), `{"message":"Validation Failed","errors":[{"message":` +
			`"No commits between main and claude-ops/fix/archived-scope"}]}`, fault.NoChange, ""},
	} {
		t.Run(name, func(t *testing.T) {
			faults, root := script(t, http.NotFoundHandler())
			row.header.Set("X-GitHub-Request-Id", "ABCD:1234")
			faults.PlanFrom(1, always(row.status, row.header, row.body))
			pr, err := setup(t, root, "t0ken").OpenPullRequest(t.Context(), spec())
			e := wantCode(t, err, row.want)
			if pr.Number != 0 || !strings.Contains(e.Message, row.words) || strings.Contains(e.Message, "<html>") {
				t.Errorf("number %d, message %q; want 0 and %q", pr.Number, e.Message, row.words)
			}
			if row.want == fault.RateLimited && e.RetryAfter < time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
			writes := slices.DeleteFunc(faults.Requests(), func(r httpfault.Seen) bool { return r.Path == "/graphql" })
			if len(writes) != 1 {
				t.Errorf("%d requests; a write is sent once", len(writes))
			}
		})
	}
}

func TestGraphQLErrorsHaveTheirCode(t *testing.T) {
	problem := func(kind, message, rest string) string {
		return `{"data":null,"errors":[{"type":"` + kind + `","message":` + strconv.Quote(message) + rest + `}]}`
	}
	for name, row := range map[string]struct {
		body  string
		want  fault.Code
		words string
	}{
		"a missing repository": {problem("NOT_FOUND",
			"Could not resolve to a Repository with the name 'octo/was archived so is'.",
			`,"path":["repository"]`), fault.NotFound, "may not see it"},
		"a missing permission": {problem("FORBIDDEN", "Resource not accessible by personal access token",
			`,"path":["repository"]`),
			fault.ProviderDisabled, "Pull requests: read"},
		"missing scopes": {problem("INSUFFICIENT_SCOPES", "Your token has not been granted the required scopes", ""),
			fault.ProviderDisabled, "GITHUB_TOKEN"},
		"single sign-on": {problem("FORBIDDEN", "Resource protected", `,"extensions":{"saml_failure":true}`),
			fault.ProviderDisabled, "single sign-on"},
		"an address that is not let in": {problem("FORBIDDEN", "Although you appear to have the correct authorization "+
			"credentials, the `octo` organization has an IP allow list enabled, and 192.0.2.1 is not permitted to access this "+
			"resource.", `,"path":["repository"]`), fault.ProviderDisabled, "added to the organisation's IP allow list"},
		"a classic token where none is taken": {problem("FORBIDDEN", "`octo` forbids access via a personal access token "+
			"(classic). Please use a GitHub App, OAuth App, or a personal access token with fine-grained permissions.",
			`,"path":["repository"]`), fault.ProviderDisabled, "takes no classic tokens"},
		"a used-up limit": {problem("RATE_LIMITED", "API rate limit exceeded", ""), fault.RateLimited, ""},
		"an unknown field": {problem("", "Field 'x' doesn't exist on type 'Query'",
			`,"extensions":{"code":"undefinedField"}`),
			fault.ProviderDisabled, "GITHUB_API_URL"},
		"compute limits": {problem("RESOURCE_LIMITS_EXCEEDED", "Resource limits for this query exceeded.",
			`,"path":["repository","pulls"]`), fault.UpstreamError, "Resource limits"},
		"a failure inside": {problem("", "Something went wrong while executing your query.", ""), fault.UpstreamError,
			""},
		"a type of the future":  {problem("SERVICE_UNAVAILABLE", "down", ""), fault.UpstreamError, ""},
		"no data and no errors": {`{"data":null}`, fault.UpstreamError, ""},
		"data of another shape": {`{"data":{"repository":{"pulls":{"nodes":"?"}}}}`, fault.UpstreamError, ""},
		"half an answer":        {`{"data":{"repository":{`, fault.UpstreamError, ""},
		"no repository":         {`{"data":{"repository":null}}`, fault.NotFound, ""},
		"a page":                {`<html>`, fault.UpstreamError, "GITHUB_API_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			faults, root := script(t, http.NotFoundHandler())
			faults.PlanFrom(1, always(200, nil, row.body))
			prs, err := setup(t, root, "t0ken").ListOpen(t.Context(), repo(), "claude-ops")
			e := wantCode(t, err, row.want)
			if prs != nil || !strings.Contains(e.Message, row.words) {
				t.Errorf("list %v, message %q; want none and %q", prs, e.Message, row.words)
			}
		})
	}
}

func TestAdviceOfARefusalReachesReadsAndWrites(t *testing.T) {
	s := newScene(t)
	req := s.request(branch)
	s.configure(func(set *fakegithub.Settings) {
		set.Token.Refusal = "The 'octo' organization forbids access via a fine-grained personal access tokens if the " +
			"token's lifetime is greater than 90 days."
	})
	_, reading := s.p.Snapshot(t.Context(), s.query())
	_, opening := s.p.OpenPullRequest(t.Context(), s.spec(branch))
	for _, err := range []error{reading, opening} {
		if e := wantCode(t, err, fault.ProviderDisabled); !strings.Contains(e.Message, "expires sooner") {
			t.Errorf("message %q", e.Message)
		}
	}
	s.configure(func(set *fakegithub.Settings) { set.Token.Refusal, set.Protection.Secret = "", "new" })
	_, err := s.p.Commit(t.Context(), req)
	if e := wantCode(t, err, fault.ContentDenied); !strings.Contains(e.Message, "take it out of the files") ||
		strings.Contains(e.Message, "exempted") {
		t.Errorf("message %q", e.Message)
	}
	s.gone(branch)
}

func TestWhatGitHubSaysIsCleanedBeforeItIsQuoted(t *testing.T) {
	faults, root := script(t, http.NotFoundHandler())
	faults.PlanFrom(1, always(422, nil, `{"message":"bad \u202e\u0007 t0ken-of-ours `+strings.Repeat("x", 5000)+`"}`))
	_, err := setup(t, root, "t0ken-of-ours").OpenPullRequest(t.Context(), spec())
	e := wantCode(t, err, fault.InvalidArgument)
	if strings.ContainsAny(e.Message, "\u202e\a") || strings.Contains(e.Message, "t0ken-of-ours") || len(e.Message) > 500 {
		t.Errorf("message %q", e.Message)
	}
}

// A limit is of one token: that of another owner's installation, or one that was replaced, has its own.
func TestALimitOfOneTokenStopsNoOther(t *testing.T) {
	for name, header := range map[string]http.Header{
		"of an hour's requests": {"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"},
			"X-Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}},
		"of a burst": {"Retry-After": {"600"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.commit(branch)
			s.s.Faults().Plan(nil, always(403, header,
				`{"message":"limit","documentation_url":"https://docs.github.com/rest#about-secondary-rate-limits"}`))
			_, err := s.p.OpenPullRequest(t.Context(), s.spec(branch))
			if e := wantCode(t, err, fault.RateLimited); e.RetryAfter < 9*time.Minute {
				t.Errorf("retry after %v", e.RetryAfter)
			}
			_, err = s.p.OpenPullRequest(t.Context(), s.spec(branch)) // as if with another token
			must.Do(t, err)
		})
	}
}

func TestAddresses(t *testing.T) {
	for name, row := range map[string]struct{ path, rest, graph string }{
		"of github.com":                     {"/", "/repos/octo/cluster/pulls", "/graphql"},
		"of an Enterprise Server":           {"/api/v3/", "/api/v3/repos/octo/cluster/pulls", "/api/graphql"},
		"without the slash at the end":      {"/api/v3", "/api/v3/repos/octo/cluster/pulls", "/api/graphql"},
		"of an Enterprise Server in a path": {"/ghe/api/v3/", "/ghe/api/v3/repos/octo/cluster/pulls", "/ghe/api/graphql"},
	} {
		t.Run(name, func(t *testing.T) {
			faults, root := script(t, http.NotFoundHandler())
			p := setup(t, root+row.path, "t0ken")
			_, err := p.OpenPullRequest(t.Context(), spec())
			wantCode(t, err, fault.NotFound)
			_, err = p.ListOpen(t.Context(), repo(), "x")
			wantCode(t, err, fault.NotFound)
			seen := faults.Requests()
			if len(seen) != 2 || seen[0].Path != row.rest || seen[1].Path != row.graph {
				t.Errorf("asked %+v, want %s and %s", seen, row.rest, row.graph)
			}
		})
	}
}

func TestNamesInAddressesAreEscaped(t *testing.T) {
	faults, root := script(t, http.NotFoundHandler())
	s := spec()
	s.Repo = gitprovider.RepoRef{Owner: "..", Name: "a/b?c#d%2e"}
	_, err := setup(t, root, "t0ken").OpenPullRequest(t.Context(), s)
	wantCode(t, err, fault.NotFound)
	if got := faults.Requests()[0]; strings.Count(got.Path, "/") != 4 || got.Query != "" ||
		strings.Contains(got.Path, "..") {
		t.Errorf("asked %s ? %s", got.Path, got.Query)
	}
}

// recordedAnswer is an answer of GitHub's, from the recordings that the fake is held to.
func recordedAnswer(t *testing.T, file string, at int) httpfault.Fault {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "testkit", "forgetest", "fakegithub", "testdata", "recorded",
		file+".json"))
	must.Do(t, err)
	var list []struct {
		Response struct {
			Status  int
			Headers map[string]string
			Body    json.RawMessage
		}
	}
	must.Do(t, json.Unmarshal(raw, &list))
	answer := list[at].Response
	header := http.Header{}
	for name, value := range answer.Headers {
		header.Set(name, value)
	}
	body := string(answer.Body)
	var text string
	if json.Unmarshal(answer.Body, &text) == nil { // bytes of a file
		body = text
	}
	return httpfault.Fault{Kind: httpfault.Status, Status: answer.Status, Header: header, Body: body}
}

func TestRecordedAnswersAreUnderstood(t *testing.T) {
	tests := map[string]struct {
		file string
		at   int
		code fault.Code // "" for success
		says string
	}{
		"labels that were set":         {"add-labels-to-issue", 2, "", ""},
		"a refusal that names a field": {"errors", 1, fault.InvalidArgument, "Validation Failed; color is invalid"},
		"a refusal of what exists already": {"release-assets-conflict", 0, fault.InvalidArgument,
			"Validation Failed; name is already_exists"},
		"a write under a former name":      {"rename-repository", 4, fault.Conflict, "renamed or moved"},
		"what is not there, said in words": {"branch-protection", 3, fault.NotFound, "no pull request"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			faults, root := script(t, http.NotFoundHandler())
			answer := recordedAnswer(t, tt.file, tt.at)
			answer.Header.Set("Location", strings.ReplaceAll(answer.Header.Get("Location"), "https://api.github.com", root))
			faults.Plan(nil, answer)
			p := setup(t, root, "ghp_token", func(o *github.Options) { o.CreateLabels = func() bool { return true } })
			err := p.Label(t.Context(), repo(), 1, []string{"Foo", "bAr", "baZ"})
			if tt.code == "" {
				must.Do(t, err)
				return
			}
			if f := wantCode(t, err, tt.code); !strings.Contains(f.Message, tt.says) {
				t.Errorf("the message is %q", f.Message)
			}
			if n := len(faults.Requests()); n != 1 {
				t.Errorf("%d requests: a write was made again", n)
			}
		})
	}
}

// A file whose text GraphQL does not give is read by REST, under a former name of the repository, too. The list that
// was recorded with it says which bytes it must be.
func TestARecordedFileIsReadUnderAFormerName(t *testing.T) {
	var listed []struct {
		Name, SHA string
		Size      int
	}
	must.Do(t, json.Unmarshal([]byte(recordedAnswer(t, "get-content", 0).Body), &listed))
	faults, root := script(t, http.NotFoundHandler())
	file := fmt.Sprintf(`{"name":%q,"mode":33188,"oid":%q,"object":{"byteSize":%d,"text":null}}`, listed[0].Name,
		listed[0].SHA, listed[0].Size)
	faults.Plan(nil, always(http.StatusOK, nil, `{"data":{"repository":{"id":"R_1","databaseId":1,"name":"hello-world",
		"owner":{"login":"octokit-fixture-org"},"defaultBranchRef":{"name":"master","target":{"oid":"`+
		strings.Repeat("1", 40)+`","tree":{"oid":"`+strings.Repeat("2", 40)+`","entries":[]},"file0":`+file+`}}}}}`))
	moved := recordedAnswer(t, "rename-repository", 2)
	moved.Header.Set("Location", strings.ReplaceAll(moved.Header.Get("Location"), "https://api.github.com", root))
	faults.Plan(nil, moved)
	faults.Plan(nil, recordedAnswer(t, "get-content", 1))
	path := providertest.Path(t, "README.md")
	got, err := setup(t, root, "ghp_token").Snapshot(t.Context(), gitprovider.SnapshotQuery{
		Repo: repo(), Paths: []gitprovider.Path{path}, Contents: true, FilesOnly: true,
	})
	must.Do(t, err)
	if string(got.Contents[path]) != "# hello-world" {
		t.Errorf("it holds %q", got.Contents[path])
	}
	seen := faults.Requests()
	if len(seen) != 3 || !strings.HasPrefix(seen[2].Path, "/repositories/") {
		t.Errorf("requests: %+v", seen)
	}
}
