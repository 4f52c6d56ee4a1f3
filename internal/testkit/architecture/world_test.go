package architecture

import (
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
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

// TestWhoTouchesFilesProcessesAndTheNetwork counts, by what the compiler knows, where packages beside those of touching
// reach past the program. The table may only shrink: each number in it is a place that is still to be moved.
// UPDATE_GOLDEN=1 writes it. One line stays: agents/connect has the standard library alone, so that the program which
// agents start stays small, and reads its ticket by os.
func TestWhoTouchesFilesProcessesAndTheNetwork(t *testing.T) {
	root := moduleRoot(t)
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "./cmd/...", "./internal/...")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range loaded {
		for _, problem := range p.Errors {
			t.Fatalf("%s: %v", p.PkgPath, problem)
		}
		name := strings.TrimPrefix(p.PkgPath, module+"/")
		if slices.ContainsFunc(touching(), func(folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }) || forTests(name) {
			continue
		}
		counts := map[string]int{}
		for _, object := range p.TypesInfo.Uses {
			if kind := reaches(object); kind != "" {
				counts[kind]++
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			lines = append(lines, fmt.Sprintf("%s: %s %d", name, kind, counts[kind]))
		}
	}
	slices.Sort(lines)
	compareTable(t, filepath.Join("testdata", "world.txt"), strings.Join(lines, "\n")+"\n")
}

// forTests reports whether a package is for tests alone.
func forTests(name string) bool {
	return slices.ContainsFunc([]string{"forgetest", "providertest", "storetest", "operationtest", "deploytest", "agentdocs", "tamper", "crash", "resilience"}, func(part string) bool {
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
	case path == "net" && (strings.HasPrefix(name, "Dial") || strings.HasPrefix(name, "Listen")) && (!isFunc || receiverOf(f) == ""):
		return "net"
	case path == "net/http" && slices.Contains([]string{"Client", "Transport", "DefaultTransport", "DefaultClient", "Get", "Post", "PostForm", "Head"}, name) && (!isFunc || receiverOf(f) == ""):
		return "net/http"
	case (path == "syscall" || path == "golang.org/x/sys/unix" || path == "golang.org/x/sys/windows") && isFunc && receiverOf(f) == "":
		return "system calls"
	}
	return ""
}

// takesPath reports whether a function of os takes the path of a file.
func takesPath(name string) bool {
	return slices.Contains([]string{
		"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "Mkdir", "MkdirAll", "MkdirTemp", "ReadFile", "WriteFile", "ReadDir", "Remove",
		"RemoveAll", "Rename", "Stat", "Lstat", "Link", "Symlink", "Readlink", "Chmod", "Chown", "Lchown", "Chtimes", "Truncate", "Chdir", "CopyFS", "DirFS",
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

// compareTable holds a text against a file of lines; with UPDATE_GOLDEN it writes the file.
func compareTable(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range []struct {
		says string
		of   string
		not  string
	}{{"new", got, string(want)}, {"gone, which is good; write the table again", string(want), got}} {
		for _, line := range strings.Split(pair.of, "\n") {
			if !slices.Contains(strings.Split(pair.not, "\n"), line) {
				t.Errorf("%s: %s", pair.says, line)
			}
		}
	}
}
