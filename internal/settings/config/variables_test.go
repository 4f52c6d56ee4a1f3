package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// notTheOperators are variables that are read and are not the operator's to set for us: they are a machine's, or a
// session's.
func notTheOperators() []string {
	return []string{"USER", "CLAUDEOPS_SESSION", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
		"https_proxy"}
}

// readers are the methods through which the source reads a variable. Each takes the name as a literal, but for calls
// among themselves.
func readers() []string {
	return []string{"get", "secret", "variableOrFile", "secretFile", "boolean", "permission", "tier", "pollInterval",
		"anySource"}
}

// readVariables maps each variable that the source of this package reads to whether it is read as a secret.
func readVariables(t *testing.T) map[string]bool {
	t.Helper()
	files := must.Get(filepath.Glob("*.go"))(t)
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				collectReads(t, f, found)
			}
		}
	}
	return found
}

// readersOfLists are the functions that read what ServerVariables and the drivers of forges list.
func readersOfLists() []string {
	return []string{"serverEnv", "toolsetEnv", "hookSecret", "Get", "Secret", "RegistryToken", "secretFiles", "signInAt",
		"readSecret", "anySource"}
}

func collectReads(t *testing.T, f *ast.FuncDecl, found map[string]bool) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(readers(), method.Sel.Name) || len(call.Args) != 1 {
			return true
		}
		literal, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			if !slices.Contains(readers(), f.Name.Name) && !slices.Contains(readersOfLists(), f.Name.Name) {
				t.Errorf("%s reads a variable whose name is not a literal, so that nothing can list it", f.Name.Name)
			}
			return true
		}
		name := must.Get(strconv.Unquote(literal.Value))(t)
		found[name] = found[name] || method.Sel.Name == "secret" || method.Sel.Name == "variableOrFile"
		return true
	})
}

func TestEveryVariableThatIsReadIsListed(t *testing.T) {
	read := readVariables(t)
	if len(read) < 20 {
		t.Fatalf("only %d reads were found: %v", len(read), slices.Sorted(maps.Keys(read)))
	}
	listed := map[string]bool{}
	for _, v := range config.Variables(nil) { // those of forges are held by the test of package forges
		if _, twice := listed[v.Name]; twice || v.Meaning == "" {
			t.Errorf("%s is listed twice, or without its meaning", v.Name)
		}
		listed[v.Name] = v.Secret
		if secret, isRead := read[v.Name]; !isRead || secret != v.Secret {
			t.Errorf("%s: read %t, as a secret %t; listed as a secret %t", v.Name, isRead, secret, v.Secret)
		}
	}
	for name := range read {
		if _, known := listed[name]; !known && !slices.Contains(notTheOperators(), name) {
			t.Errorf("%s is read, and Variables does not list it", name)
		}
	}
}

// HOME is seldom set on Windows. So UserFolders alone reads it, and programs that are started get what says the same
// there beside it.
func TestHOMEIsNeverTheOnlyWayToAFolder(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		ours := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testkit")
		if err != nil || !ours {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		if strings.Contains(string(text), `"HOME"`) && !strings.Contains(string(text), `"USERPROFILE"`) {
			t.Errorf("%s names HOME, and not USERPROFILE", path)
		}
		return err
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestTheMCPServerIsGivenVariablesThatExist(t *testing.T) {
	secret := map[string]bool{}
	for _, v := range config.Variables(forges.All()) {
		secret[v.Name] = v.Secret
	}
	for _, v := range config.ServerVariables(forges.All()) {
		base, isFile := strings.CutSuffix(v.Name, "_FILE")
		if isFile && secret[base] {
			continue
		}
		if _, known := secret[v.Name]; !known {
			t.Errorf("%s is not a variable of the product", v.Name)
		}
	}
}

func TestAClientHandsOnWhatItsToolsetsRead(t *testing.T) {
	for toolsets, want := range map[string][]string{
		"pr": {"CLAUDEOPS_TIER", "GITEA_TOKEN", "GITEA_TOKEN_FILE"},
		"pr,definitions": {"CLAUDEOPS_TIER", "CLAUDEOPS_TOOLSETS", "CLAUDEOPS_ALLOW_WRITE", "FRACTARY_CONFIG",
			"FRACTARY_REGISTRY_TOKEN", "FRACTARY_REGISTRY_TOKEN_FILE"},
		"deploy":            {"CLAUDEOPS_TOOLSETS", "AGENTPACK_HOME", "CLAUDEOPS_DEPLOY_REPOS"},
		"pr,scripts":        {"CLAUDEOPS_TOOLSETS", "CLAUDEOPS_SCRIPTS"},
		"pr,packages":       {"CLAUDEOPS_TOOLSETS", "CLAUDEOPS_ALLOW_WRITE", "CODEX_HOME"},
		"deploy,packages":   {"CODEX_HOME"},
		"deploy,scripts,pr": {"AGENTPACK_HOME", "CLAUDEOPS_SCRIPTS"},
	} {
		var names []string
		for _, v := range config.ClientVariables(forges.All(), strings.Split(toolsets, ",")) {
			if slices.Contains(names, v.Name) {
				t.Errorf("%s: %s is there twice", toolsets, v.Name)
			}
			names = append(names, v.Name)
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not among %v", toolsets, name, names)
			}
		}
		if has := slices.Contains(names, "AGENTPACK_HOME"); has != (strings.Contains(toolsets, "deploy") ||
			strings.Contains(toolsets, "packages")) {
			t.Errorf("%s: AGENTPACK_HOME is there: %t", toolsets, has)
		}
	}
}
