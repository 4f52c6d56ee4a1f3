package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/operation"
)

// An agent's token that is in a dry run, or read-only, opens what every token would at a server that is so itself, and
// a token lifts nothing of what the server is: for each tool, at the address.
func TestATokensLimitsAreThoseThatAServerHas(t *testing.T) {
	t.Chdir(t.TempDir()) // where tools of agents with tokens look
	for name, limit := range map[string]struct{ flag, variable string }{
		"dry run":   {"--dry-run", "CLAUDEOPS_DRY_RUN"},
		"read-only": {"--read-only", "CLAUDEOPS_READ_ONLY"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoors(t)
			d.env["CLAUDEOPS_TIER"], d.env["CLAUDEOPS_MAX_TIER"] = "3", "3"
			d.env["CLAUDEOPS_SESSION_TOOLSETS"] = d.env["CLAUDEOPS_TOOLSETS"]
			plain, limited := d.agentToken("plain"), d.agentToken("limited", limit.flag)
			before := d.written()
			refused, all := 0, operation.List(new(app.App).Toolsets()...)
			for _, o := range all {
				if o.Tool.Title == "" || o.Effect == operation.Read {
					continue
				}
				byToken := d.throughAddress(limited, o)
				d.env[limit.variable] = "true"
				byServer, byBoth := d.throughAddress(plain, o), d.throughAddress(limited, o)
				delete(d.env, limit.variable)
				if byToken != byServer || byToken != byBoth {
					t.Errorf("%s: by the token %s\nby the server %s\nby both %s", o.Name, byToken, byServer, byBoth)
				}
				if strings.Contains(byToken, "read_only") || strings.Contains(byToken, "read-only") ||
					strings.Contains(byToken, `"dry_run":true`) {
					refused++
				}
			}
			if after := d.written(); after != before {
				t.Errorf("something was written:\n%s\nwas\n%s", after, before)
			}
			if refused == 0 {
				t.Error("no tool says what it is not to do")
			}
			if got := d.throughAddress(plain, operation.Named(all, "create_pr")); !strings.Contains(got, `"number":1`) {
				t.Errorf("without limits: %s", got)
			}
		})
	}
}

// agentToken makes one of tier 3, with more flags.
func (d *doors) agentToken(name string, flags ...string) string {
	d.Helper()
	var out bytes.Buffer
	root := d.app("", &out).rootCommand()
	root.SetArgs(append([]string{"token", "create", "--agent", "--tier", "3", "--name", name}, flags...))
	if err := root.ExecuteContext(d.Context()); err != nil {
		d.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// throughAddress returns a tool's answer at /mcp to an agent with a token, without the parts that differ from call to
// call and without the origin of the dry run.
func (d *doors) throughAddress(token string, o operation.Operation) string {
	d.Helper()
	const version = "2026-07-28"
	server := httptest.NewServer(d.server())
	defer server.Close()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`, o.Name, goodRequests()[o.Name], version)))
	if err != nil {
		d.Fatal(err)
	}
	for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json",
		"Authorization":        "Bearer " + token,
		"Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": o.Name} {
		r.Header.Set(header, value)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"result"`)) {
		d.Fatalf("%s: %s %s, %v", o.Name, answer.Status, text, err)
	}
	return requestIDs().ReplaceAllString(strings.ReplaceAll(string(text),
		"this agent is read-only (by its token, or by how it connects)", "the server is read-only (CLAUDEOPS_READ_ONLY)"),
		"id")
}

// written is every reference and object of the repository, and every file of the folders that tools look at.
func (d *doors) written() string {
	d.Helper()
	var b strings.Builder
	for _, root := range []string{d.repo, ".", d.env["HOME"]} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				var text []byte
				if text, err = os.ReadFile(path); err == nil {
					fmt.Fprintf(&b, "%s %d bytes\n", path, len(text))
				}
			}
			return err
		})
		if err != nil {
			d.Fatal(err)
		}
	}
	return b.String()
}
