package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestValuesAreCompleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{
		"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"),
		"CLAUDEOPS_TIER":      "2",
		"CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "repos"), "PATH": os.Getenv("PATH"), "HOME": dir,
		"CLAUDEOPS_REPOS": "gitea:joe/infra",
	}
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: new(bytes.Buffer)},
			func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		return out.String()
	}
	complete := func(want []string, line ...string) {
		t.Helper()
		got := run(append([]string{"__complete"}, line...)...)
		for _, w := range want {
			if !strings.Contains("\n"+got, "\n"+w) {
				t.Errorf("%v: %q is not offered among\n%s", line, w, got)
			}
		}
		if !strings.Contains(got, ":4\n") {
			t.Errorf("%v: files are offered, too:\n%s", line, got)
		}
	}
	complete([]string{"joe/infra"}, "audit", "list", "--repo", "") // without records
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	shapeRepository(t, filepath.Join(dir, "root", "demo", "home.git"))
	delete(env, "CLAUDEOPS_REPOS")
	if err := os.WriteFile(filepath.Join(dir, "new.md"), []byte("# New\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("pr", "create", "--repo", "demo/home", "--title", "Watch it", "--body", "Why: x", "--create",
		"checks/one.md="+filepath.Join(dir, "new.md"))
	run("token", "create", "--name", "ci")
	complete([]string{"demo/home\n"}, "pr", "list", "--repo", "")
	complete([]string{"1\tWatch it"}, "pr", "status", "--repo", "demo/home", "")
	complete([]string{"1\tWatch it"}, "review", "merge", "")
	complete([]string{"refused\n", "revised\n"}, "audit", "list", "--outcome", "")
	complete([]string{"scope_denied\n"}, "audit", "list", "--code", "")
	complete([]string{"1\n", "2\n", "3\n"}, "run", "--tier", "")
	complete([]string{"codex\n"}, "mcp-config", "--client", "")
	complete([]string{"ci\n"}, "token", "revoke", "")
	complete([]string{"succeeded\n"}, "session", "list", "--state", "")
	complete([]string{"merged\n"}, "review", "list", "--state", "")
	complete([]string{"playbook\n"}, "pr", "create", "--type", "")
}

func TestTheListOfCodesIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[fault.Code]bool{}
	for _, code := range fault.Codes() {
		if !code.Known() || seen[code] {
			t.Errorf("%s is unknown, or there twice", code)
		}
		seen[code] = true
	}
	text, err := os.ReadFile(filepath.Join("..", "base", "fault", "fault.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), ` Code = "`); n != len(seen) {
		t.Errorf("%d codes of %d", len(seen), n)
	}
}
