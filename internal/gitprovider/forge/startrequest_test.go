package forge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

func TestWhichCommentsAskForASession(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]string{
		"/claude-ops":                           "asked: ",
		"/claude-ops look at the disks\nplease": "asked: look at the disks",
		"Hello\n/claude-ops  now \r\nthanks":    "asked: now",
		"First.\n\n/claude-ops\tnow":            "asked: now",
		"/claude-ops one\n/claude-ops two":      "asked: one",
		"> quoted\n\n/claude-ops":               "asked: ",
		"/claude-ops <!-- hidden -->":           "asked: <!-- hidden -->",
		"":                                      "",
		"/claude-opsx":                          "",
		"/claude-ops: do":                       "",
		"/Claude-Ops":                           "",
		" /claude-ops":                          "",
		"please /claude-ops":                    "",
		"> /claude-ops":                         "",
		"> quoted\n/claude-ops":                 "", // which continues the quote
		"- item\n/claude-ops":                   "",
		"- /claude-ops":                         "",
		"1. /claude-ops":                        "",
		"# /claude-ops":                         "",
		"/claude-ops\n===":                      "", // a heading
		"    /claude-ops":                       "",
		"\t/claude-ops":                         "",
		"```\n/claude-ops\n```":                 "",
		"```\n/claude-ops":                      "",
		"~~~\n/claude-ops\n~~~":                 "",
		"`\n/claude-ops\n`":                     "",
		"<!--\n/claude-ops\n-->":                "",
		"text <!--\n/claude-ops\n-->":           "",
		"<div>\n/claude-ops\n</div>":            "",
		"*\n/claude-ops*":                       "",
		"[a\n/claude-ops](https://example.org)": "",
		"[a]: b\n'\n/claude-ops'\n":             "",
		"\u200b/claude-ops":                     "",
		"| a |\n|---|\n/claude-ops":             "", // a row
	} {
		words, asked := forge.StartWords(comment)
		got := ""
		if asked {
			got = "asked: " + words
		}
		if got != want {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
	if words, asked := forge.StartWords("/claude-ops " + strings.Repeat("ü", 5000)); !asked || len(words) > 1000 {
		t.Errorf("%d bytes of words are kept", len(words))
	}
}

// FuzzStartWords holds that what asks is a line of the comment, outside of quotes, and that no text takes the program
// down.
func FuzzStartWords(f *testing.F) {
	f.Add("/claude-ops look")
	f.Add("> quoted\n\n/claude-ops")
	f.Add("```\n/claude-ops\n```")
	for _, text := range markdowntest.Hostile() {
		f.Add(text[:min(len(text), 2000)] + "\n\n/claude-ops")
	}
	f.Fuzz(func(t *testing.T, comment string) {
		words, asked := forge.StartWords(comment)
		if !asked {
			return
		}
		found := false
		for line := range strings.SplitSeq(strings.ReplaceAll(comment, "\r\n", "\n"), "\n") {
			rest, begins := strings.CutPrefix(line, gitprovider.StartCommand)
			found = found || begins && strings.HasPrefix(strings.TrimSpace(rest), words)
		}
		if !found && strings.ToValidUTF8(comment, "") == comment {
			t.Errorf("%q: no line asks %q", comment, words)
		}
		if _, asked := forge.StartWords("> " + strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ", "\r", "\n> ").
			Replace(comment)); asked {
			t.Errorf("%q asks as a quote", comment)
		}
	})
}

// The payloads of GitHub are written after "Webhook events and payloads" of docs.github.com. Those of Gitea were sent
// by a Gitea of November 2026, built from source; names, ports and numbers were changed.
func TestWhichDeliveriesMayStartASession(t *testing.T) {
	t.Parallel()
	label, comment := &forge.StartRequest{Number: 12}, &forge.StartRequest{Number: 12, Comment: 31}
	for file, want := range map[string]*forge.StartRequest{
		"github-issues-labeled.json": label, "github-issues-otherlabel.json": nil,
		"github-issue_comment-created.json": {Number: 7, Comment: 492700400}, "github-issue_comment-edited.json": nil,
		"github-issue_comment-words.json": nil, "github-pull_request-labeled.json": nil,
		"gitea-issues-label_updated.json": label, "gitea-issues-opened.json": label, "gitea-issues-unlabelled.json": nil,
		"gitea-issue_comment-created.json": comment,
	} {
		from, event, body := sent(t, file)
		got, err := from.Parse(headers(from.Headers[0]+"Delivery", "a", from.Headers[0]+"Event", event), body)
		if want != nil {
			named := *want
			named.Owner, named.Repo = "joe", map[string]string{"github": "Home-Cluster", "gitea": "home-cluster"}[from.Name]
			want = &named
		}
		if diff := cmp.Diff(want, got.Start); err != nil || diff != "" || got.Concerns() {
			t.Errorf("%s: %v %s", file, err, diff)
		}
	}
	const about = `"repository":{"full_name":"joe/infra"}`
	for _, body := range []string{
		`{"action":"created",` + about + `}`, `{"action":"created","issue":{"number":1},` + about + `}`,
		`{"action":"created","issue":{"number":1},"comment":{"body":"/claude-ops"},` + about + `}`,
		`{"action":"created","issue":{"number":0},"comment":{"id":1,"body":"/claude-ops"},` + about + `}`,
		`{"action":"created","issue":{"number":1},"comment":{"id":1,"body":"/claude-ops"}}`,
		`{"action":"created","issue":{"number":1},"comment":{"id":1,"body":7},` + about + `}`, `[]`, ``,
	} {
		d, err := github().Parse(headers("X-GitHub-Delivery", "a", "X-GitHub-Event", "issue_comment"), []byte(body))
		if fault.CodeOf(err) != fault.InvalidArgument || d.Start != nil {
			t.Errorf("%s: %+v, %v", body, d.Start, err)
		}
	}
}
