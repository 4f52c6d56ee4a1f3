package gitea_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// issueReader reads at a server that answers as routers/api/v1/repo of go-gitea/gitea do.
func issueReader(t *testing.T, answers forgetest.IssueAnswers) gitprovider.IssueReader {
	t.Helper()
	return newProvider(t, answers.Serve(t, "/api/v1", func(_ http.ResponseWriter, r *http.Request) {
		if since := r.URL.Query().Get("since"); r.URL.Query().Has("page") {
			if at, err := time.Parse(time.RFC3339, since); err != nil || at.IsZero() {
				t.Errorf("the timeline is asked for since %s", since)
			}
		}
	}), "0123456789abcdef0123456789abcdef01234567")
}

func oneIssue() forgetest.IssueAnswers {
	return forgetest.IssueAnswers{
		"/user": `{"id":9,"login":"ops-bot"}`,
		"/issues/7": `{"number":7,"title":"Slow","body":"Since Tuesday","pull_request":null,
			"labels":[{"id":1,"name":"claude-ops"}],"user":{"id":3,"login":"stranger"}}`,
		"/issues/comments/31": `{"id":31,"body":"/claude-ops","user":{"id":2,"login":"ann"},"original_author":"",
			"issue_url":"http://git/joe/infra/issues/7","pull_request_url":"",
			"created_at":"2026-11-27T10:20:21Z","updated_at":"2026-11-27T10:20:21Z"}`,
		"/collaborators/ann/permission": `{"permission":"write","role_name":"write","user":{"id":2,"login":"ann"}}`,
		"/teams":                        "405",
		"/issues/7/timeline?1": `[
			{"id":40,"type":"label","body":"1","user":{"id":3,"login":"old"},"label":{"name":"claude-ops"},"created_at":"2026-11-27T10:00:00Z"},
			{"id":41,"type":"label","body":"","user":{"id":3,"login":"old"},"label":{"name":"claude-ops"},"created_at":"2026-11-27T10:01:00Z"},
			{"id":42,"type":"label","body":"1","user":{"id":2,"login":"ann"},"label":{"name":"Claude-Ops"},"created_at":"2026-11-27T10:20:21Z"},
			{"id":43,"type":"label","body":"1","user":{"id":4,"login":"late"},"label":{"name":"bug"},"created_at":"2026-11-27T10:21:00Z"},
			{"id":44,"type":"comment","body":"1","user":{"id":4,"login":"late"},"label":null,"created_at":"2026-11-27T10:22:00Z"}, null]`,
		"/issues/7/timeline?2": `null`,
	}
}

func TestWhoActedAtAnIssueAndMayWrite(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 10, 20, 21, 0, time.UTC)
	comment := gitprovider.IssueQuery{Number: 7, Comment: 31}
	label := gitprovider.IssueQuery{Number: 7, Label: "claude-ops", Since: at.Add(-24 * time.Hour)}
	ann := gitprovider.IssueAccount{ID: 2, Login: "ann", MayWrite: true}
	said := gitprovider.IssueAct{ID: 31, By: ann, Text: "/claude-ops", At: at}
	with := func(act gitprovider.IssueAct, edit func(*gitprovider.IssueAct)) gitprovider.IssueAct {
		edit(&act)
		return act
	}
	reader := func(a *gitprovider.IssueAct) { a.By.MayWrite = false }
	set, replace := oneIssue().With, oneIssue().Replaced
	const permission, teams, assignees = "/collaborators/ann/permission", "/teams", "/assignees"
	const said31, collaborator = "/issues/comments/31", "/collaborators/ann"
	const anns = `[{"id":2,"login":"Ann"}]`
	const fifth, sixth = "/teams/5/members/ann", "/teams/6/members/ann"
	const someTeams = `[{"id":4,"permission":"write","units_map":{"repo.code":"read","repo.pulls":"write"}},
		{"id":5,"permission":"owner"}, {"id":6,"permission":"none","units_map":{"repo.code":"write"}}, null]`
	for name, c := range map[string]struct {
		answers forgetest.IssueAnswers
		query   gitprovider.IssueQuery
		want    gitprovider.IssueAct
		code    fault.Code
	}{
		"a comment":        {oneIssue(), comment, said, ""},
		"a label":          {oneIssue(), label, gitprovider.IssueAct{ID: 42, By: ann, At: at}, ""},
		"an administrator": {set(permission, `{"permission":"owner"}`, teams, "502"), comment, said, ""},
		"a reader": {set(permission, `{"permission":"read"}`, teams, "405"), comment,
			with(said, reader), ""},
		"a stranger": {set(permission, `{"permission":"none"}`, teams, "405"), comment,
			with(said, reader), ""},
		"a user who is gone":                 {set(permission, "404"), comment, with(said, reader), ""},
		"a server that fails":                {set(permission, "502"), comment, gitprovider.IssueAct{}, fault.UpstreamError},
		"without rights to ask, at a user's": {set(permission, "403", teams, "405", assignees, anns), comment, said, ""},
		"without rights to ask, at a user's, a reader": {set(permission, "403", teams, "405", assignees, "[]"), comment,
			with(said, reader), ""},
		// whose members of teams that may only read are assignable, too
		"without rights to ask, at an organisation's": {set(permission, "403", teams, someTeams, fifth, "403", sixth, "404"),
			comment, gitprovider.IssueAct{}, fault.Misconfigured},
		"without rights to ask, but of a team that writes": {set(permission, "403", teams, someTeams, fifth, "404", sixth,
			`{"id":2,"login":"ann"}`), comment, said, ""},
		// which the server leaves out of the answer about the user
		"a member of a team that writes": {set(permission, `{"permission":"read"}`, teams, someTeams, fifth, "404", sixth,
			`{"id":2,"login":"ann"}`), comment, said, ""},
		"a member of a team that reads": {set(permission, `{"permission":"read"}`, teams, someTeams, fifth, "404", sixth,
			"404"), comment, with(said, reader), ""},
		"a member of a team that cannot be asked about": {set(permission, `{"permission":"read"}`, teams, someTeams, fifth,
			"403", sixth, "404"), comment, gitprovider.IssueAct{}, fault.Misconfigured},
		// of whose members older servers say that they write
		"a member of a team that writes to issues alone": {set(teams, someTeams, collaborator, "404", fifth, "404", sixth,
			"404"), comment, with(said, reader), ""},
		"a collaborator of an organisation's": {set(teams, someTeams, collaborator, "204"), comment, said, ""},
		"a member of a team that writes, as is told": {set(teams, someTeams, collaborator, "404", fifth, "404", sixth,
			`{"id":2,"login":"ann"}`), comment, said, ""},
		"a writer whose teams cannot be asked about": {set(teams, someTeams, collaborator, "404", fifth, "403", sixth,
			"404"), comment, gitprovider.IssueAct{}, fault.Misconfigured},
		"collaborators that fail": {set(teams, someTeams, collaborator, "502"), comment, gitprovider.IssueAct{},
			fault.UpstreamError},
		"teams that fail": {set(permission, `{"permission":"read"}`, teams, someTeams, fifth, "502"), comment,
			gitprovider.IssueAct{}, fault.UpstreamError},
		"an edited comment": {replace(said31, `"updated_at":"2026-11-27T10:20:21Z"`,
			`"updated_at":"2026-11-27T10:20:22Z"`), comment, with(said, func(a *gitprovider.IssueAct) { a.Edited = true }), ""},
		"a comment of ours": {replace("/user", "ops-bot", "Ann"), comment,
			with(said, func(a *gitprovider.IssueAct) { a.By.Ours = true }), ""},
		"a comment of Actions": {replace(said31, `"id":2,`, `"id":-2,`), comment,
			with(said, func(a *gitprovider.IssueAct) { a.By.ID, a.By.Program = -2, true }), ""},
		"a comment on another issue": {replace(said31, "issues/7", "issues/17"), comment,
			gitprovider.IssueAct{}, fault.NotFound},
		"a comment that was brought along": {replace(said31, `"original_author":""`, `"original_author":"x"`),
			comment, gitprovider.IssueAct{}, fault.NotFound},
		"a comment that is gone":              {set(said31, "404"), comment, gitprovider.IssueAct{}, fault.NotFound},
		"no label":                            {set("/issues/7/timeline?1", "null"), label, gitprovider.IssueAct{}, ""},
		"a token that does not know its user": {set("/user", "403"), comment, gitprovider.IssueAct{}, fault.Misconfigured},
	} {
		forgetest.ReadsIssue(t, name, issueReader(t, c.answers), c.query, c.want, c.code)
	}
}
