//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// promtool runs Prometheus's own tool.
func promtool(t *testing.T, dir string, stdin string, args ...string) {
	t.Helper()
	got := run(t, program{path: "promtool", args: args, dir: dir, env: []string{path()}, stdin: strings.NewReader(stdin),
		may: browsing})
	if got.code != 0 {
		t.Errorf("promtool %v: exit %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
}

func TestPrometheusTakesTheRulesAndWhatIsMeasured(t *testing.T) {
	t.Parallel()
	rules := filepath.Join("..", "deploy", "prometheus")
	promtool(t, rules, "", "check", "rules", "claudeops.rules.yaml")
	promtool(t, rules, "", "test", "rules", "claudeops.rules.test.yaml")

	// What the dashboard asks is checked as if it were recorded.
	var queries strings.Builder
	queries.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expr := range dashboardQueries(t) {
		text := must.Get(json.Marshal(strings.NewReplacer("$job", "claudeops").Replace(expr)))(t)
		fmt.Fprintf(&queries, "  - record: q:%d\n    expr: %s\n", i, text)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	must.Do(t, os.WriteFile(file, []byte(queries.String()), 0o600))
	promtool(t, "", "", "check", "rules", file)

	w := newWorld(t, "2")
	s := serve(t, w)
	text := fetched(t, s.url+"/metrics", w.operatorToken(t))
	if !strings.Contains(text, "claudeops_records_readable 1\n") {
		t.Errorf("the records are not readable in\n%s", text)
	}
	promtool(t, "", text, "check", "metrics")
}

func dashboardQueries(t *testing.T) (out []string) {
	t.Helper()
	board := decode[struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}](t, readFile(t, "../deploy/grafana/claudeops.json"))
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			out = append(out, target.Expr)
		}
	}
	if len(out) < 10 {
		t.Fatalf("%d queries", len(out))
	}
	return out
}

// fetched returns the answer of an address.
func fetched(t *testing.T, address, token string) string {
	t.Helper()
	status, text := exchange(t, http.DefaultClient, http.MethodGet, address, "", "Authorization", "Bearer "+token)
	if status != http.StatusOK {
		t.Fatalf("%s: %d", address, status)
	}
	return text
}

// exchange makes a request with headers, which are pairs of a name and a value, and returns the answer.
func exchange(t testing.TB, client *http.Client, method, address, body string, headers ...string) (status int,
	text string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body)))(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	must.Do(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	must.Do(t, err)
	return answer.StatusCode, string(all)
}

// Grafana publishes what a dashboard may have as types of TypeScript. Words of its enumerations stand in the file as
// texts.
func TestGrafanaTakesTheDashboard(t *testing.T) {
	t.Parallel()
	board := readFile(t, "../deploy/grafana/claudeops.json")
	compiler := installed(t, "typescript/bin/tsc")
	dir := t.TempDir()
	must.Do(t, os.Symlink(filepath.Dir(filepath.Dir(filepath.Dir(compiler))),
		filepath.Join(dir, "node_modules")))
	compiled := func(board string) outcome {
		t.Helper()
		text := `import type { Dashboard } from '@grafana/schema';
type Plain<T> = T extends string ? ` + "`${T}`" + ` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
export const dashboard: Plain<Dashboard> = ` + strings.TrimSpace(board) + ";\n"
		file := filepath.Join(dir, "dashboard.ts")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		return run(t, program{
			path: installed(t, "node-linux-*/bin/node"), dir: dir, env: []string{path()}, may: browsing,
			args: []string{compiler, "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution",
				"nodenext", "--target", "es2022", file},
		})
	}
	if got := compiled(board); got.code != 0 {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := compiled(strings.Replace(board, `"schemaVersion": 39`, `"schemaVersion": "39"`,
		1)); !strings.Contains(got.stdout, "not assignable") {
		t.Errorf("a wrong dashboard is taken: exit %d\n%s", got.code, got.stdout)
	}
}

// The linter's recommended rules, none switched off.
func TestRedoclyFindsNothingInTheDescription(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "2")
	s := serve(t, w)
	must.Do(t, os.WriteFile(filepath.Join(dir, "openapi.json"),
		[]byte(fetched(t, s.url+"/openapi.json", w.operatorToken(t))), 0o600))
	got := run(t, program{
		path: installed(t, "node-linux-*/bin/node"), dir: dir,
		env: []string{path(), "HOME=" + dir, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"},
		args: []string{installed(t, "@redocly/cli/bin/cli.js"), "lint", "openapi.json", "--format=json",
			"--max-problems=1000"}, may: browsing,
	})
	found := decode[struct {
		Totals struct{ Errors, Warnings int }
	}](t, got.stdout)
	if got.code != 0 || found.Totals.Errors+found.Totals.Warnings != 0 || !strings.Contains(got.stdout, `"totals"`) {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The examples of docs/guides/rest.md are run word for word by a shell with curl, in a network of its own, where the
// port of the docs is free.
func TestTheCurlExamplesOfTheDocsWork(t *testing.T) {
	t.Parallel()
	_, rest, marked := strings.Cut(readFile(t, "../docs/guides/rest.md"), "<!-- run by e2e/metrics_test.go -->\n```sh\n")
	example, _, ended := strings.Cut(rest, "```\n")
	if !marked || !ended || strings.Count(example, "curl ") < 6 {
		t.Fatal("docs/guides/rest.md has no examples to run")
	}
	w := newWorld(t, "2")
	script := "set -eu\nclaudeops serve > serve.log 2>&1 &\nserver=$!\ntrap 'kill $server; wait $server' EXIT\n" +
		"until curl -s -o /dev/null http://127.0.0.1:8080/healthz; do sleep 0.2; done\n" + example
	env := w.environment("HOME=" + w.home)
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "CLAUDEOPS_STATE_DIR=") })
	got := run(t, program{
		path: "bwrap", dir: w.home, env: env, may: browsing,
		args: []string{"--dev-bind", "/", "/", "--unshare-net", "--die-with-parent", "--chdir", w.home, "bash", "-c", script},
	})
	for _, want := range []string{`"number":1`, `"state":"open"`, `"outcome":"opened"`, `"allowed":false`,
		"claudeops_records_readable 1", `"code":"scope_denied"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if got.code != 0 || t.Failed() {
		t.Errorf("exit %d\n%.8000s\n%s", got.code, got.stdout, got.stderr)
	}
}
