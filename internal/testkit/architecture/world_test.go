//go:build lint

package architecture

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// touching are the packages whose purpose is to touch files, processes and the network; all others are to use them.
func touching() []string {
	return []string{
		"internal/system",
		"internal/agents/door",   // listens on the sockets of sessions
		"internal/records/store", // opens its database
		"cmd",
	}
}

// exceptions lists what single packages may use themselves, by package and kind.
func exceptions() []string {
	return []string{
		"internal/app: net", // serve listens for browsers and agents
		"internal/cli: net", // the demo does
		// The program that agents start has the standard library alone, so that it stays small: it reads its ticket by os.
		"internal/agents/connect: os", "internal/agents/connect: net",
		"internal/base/markdown: goldmark", // parses within bounds, for all others
	}
}

// saying are the functions that may call a value the operator's (trust.Said), and where each has it from. What a file
// of a project, a package or an agent says gets no further than to choose from sources.List; the types of
// transport.Client and git.Remote hold that no other host and no other repository is asked.
func saying() map[string]string {
	return map[string]string{
		"internal/cli.runHealth":                              "flags and variables",
		"internal/app.RemoteOf":                               "the address of a provider",
		"internal/ops/notify.newPoster":                       "variables",
		"internal/records/auditsink.newHTTPSink":              "variables",
		"internal/settings/sources.(List).Pick":               "the list of sources",
		"internal/procedures/definitions.(merger).choose":     "the list of sources",
		"internal/procedures/definitions.(merger).registries": "the operator's file, and the list of sources",
		"internal/procedures/definitions.(fetcher).client":    "registries that merger has named",
		"internal/procedures/deploy.(GitSource).operators":    "the operator's own configuration",
		"internal/ops/demo.(life).git":                        "the repository that the demo has made",
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
		"agentdocs", "tamper", "crash", "resilience", "suite"}, func(part string) bool {
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
