//go:build lint

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
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
		"internal/records/store":            {"internal/app", "bench/agents", "bench/http", "bench/year"},
		"internal/operation/operationtest":  nil,
		"internal/testkit":                  {"bench/facts"},
		"internal/app":                      {"internal/cli"},
		"internal/cli":                      {"cmd/claudeops", "internal/testkit/commands"},
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
		if folder != "internal/agents/stdioproxy" && folder != "cmd/claudeops-connect" {
			continue
		}
		for _, path := range imports {
			first, _, _ := strings.Cut(path, "/")
			if path == "net/http" || path == "crypto/tls" || strings.Contains(first, ".") && path != module+
				"/internal/agents/stdioproxy" {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

func TestOnlyConfigAndTheCommandLineReadTheEnvironment(t *testing.T) {
	root := moduleRoot(t)
	for file := range sources(t, root) {
		if file == "internal/cli/main.go" || strings.HasPrefix(file, "internal/operation/operationtest/") ||
			strings.HasPrefix(file, "internal/testkit/commands/") || strings.HasPrefix(file, "examples/") {
			continue // the first hands os.LookupEnv to everything else, the others are for tests, and programs of their own
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

// touching are the packages whose purpose is to touch files, processes and the network; all others are to use them.
func touching() []string {
	return []string{
		"internal/system",
		"internal/agents/gateway", // listens on the sockets of sessions
		"internal/records/store",  // opens its database
		"cmd",
	}
}

// exceptions lists what single packages may use themselves, by package and kind.
func exceptions() []string {
	return []string{
		"internal/app: net", // serve listens for browsers and agents
		"internal/cli: net", // the demo does
		// The program that agents start has the standard library alone, so that it stays small: it reads its ticket by os.
		"internal/agents/stdioproxy: os", "internal/agents/stdioproxy: net",
		"internal/base/markdown: goldmark", // parses within bounds, for all others
	}
}

// saying are the functions that may call a value the operator's (trust.Said), and where each has it from. What a file
// of a project, a package or an agent says gets no further than to choose from sources.List; the types of
// transport.Client and git.Remote hold that no other host and no other repository is asked.
func saying() map[string]string {
	return map[string]string{
		"internal/cli.runHealth":                                 "flags and variables",
		"internal/app.RemoteOf":                                  "the address of a provider",
		"internal/ops/notify.newPoster":                          "variables",
		"internal/records/auditsink.newHTTPSink":                 "variables",
		"internal/settings/sources.(List).Pick":                  "the list of sources",
		"internal/procedures/definitions.(merger).matchRegistry": "the list of sources",
		"internal/procedures/definitions.(merger).registries":    "the operator's file, and the list of sources",
		"internal/procedures/definitions.(fetcher).client":       "registries that merger has named",
		"internal/agents/oauth.newDocuments":                     "any host of the internet, where a variable lets it",
		"internal/procedures/deploy.(GitSource).operators":       "the operator's own configuration",
		"internal/ops/demo.(life).git":                           "the repository that the demo has made",
	}
}

// TestOnlySystemTouchesFilesProcessesAndTheNetwork checks, by the compiler's data, that only the packages of touching
// reach outside of the program. An unneeded exception is an error.
func TestOnlySystemTouchesFilesProcessesAndTheNetwork(t *testing.T) {
	root := moduleRoot(t)
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo,
	}, "./cmd/...", "./internal/...")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range loaded {
		for _, problem := range p.Errors {
			t.Fatalf("%s: %v", p.PkgPath, problem)
		}
		name := strings.TrimPrefix(p.PkgPath, module+"/")
		if slices.ContainsFunc(touching(), func(folder string) bool {
			return name == folder ||
				strings.HasPrefix(name, folder+"/")
		}) || forTests(name) {
			continue
		}
		for _, where := range sayers(p) {
			if _, known := saying()[name+"."+where]; !known {
				t.Errorf("%s.%s calls a value the operator's; say in saying where it has it from", name, where)
			}
			used[name+"."+where] = true
		}
		for at, object := range p.TypesInfo.Uses {
			kind := reaches(object)
			if kind == "" {
				continue
			}
			if what := name + ": " + kind; slices.Contains(exceptions(), what) {
				used[what] = true
			} else {
				t.Errorf("%s uses %s.%s; use what internal/system has for it, or internal/base/markdown",
					p.Fset.Position(at.Pos()), object.Pkg().Name(), object.Name())
			}
		}
	}
	for _, what := range slices.Concat(exceptions(), slices.Sorted(maps.Keys(saying()))) {
		if !used[what] {
			t.Errorf("%s is listed, and nobody needs it", what)
		}
	}
}

// sayers lists the functions of a package that use trust.Said.
func sayers(p *packages.Package) (out []string) {
	for _, file := range p.Syntax {
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				if used := p.TypesInfo.Uses[id]; used != nil && used.Name() == "Said" && used.Pkg() != nil &&
					used.Pkg().Path() == module+"/internal/base/trust" {
					where := "a variable of the package"
					if f, is := d.(*ast.FuncDecl); is {
						where = nameOf(f)
					}
					out = append(out, where)
				}
				return true
			})
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nameOf is a function's name, with that of its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	name, is := of.(*ast.Ident)
	if !is {
		return f.Name.Name
	}
	return "(" + name.Name + ")." + f.Name.Name
}

// forTests reports whether a package is for tests alone.
func forTests(name string) bool {
	return slices.ContainsFunc([]string{"forgetest", "providertest", "storetest", "operationtest", "deploytest",
		"testusers", "agentdocs", "tamper", "crash", "resilience", "suite", "commands"}, func(part string) bool {
		return slices.Contains(strings.Split(name, "/"), part)
	})
}

// reaches says in which way the use of an object reaches past the program; "" if it does not.
func reaches(object types.Object) string {
	if object.Pkg() == nil {
		return ""
	}
	f, isFunc := object.(*types.Func)
	switch path, name := object.Pkg().Path(), object.Name(); {
	case path == "os" && isFunc && receiverOf(f) == "Root":
		return "os.Root"
	case path == "os" && isFunc && receiverOf(f) == "" && takesPath(name):
		return "os"
	case path == "os/exec" && isFunc && receiverOf(f) == "":
		return "os/exec"
	case path == "path/filepath" && slices.Contains([]string{"Walk", "WalkDir", "Glob", "EvalSymlinks"}, name):
		return "path/filepath"
	case path == "net" && (strings.HasPrefix(name, "Dial") || strings.HasPrefix(name, "Listen")) &&
		(!isFunc || receiverOf(f) == ""):
		return "net"
	case path == "net/http" && slices.Contains([]string{"Client", "Transport", "DefaultTransport", "DefaultClient", "Get",
		"Post", "PostForm", "Head"}, name) && (!isFunc || receiverOf(f) == ""):
		return "net/http"
	case path == "github.com/yuin/goldmark" && (name == "New" || name == "Convert" || name == "DefaultParser"),
		path == "github.com/yuin/goldmark/parser" && name == "NewParser":
		return "goldmark"
	case (path == "syscall" || path == "golang.org/x/sys/unix" || path == "golang.org/x/sys/windows") && isFunc &&
		receiverOf(f) == "":
		return "system calls"
	}
	return ""
}

// takesPath reports whether a function of os takes the path of a file.
func takesPath(name string) bool {
	return slices.Contains([]string{
		"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "Mkdir", "MkdirAll", "MkdirTemp", "ReadFile",
		"WriteFile", "ReadDir", "Remove",
		"RemoveAll", "Rename", "Stat", "Lstat", "Link", "Symlink", "Readlink", "Chmod", "Chown", "Lchown", "Chtimes",
		"Truncate", "Chdir", "CopyFS", "DirFS",
		"StartProcess",
	}, name)
}

// receiverOf names the type that a method belongs to; "" for a function.
func receiverOf(f *types.Func) string {
	receiver := f.Signature().Recv()
	if receiver == nil {
		return ""
	}
	of := receiver.Type()
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name()
	}
	return "an interface"
}
