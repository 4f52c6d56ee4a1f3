package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// bench is the toolset over a project and a home, with a registry named dev and an audit in memory.
type bench struct {
	testing.TB
	settings  Settings
	registry  Registry
	authority operation.Authority
	door      record.Door
	rows      []record.Attempt
	service   *Service
}

func (b *bench) Record(_ context.Context, a record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	b.rows = append(b.rows, a)
	return nil
}

// newBench has a workspace and a registry, and writes for Claude Code alone.
func newBench(t testing.TB) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{TB: t, registry: Registry{Name: "dev", Dir: filepath.Join(dir, "home", "registry")}, door: record.DoorMCP}
	operationtest.WriteFiles(t, dir, map[string]string{
		"project/.aam/config.yaml": "active_platforms: [claude]\n", "home/registry/registry.yaml": "name: dev\n",
		"home/.aam/config.yaml": fmt.Sprintf("registries:\n  - {name: dev, url: %q, type: local, default: true}\n",
			b.registry.Dir),
	})
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b.settings = Settings{
		Project: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home"),
		CodexHome: filepath.Join(dir, "home", ".codex"),
		State:     filepath.Join(dir, "home", ".agentpack"),
		Now:       func() time.Time { clock = clock.Add(time.Second); return clock },
	}
	b.authority = operation.Authority{Enabled: func(string) bool { return true }, Tier: 3, AllowWrite: true}
	b.service = NewService(b.settings)
	return b
}

// own adds to the user's configuration.
func (b *bench) own(text string) {
	b.Helper()
	b.put("../home/.aam/config.yaml", b.file("../home/.aam/config.yaml")+text)
}

// asPerson runs a part of a test at the terminal.
func (b *bench) asPerson(part func()) {
	b.Helper()
	before := b.door
	b.door = record.DoorCLI
	part()
	b.door = before
}

func (b *bench) toolset() operation.Toolset {
	return Toolset(operationtest.Kernel(b, b.authority, b), func() *Service { return b.service })
}

// ask calls a tool and returns its answer, or its failure in the contract's form, as JSON has it, and the text for a
// model.
func (b *bench) ask(tool, arguments string) (out map[string]any, said string) {
	b.Helper()
	set := b.toolset()
	answer, text, _ := operationtest.Ask(b, set, b.door, arguments, "aam_"+tool, "packages_"+tool)
	must.Do(b, json.Unmarshal(text, &out))
	return out, set.Form.Text(answer)
}

func part(answer any, path string) any { return operationtest.Part(answer, path) }

// same holds parts of an answer against what they should be.
func (b *bench) same(tool, arguments string, want map[string]any) {
	b.Helper()
	answer, _ := b.ask(tool, arguments)
	for path, value := range want {
		if diff := cmp.Diff(value, part(answer, path)); diff != "" {
			text, _ := json.Marshal(answer)
			b.Errorf("%s %s: %s (-want +got):\n%s\n%.900s", tool, arguments, path, diff, text)
		}
	}
}

// fails holds an error against its code and a part of its text.
func (b *bench) fails(tool, arguments string, code Code, text string) {
	b.Helper()
	answer, said := b.ask(tool, arguments)
	if got := part(answer, "error.code"); got != string(code) || !strings.HasPrefix(said, "["+string(code)+"] ") ||
		!strings.Contains(said, text) {
		b.Errorf("%s %s: %v, want %s with %q\n%s", tool, arguments, got, code, text, said)
	}
}

// tree is every file below the project and the home but the registry and the ledger, with its bytes.
func (b *bench) tree() map[string]string {
	b.Helper()
	out := map[string]string{}
	for _, root := range []string{b.settings.Project, b.settings.Home} {
		err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
			rel, _ := filepath.Rel(filepath.Dir(root), name)
			switch {
			case err != nil:
				return err
			case name == b.registry.Dir || name == b.settings.State:
				return filepath.SkipDir
			case d.IsDir():
				out[filepath.ToSlash(rel)+"/"] = ""
				return nil
			}
			text, err := os.ReadFile(name)
			info, infoErr := d.Info()
			if infoErr != nil {
				return infoErr
			}
			out[filepath.ToSlash(rel)] = info.Mode().String() + " " + string(text)
			return err
		})
		must.Do(b, err)
	}
	return out
}

// unchanged holds the tree against what it was.
func (b *bench) unchanged(about string, before map[string]string) {
	b.Helper()
	operationtest.Same(b, about, before, b.tree())
}

func TestSchemas(t *testing.T) { operationtest.Schemas(t, newBench(t).toolset()) }

// contractTools returns the contract of each tool: input, then output. A question mark follows what may be missing; a
// type or the values of an enumeration follow a colon.
func contractTools() map[string][2]string {
	installed := "%[1]s[].name:string %[1]s[].version:string %[1]s[].source:string %[1]s[].artifact_count:number " +
		"%[1]s[].artifacts:object %[1]s[].checksum:string"
	registry := "%[1]sname:string %[1]surl:string %[1]stype:local|http %[1]sis_default:boolean %[1]saccessible:boolean"
	config := "key:null value: source:default|global|project|merged"
	return map[string][2]string{
		"search": {"query:string limit?:number package_type?:skill|agent|prompt|instruction",
			"result:array result[].name:string result[].version:string " +
				"result[].description:string result[].author:string result[].artifact_types:array result[].registry:string"},
		"list": {"", "result:array " + fmt.Sprintf(installed, "result")},
		"info": {"package_name:string version?:string",
			"name:string version:string description:string author:string license:string artifacts:object " +
				"dependencies:object platforms:object installed:boolean installed_version:null"},
		"validate": {"path?:string",
			"valid:boolean package_name:null package_version:null errors:array warnings:array artifact_count:number " +
				"artifacts_valid:boolean"},
		"config_get":    {"key?:string", config},
		"registry_list": {"", "result:array " + fmt.Sprintf(registry, "result[].")},
		"doctor": {"",
			"healthy:boolean checks:array checks[].name:string checks[].status:pass|warn|fail checks[].message:string " +
				"checks[].suggestion:null summary:string"},
		"install": {"packages:array platform?:string force?:boolean no_deploy?:boolean",
			"installed:array " + fmt.Sprintf(installed, "installed") +
				" already_installed:array failed:array failed[].package:string failed[].code:string failed[].message:string " +
				"failed[].hint:string failed[].details:object " +
				"dependencies_resolved:number"},
		"uninstall": {"package_name:string",
			"package_name:string version:string files_removed:number dependents_warning:array"},
		"publish": {"registry?:string tag?:string",
			"package_name:string version:string registry:string archive_size:number checksum:string"},
		"create_package": {"path?:string name?:string version?:string description?:string artifact_types?:array " +
			"include_all?:boolean",
			"manifest_path:string package_name:string version:string artifacts_included:object total_artifacts:number"},
		"config_set":   {"key:string value:string", config},
		"registry_add": {"name:string url:string set_default?:boolean", fmt.Sprintf(registry, "")},
	}
}

func TestEveryToolHasTheFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	set := newBench(t).toolset()
	tools := contractTools()
	// no tool leads to others
	ours := slices.DeleteFunc(slices.Clone(set.Operations), func(o operation.Operation) bool { return o.Tool.Title == "" })
	if len(ours) != 13 || len(tools) != 13 {
		t.Fatalf("%d tools, %d in the contract", len(ours), len(tools))
	}
	reads := []string{"search", "list", "info", "validate", "config_get", "registry_list", "doctor"}
	for _, o := range ours {
		name := strings.TrimPrefix(o.Name, "aam_")
		want, known := tools[name]
		if !known || (o.Effect == operation.Read) != slices.Contains(reads, name) || len(o.Tool.Description) > 600 {
			t.Errorf("%s is not the contract's", o.Name)
		}
		operationtest.Contract(t, set, o, want, func(field, _ string) bool {
			first, _, _ := strings.Cut(field, ".")
			return name == "info" && field == "registry" || first == "error" ||
				slices.Contains([]string{"notes", "dry_run"}, field[strings.LastIndexAny(field, ".")+1:])
		})
	}
}

func TestToolsThatWriteNeedTierThreeAndLeave(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(a *operation.Authority){
		"tier 2":      func(a *operation.Authority) { a.Tier = 2 },
		"no leave":    func(a *operation.Authority) { a.AllowWrite = false },
		"read-only":   func(a *operation.Authority) { a.ReadOnly = "closed" },
		"not enabled": func(a *operation.Authority) { a.Enabled = func(string) bool { return false } },
	} {
		b := newBench(t)
		publish(t, b.registry, "latest", "p", "1.0.0")
		set(&b.authority)
		before := b.tree()
		listed := 0
		for _, o := range b.toolset().Operations {
			if o.Tool.Title != "" && b.toolset().Listed(o) {
				listed++
			}
			if o.Effect == operation.Read {
				continue
			}
			rows := len(b.rows)
			b.fails(strings.TrimPrefix(strings.TrimPrefix(o.Name, "aam_"), "packages_"), `{}`, PermissionDenied, "")
			if len(b.rows) != rows+1 || b.rows[rows].Outcome != record.OutcomeRefused || b.rows[rows].Action != o.Name {
				t.Errorf("%s: rows %+v", name, b.rows[rows:])
			}
		}
		if listed != 7 && name != "not enabled" {
			t.Errorf("%s: %d tools are listed", name, listed)
		}
		b.unchanged(name+": something was written", before)
	}
}

// manyPackages is a registry of so many packages with ten versions each, every one of which depends on up to two
// others.
func manyPackages(b *testing.B, count int) Registry {
	b.Helper()
	r := Registry{Name: "dev", Dir: b.TempDir()}
	lock, err := r.lockPublishing(b.Context())
	must.Do(b, err)
	defer lock.close()
	for i := range count {
		m := Metadata{
			Name: fmt.Sprintf("package-%05d", i), Description: fmt.Sprintf("Reads and writes files of kind %d", i%97),
			Author: "ann", Keywords: []string{fmt.Sprintf("kind%d", i%97)},
			ArtifactTypes: []string{"skill"}, DistTags: map[string]string{"latest": "1.9.0"},
		}
		for v := range 10 {
			p := Published{Version: fmt.Sprintf("1.%d.0", v), Published: "2026-03-01T00:00:00Z", Checksum: checksum(nil),
				Dependencies: map[string]string{}}
			for _, other := range []int{i + 1, 2*i + 1} {
				if other < count {
					p.Dependencies[fmt.Sprintf("package-%05d", other)] = fmt.Sprintf("^1.%d.0", v/2)
				}
			}
			m.Versions = append(m.Versions, p)
		}
		must.Do(b, lock.writeYAML(metadataPath(Name{Bare: m.Name}), m))
	}
	must.Do(b, lock.updateIndex(time.Now()))
	old := time.Now().Add(-time.Hour)
	must.Do(b, os.Chtimes(filepath.Join(r.Dir, "index.yaml"), old, old))
	return r
}

func BenchmarkRegistry(b *testing.B) {
	r := manyPackages(b, 10_000)
	b.Run("search cold", func(b *testing.B) {
		for b.Loop() {
			if found, err := searchIndexes([]Registry{r}, "kind 5", ""); err != nil || len(found) == 0 {
				b.Fatal(len(found), err)
			}
		}
	})
	b.Run("search warm", func(b *testing.B) {
		r := r
		r.cache = &indexCache{known: map[string]cachedIndex{}}
		if _, err := searchIndexes([]Registry{r}, "kind 5", ""); err != nil { // which reads the index
			b.Fatal(err)
		}
		for b.Loop() {
			if found, err := searchIndexes([]Registry{r}, "kind 5", ""); err != nil || len(found) == 0 {
				b.Fatal(len(found), err)
			}
		}
	})
	b.Run("resolve 1000", func(b *testing.B) {
		for b.Loop() {
			choices, err := (&resolver{Registries: []Registry{r}}).Resolve(b.Context(),
				[]Spec{{Name: Name{Bare: "package-09000"}}})
			if err != nil || len(choices) != 1000 {
				b.Fatal(len(choices), err)
			}
		}
	})
}

func BenchmarkInstall500(b *testing.B) {
	bench := newBench(b)
	specs := make([]string, 0, 500)
	w := worldIn(filepath.Dir(bench.settings.Project))
	for i := range 500 {
		name := fmt.Sprintf("skill-%03d", i)
		must.Do(b, w.publishOne(name, "1.0.0"))
		specs = append(specs, name)
	}
	for b.Loop() {
		done, err := bench.service.Install(context.Background(), Order{Packages: specs, Force: true, Platform: "claude"})
		if err != nil || len(done.Installed) != 500 {
			b.Fatal(len(done.Installed), len(done.Failed), err)
		}
	}
}
