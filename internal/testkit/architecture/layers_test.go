//go:build lint

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/claudeops/claudeops"

// ranks are the districts of internal/ from the bottom to the top. A package may import those of its own district and
// of every district below; those of one rank do not know each other. docs/adr/0019 says what each is for.
func ranks() map[string]int {
	return map[string]int{
		"base": 0, "system": 1, "gitprovider": 2, "settings": 3, "records": 4, "operation": 5, "proposals": 6,
		"procedures": 6, "agents": 6, "ops": 7,
		"mcpserver": 8, "web": 8, "app": 9, "cli": 10, "testkit": 11,
	}
}

// reserved are packages that few may import, with those that may. A folder stands for all below it. What is listed
// nowhere is for every district above.
func reserved() map[string][]string {
	return map[string][]string{
		"internal/gitprovider/github":       {"internal/gitprovider/forges"},
		"internal/gitprovider/githubapp":    {"internal/gitprovider/github", "internal/app"},
		"internal/gitprovider/gitea":        {"internal/gitprovider/forges"},
		"internal/gitprovider/local":        {"internal/proposals/review", "internal/app", "internal/cli"},
		"internal/gitprovider/forges":       {"internal/app", "internal/cli"},
		"internal/gitprovider/providertest": {"internal/testkit"},
		"internal/records/store":            {"internal/app", "bench/http", "bench/year"},
		"internal/operation/operationtest":  nil,
		"internal/testkit":                  nil,
		"internal/app":                      {"internal/cli"},
		"internal/cli":                      {"cmd/claudeops"},
	}
}

// districtOf is the folder of internal/ that a package lies in; "" for packages elsewhere.
func districtOf(folder string) string {
	rest, inside := strings.CutPrefix(folder, "internal/")
	if !inside {
		return ""
	}
	district, _, _ := strings.Cut(rest, "/")
	return district
}

func within(folder string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return folder == f || strings.HasPrefix(folder, f+"/") })
}

func TestImportsPointDown(t *testing.T) {
	rank, few := ranks(), reserved()
	used := map[string]bool{}
	for file, imports := range sources(t, moduleRoot(t)) {
		from := filepath.ToSlash(filepath.Dir(file))
		district := districtOf(from)
		own, known := rank[district]
		if district != "" && !known {
			t.Errorf("%s: ranks() has no district %s", file, district)
		}
		used[district] = true
		for _, path := range imports {
			to, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			if above := districtOf(to); district != "" && above != district && rank[above] >= own {
				t.Errorf("%s imports %s, which does not lie below it", file, to)
			}
			for folder, may := range few {
				if within(to, []string{folder}) && !within(from, append([]string{folder}, may...)) {
					t.Errorf("%s imports %s, which only %s may", file, to, strings.Join(may, " and "))
				}
			}
		}
	}
	for district := range rank {
		if !used[district] {
			t.Errorf("the district %s has no package", district)
		}
	}
	if len(rank) > 15 {
		t.Errorf("internal/ has %d districts; a reader holds 15", len(rank))
	}
}

// TestTheConnectorIsMadeOfTheStandardLibraryAlone holds what keeps claudeops-connect small and quick: it, and what it
// is made of, import no library of others, nor HTTP.
func TestTheConnectorIsMadeOfTheStandardLibraryAlone(t *testing.T) {
	for file, imports := range sources(t, moduleRoot(t)) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if folder != "internal/agents/connect" && folder != "cmd/claudeops-connect" {
			continue
		}
		for _, path := range imports {
			first, _, _ := strings.Cut(path, "/")
			if path == "net/http" || path == "crypto/tls" || strings.Contains(first, ".") && path != module+
				"/internal/agents/connect" {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

func TestOnlyConfigAndTheCommandLineReadTheEnvironment(t *testing.T) {
	root := moduleRoot(t)
	for file := range sources(t, root) {
		if file == "internal/cli/main.go" || strings.HasPrefix(file, "internal/operation/operationtest/") {
			continue // the one hands os.LookupEnv to everything else, the other is for tests
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := selector.X.(*ast.Ident)
			if ok && pkg.Name == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ"}, selector.Sel.Name) {
				t.Errorf("%s uses os.%s", file, selector.Sel.Name)
			}
			return true
		})
	}
}

// sources maps each Go file of the module, except tests, by its path from the root, to its imports.
func sources(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "node_modules" || rel == "tools" ||
			rel == "e2e") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		out[rel] = []string{}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			out[rel] = append(out[rel], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		t.Fatal("no go.mod above the test")
	}
}
