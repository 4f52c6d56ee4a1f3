package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`

// mcpAnswers answers requests, each on a server of its own, in the era of initialize or in that of server/discover.
func (d *doors) mcpAnswer(modern bool, method, params string) (result, failure map[string]any) {
	d.Helper()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"tester","version":"9"}}}` + "\n"
	greeting := hello
	if modern {
		greeting = ""
		params = strings.TrimSuffix(params, "}")
		if params != "{" {
			params += ","
		}
		params += modernMeta + "}"
	}
	var out bytes.Buffer
	a := d.app(greeting+fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":%s}`, method, params)+"\n", &out)
	root := a.rootCommand()
	root.SetArgs([]string{"mcp-server"})
	if err := root.ExecuteContext(context.Background()); err != nil {
		d.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	answer := d.parse(lines[len(lines)-1])
	result, _ = answer["result"].(map[string]any)
	failure, _ = answer["error"].(map[string]any)
	return result, failure
}

func (d *doors) readResource(modern bool, uri string) (contents []map[string]any, failure map[string]any) {
	d.Helper()
	text, err := json.Marshal(uri)
	if err != nil {
		d.Fatal(err)
	}
	result, failure := d.mcpAnswer(modern, "resources/read", `{"uri":`+string(text)+`}`)
	list, _ := result["contents"].([]any)
	for _, c := range list {
		contents = append(contents, c.(map[string]any))
	}
	return contents, failure
}

func TestResourcesAreReadInBothErasOfTheProtocol(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	d.env["CLAUDEOPS_TOOLSETS"] = "pr"
	for _, modern := range []bool{false, true} {
		templates, _ := d.mcpAnswer(modern, "resources/templates/list", "{}")
		text, _ := json.Marshal(templates)
		for _, want := range []string{
			`"claudeops://{owner}/{repo}/files{?glob,after}"`,
			`"claudeops://{owner}/{repo}/file/{+path}"`, `"claudeops://{owner}/{repo}/pull/{number}/file/{+path}"`,
			`"claudeops://{owner}/{repo}/pull/{number}/diff"`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the templates lack %s: %s", want, text)
			}
		}
		list, _ := d.mcpAnswer(modern, "resources/list", "{}")
		text, _ = json.Marshal(list)
		for _, want := range []string{`"claudeops://joe/infra/pull/1/diff"`,
			`"claudeops://joe/infra/pull/1/file/checks/inodes.md"`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the list lacks %s: %s", want, text)
			}
		}
		contents, failure := d.readResource(modern, "claudeops://joe/infra/pull/1/file/checks/inodes.md")
		sha := gitprovider.BlobID([]byte("# Inodes\n"), strings.Repeat("0", 40))
		if failure != nil || len(contents) != 2 || contents[1]["text"] != "# Inodes\n" {
			t.Fatalf("%v, %v", contents, failure)
		}
		about, _ := contents[1]["_meta"].(map[string]any)
		note, _ := contents[0]["text"].(string)
		if about["base_sha"] != sha || about["untrusted"] == "" || !strings.Contains(note, "base_sha "+sha) ||
			!strings.Contains(note, "never instructions") || !strings.Contains(note, "the branch of #1") {
			t.Errorf("%v", contents)
		}
		if contents, failure = d.readResource(modern, "claudeops://joe/infra/pull/1/diff"); failure != nil ||
			len(contents) != 2 ||
			contents[1]["text"] != "--- /dev/null\n+++ b/checks/inodes.md\n@@ -0,0 +1 @@\n+# Inodes\n" ||
			contents[1]["mimeType"] != "text/x-diff" {
			t.Errorf("%v, %v", contents, failure)
		}
	}
}

func TestAResourceThatMayNotBeReadIsRefusedAsEverywhere(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	d.env["CLAUDEOPS_TOOLSETS"] = "pr"
	for uri, want := range map[string]string{
		"claudeops://joe/infra/file/README.md":                   "scope_denied",
		"claudeops://joe/infra/pull/1/file/CLAUDE.md":            "scope_denied",
		"claudeops://joe/infra/file/../infra/README.md":          "scope_denied",
		"claudeops://joe/infra/file//checks/disk.md":             "scope_denied",
		"claudeops://joe/infra/file/checks/a%20b.md":             "scope_denied",
		"claudeops://joe/infra/file/checks/none.md":              "not_found",
		"claudeops://joe/infra/pull/2/diff":                      "not_found",
		"claudeops://joe/none/file/checks/disk.md":               "not_found",
		"claudeops://../infra/file/checks/disk.md":               "invalid_argument",
		"claudeops://joe/infra/file/checks%2Fdisk.md":            "invalid_argument", // another spelling
		"claudeops://joe/infra/file/%2e%2e/README.md":            "invalid_argument",
		"claudeops://joe/infra/file/checks/%64isk.md":            "invalid_argument",
		"claudeops://joe/infra/file/checks/disk%2":               "invalid_argument",
		"claudeops://joe/infra/file/checks/disk.md?pull=1":       "invalid_argument",
		"claudeops://joe/infra/file/checks/disk.md#x":            "invalid_argument",
		"claudeops://joe/infra/pull/01/file/checks/disk.md":      "invalid_argument",
		"claudeops://joe/infra/pull/0/diff":                      "invalid_argument",
		"claudeops://joe%2Finfra/x/file/checks/disk.md":          "invalid_argument",
		"claudeops://joe/infra/file/checks/" + "\u202e" + "disk": "invalid_argument",
	} {
		for _, modern := range []bool{false, true} {
			contents, failure := d.readResource(modern, uri)
			data, _ := failure["data"].(map[string]any)
			wire, _ := data["error"].(map[string]any)
			message, _ := failure["message"].(string)
			if contents != nil || wire["code"] != want || !strings.HasPrefix(message, "["+want+"] ") || wire["next"] == "" {
				t.Errorf("%s: %v, %v; want %s", uri, contents, failure, want)
			}
			code := -32000.0
			if want == "not_found" {
				code = map[bool]float64{false: -32002, true: -32602}[modern]
			}
			if failure["code"] != code {
				t.Errorf("%s: code %v, want %v", uri, failure["code"], code)
			}
		}
	}
	out, _, _ := d.command("audit", "list", "--json")
	if !strings.Contains(out, `"read_file"`) || !strings.Contains(out, "scope_denied") {
		t.Errorf("the audit lacks the refusals: %.2000s", out)
	}
	for _, unknown := range []string{"claudeops://joe/infra", "file:///etc/passwd", "", "claudeops://joe/infra/pull/x"} {
		contents, failure := d.readResource(false, unknown)
		if message, _ := failure["message"].(string); contents != nil ||
			!strings.Contains(message, "read claudeops://OWNER/REPO/file/PATH") {
			t.Errorf("%q: %v, %v", unknown, contents, failure)
		}
	}
}

func TestWhatIsNamedIsWhatMayBeReadAndBounded(t *testing.T) {
	t.Parallel()
	d := newReaders(t)
	dir := d.TempDir()
	d.env["CLAUDEOPS_REPOS_DIR"] = dir
	for i := range 100 {
		write(t, filepath.Join(dir, "joe", "infra", "checks", fmt.Sprintf("n%02d.md", i)), "# N\n")
	}
	write(t, filepath.Join(dir, "joe", "infra", ".claude-ops", "skills", "a.md"), "# A\n")
	names := func() (uris []string) {
		list, _ := d.mcpAnswer(false, "resources/list", "{}")
		resources, _ := list["resources"].([]any)
		for _, r := range resources {
			uris = append(uris, r.(map[string]any)["uri"].(string))
		}
		return uris
	}
	uris := names()
	if len(uris) != 60 || uris[0] != "claudeops://joe/infra/pull/1/diff" {
		t.Errorf("%d are named: %v", len(uris), uris)
	}
	d.env["CLAUDEOPS_REPOS"] = "local:joe/other"
	if uris := names(); len(uris) != 0 {
		t.Errorf("not on the list, and named: %v", uris)
	}
	delete(d.env, "CLAUDEOPS_REPOS")
	d.env["CLAUDEOPS_POLICY"] = "/nonexistent/policy.yaml"
	if uris := names(); len(uris) != 0 {
		t.Errorf("without rules: %v", uris)
	}
	d.env["CLAUDEOPS_TOOLSETS"] = "definitions"
	if _, failure := d.mcpAnswer(false, "resources/read",
		`{"uri":"claudeops://joe/infra/file/checks/disk.md"}`); failure == nil {
		t.Error("a toolset without resources has some")
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
