package operationtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// WriteFiles writes the files of a tree below a folder, which it returns: their names, with slashes, and their
// contents.
func WriteFiles(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	return writeFiles(t, dir, 0o644, files)
}

// WriteExecutables is WriteFiles for files that may be executed. No other test may start a process meanwhile: the child
// would inherit the file opened for writing, and the system would refuse to run it (ETXTBSY, golang.org/issue/22315).
func WriteExecutables(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return writeFiles(t, dir, 0o755, files)
}

func writeFiles(t testing.TB, dir string, mode fs.FileMode, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { // #nosec G301: of a test
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Match holds an answer of a tool, as JSON, against its schema.
func Match(t testing.TB, tool string, schema, answer []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("s.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", tool, err, answer)
	}
}

// SchemaFields lists the fields of a schema by their path, such as agents[].name, with their type or the values of an
// enumeration. A question mark stands before what may be missing; null stands for what may be null.
func SchemaFields(t testing.TB, schema []byte) map[string]string {
	t.Helper()
	var parsed map[string]any
	if err := json.Unmarshal(schema, &parsed); err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	flatten("", parsed, fields)
	return fields
}

func flatten(at string, schema map[string]any, into map[string]string) {
	required, _ := schema["required"].([]any)
	if either, ok := schema["anyOf"].([]any); ok && len(either) == 2 {
		required, _ = either[0].(map[string]any)["required"].([]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		property := property.(map[string]any) //nolint:forcetypeassert // a schema that is not an object fails the test loudly
		key := strings.TrimPrefix(at+"."+name, ".")
		into[key] = propertyKind(property)
		if !slices.Contains(required, any(name)) {
			into[key] = "?" + into[key]
		}
		if items, ok := property["items"].(map[string]any); ok {
			flatten(key+"[]", items, into)
		}
		flatten(key, property, into)
	}
}

func propertyKind(property map[string]any) string {
	kind, _ := property["type"].(string)
	if _, nullable := property["anyOf"]; nullable {
		return "null"
	}
	if values, ok := property["enum"].([]any); ok {
		return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%s", values), "[]"), " ", "|")
	}
	if kind == "integer" {
		return "number"
	}
	return kind
}

// ContractFields returns the fields of a contract that is written as words such as tags?:array or source:local|global,
// as SchemaFields has them.
func ContractFields(contract string) map[string]string {
	fields := map[string]string{}
	for field := range strings.FieldsSeq(contract) {
		name, kind, _ := strings.Cut(field, ":")
		if bare, optional := strings.CutSuffix(name, "?"); optional {
			name, kind = bare, "?"+kind
		}
		fields[name] = kind
	}
	return fields
}

// Contract holds the fields of a tool's input and output against its contract. ours reports whether an output may have
// a field that the contract lacks.
func Contract(t testing.TB, set operation.Toolset, o operation.Operation, contract [2]string,
	ours func(name, kind string) bool) {
	t.Helper()
	for i, side := range []string{"input", "output"} {
		text, err := set.Schema(o, side)
		if err != nil {
			t.Fatal(err)
		}
		got, fields := SchemaFields(t, text), ContractFields(contract[i])
		maps.DeleteFunc(got, func(name, kind string) bool {
			_, has := fields[name]
			return !has && side == "output" && ours(name, kind)
		})
		if diff := cmp.Diff(fields, got); diff != "" {
			t.Errorf("%s of %s (-contract +ours):\n%s", side, o.Name, diff)
		}
	}
}

// Kernel judges by an authority and records in an audit. It hides no words.
func Kernel(t testing.TB, authority operation.Authority, audit operation.Audit) func() *operation.Kernel {
	t.Helper()
	kernel := operation.NewKernel(operation.KernelOptions{
		Authority: authority, Audit: audit, Locks: operation.NewLocks(t.TempDir()),
		Redact: func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, NewID: func() string { return "id-1" },
	})
	return func() *operation.Kernel { return kernel }
}

// Ask calls the operation of a toolset that has one of these names, at a door. It returns the answer, or the failure in
// the toolset's form with its cause, and both as JSON has them, which matches the output schema of a tool.
func Ask(t testing.TB, set operation.Toolset, door record.Door, arguments string, names ...string) (answer any,
	text []byte, cause error) {
	t.Helper()
	at := slices.IndexFunc(set.Operations, func(o operation.Operation) bool { return slices.Contains(names, o.Name) })
	if at < 0 {
		t.Fatalf("there is no tool %s", names)
	}
	o := set.Operations[at]
	answer, cause = o.Handle(t.Context(), operation.Call{Caller: operation.Caller{Actor: record.Actor{Door: door}},
		Ceiling: operation.UncappedTier, Arguments: []byte(arguments)})
	if cause != nil {
		answer = set.Form.Failure(o, cause, operation.RequestIDOf(cause))
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if o.Tool.Title != "" {
		schema, err := set.Schema(o, "output")
		if err != nil {
			t.Fatal(err)
		}
		Match(t, o.Name, schema, text)
	}
	return answer, text, cause
}

// Part returns the value of an answer in JSON at a path such as result.0.name.
func Part(answer any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch typed := answer.(type) {
		case map[string]any:
			answer = typed[name]
		case []any:
			i := 0
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(typed) {
				return nil
			}
			answer = typed[i]
		default:
			return nil
		}
	}
	return answer
}

// Plain completes an operation under a kernel that lets everything pass and records nothing, for tests of doors. Its
// handler reads the arguments itself if raw says so.
func Plain[In, Out any](o operation.Operation, raw bool, handle operation.Handle[In, Out]) operation.Operation {
	kernel := operation.NewKernel(operation.KernelOptions{
		Authority: operation.Authority{Tier: gitprovider.TierRemediate, AllowWrite: true},
		Audit:     nobody{},
		Redact:    func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, NewID: func() string { return "plain" },
	})
	way := operation.CallSpec[In]{}
	if raw {
		way.Decode, o.Needs.OwnGates = operation.RawArguments[In], true
	}
	return operation.Define(func() *operation.Kernel { return kernel }, "", o, way, handle)
}

// nobody is an audit that discards everything.
type nobody struct{}

func (nobody) Record(context.Context, record.Attempt, *record.Proposal, ...record.Notice) error {
	return nil
}

// Judged compares the problems that a kind of files finds in a file with what the first one should say, and where (0
// for no place); says is "" for a sound file.
func Judged(t testing.TB, about string, problems []gitprovider.FileProblem, says string, line, column int) {
	t.Helper()
	if says == "" && len(problems) > 0 || says != "" && (len(problems) == 0 ||
		!strings.Contains(problems[0].Message, says) || problems[0].Line != line || problems[0].Column != column) {
		t.Errorf("%s: %+v, want %q at %d:%d", about, problems, says, line, column)
	}
}

// Same compares what a test got with what it wants.
func Same(t testing.TB, about string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", about, diff)
	}
}
