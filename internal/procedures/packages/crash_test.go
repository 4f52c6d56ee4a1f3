package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// childVariable tells the test's own binary to be a process that is killed: the folder, and what it does there.
const childVariable = "CLAUDEOPS_TEST_PACKAGES"

// roundsVariable names the variable with the number of random moments to try; `make crash` sets it.
const roundsVariable = "CRASH_ROUNDS"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childVariable); spec != "" {
		dir, seed, _ := strings.Cut(spec, "|")
		n, err := strconv.ParseUint(seed, 10, 64)
		if err == nil {
			err = writeAtRandom(dir, n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// world is a bench's folders without a test, as processes share them.
type world struct {
	settings Settings
	registry Registry
}

func worldIn(dir string) world {
	return world{
		Settings{
			Project: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home"),
			CodexHome: filepath.Join(dir, "home", ".codex"),
			State:     filepath.Join(dir, "home", ".agentpack"), Now: time.Now,
		},
		Registry{Name: "dev", Dir: filepath.Join(dir, "home", "registry")},
	}
}

// writeAtRandom installs, uninstalls and publishes at random, until it is killed or has done thirty things. Where
// others were faster for a minute, it goes on, as its answer asks callers to.
func writeAtRandom(dir string, seed uint64) error {
	w := worldIn(dir)
	r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404: a test's choices
	for i := range 30 {
		s := NewService(w.settings)
		name := fmt.Sprintf("p%d", r.IntN(4))
		var err error
		switch r.IntN(5) {
		case 0, 1:
			_, err = s.Install(context.Background(), Order{Packages: []string{name}, Force: r.IntN(2) == 0})
		case 2:
			_, err = s.Install(context.Background(), Order{Packages: []string{name + "@1.0.0"}})
		case 3:
			_, err = s.Uninstall(context.Background(), name, false)
		case 4:
			err = w.publishOne(name, fmt.Sprintf("1.%d.%d", 1+seed%1000000, i))
		}
		if code := codeOfError(err); err != nil && code != PackageNotInstalled && code != DependencyConflict &&
			code != VersionExists && code != Busy {
			return err
		}
	}
	return nil
}

// publishOne publishes a package with an artifact of each type that is its own.
func (w world) publishOne(name, version string) error {
	dir, err := os.MkdirTemp(filepath.Dir(w.settings.Project), "package-") // removed with the world, if this is killed
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	needs := ""
	if name == "p1" || name == "p2" {
		needs = "dependencies: {p0: \"^1.0.0\"}\n"
	}
	files := map[string]string{
		manifestName: fmt.Sprintf(
			"name: %s\nversion: %s\ndescription: x\nauthor: a\nartifacts:\n  skills: [{name: %[1]s, path: s/}]\n  prompts: "+
				"[{name: %[1]s, path: p.md}]\n  instructions: [{name: %[1]s, path: i.md}]\n%[3]s",
			name, version, needs),
		"s/SKILL.md": version, "s/more.md": name, "p.md": version, "i.md": "Instruction " + version + "\n",
	}
	for file, text := range files {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return publishFolder(context.Background(), w.registry, "latest", dir, time.Now())
}

// newCrashBench has four packages in the registry, two of which need the first, and a CLAUDE.md of a person.
func newCrashBench(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	b.own("active_platforms: [claude, codex]\n")
	b.put(".aam/config.yaml", "")
	b.put("CLAUDE.md", "# Mine\n")
	b.emptyFolders()
	for i := range 4 {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			must.Do(t, worldIn(filepath.Dir(b.settings.Project)).publishOne(fmt.Sprintf("p%d", i), version))
		}
	}
	return b
}

// platforms is the tree without what packages remember.
func (b *bench) platforms() map[string]string {
	b.Helper()
	out := b.tree()
	maps.DeleteFunc(out, func(name, _ string) bool {
		return strings.HasPrefix(name, "project/.aam/") || name == "project/aam.yaml"
	})
	return out
}

// TestKilledAtEveryStep ends a call at each of its steps. The next one finishes it or takes it back.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	type action struct {
		name string
		do   func(s *Service) error
	}
	install := func(specs ...string) func(s *Service) error {
		return func(s *Service) error {
			_, err := s.Install(t.Context(), Order{Packages: specs})
			return err
		}
	}
	uninstall := func(s *Service) error { _, err := s.Uninstall(t.Context(), "p1", false); return err }
	for _, c := range []struct {
		first *action
		then  action
	}{
		{nil, action{"install", install("p1", "p3")}},
		{&action{"install", install("p0@1.0.0", "p1@1.0.0")}, action{"upgrade", install("p0", "p1")}},
		{&action{"install", install("p1", "p3")}, action{"uninstall", uninstall}},
	} {
		steps := 0
		for at := 0; ; at++ {
			b := newCrashBench(t)
			platforms := b.platforms()
			if c.first != nil {
				must.Do(t, c.first.do(b.service))
			}
			before := b.tree()
			reached := 0
			b.service.fault = func(string) error {
				if reached++; reached > at {
					return died{}
				}
				return nil
			}
			err := c.then.do(b.service)
			if err == nil {
				steps = at
				break
			}
			if !errors.As(err, &died{}) {
				t.Fatal(err)
			}
			b.service = NewService(b.settings)
			if _, err := b.service.Install(t.Context(), Order{Packages: []string{"p2@1.0.0"}, NoDeploy: true}); err != nil {
				t.Fatalf("%s, killed at step %d: %v", c.then.name, at, err)
			}
			if _, err := b.service.Uninstall(t.Context(), "p2", false); err != nil {
				t.Fatal(err)
			}
			b.sound()
			after := b.tree()
			if at == 0 { // before anything was noted, nothing has happened
				delete(after, "project/.aam/aam-lock.yaml")
				delete(before, "project/.aam/aam-lock.yaml")
				withoutDependency(after, "p0")
				withoutDependency(before, "p0")
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s, killed at step 0:\n%s", c.then.name, diff)
				}
			}
			for _, name := range []string{"p3", "p2", "p1", "p0"} {
				_, _ = b.service.Uninstall(t.Context(), name, false) // not all of them are installed
			}
			if diff := cmp.Diff(platforms, b.platforms()); diff != "" {
				t.Errorf("%s, killed at step %d, all uninstalled (-before +after):\n%s", c.then.name, at, diff)
			}
		}
		if steps < 8 {
			t.Errorf("%s has %d steps", c.then.name, steps)
		}
	}
}

// withoutDependency leaves out what the dependency of the mending call has brought.
func withoutDependency(tree map[string]string, name string) {
	maps.DeleteFunc(tree, func(file, _ string) bool {
		return strings.Contains(file, "/"+name) || file == "project/.aam/packages/" || file == "project/CLAUDE.md"
	})
}

// sound holds a workspace and a registry against themselves.
func (b *bench) sound() {
	b.Helper()
	for _, c := range b.service.diagnose(b.Context()) {
		if c.Status != Pass {
			b.Errorf("%s: %s %s", c.Name, c.Status, c.Message)
		}
	}
	if fileset.Exists(filepath.Join(b.settings.Project, ".aam", ".tmp")) {
		b.Error(".aam/.tmp is left")
	}
	lock, err := (workspace{b.settings.Project}).Lock()
	must.Do(b, err)
	var want, got []string
	for name, locked := range lock.Packages {
		want = append(want, name)
		for _, platform := range locked.Platforms {
			file := map[string]string{"claude": ".claude/commands/" + name + ".md", "codex": "../home/.codex/prompts/" + name +
				".md"}[platform]
			if text := b.file(file); text != locked.Version {
				b.Errorf("%s has %q, and %s %s is installed", file, text, name, locked.Version)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(b.settings.Project, ".aam", "packages"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("installed (-lock +folders):\n%s", diff)
	}
	if !strings.HasPrefix(b.file("CLAUDE.md"), "# Mine\n") {
		b.Errorf("CLAUDE.md is %q", b.file("CLAUDE.md"))
	}
	commands, err := filepath.Glob(filepath.Join(b.settings.Project, ".claude", "commands", "*"))
	if err != nil || len(commands) > len(want) {
		b.Errorf("commands of packages that are not installed: %v of %v, %v", commands, want, err)
	}
}

// indexIsTrue holds the index against the packages' metadata, and every version against its archive.
func (b *bench) indexIsTrue() {
	b.Helper()
	index, err := b.registry.Index()
	must.Do(b, err)
	if len(index.Packages) != 4 {
		b.Errorf("the index has %d packages", len(index.Packages))
	}
	for _, e := range index.Packages {
		n, err := parseName(e.Name)
		must.Do(b, err)
		m, err := b.registry.readMetadata(n)
		must.Do(b, err)
		if m.latest() != e.Latest {
			b.Errorf("the index says that %s is at %s, and its metadata %s", e.Name, e.Latest, m.latest())
		}
		for _, p := range m.Versions {
			if _, err := b.registry.Archive(n, p); err != nil {
				b.Error(err)
			}
		}
	}
}

func (b *bench) child(seed uint64) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=NONE")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", childVariable, filepath.Dir(b.settings.Project), seed))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	rounds := 8
	if text := os.Getenv(roundsVariable); text != "" {
		n, err := strconv.Atoi(text)
		must.Do(t, err)
		rounds = n
	}
	b := newCrashBench(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2)) // #nosec G404: a test's choices
	killed := 0
	for i := range rounds {
		child := b.child(seed + uint64(i))
		must.Do(t, child.Start())
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond) // the moment of the kill
		_ = child.Process.Kill()
		if err := child.Wait(); err != nil && child.ProcessState.ExitCode() > 0 {
			t.Fatal(err)
		} else if err != nil {
			killed++
		}
		b.service = NewService(b.settings)
		if _, err := b.service.Install(t.Context(), Order{Packages: []string{"p3"}}); err != nil {
			t.Fatal(err)
		}
		must.Do(t, worldIn(filepath.Dir(b.settings.Project)).publishOne("p3", fmt.Sprintf("2.%d.0", i)))
		b.sound()
		b.indexIsTrue()
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	t.Logf("%d of %d processes were killed", killed, rounds)
}

func TestEightProcessesAtOnce(t *testing.T) {
	t.Parallel()
	b := newCrashBench(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := b.child(uint64(1000 + i)).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b.sound()
	b.indexIsTrue()
}

func TestWritersThatWaitInVainAreToldToTryAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := workspace{b.settings.Project}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, take := range map[string]func(context.Context) (func(), error){
		"workspace": w.lockFolder,
		"registry": func(ctx context.Context) (func(), error) {
			p, err := b.registry.lockPublishing(ctx)
			if err != nil {
				return nil, err
			}
			return p.close, nil
		},
	} {
		unlock, err := take(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err = take(ended); codeOfError(err) != Busy {
			t.Errorf("%s: %v, want %s", name, err, Busy)
		}
		unlock()
		if unlock, err = take(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		unlock()
	}
}

func TestHoldingFindsContentsInPackages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.full("one", "1.0.0", "")
	b.same("install", `{"packages":["one"]}`, map[string]any{"failed": []any{}})
	b.full("one", "1.1.0", "")
	b.full("two", "1.1.0", "")
	of := func(version string) string {
		return fileset.Hash([]byte("---\nname: pdf\ndescription: Reads PDFs\n---\n# PDF " + version + "\n"))
	}
	for hash, want := range map[string][]Holder{
		of("1.0.0"): {{"one", "1.0.0", "dev", true}},
		of("1.1.0"): {{"one", "1.1.0", "dev", false}, {"two", "1.1.0", "dev", false}}, of("3"): nil,
	} {
		got, complete, err := NewBrowser(b.service).Holding(t.Context(), []string{hash, "none"})
		if diff := cmp.Diff(want, got); diff != "" || !complete || err != nil {
			t.Errorf("%t, %v (-want +got):\n%s", complete, err, diff)
		}
	}
}

// A call whose time ends halfway takes nothing back, which would take as long again: the next call goes on.
func TestACallEndsWithItsTimeAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"transaction", "folder"} {
		b := newBench(t)
		publish(t, b.registry, "latest", "p", "1.0.0")
		ctx, end := context.WithCancel(t.Context())
		s := NewService(b.settings)
		s.fault = func(at string) error {
			if at == step {
				end()
			}
			return nil
		}
		_, err := s.Install(ctx, Order{Packages: []string{"p"}})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the next call goes on") {
			t.Fatalf("%s: %v", step, err)
		}
		if left, err := (workspace{b.settings.Project}).pending(); left == nil || err != nil {
			t.Errorf("%s: it was taken back: %v", step, err)
		}
		if _, err := NewService(b.settings).Uninstall(t.Context(), "p", false); err != nil {
			t.Errorf("%s: the next call found it not installed: %v", step, err)
		}
	}
}
