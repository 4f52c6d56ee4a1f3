//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// The commands that --add prints are run as they are, and the clients list our server.
func TestTheCommandsOfOtherClientsAddOurServer(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"claude": ".claude.json", "codex": ".codex/config.toml",
		"gemini": ".gemini/settings.json"} {
		t.Run(name, func(t *testing.T) {
			w, home := newWorld(t, "2"), t.TempDir()
			w.vars["GITHUB_TOKEN"] = forgeToken
			bin := t.TempDir()
			client := installed(t, ".bin/"+name)
			if name == "claude" {
				client = theCLI(t)
			}
			must.Do(t, os.Symlink(client, filepath.Join(bin, name)))
			env := append(w.environment("HOME="+home), "PATH="+bin+":"+os.Getenv("PATH"))
			printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", name, "--add"}, dir: home,
				env: env})
			if got := run(t, program{path: "/bin/sh", args: []string{"-c", printed.stdout}, dir: home,
				env: env}); got.code != 0 {
				t.Fatalf("%s: exit %d: %s%s", printed.stdout, got.code, got.stdout, got.stderr)
			}
			text, err := os.ReadFile(filepath.Join(home, settings))
			if err != nil || !strings.Contains(string(text), "claudeops") || !strings.Contains(string(text), "mcp-server") ||
				strings.Contains(string(text), forgeToken) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// client is a real MCP client with what mcp-config prints for it, whose model a test plays.
type client struct {
	name, file string
	// the client's file, given what mcp-config printed and the model's address
	around        func(printed, address string) string
	args          []string
	namesOfOurOwn []string // of our tools in a request to its model
}

// codex runs without asking the user and lets the server decide.
func codex() client {
	return client{
		name: "codex", file: ".codex/config.toml", args: []string{"exec", "--skip-git-repo-check", "go"},
		around: func(printed, address string) string {
			return "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"" +
				address +
				"/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n" + printed
		},
		namesOfOurOwn: []string{`"mcp__claudeops"`, `"create_pr"`, `"list_prs"`, `"get_pr_status"`},
	}
}

// gemini knows the resources that a server lists, and no templates (Gemini CLI 0.61).
func gemini() client {
	return client{
		name: "gemini", file: ".gemini/settings.json",
		args: []string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"},
		around: func(printed, _ string) string {
			return strings.Replace(printed, "{", `{"security":{"auth":{"selectedType":"gemini-api-key"}},`, 1)
		},
		namesOfOurOwn: []string{"mcp_claudeops_create_pr", "mcp_claudeops_list_prs", "mcp_claudeops_get_pr_status"},
	}
}

// converse runs the client until its model has stopped, with what mcp-config printed for it.
func (c client) converse(t *testing.T, w *world, printed string, m model) (sent string, results []seenResult,
	got outcome) {
	t.Helper()
	home, plays := t.TempDir(), newOtherModel(t, m)
	file := filepath.Join(home, c.file)
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, []byte(c.around(printed, plays.URL)), 0o600)))
	got = run(t, program{
		path: installed(t, ".bin/"+c.name), args: c.args, dir: t.TempDir(),
		env: w.environment("HOME="+home, "STUB_KEY=x", "GEMINI_API_KEY=x", "GEMINI_CLI_TRUST_WORKSPACE=true",
			"GOOGLE_GEMINI_BASE_URL="+plays.URL),
	})
	sent, results = plays.told()
	return sent, results, got
}

// The story of one change, played by each of the real clients, which take what mcp-config prints: its model is told of
// our tools, reads a check, a skill of Claude Code's folder and one of the folder that agents share, proposes to mend
// all three, is reviewed on a line, reads what its branch has, revises with a reply, and sees the change merged. What
// people do comes between its calls; TestPromptsStartWhatAPersonAsksFor has another session answer.
func TestEachClientReadsProposesAnswersAReviewAndSeesItMerged(t *testing.T) {
	t.Parallel()
	for name, converse := range map[string]func(t *testing.T, w *world, m model) []seenResult{
		"claude": func(t *testing.T, w *world, m model) []seenResult { return agent{world: w}.converse(t, m).results },
		"codex":  codex().tell,
		"gemini": gemini().tell,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "2")
			w.hasSkills(t)
			w.mounts(t)
			told := converse(t, w, w.livesThroughAReview(t))
			if len(told) != 8 || !strings.Contains(told[6].text, `"revised":true`) ||
				!strings.Contains(told[7].text, `"merged"`) {
				t.Errorf("the model was told %+v", told)
			}
			for _, path := range skillFiles() {
				if got := w.git(t, "", "show", "main:"+path); !strings.HasSuffix(got, "Warn at 85 %.\n") {
					t.Errorf("%s is %q", path, got)
				}
			}
			if got := w.git(t, "", "show", "main:checks/disk.md"); got != "# Disk\n\nWarn at 85 %, urgent at 95 %.\n" {
				t.Errorf("main has %q", got)
			}
		})
	}
}

// livesThroughAReview proposes, answers and looks; a person asks for changes and merges in between.
func (w *world) livesThroughAReview(t *testing.T) model {
	binary, proposes, answers := claudeops(t), proposesWhatItRead(t), answersTheReview(t)
	person := func(args ...string) string { // not in the test's goroutine
		cmd := exec.CommandContext(t.Context(), binary, append(args, "1", "--repo", "demo/home-cluster")...)
		cmd.Dir, cmd.Env = w.home, w.environment()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	asks := sync.OnceFunc(func() {
		person("review", "request-changes", "--line", "checks/disk.md:3:Say at which figure it becomes urgent.")
	})
	merges := sync.OnceFunc(func() {
		if said := person("pr", "status"); !strings.Contains(said, "At 95 %, as the new line says.") {
			t.Errorf("the reply is not on the pull request: %s", said)
		}
		person("review", "approve")
		person("review", "merge")
	})
	return func(results []seenResult) reply {
		switch n := len(results); {
		case n < 4:
			return proposes(results)
		case n < 7:
			asks()
			return answers(results[4:])
		case n == 7:
			merges()
			return use("get_pr_status", ofFirstPR())
		}
		return say("done")
	}
}

// mounts makes the working copy from which the server knows the files of the repository: the Gemini CLI reads no
// resource that a server does not list.
func (w *world) mounts(t *testing.T) {
	t.Helper()
	w.git(t, "", "clone", "--quiet", w.repo, filepath.Join(w.vars["CLAUDEOPS_REPOS_DIR"], "demo", "home-cluster"))
}

// tell is one conversation in which no call is refused.
func (c client) tell(t *testing.T, w *world, m model) []seenResult {
	t.Helper()
	sent, results, got := c.converse(t, w, w.does(t, "mcp-config", "--client", c.name), m)
	if got.code != 0 || len(results) == 0 {
		t.Fatalf("%s: exit %d, %d results: %s%s", c.name, got.code, len(results), got.stdout, got.stderr)
	}
	for _, tool := range c.namesOfOurOwn {
		if !strings.Contains(sent, tool) {
			t.Errorf("the model was not told of %s", tool)
		}
	}
	return results
}

// proposesWhatItRead reads three files, replaces a part of each, and names the versions that it read.
func proposesWhatItRead(t *testing.T) model {
	version := regexp.MustCompile(`base_sha ([0-9a-f]{40})`)
	return func(results []seenResult) reply {
		paths := append([]string{"checks/disk.md"}, skillFiles()...)
		switch n := len(results); {
		case n < len(paths):
			return free("ReadMcpResourceTool", map[string]any{"server": "claudeops",
				"uri": "claudeops://demo/home-cluster/file/" + paths[n]})
		case n > len(paths):
			return say("done")
		}
		proposal := edited(nil, "Warn at 90 %.", "Warn at 85 %.")
		var files []any
		for i, path := range paths {
			found := version.FindStringSubmatch(results[i].text)
			if found == nil {
				t.Errorf("no version of %s is told: %s", path, results[i].text)
				return say("done")
			}
			files = append(files, map[string]any{"path": path, "action": "update", "base_sha": found[1],
				"edits": []any{map[string]any{"old": "Warn at 90 %.", "new": "Warn at 85 %."}}})
		}
		proposal["files"] = files
		return use("create_pr", proposal)
	}
}

// answersTheReview finds the pull request that waits for an answer, reads its file and the comment on its line, and
// answers both with a commit and with words.
func answersTheReview(t *testing.T) model {
	version := regexp.MustCompile(`"path":"checks/disk.md"[^{}]*"base_sha":"([0-9a-f]{40})"`)
	comment := regexp.MustCompile(`"id":"([^"]+)"`)
	return func(results []seenResult) reply {
		switch len(results) {
		case 0:
			list := ofRepository()
			list["state_of_review"] = "changes_requested"
			return use("list_prs", list)
		case 1:
			status := ofFirstPR()
			status["include"] = []string{"files"}
			return use("get_pr_status", status)
		case 2:
			revision := at(t, version, results[1], edited(1, "Warn at 85 %.", "Warn at 85 %, urgent at 95 %."))
			id := comment.FindStringSubmatch(results[1].text)
			if id == nil {
				t.Errorf("the comment has no id: %s", results[1].text)
				return say("done")
			}
			revision["replies"] = []any{map[string]any{"comment": id[1], "text": "At 95 %, as the new line says."}}
			return use("create_pr", revision)
		}
		return say("done")
	}
}

// at has a proposal say which version of its file it was made from, as a result told it.
func at(t *testing.T, version *regexp.Regexp, told seenResult, proposal map[string]any) map[string]any {
	found := version.FindStringSubmatch(told.text)
	if found == nil {
		t.Errorf("no version is told: %s", told.text)
		return proposal
	}
	proposal["files"].([]any)[0].(map[string]any)["base_sha"] = found[1]
	return proposal
}

// otherModel is a Responses API of OpenAI and a generateContent API of Gemini on the loopback interface. It plays a
// model as messagesStub does for Claude, and keeps what it was sent.
type otherModel struct {
	*httptest.Server
	plays model

	mu      sync.Mutex
	sent    strings.Builder
	results []seenResult // of the last request
}

func newOtherModel(t *testing.T, m model) *otherModel {
	o := &otherModel{plays: m}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// told returns all that was sent, and the results that the last request had.
func (m *otherModel) told() (sent string, results []seenResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.String(), m.results
}

func (m *otherModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent.Write(body)
	var answer string
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.results = resultsOfResponses(body)
		answer = responsesEvents(m.plays(m.results))
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		m.results = resultsOfGemini(body)
		answer = geminiEvent(m.plays(m.results))
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
}

// resultsOfResponses reads what tools have answered from a request of the Responses API, oldest first.
func resultsOfResponses(body []byte) []seenResult {
	var request struct {
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
	}
	_ = json.Unmarshal(body, &request) // anything but a request has no results
	var out []seenResult
	for _, item := range request.Input {
		if item.Type == "function_call_output" {
			out = append(out, seenResult{text: plain(item.Output)})
		}
	}
	return out
}

// responsesEvents streams one reply. Codex puts the tools of an MCP server into a namespace of its own.
func responsesEvents(r reply) string {
	item := map[string]any{
		"type": "message", "role": "assistant", "id": "m",
		"content": []any{map[string]any{"type": "output_text", "text": r.text}},
	}
	if r.tool != "" {
		item = map[string]any{"type": "function_call", "id": "f", "call_id": fmt.Sprintf("c%p", r.args), "name": r.tool,
			"arguments": text(r.args)}
		if ours, found := strings.CutPrefix(r.tool, "mcp__claudeops__"); found {
			item["namespace"], item["name"] = "mcp__claudeops", ours
		}
		if r.tool == "ReadMcpResourceTool" {
			item["name"] = "read_mcp_resource"
		}
	}
	var b strings.Builder
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "r"}},
		{"type": "response.output_item.done", "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "r"}},
	} {
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", event["type"], text(event))
	}
	return b.String()
}

// resultsOfGemini reads what tools have answered from a request of generateContent, oldest first.
func resultsOfGemini(body []byte) []seenResult {
	var request struct {
		Contents []struct {
			Parts []struct {
				Answer *struct {
					Response struct {
						Output json.RawMessage `json:"output"`
						Error  json.RawMessage `json:"error"`
					} `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	_ = json.Unmarshal(body, &request) // anything but a request has no results
	var out []seenResult
	for _, content := range request.Contents {
		for _, part := range content.Parts {
			if a := part.Answer; a != nil {
				out = append(out, seenResult{text: plain(a.Response.Output) + plain(a.Response.Error),
					isError: a.Response.Error != nil})
			}
		}
	}
	return out
}

// geminiEvent streams one reply. The Gemini CLI names the tools of an MCP server in one way, and its resources by the
// server's name and their address.
func geminiEvent(r reply) string {
	part := map[string]any{"text": r.text}
	if r.tool != "" {
		name, args := r.tool, r.args
		if ours, found := strings.CutPrefix(r.tool, "mcp__claudeops__"); found {
			name = "mcp_claudeops_" + ours
		}
		if of, is := r.args.(map[string]any); is && r.tool == "ReadMcpResourceTool" {
			name, args = "read_mcp_resource", map[string]any{"uri": fmt.Sprintf("%s:%s", of["server"], of["uri"])}
		}
		part = map[string]any{"functionCall": map[string]any{"name": name, "args": args}}
	}
	return "data: " + text(map[string]any{"candidates": []any{map[string]any{
		"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP",
	}}}) + "\n\n"
}

// text is v as JSON; v is what a test has made.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(out)
}
