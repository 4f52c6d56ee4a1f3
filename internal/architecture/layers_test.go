// Package architecture holds the tests of the project's shape.
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

// layers says which of our packages each package may import, tests aside. Imports point one way (design §5):
// cli -> doors, store, adapters -> prflow -> policy -> gitprovider -> fault. A package that is not listed fails.
func layers() map[string][]string {
	domain := []string{"internal/gitprovider", "internal/fault"}
	flow := append([]string{"internal/prflow", "internal/access", "internal/operation", "internal/record", "internal/policy", "internal/outgoing", "internal/content", "internal/strictjson", "internal/textedit"}, domain...)
	adapter := append([]string{"internal/gitprovider/forge", "internal/gitprovider/transport", "internal/gitprovider/driver", "internal/gitprovider/webhook"}, domain...)
	webParts := append([]string{
		"internal/web/guard", "internal/web/handler", "internal/web/health", "internal/web/live", "internal/web/metrics", "internal/web/records",
	}, flow...)
	host := "internal/forgetest/memhost"
	forge := append([]string{host, "internal/gitprovider/providertest", "internal/forgetest/httpfault"}, domain...)
	return map[string][]string{
		"":              nil,
		"cmd/claudeops": {"internal/cli"},
		// The connector is small: the standard library alone; see TestTheConnectorIsMadeOfTheStandardLibraryAlone.
		"cmd/claudeops-connect":   {"internal/connect"},
		"internal/connect":        nil,
		"internal/connect/remote": {"internal/connect"},
		"internal/door":           append([]string{"internal/confine", "internal/connect", "internal/record"}, domain...),
		"internal/cli": append([]string{
			"",
			"internal/access",
			"internal/auditsink",
			"internal/confine",
			"internal/config",
			"internal/definitions",
			"internal/demo",
			"internal/connect",
			"internal/connections",
			"internal/connect/remote",
			"internal/deploy",
			"internal/doctor",
			"internal/filemodes",
			"internal/door",
			"internal/follow",
			"internal/forges",
			"internal/gitprovider/driver",
			"internal/gitprovider/local",
			"internal/gitprovider/transport",
			"internal/keyfile",
			"internal/logqueue",
			"internal/mcpconfig",
			"internal/mcpserver",
			"internal/mergedeploy",
			"internal/mounted",
			"internal/notify",
			"internal/packages",
			"internal/people",
			"internal/processtree",
			"internal/review",
			"internal/scripts",
			"internal/secretfile",
			"internal/session",
			"internal/store",
			"internal/tokens",
			"internal/toolset",
			"internal/web",
			"internal/web/api",
			"internal/web/dashboard",
			"internal/web/guard",
			"internal/web/handler",
			"internal/web/live",
			"internal/web/metrics",
			"internal/web/records",
			"internal/gitprovider/webhook",
		}, flow...),
		"internal/mcpserver":                {"internal/mcpserver/stdio", "internal/operation", "internal/record", "internal/fault"},
		"internal/mcpserver/stdio":          nil,
		"internal/operation":                append([]string{"internal/access", "internal/record", "internal/strictjson"}, domain...),
		"internal/operation/operationtest":  {"internal/operation"},
		"internal/toolset":                  append([]string{"internal/access", "internal/filelock", "internal/operation", "internal/record", "internal/strictjson"}, domain...),
		"internal/deploy":                   append([]string{"internal/filelock", "internal/operation", "internal/secretfile", "internal/toolset"}, domain...),
		"internal/definitions":              append([]string{"internal/operation", "internal/toolset"}, domain...),
		"internal/scripts":                  append([]string{"internal/access", "internal/operation", "internal/processtree", "internal/record", "internal/toolset"}, domain...),
		"internal/packages":                 append([]string{"internal/deploy", "internal/filelock", "internal/operation", "internal/record", "internal/toolset"}, domain...),
		"internal/record":                   domain,
		"internal/auditsink/tamper":         nil,
		"internal/auditsink":                {"internal/fault", "internal/filelock", "internal/record"},
		"internal/connections":              append([]string{"internal/people", "internal/record"}, domain...),
		"internal/store":                    append([]string{"internal/filelock", "internal/access", "internal/record", "internal/session"}, domain...),
		"internal/store/storetest":          {"internal/store"},
		"internal/session":                  append([]string{"internal/confine", "internal/door", "internal/filelock", "internal/processtree", "internal/content", "internal/record", "internal/people"}, domain...),
		"internal/access":                   append([]string{"internal/secretfile"}, domain...),
		"internal/doctor":                   {"internal/filemodes", "internal/keyfile", "internal/config", "internal/confine", "internal/mcpconfig", "internal/mounted", "internal/policy", "internal/record", "internal/gitprovider", "internal/fault"},
		"internal/people":                   flow,
		"internal/tokens":                   append([]string{"internal/access", "internal/people"}, flow...),
		"internal/review":                   append([]string{"internal/people", "internal/gitprovider/local"}, flow...),
		"internal/web":                      append([]string{"internal/access", "internal/doctor", "internal/door", "internal/web/api", "internal/web/connector", "internal/web/dashboard"}, webParts...),
		"internal/web/connector":            append([]string{"internal/connect", "internal/connect/remote", "internal/door", "internal/web/guard", "internal/web/handler"}, flow...),
		"internal/web/handler":              append([]string{"internal/access", "internal/people"}, flow...),
		"internal/web/guard":                append([]string{"internal/access", "internal/web/handler"}, flow...),
		"internal/web/records":              {"internal/record", "internal/session"},
		"internal/web/health":               append([]string{"internal/doctor", "internal/web/handler", "internal/web/records"}, flow...),
		"internal/web/metrics":              append([]string{"internal/session", "internal/web/handler", "internal/web/health", "internal/web/records"}, flow...),
		"internal/web/live":                 append([]string{"internal/access", "internal/web/guard", "internal/web/handler"}, flow...),
		"internal/web/api":                  append([]string{"internal/access", "internal/connections", "internal/doctor", "internal/people", "internal/session", "internal/tokens", "internal/gitprovider/webhook"}, webParts...),
		"internal/web/dashboard":            append([]string{"internal/access", "internal/connections", "internal/definitions", "internal/deploy", "internal/packages", "internal/people", "internal/review", "internal/scripts", "internal/session", "internal/tokens", "internal/web/pages"}, webParts...),
		"internal/web/pages":                {"internal/content"},
		"internal/gitprovider/webhook":      domain,
		"internal/follow":                   append([]string{"internal/gitprovider/webhook"}, flow...),
		"internal/mergedeploy":              append([]string{"internal/deploy", "internal/people", "internal/toolset"}, flow...),
		"internal/demo":                     {"internal/fault"},
		"internal/filelock":                 nil,
		"internal/filemodes":                nil,
		"internal/textedit":                 nil,
		"internal/logqueue":                 nil,
		"internal/processtree":              {"internal/osthread"},
		"internal/osthread":                 nil,
		"internal/confine":                  {"internal/osthread", "internal/processtree"},
		"internal/keyfile":                  {"internal/fault", "internal/secretfile"},
		"internal/secretfile":               nil,
		"internal/notify":                   append([]string{"internal/processtree"}, flow...),
		"internal/crash":                    nil,
		"internal/deploytest":               nil,
		"internal/agentdocs":                nil,
		"internal/architecture":             nil,
		"internal/prflow":                   slices.DeleteFunc(slices.Clone(flow), func(s string) bool { return s == "internal/prflow" }),
		"internal/policy":                   domain,
		"internal/config":                   {"internal/mcpconfig", "internal/policy", "internal/gitprovider", "internal/gitprovider/driver", "internal/secretfile"},
		"internal/mounted":                  {"internal/gitprovider", "internal/mcpconfig"},
		"internal/mcpconfig":                nil,
		"internal/gitprovider":              {"internal/fault"},
		"internal/gitprovider/local":        domain,
		"internal/gitprovider/github":       append([]string{"internal/gitprovider/githubapp"}, adapter...),
		"internal/gitprovider/githubapp":    append([]string{"internal/gitprovider/forge", "internal/gitprovider/transport"}, domain...),
		"internal/gitprovider/driver":       append([]string{"internal/gitprovider/transport", "internal/secretfile", "internal/gitprovider/webhook"}, domain...),
		"internal/forges":                   {"internal/gitprovider/driver", "internal/gitprovider/github", "internal/gitprovider/gitea"},
		"internal/gitprovider/gitea":        adapter,
		"internal/gitprovider/forge":        domain,
		"internal/gitprovider/transport":    {"internal/fault"},
		"internal/gitprovider/providertest": domain,
		"internal/forgetest":                append([]string{host, "internal/gitprovider/providertest"}, domain...),
		"internal/forgetest/memhost":        append([]string{"internal/gitprovider/providertest"}, domain...),
		"internal/forgetest/httpfault":      nil,
		"internal/forgetest/fakegithub": append([]string{
			"internal/forgetest/fakegithub/apispec", "internal/forgetest/fakegithub/gql",
		}, forge...),
		"internal/forgetest/fakegithub/apispec": nil,
		"internal/forgetest/fakegithub/gql":     nil,
		"internal/forgetest/fakegitea":          forge,
		"internal/resilience":                   nil,
		"internal/strictjson":                   {"internal/fault"},
		"internal/content":                      {"internal/content/secretrules"},
		"internal/content/secretrules":          nil,
		"internal/outgoing":                     {"internal/content"},
		"internal/fault":                        nil,
		"bench/baseline":                        nil,
		"bench/definitions":                     nil,
		"bench/http":                            append([]string{"internal/store", "internal/record"}, domain...),
		"bench/spawn":                           nil,
	}
}

func TestImportsPointOneWay(t *testing.T) {
	root := moduleRoot(t)
	allowed := layers()
	seen := map[string]bool{}
	for file, imports := range sources(t, root) {
		from := filepath.ToSlash(filepath.Dir(file))
		if from == "." {
			from = ""
		}
		seen[from] = true
		may, listed := allowed[from]
		if !listed {
			t.Errorf("%s: the package %s is in no layer; add it to layers()", file, from)
			continue
		}
		for _, path := range imports {
			ours, isOurs := strings.CutPrefix(path, module)
			if ours = strings.TrimPrefix(ours, "/"); isOurs && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s, which its layer may not", file, path)
			}
		}
	}
	for layer := range allowed {
		if !seen[layer] && layer != "internal/architecture" {
			t.Errorf("the layer %q has no package", layer)
		}
	}
}

// TestTheConnectorIsMadeOfTheStandardLibraryAlone holds what keeps claudeops-connect small and quick: it, and what it is made of, import no
// library of others, nor HTTP.
func TestTheConnectorIsMadeOfTheStandardLibraryAlone(t *testing.T) {
	for file, imports := range sources(t, moduleRoot(t)) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if folder != "internal/connect" && folder != "cmd/claudeops-connect" {
			continue
		}
		for _, path := range imports {
			first, _, _ := strings.Cut(path, "/")
			if path == "net/http" || path == "crypto/tls" || strings.Contains(first, ".") && path != module+"/internal/connect" {
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

// sources maps each Go file of the module that is no test, by its path from the root, to what it imports.
func sources(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "node_modules" || rel == "tools" || rel == "e2e") {
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
