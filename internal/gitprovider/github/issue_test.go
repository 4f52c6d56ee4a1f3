package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// issueReader reads at a server that answers as docs.github.com has it ("Issues", "Issue comments", "Issue events",
// "Collaborators").
func issueReader(t *testing.T, answers forgetest.IssueAnswers) gitprovider.IssueReader {
	t.Helper()
	return setup(t, answers.Serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		if last := answers["last"]; last != "" && r.URL.Query().Get("page") == "1" {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%s&per_page=100>; rel="last"`, r.Host, r.URL.Path, last))
		}
	}), "ghp_0123456789")
}

func oneIssue() forgetest.IssueAnswers {
	return forgetest.IssueAnswers{
		"/user": `{"id":9,"login":"ops-bot","type":"User"}`,
		"/issues/7": `{"number":7,"title":"Slow","body":"Since Tuesday","labels":[{"id":1,"name":"claude-ops"}],
			"user":{"id":3,"login":"stranger","type":"User"}}`,
		"/issues/comments/31": `{"id":31,"body":"/claude-ops","user":{"id":2,"login":"ann","type":"User"},
			"issue_url":"https://api.github.com/repos/joe/infra/issues/7","author_association":"OWNER",
			"created_at":"2026-11-27T10:20:21Z","updated_at":"2026-11-27T10:20:21Z"}`,
		"/collaborators/ann/permission": `{"permission":"write","role_name":"maintain","user":{"id":2,"login":"ann"}}`,
		"/issues/7/events?1":            `[]`,
	}
}

func labelEvent(id int, login, label, event, minute string) string {
	return fmt.Sprintf(`{"id":%d,"actor":{"id":2,"login":%q,"type":"User"},"event":%q,"label":{"name":%q},
		"created_at":"2026-11-27T10:%s:21Z"}`, id, login, event, label, minute)
}

func TestWhoActedAtAnIssueAndMayWrite(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 10, 20, 21, 0, time.UTC)
	comment := gitprovider.IssueQuery{Number: 7, Comment: 31}
	label := gitprovider.IssueQuery{Number: 7, Label: "claude-ops", Since: at.Add(-time.Minute)}
	ann := gitprovider.IssueAccount{ID: 2, Login: "ann", MayWrite: true}
	said := gitprovider.IssueAct{ID: 31, By: ann, Text: "/claude-ops", At: at}
	put := gitprovider.IssueAct{ID: 42, By: ann, At: at}
	with := func(act gitprovider.IssueAct, edit func(*gitprovider.IssueAct)) gitprovider.IssueAct {
		edit(&act)
		return act
	}
	reader := func(a *gitprovider.IssueAct) { a.By.MayWrite = false }
	set, replace := oneIssue().With, oneIssue().Replaced
	const permission, first = "/collaborators/ann/permission", "/issues/7/events?1"
	labels := "[" + strings.Join([]string{labelEvent(40, "old", "claude-ops", "labeled", "20"),
		labelEvent(41, "old", "claude-ops", "unlabeled", "20"), labelEvent(42, "ann", "Claude-Ops", "labeled", "20"),
		labelEvent(43, "late", "bug", "labeled", "21"),
		`{"id":44,"event":"closed","created_at":"2026-11-27T10:22:21Z"}`}, ",") + "]"
	for name, c := range map[string]struct {
		answers forgetest.IssueAnswers
		query   gitprovider.IssueQuery
		want    gitprovider.IssueAct
		code    fault.Code
	}{
		"a comment": {oneIssue(), comment, said, ""},
		"a label":   {set(first, labels), label, put, ""},
		"a label on the last page": {set("last", "4", "/issues/7/events?4", `[]`, "/issues/7/events?3", labels), label,
			put, ""},
		"an old label": {set(first, "["+labelEvent(40, "ann", "claude-ops", "labeled", "10")+"]"), label,
			gitprovider.IssueAct{}, ""},
		"who may only triage, though the payload says owner": {set(permission, `{"permission":"read","role_name":"triage"}`),
			comment, with(said, reader), ""},
		"a stranger":          {set(permission, "404"), comment, with(said, reader), ""},
		"a server that fails": {set(permission, "502"), comment, gitprovider.IssueAct{}, fault.UpstreamError},
		"an edited comment": {replace("/issues/comments/31", `"updated_at":"2026-11-27T10:20:21Z"`,
			`"updated_at":"2026-11-27T10:20:22Z"`), comment, with(said, func(a *gitprovider.IssueAct) { a.Edited = true }), ""},
		"a comment of ours": {replace("/user", "ops-bot", "Ann"), comment,
			with(said, func(a *gitprovider.IssueAct) { a.By.Ours = true }), ""},
		"a bot, whose rights are not asked for": {replace("/issues/comments/31", `"type":"User"`, `"type":"Bot"`), comment,
			with(said, func(a *gitprovider.IssueAct) { a.By.Program, a.By.MayWrite = true, false }), ""},
		"a comment on another issue": {replace("/issues/comments/31", "issues/7", "issues/17"), comment,
			gitprovider.IssueAct{}, fault.NotFound},
		"a comment that is gone": {set("/issues/comments/31", "404"), comment, gitprovider.IssueAct{}, fault.NotFound},
		"no label":               {oneIssue(), label, gitprovider.IssueAct{}, ""},
	} {
		forgetest.ReadsIssue(t, name, issueReader(t, c.answers), c.query, c.want, c.code)
	}
}
