//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// otherModel is a Responses API of OpenAI and a generateContent API of Gemini on the loopback interface. It says "done"
// to all, after it has made its call, and keeps what it was sent.
type otherModel struct {
	*httptest.Server
	call string // an item of the Responses API, once; "" for none
	mu   sync.Mutex
	sent strings.Builder
}

func newOtherModel(t *testing.T) *otherModel {
	m := &otherModel{}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *otherModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.sent.Write(body)
	item := "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"m\",\"content\":[{\"type\":\"output_text\",\"text\":\"done\"}]}"
	if m.call != "" && strings.HasSuffix(r.URL.Path, "/responses") {
		item, m.call = m.call, ""
	}
	m.mu.Unlock()
	answer := ""
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		answer = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n" +
			"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":" + item + "}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n"
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		answer = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"done\"}]},\"finishReason\":\"STOP\"}]}\n\n"
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, answer)
}

// TestOtherClientsOfferOurToolsToTheirModels holds that the real clients take what mcp-config prints: the request to their model has
// our three tools, and the server that they start has its tier by reference.
func TestOtherClientsOfferOurToolsToTheirModels(t *testing.T) {
	for name, c := range map[string]struct {
		file, before string
		after        func(string) string
		args         func() []string
		tools        []string
	}{
		"codex": {
			file: ".codex/config.toml", before: "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"URL/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n",
			after: func(text string) string { return text },
			args:  func() []string { return []string{"exec", "--skip-git-repo-check", "go"} },
			tools: []string{`"mcp__claudeops"`, `"create_pr"`, `"list_prs"`, `"get_pr_status"`},
		},
		"gemini": {
			file: ".gemini/settings.json",
			after: func(text string) string {
				return strings.Replace(text, "{", `{"security":{"auth":{"selectedType":"gemini-api-key"}},`, 1)
			},
			args:  func() []string { return []string{"-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go"} },
			tools: []string{"mcp_claudeops_create_pr", "mcp_claudeops_list_prs", "mcp_claudeops_get_pr_status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, home := newWorld(t, "2"), t.TempDir()
			model := newOtherModel(t)
			printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", name}, dir: home, env: w.environment()})
			file := filepath.Join(home, c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			text := c.after(strings.ReplaceAll(c.before, "URL", model.URL) + printed.stdout)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, program{
				path: installed(t, ".bin/"+name), args: c.args(), dir: t.TempDir(), may: 2 * patience,
				env: w.environment("HOME="+home, "STUB_KEY=x", "GEMINI_API_KEY=x", "GEMINI_CLI_TRUST_WORKSPACE=true", "GOOGLE_GEMINI_BASE_URL="+model.URL),
			})
			model.mu.Lock()
			defer model.mu.Unlock()
			for _, tool := range c.tools {
				if !strings.Contains(model.sent.String(), tool) {
					t.Errorf("the model was not told of %s (exit %d): %s%s", tool, got.code, got.stdout, got.stderr)
				}
			}
		})
	}
}

// TestCodexProposesUnattended holds that what mcp-config prints lets `codex exec` call a tool that writes: it asks
// nobody, and the server decides.
func TestCodexProposesUnattended(t *testing.T) {
	w, home := newWorld(t, "2"), t.TempDir()
	model := newOtherModel(t)
	args := ofRepository()
	args["title"], args["body"] = "Warn about disks at 85 %", "Observed: a disk filled overnight."
	args["files"] = []any{map[string]any{"path": "checks/disk.md", "action": "update", "content": "# Disk\n\nWarn at 85 %.\n"}}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	call, err := json.Marshal(map[string]any{
		"type": "function_call", "id": "f", "call_id": "c", "namespace": "mcp__claudeops", "name": "create_pr", "arguments": string(text),
	})
	if err != nil {
		t.Fatal(err)
	}
	model.call = string(call)
	printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", "codex"}, dir: home, env: w.environment()})
	settings := "model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"" + model.URL + "/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n"
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".codex"), 0o700),
		os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(settings+printed.stdout), 0o600)); err != nil {
		t.Fatal(err)
	}
	got := run(t, program{
		path: installed(t, ".bin/codex"), args: []string{"exec", "--skip-git-repo-check", "go"}, dir: t.TempDir(), may: 2 * patience,
		env: w.environment("HOME="+home, "STUB_KEY=x"),
	})
	model.mu.Lock()
	defer model.mu.Unlock()
	if !strings.Contains(model.sent.String(), `\"number\":1,`) {
		at := strings.Index(model.sent.String(), "function_call_output")
		t.Errorf("nothing was proposed (exit %d): %s%s\n%s", got.code, got.stdout, got.stderr, model.sent.String()[max(0, at):])
	}
}

// The commands that --add prints are run as they are, and the clients list our server.
func TestTheCommandsOfOtherClientsAddOurServer(t *testing.T) {
	for name, settings := range map[string]string{"claude": ".claude.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json"} {
		t.Run(name, func(t *testing.T) {
			w, home := newWorld(t, "2"), t.TempDir()
			w.vars["GITHUB_TOKEN"] = forgeToken
			bin := t.TempDir()
			client := installed(t, ".bin/"+name)
			if name == "claude" {
				client = installed(t, "@anthropic-ai/claude-code-linux-*/claude")
			}
			if err := os.Symlink(client, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
			env := append(w.environment("HOME="+home), "PATH="+bin+":"+os.Getenv("PATH"))
			printed := run(t, program{path: claudeops(t), args: []string{"mcp-config", "--client", name, "--add"}, dir: home, env: env})
			if got := run(t, program{path: "/bin/sh", args: []string{"-c", printed.stdout}, dir: home, env: env, may: 2 * patience}); got.code != 0 {
				t.Fatalf("%s: exit %d: %s%s", printed.stdout, got.code, got.stdout, got.stderr)
			}
			text, err := os.ReadFile(filepath.Join(home, settings))
			if err != nil || !strings.Contains(string(text), "claudeops") || !strings.Contains(string(text), "mcp-server") || strings.Contains(string(text), forgeToken) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
