package cli

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
	out, errs, code := runArgs(d, d.env, append([]string{"token", "create", "--agent", "--tier", "3", "--name", name},
		flags...)...)
	if code != 0 {
		d.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// throughAddress returns a tool's answer at /mcp to an agent with a token, without the parts that differ from call to
// call and without the origin of the dry run.
func (d *doors) throughAddress(token string, o operation.Operation) string {
	d.Helper()
	const version = "2026-07-28"
	server := httptest.NewServer(d.server())
	defer server.Close()
	line := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`, o.Name, goodRequest(o), version)
	r := must.Get(http.NewRequestWithContext(d.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(line)))(d)
	for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json",
		"Authorization":        "Bearer " + token,
		"Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": o.Name} {
		r.Header.Set(header, value)
	}
	answer, err := server.Client().Do(r)
	must.Do(d, err)
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
		must.Do(d, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				var text []byte
				if text, err = os.ReadFile(path); err == nil {
					fmt.Fprintf(&b, "%s %d bytes\n", path, len(text))
				}
			}
			return err
		}))
	}
	return b.String()
}

const cacheClear = "fractary_forge_cache_clear"

// cached writes a download into the cache of definitions.
func (d *doors) cached() (file string) {
	d.Helper()
	sum := sha256.Sum256([]byte("content"))
	name := "downloads/" + hex.EncodeToString(sum[:])
	folder := filepath.Join(d.env["FRACTARY_CACHE_DIR"], "claudeops")
	must.Do(d, os.MkdirAll(filepath.Join(folder, "registries"), 0o700))
	operationtest.WriteFiles(d, folder, map[string]string{"files": name + "\n", name: "content"})
	return filepath.Join(folder, name)
}

// rows are the attempts of an action that the audit has, newest first.
func (d *doors) rows(action string) (out []record.RecordedAttempt) {
	d.Helper()
	all, err := d.app("", new(bytes.Buffer)).program().Wire(app.Needs{}).Store.Audit.Page(d.Context(),
		record.AuditQuery{Limit: 100})
	must.Do(d, err)
	for _, row := range all {
		if row.Action == action {
			out = append(out, row)
		}
	}
	return out
}

func (d *doors) policy(text string) {
	d.Helper()
	d.env["CLAUDEOPS_POLICY"] = filepath.Join(d.TempDir(), "rules.yaml")
	must.Do(d, os.WriteFile(d.env["CLAUDEOPS_POLICY"], []byte("version: 1\n"+text), 0o600))
}

func TestThePolicyRaisesTheTierOfAToolAtEveryWayIn(t *testing.T) {
	t.Parallel()
	clear := operationOf(t, cacheClear)
	ways := map[record.Door]func(*doors) outcome{
		record.DoorMCP:  func(d *doors) outcome { return d.throughMCP(clear, `{}`) },
		record.DoorCLI:  func(d *doors) outcome { return d.throughCLI(clear, `{}`) },
		record.DoorREST: func(d *doors) outcome { o, _ := d.throughREST(clear, `{}`); return o },
	}
	for _, c := range []struct {
		tier, tools string
		refused     bool
	}{
		{"2", "", false},
		{"2", "tools: {tiers: {fractary_forge_cache_clear: 3}}\n", true},
		{"3", "tools: {tiers: {fractary_forge_cache_clear: 3}}\n", false},
		{"1", "tools: {tiers: {fractary_forge_cache_clear: 2}}\n", true},
		{"2", "tools: {tiers: {fractary_forge_cache_clear: 2, fractary_forge_cache_stats: 3}}\n", false},
	} {
		d := newDoors(t)
		d.env["CLAUDEOPS_TIER"], d.env["FRACTARY_CACHE_DIR"] = c.tier, d.TempDir()
		d.policy(c.tools)
		tried := 0
		for door, call := range ways {
			tried++
			file := d.cached()
			got := call(d)
			_, gone := os.Stat(file)
			if refused := strings.Contains(got.Form, "PERMISSION_DENIED"); refused != c.refused ||
				os.IsNotExist(gone) == c.refused {
				t.Errorf("%s, tier %s, %q: %s; the file of the cache: %v", door, c.tier, c.tools, got.Form, gone)
			}
			rows := d.rows(cacheClear)
			if len(rows) != tried || (rows[0].Code == fault.TierDenied) != c.refused || rows[0].Door != door {
				t.Errorf("%s, tier %s, %q: recorded as %+v", door, c.tier, c.tools, rows)
			}
		}
	}
}

// A connection has its own rights and the policy as it is by then; the rest is shared.
func TestAConnectionSharesAllButItsRights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(policy, []byte(text), 0o600))
	}
	write("version: 1\ncaps: {creations_per_hour: 7}\n")
	env := map[string]string{
		"CLAUDEOPS_TIER": "3", "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "CLAUDEOPS_POLICY": policy,
		"CLAUDEOPS_TOOLSETS": "pr,packages",
		"GITHUB_TOKEN":       "tok-7f3a9c2e51d84b60", "SECRET_OF_ANOTHER": "x", "CLAUDEOPS_AGENT_ENV": "FOR_AGENTS",
		"FOR_AGENTS": "yes",
	}
	a, p := newProcess(t, env)
	rights := gateway.Rights{Session: "01J0000000000000000000000A", Tier: 1, DryRun: true, ReadOnly: true,
		Toolsets: []string{"pr"}, Folder: dir}
	own := app.WithRights(a.program(), p, rights)
	q := own.Parts
	if got := q.Flow.CurrentAuthority(); got.Tier != 1 || !got.DryRun || got.ReadOnly == "" ||
		got.Session != rights.Session {
		t.Errorf("authority %+v", got)
	}
	if got := p.Flow.CurrentAuthority(); got.Tier != 3 || got.DryRun || got.ReadOnly != "" || got.Session != "" {
		t.Errorf("that of the process has become %+v", got)
	}
	if q.Store != p.Store || q.Scanner != p.Scanner || q.Providers != p.Providers {
		t.Error("store, scanner or providers are not shared")
	}
	if names := app.ToolsetNames(own.EnabledToolsets()); len(names) != 1 || names[0] != "pr" {
		t.Errorf("toolsets %v", names)
	}
	if folder, err := app.WorkingFolder(own); folder != dir || err != nil {
		t.Errorf("folder %q, %v", folder, err)
	}
	for name, want := range map[string]string{"FOR_AGENTS": "yes", "SECRET_OF_ANOTHER": "",
		"GITHUB_TOKEN": env["GITHUB_TOKEN"]} {
		if got, _ := own.Options().Environment(name); got != want {
			t.Errorf("%s is %q, want %q, as the MCP server of a session has it", name, got, want)
		}
	}
	// What the operator changes holds for a connection that is there already.
	write("version: 1\ncaps: {creations_per_hour: 9}\n")
	becomes(t, "the policy that was changed holds", func() bool {
		return q.Flow.CurrentAuthority().Policy.Limits.Caps.CreationsPerHour == 9
	})
	write("version: 1\nnonsense: true\n")
	full := app.WithRights(a.program(), p, gateway.Rights{Tier: 3}).Parts
	becomes(t, "a policy that is broken by now lets no agent propose", func() bool {
		return full.Flow.CurrentAuthority().ReadOnly != ""
	})
	write("version: 1\ndry_run: true\n")
	becomes(t, "a policy that was mended says dry run", func() bool {
		now := full.Flow.CurrentAuthority()
		return now.ReadOnly == "" && now.DryRun
	})
}

// becomes waits until something is so, a minute at most.
func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// The credential that admits an agent is checked again before a write.
func TestAnAgentsTokenIsAskedAgainInTheRecords(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_STATE_DIR": filepath.Join(t.TempDir(), "state")}
	_, p := newProcess(t, env)
	secret := must.Get(access.NewSecret(rand.Reader))(t)
	token := access.Token{ID: "1", Name: "laptop", Hash: access.Hash(secret), MaxTier: 2, Agent: true,
		CreatedAt: time.Now()}
	must.Do(t, p.Store.Access.InsertToken(t.Context(), token))
	arrival, err := app.AdmitAgent(t.Context(), p, secret)
	must.Do(t, err)
	must.Do(t, arrival.Still(t.Context()))
	must.Do(t, p.Store.Access.RevokeToken(t.Context(), "laptop"))
	if err := arrival.Still(t.Context()); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("got %v", err)
	}
}
