package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// rulesOfTest has caps that a test which proposes again and again does not reach.
const rulesOfTest = "version: 1\ncaps: {open_prs: 900, creations_per_hour: 900}\n"

// What the operator changes while `claudeops serve` runs holds at every way in from the same moment on: the policy, and
// what the environment file says of repositories and switches.
func TestTheRulesOfARunningServerAreThoseOfNow(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_POLICY": "$DIR/policy.yaml", "CLAUDEOPS_API_TOKENS": ""})
	w.put("policy.yaml", rulesOfTest)
	w.put(".config/claudeops/environment", "CLAUDEOPS_DRY_RUN=\n")
	var made struct{ Token string }
	w.read(&made, "token", "create", "--agent", "--name", "bot", "--tier", "2")
	w.serving(func(address string) {
		for _, step := range []struct {
			name, file, text        string
			proposes, merges, lists fault.Code
			dryRun                  bool
		}{
			{name: "as it was"},
			{"narrowed", "policy.yaml", rulesOfTest + "repositories: [demo/other]\n", fault.RepoNotAllowed, fault.RepoNotAllowed,
				fault.RepoNotAllowed, false},
			{"broken", "policy.yaml", rulesOfTest + "nonsense: true\n", fault.ReadOnly, fault.ReadOnly, "", false},
			{"mended", "policy.yaml", rulesOfTest, "", "", "", false},
			{"read-only by the policy", "policy.yaml", rulesOfTest + "read_only: true\n", fault.ReadOnly, "", "", false},
			{"dry run by the policy", "policy.yaml", rulesOfTest + "dry_run: true\n", "", fault.ReadOnly, "", true},
			{"a list in the environment file", "policy.yaml", rulesOfTest, "", "", "", false},
			{"a list", ".config/claudeops/environment", "CLAUDEOPS_REPOS=demo/other\n", fault.RepoNotAllowed,
				fault.RepoNotAllowed, fault.RepoNotAllowed, false},
			{"a malformed list", ".config/claudeops/environment", "CLAUDEOPS_REPOS=demo-home\n", fault.ReadOnly, fault.ReadOnly,
				"", false},
			{"a dry run", ".config/claudeops/environment", "CLAUDEOPS_DRY_RUN=true\n", "", fault.ReadOnly, "", true},
			{"no environment file that can be read", ".config/claudeops/environment", "nonsense\n", fault.ReadOnly,
				fault.ReadOnly, "", false},
			{"all of it mended", ".config/claudeops/environment", "", "", "", "", false},
		} {
			if step.file != "" {
				w.put(step.file, step.text)
			}
			w.becomes(step.name, func() bool {
				got, dry := w.proposes(address, "")
				return got == step.proposes && dry == step.dryRun
			})
			// From now on no way in may say anything else.
			for range 2 {
				if got, dry := w.proposes(address, made.Token); got != step.proposes || dry != step.dryRun {
					t.Errorf("%s: an agent that proposes over MCP gets %q, dry run %t; want %q, %t", step.name, got, dry,
						step.proposes, step.dryRun)
				}
			}
			if got := w.lists(address, made.Token); got != step.lists {
				t.Errorf("%s: an agent that lists gets %q, want %q", step.name, got, step.lists)
			}
			// A number that there is not: nothing is merged, and the rules are asked before.
			want := step.merges
			if want == "" {
				want = fault.NotFound
			}
			if got := w.post(address+"/api/v1/prs/99/merge", map[string]any{"repo_owner": "demo", "repo_name": "home",
				"provider": "local"}); got != want {
				t.Errorf("%s: a person who merges over REST gets %q, want %q", step.name, got, want)
			}
		}
	})
}

// put writes a file of the world as its owner alone may read it.
func (w *peopleWorld) put(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *peopleWorld) becomes(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("waited in vain: %s", what)
		}
	}
}

// proposes proposes a new file to demo/home, over MCP with an agent's token, or over REST without one. It returns the
// code of the refusal and whether it was a dry run.
func (w *peopleWorld) proposes(address, agent string) (code fault.Code, dryRun bool) {
	w.Helper()
	name := fmt.Sprintf("checks/n%d.md", time.Now().UnixNano())
	text := "# New\n"
	body := map[string]any{"repo_owner": "demo", "repo_name": "home", "title": "New " + name, "body": "Why: x",
		"files": []map[string]any{{"path": name, "action": "create", "content": text}}}
	if agent != "" {
		return w.calls(address, agent, "create_pr", body)
	}
	return w.asks(address+"/api/v1/prs", body)
}

func (w *peopleWorld) lists(address, agent string) fault.Code {
	w.Helper()
	code, _ := w.calls(address, agent, "list_prs", map[string]any{"repo_owner": "demo", "repo_name": "home"})
	return code
}

// asks posts to REST with ann's token.
func (w *peopleWorld) asks(address string, body any) (code fault.Code, dryRun bool) {
	w.Helper()
	seed, err := seedOfPeople()
	if err != nil {
		w.Fatal(err)
	}
	raw := w.send(address, body, http.Header{"Authorization": {"Bearer " + seed.token}})
	var answer struct {
		Code   fault.Code
		DryRun bool `json:"dry_run"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		w.Fatalf("%s: %v", raw, err)
	}
	return answer.Code, answer.DryRun
}

// calls calls a tool at /mcp.
func (w *peopleWorld) calls(address, agent, tool string, arguments any) (code fault.Code, dryRun bool) {
	w.Helper()
	const version = "2026-07-28"
	raw := w.send(
		address+"/mcp",
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
			"name": tool, "arguments": arguments, "_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    version,
				"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "t", "version": "1"},
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			}}},
		http.Header{"Authorization": {"Bearer " + agent}, "Accept": {"application/json"},
			"Mcp-Protocol-Version": {version}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}},
	)
	var answer struct {
		Result struct {
			Structured struct {
				Error  struct{ Code fault.Code }
				DryRun bool `json:"dry_run"`
			} `json:"structuredContent"`
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil || !strings.Contains(string(raw), `"structuredContent"`) {
		w.Fatalf("%s: %v", raw, err)
	}
	return answer.Result.Structured.Error.Code, answer.Result.Structured.DryRun
}

func (w *peopleWorld) send(address string, body any, headers http.Header) []byte {
	w.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, address, strings.NewReader(string(text)))
	if err != nil {
		w.Fatal(err)
	}
	r.Header = headers
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return raw
}
