package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// answered is one code as a client meets it: how it comes about, and the call that mends it.
type answered struct {
	code fault.Code
	when string
	set  func(w *refusing)              // configures the server
	call func(call map[string]any)      // alters a good call; nil: it is sent as it is
	mend string                         // the mended call in words
	by   func(w *refusing, said string) // alters that call into the mended one, or the world around it; nil: no call helps
}

// refusing is a server with a repository and the last call that was sent to it.
type refusing struct {
	*doors
	sent map[string]any
	fail atomic.Int32 // the status with which the forge behind the proxy answers; 0: as it does
	hide []string     // pairs of what differs from run to run and what the page has for it
}

func newRefusing(t *testing.T) *refusing {
	w := &refusing{doors: newDoors(t)}
	w.env["CLAUDEOPS_TOOLSETS"] = "pr"
	must.Do(t, os.RemoveAll(w.repo))
	makeRepository(t, w.repo, streamOf("README.md", "# Infra\n", "checks/disk.md", "# Disk\n\nWarn at 90 %.\n"))
	w.hide = []string{w.env["CLAUDEOPS_LOCAL_ROOT"], "/srv/git", w.env["CLAUDEOPS_STATE_DIR"], "/var/lib/claudeops",
		app.User().String(), "uid 1000 (bob)"}
	w.sent = map[string]any{
		"repo_owner": "joe", "repo_name": "infra", "title": "Warn earlier", "body": "Why: 90 % leaves too little time.",
		"files": []any{changed("checks/disk.md", "90 %", "85 %")},
	}
	return w
}

func changed(path, before, after string) map[string]any {
	return map[string]any{"path": path, "action": "update", "edits": []any{map[string]any{"old": before, "new": after}}}
}

func whole(path, action, content string) map[string]any {
	return map[string]any{"path": path, "action": action, "content": content}
}

// send calls create_pr through the server on standard input and output. said is the text, which is all that a model is
// shown of an error.
func (w *refusing) send() (code, said string) {
	w.Helper()
	raw := must.Get(json.Marshal(w.sent))(w)
	result := w.mcp("tools/call", fmt.Sprintf(`{"name":"create_pr","arguments":%s}`, raw))
	structured, _ := result["structuredContent"].(map[string]any)
	failure, _ := structured["error"].(map[string]any)
	code, _ = failure["code"].(string)
	said, _ = result["content"].([]any)[0].(map[string]any)["text"].(string)
	return code, said
}

// shown is a text as the page has it.
func (w *refusing) shown(said string) string {
	said = strings.NewReplacer(w.hide...).Replace(said)
	for _, varying := range [][2]string{
		{`[0-9A-HJKMNP-TV-Z]{26}`, "01JNC2R4D1Y8B6S2P0F5G7N3QA"}, {`23h5\dm\d+s|24h0m0s`, "24h0m0s"},
		{`paused by .* since \S+:`, "paused by uid 1000 (ann) since 2026-11-26T12:00:00Z:"},
		{`retry after 8(5[89]|6[0-3])\d\d s|retry after 86400 s`, "retry after 86400 s"},
	} {
		said = regexp.MustCompile(varying[0]).ReplaceAllString(said, varying[1])
	}
	return said
}

// forge has the repository at a Gitea behind a proxy that fails as it is told.
func (w *refusing) forge(status int32) {
	server := fakegitea.New(w.T)
	to := must.Get(url.Parse(server.URL()))(w)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if status := int(w.fail.Load()); status != 0 {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(status)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.Cleanup(front.Close)
	repo := server.AddRepo(memhost.File{Path: "checks/disk.md", Content: "# Disk\n\nWarn at 90 %.\n"})
	w.env["GITEA_URL"], w.env["GITEA_TOKEN"], w.env["CLAUDEOPS_LOCAL_ROOT"] = front.URL, server.Token(), ""
	w.sent["repo_owner"], w.sent["repo_name"] = repo.Owner, repo.Name
	w.fail.Store(status)
	w.hide = append(w.hide, front.URL, "https://git.example.org", strings.TrimPrefix(front.URL, "http://"),
		"git.example.org",
		repo.String(), "joe/infra")
}

// opened opens a pull request of ours on the file, with another change.
func (w *refusing) opened() {
	w.Helper()
	good := w.sent["files"]
	w.sent["files"], w.sent["title"] = []any{changed("checks/disk.md", "90 %", "80 %")}, "Warn much earlier"
	if code, said := w.send(); code != "" {
		w.Fatal(said)
	}
	w.sent["files"], w.sent["title"] = good, "Warn earlier"
}

func setting(name, value string) func(*refusing) {
	return func(w *refusing) { w.env[name] = value }
}

func withFiles(list ...any) func(map[string]any) {
	return func(call map[string]any) { call["files"] = list }
}

const noCall = "none: the agent reports it"

// aboutTheCall are the answers to what is wrong with a call, and to what the operator has not allowed.
func aboutTheCall() []answered {
	return []answered{
		{
			fault.InvalidArgument, "An argument is misspelled, one has a value that is not known, one is empty.", nil,
			func(call map[string]any) {
				call["base_brnch"], call["change_type"], call["body"] = "main", "chore", ""
			},
			"the same without `base_brnch` and `change_type`, with a body",
			func(w *refusing, _ string) {
				delete(w.sent, "base_brnch")
				delete(w.sent, "change_type")
				w.sent["body"] = "Why: 90 % leaves too little time."
			},
		},
		{fault.TierDenied, "The server has tier 1.", setting("CLAUDEOPS_TIER", "1"), nil, noCall, nil},
		{
			fault.ScopeDenied, "One of two files is outside of the scope.", nil,
			withFiles(changed("checks/disk.md", "90 %", "85 %"), changed("README.md", "Infra", "Our infra")),
			"the same without `README.md`",
			func(w *refusing, _ string) { withFiles(changed("checks/disk.md", "90 %", "85 %"))(w.sent) },
		},
		{
			fault.ContentDenied, "The new text has a character that nobody sees.", nil,
			withFiles(changed("checks/disk.md", "90 %", "85\u200b %")),
			"the same without the character", func(w *refusing,
				_ string) {
				withFiles(changed("checks/disk.md", "90 %", "85 %"))(w.sent)
			},
		},
		{fault.RepoNotAllowed, "The operator's list does not have the repository.",
			setting("CLAUDEOPS_REPOS", "joe/home-cluster"), nil, noCall, nil},
		{fault.ReadOnly, "The server is read-only.", setting("CLAUDEOPS_READ_ONLY", "true"), nil, noCall, nil},
		{
			fault.NotFound, "The base branch does not exist.", nil, func(call map[string]any) { call["base_branch"] = "master" },
			"the same without `base_branch`", func(w *refusing, _ string) { delete(w.sent, "base_branch") },
		},
		{
			fault.ProviderUnresolved, "Two providers are enabled, and nothing says which one has the repository.",
			setting("GITHUB_TOKEN", "not-a-token"), nil,
			"the same with the `clone_url` that the message has", func(w *refusing, said string) {
				w.sent["clone_url"] = regexp.MustCompile(`file://[^ ]+`).FindString(said)
			},
		},
	}
}

// aboutTheWorld are the answers to what others have done, and to what fails.
func aboutTheWorld() []answered {
	identical := func(w *refusing, _ string) { w.fail.Store(0) }
	failing := func(status int32) func(*refusing) { return func(w *refusing) { w.forge(status) } }
	return []answered{
		{fault.DuplicatePR, "An open pull request of ours changes the file.", func(w *refusing) {
			w.opened()
			w.run("review", "request-changes", "1", "--repo", "joe/infra", "--comment", "80 is too early for the backup disk.")
		}, nil, noCall, nil},
		{
			fault.Conflict, "An edit was made from an old copy.", nil,
			withFiles(changed("checks/disk.md", "Warn at 95 %.", "Warn at 85 %.")),
			"the edit made anew from the text in the answer, with its `base_sha`", func(w *refusing, said string) {
				again := changed("checks/disk.md", "Warn at 90 %.", "Warn at 85 %.")
				again["base_sha"] = regexp.MustCompile(`base_sha ([0-9a-f]{40})`).FindStringSubmatch(said)[1]
				withFiles(again)(w.sent)
			},
		},
		{fault.NoChange, "The base branch has the text already.", nil,
			withFiles(whole("checks/disk.md", "update", "# Disk\n\nWarn at 90 %.\n")), noCall, nil},
		{fault.Paused, "A person has paused everything.", func(w *refusing) {
			w.run("pause", "--why", "The storage is being moved")
		}, nil, noCall, nil},
		{fault.CooldownActive, "A person has closed such a pull request.", func(w *refusing) {
			w.opened()
			w.run("review", "close", "1", "--repo", "joe/infra", "--comment", "We buy disks instead.")
		}, nil, noCall, nil},
		{fault.LimitReached, "As many pull requests are open as the policy allows.", func(w *refusing) {
			w.opened()
			w.policy("caps: {open_prs: 1}\n")
		}, withFiles(whole("checks/inodes.md", "create", "# Inodes\n")), noCall, nil},
		{fault.RateLimited, "The forge takes no more requests for now.", failing(429), nil,
			"the identical call after that time", identical},
		{
			fault.ProviderDisabled, "The forge of the repository has no token.", nil,
			func(call map[string]any) { call["clone_url"] = "https://github.com/joe/infra" }, noCall, nil,
		},
		{fault.Misconfigured, "The state folder is not a folder.", func(w *refusing) {
			name := filepath.Join(w.TempDir(), "state")
			must.Do(w, os.WriteFile(name, nil, 0o600))
			w.env["CLAUDEOPS_STATE_DIR"] = name
			w.hide = append(w.hide, name, "/var/lib/claudeops")
		}, nil, noCall, nil},
		{fault.UpstreamError, "The forge fails.", failing(502), nil, "the identical call", identical},
		{fault.Timeout, "The forge does not answer in time.", failing(504), nil, "the identical call", identical},
		{fault.Internal, "The records were damaged.", func(w *refusing) {
			must.Do(w, os.WriteFile(filepath.Join(w.env["CLAUDEOPS_STATE_DIR"], "claudeops.db"), nil, 0o600))
		}, nil, noCall, nil},
	}
}

// maxCalls limits the calls that an agent may need, the refused one included.
const maxCalls = 2

// TestThePageOfAnswersIsWhatTheServerSays provokes each code through the server over standard input and output, makes
// the mended call, and holds docs/reference/answers.md against what was said.
func TestThePageOfAnswersIsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	table, messages := "", ""
	met := map[fault.Code]bool{}
	for _, a := range append(aboutTheCall(), aboutTheWorld()...) {
		w := newRefusing(t)
		if a.set != nil {
			a.set(w)
		}
		if a.call != nil {
			a.call(w.sent)
		}
		code, said := w.send()
		if code != string(a.code) || !strings.HasPrefix(said, "["+string(a.code)+"] ") ||
			!strings.Contains(said, "\nnext: ") {
			t.Errorf("%s: the code is %q, and it is told: %s", a.code, code, said)
		}
		calls := 1
		if a.by != nil {
			calls++
			a.by(w, said)
			if code, said := w.send(); code != "" {
				t.Errorf("%s: the mended call is refused, too: %s", a.code, said)
			}
		}
		if calls > maxCalls {
			t.Errorf("%s takes %d calls", a.code, calls)
		}
		met[a.code] = true
		table += fmt.Sprintf("| [`%s`](#%s) | %s | %s | %d |\n", a.code, a.code, a.when, a.mend, calls)
		messages += fmt.Sprintf("\n## %s\n\n```text\n%s\n```\n", a.code, w.shown(said))
	}
	w := newRefusing(t)
	w.env["CLAUDEOPS_API_TOKENS"] = "another-token-than-the-caller-has"
	status, problem := w.rest(http.MethodPost, "/api/v1/prs", "{}")
	if status != http.StatusUnauthorized || problem["code"] != string(fault.Unauthenticated) {
		t.Errorf("without a token: %d, %v", status, problem)
	}
	met[fault.Unauthenticated] = true
	table += fmt.Sprintf(
		"| [`%[1]s`](#%[1]s) | REST only: the token is none that the operator has issued. | the same with a token | 2 |\n",
		fault.Unauthenticated)
	messages += fmt.Sprintf("\n## %s\n\n```text\n%s\n```\n", fault.Unauthenticated, problem["detail"])
	mustMeetAll(t, met)
	operationtest.Golden(t, "../../docs/reference/answers.md", []byte(pageOfAnswers+table+messages))
}

const pageOfAnswers = "# Answers\n\n<!-- Written by `make golden` from what the server answers; see " +
	"internal/cli/answers_test.go. -->\n\n" +
	"What an agent reads when a call is not done, word by word, and the call that mends it. A client shows the model " +
	"the text of an error alone, so\n" +
	"the text says what is wrong, all of it at once, what stands in the way, and what to do next, whether to call again " +
	"first of all. Words of other\n" +
	"people are marked by `>` and said to be data. REST has the same in its [problem details](../guides/rest.md), the " +
	"command line in what it prints. The\n" +
	"[codes](codes.md) say what each means.\n\n" +
	"A test makes each of these calls and the mended one over MCP on standard input and output; none takes more than " +
	"two. The repository is\n" +
	"`joe/infra`, and `checks/disk.md` has the text `# Disk`, an empty line, `Warn at 90 %.`.\n\n" +
	"| code | when | mended call | calls |\n|---|---|---|---|\n"

// mustMeetAll fails the test for a code of docs/reference/codes.md that was not met. forbidden is REST's, about scopes
// of tokens and browsers.
func mustMeetAll(t *testing.T, met map[fault.Code]bool) {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/reference/codes.md"))(t)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		if code := fault.Code(row[1]); !met[code] && code != fault.Forbidden {
			t.Errorf("docs/reference/answers.md lacks %s", code)
		}
	}
}
