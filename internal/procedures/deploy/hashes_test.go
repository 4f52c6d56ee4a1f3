package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// manyFiles is a configuration of skills with 300 files.
func manyFiles() map[string]string {
	files := map[string]string{}
	config := "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: " +
		"{write_repo_skills: true}}}\nmodules:\n"
	for i := range 100 {
		config += fmt.Sprintf("- {id: 'skill:s%d', type: skill, tags: [x], source: {local_path: {path: m/s%d}}}\n", i, i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%d\ndescription: d\n---\n", i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/a.md", i)] = fmt.Sprintf("a %d\n", i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/deep/b.md", i)] = fmt.Sprintf("b %d\n", i)
	}
	files["agentpack/repo/"+configName] = config
	return files
}

func changesOf(t *testing.T, s *Service) (out []string) {
	t.Helper()
	p, err := s.Plan(t.Context(), Request{})
	must.Do(t, err)
	for _, c := range p.Changes {
		out = append(out, string(c.Op)+" "+filepath.Base(filepath.Dir(c.Path))+"/"+filepath.Base(c.Path))
	}
	return out
}

// nextTime waits until a file that is changed gets another time than one that was changed before: the clock of a file
// system goes on in steps of some milliseconds. That a file has settled is what these tests make the plans believe.
func nextTime(t *testing.T) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "time")
	var first time.Time
	for {
		must.Do(t, os.WriteFile(name, []byte("x"), 0o600))
		info, err := os.Stat(name)
		must.Do(t, err)
		if now := info.ModTime(); first.IsZero() {
			first = now
		} else if now.After(first) {
			return
		}
	}
}

// TestAPlanBelievesNoHashOfAChangedFile changes files in each way that hides a change, and plans with remembered
// hashes.
func TestAPlanBelievesNoHashOfAChangedFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, manyFiles())
	clock := time.Now
	b.settings.Now = func() time.Time { return clock().Add(time.Hour) } // so that the files of the test count as settled
	service := NewService(b.settings)
	apply(t, service, fileset.Approval{})
	if got := changesOf(t, service); got != nil {
		t.Fatalf("%v", got)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "agentpack", "cache", "hashes")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Fatalf("nothing is kept: %v, %v", info, err)
	}
	nextTime(t)
	skills := filepath.Join(b.dir, "project", ".claude", "skills")
	same := func(name, text string) { // the same size and the same time of change
		t.Helper()
		info, err := os.Stat(name)
		must.Do(t, err)
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
		must.Do(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
	other := filepath.Join(b.dir, "other.md")
	same(filepath.Join(skills, "s1", "a.md"), "A 1\n")
	same(filepath.Join(b.dir, "agentpack", "repo", "m", "s2", "a.md"), "A 2\n")
	operationtest.WriteFiles(t, b.dir, map[string]string{"other.md": "c 3\n",
		"project/.claude/skills/s4/a.md": "longer than before\n"})
	must.Do(t, os.Rename(other, filepath.Join(skills, "s3", "a.md")))
	must.Do(t, os.Remove(filepath.Join(skills, "s5", "a.md")))
	must.Do(t, os.Chmod(filepath.Join(skills, "s6", "a.md"), 0o755))
	want := []string{"update s1/a.md", "update s2/a.md", "update s3/a.md", "update s4/a.md", "create s5/a.md",
		"update s6/a.md"}
	for name, s := range map[string]*Service{"in the same process": service, "in another one": NewService(b.settings)} {
		operationtest.Same(t, name, want, changesOf(t, s))
		if _, list, _, err := s.Status(t.Context(), Request{}); err != nil || len(list) != 4 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if _, done, err := service.Apply(t.Context(), Request{}, fileset.Approval{}, false); err != nil ||
		len(done.Steps) != 6 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := changesOf(t, NewService(b.settings)); got != nil {
		t.Errorf("%v", got)
	}
}

func TestHashesThatLieAreHarmless(t *testing.T) {
	t.Parallel()
	b := newBench(t, manyFiles())
	clock := time.Now
	b.settings.Now = func() time.Time { return clock().Add(time.Hour) }
	apply(t, NewService(b.settings), fileset.Approval{})
	if got := changesOf(t, NewService(b.settings)); got != nil {
		t.Fatalf("%v", got)
	}
	name := filepath.Join(b.dir, "agentpack", "cache", "hashes")
	sound := operationtest.ReadFile(t, name)
	changed := append([]byte{}, sound...)
	changed[len(changed)-1] ^= 1
	for what, text := range map[string][]byte{"empty": {}, "cut": sound[:len(sound)/2], "changed": changed,
		"other": []byte("claudeops hashes 2\n"), "the mark alone": []byte("claudeops hashes 1\n")} {
		must.Do(t, os.WriteFile(name, text, 0o600))
		if got := changesOf(t, NewService(b.settings)); got != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	// Wrong hashes under a sound checksum: a plan may be deceived, what is written is not.
	must.Do(t, os.WriteFile(name, lying(sound), 0o600))
	if err := os.Remove(filepath.Join(filepath.Dir(name), "unchanged")); err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	s := NewService(b.settings)
	if p, err := s.Plan(t.Context(), Request{}); err == nil && len(p.Changes) == 0 {
		t.Fatal("the plan is not deceived")
	}
	before := b.tree("project")
	if _, done, err := s.Apply(t.Context(), Request{}, fileset.Approval{}, false); err != nil || done != nil {
		t.Errorf("%+v, %v", done, err)
	}
	b.unchanged("what was deployed", before, "project")
}

// lying is a file of hashes in which each is wrong.
func lying(sound []byte) []byte {
	const mark, id = len("claudeops hashes 1\n"), 5*8 + 4
	out := append([]byte{}, sound...)
	body := out[mark+sha256.Size:]
	for rest := body; len(rest) > 2; {
		at := 2 + int(binary.LittleEndian.Uint16(rest)) + id
		rest[at] ^= 1
		rest = rest[at+sha256.Size:]
	}
	sum := sha256.Sum256(body)
	copy(out[mark:], sum[:])
	return out
}

// configuredFiles is a configuration with modules of each kind: a folder in folders, single files, and overlays.
func configuredFiles() map[string]string {
	return map[string]string{
		"agentpack/repo/" +
			configName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: " +
			"{write_repo_skills: true}}, vscode: {}}\nmodules:\n" +
			"- {id: 'skill:one', type: skill, tags: [x], source: {local_path: {path: m/one}}}\n" +
			"- {id: 'command:go', type: command, tags: [x], source: {local_path: {path: m/go.md}}}\n" +
			"- {id: 'prompt:ask', type: prompt, tags: [x], source: {local_path: {path: m/ask}}}\n",
		"agentpack/repo/m/one/SKILL.md":              "---\nname: one\ndescription: d\n---\n",
		"agentpack/repo/m/one/deep/er/a.md":          "a\n",
		"agentpack/repo/m/go.md":                     "---\ndescription: go\n---\n",
		"agentpack/repo/m/ask/ask.md":                "ask\n",
		"agentpack/repo/projects/.keep":              "",
		"agentpack/repo/overlays/machines/box/.keep": "",
	}
}

// TestAPlanThatIsKnownNoticesEveryChange plans twice, so that the second plan is one that is known, changes one thing,
// and holds the next plan, in the same process and in another one, against one that believes nothing that is
// remembered.
func TestAPlanThatIsKnownNoticesEveryChange(t *testing.T) {
	t.Parallel()
	const skill, source = "project/.claude/skills/one/", "agentpack/repo/m/one/"
	sameTimes := func(text string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			info, err := os.Stat(name)
			if err == nil {
				err = os.WriteFile(name, []byte(text), 0o644)
			}
			if err == nil {
				err = os.Chtimes(name, info.ModTime(), info.ModTime())
			}
			must.Do(t, err)
		}
	}
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			operationtest.WriteFiles(t, filepath.Dir(name), map[string]string{filepath.Base(name): text})
		}
	}
	must := func(f func(name string) error) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			must.Do(t, f(name))
		}
	}
	for name, c := range map[string]struct {
		path   string
		change func(t *testing.T, name string)
		quiet  bool // nothing has to be changed all the same
	}{
		"nothing": {path: "other", change: write("x"), quiet: true},
		"a deployed file of the same size and time": {path: skill + "deep/er/a.md", change: sameTimes("b\n")},
		"a deployed file that is longer":            {path: skill + "SKILL.md", change: write("longer")},
		"a deployed file that went":                 {path: skill + "SKILL.md", change: must(os.Remove)},
		"a deployed file that may be executed": {path: skill + "SKILL.md",
			change: must(func(n string) error { return os.Chmod(n, 0o755) })},
		"a folder in place of a deployed file": {path: "project/.claude/commands/go.md",
			change: must(func(n string) error { return errors.Join(os.Remove(n), os.Mkdir(n, 0o755)) })},
		"a link in place of a deployed file": {path: "project/.claude/commands/go.md",
			change: must(func(n string) error { return errors.Join(os.Remove(n), os.Symlink("/etc/hosts", n)) })},
		"a link in place of a deployed folder": {path: skill + "deep",
			change: must(func(n string) error { return errors.Join(os.Rename(n, n+"2"), os.Symlink(filepath.Dir(n)+"2", n)) })},
		"a deployed folder that went":               {path: skill + "deep", change: must(os.RemoveAll)},
		"a module's file of the same size and time": {path: source + "deep/er/a.md", change: sameTimes("b\n")},
		"another file in its place": {path: source + "deep/er/a.md", change: must(func(n string) error {
			return errors.Join(os.WriteFile(n+"2", []byte("b\n"), 0o644), os.Rename(n+"2", n))
		})},
		"a new file of a module":    {path: source + "deep/er/b.md", change: write("b\n")},
		"a new folder of a module":  {path: source + "new/b.md", change: write("b\n")},
		"a module's file that went": {path: source + "deep/er/a.md", change: must(os.Remove)},
		"a module's file that may be executed": {path: source + "deep/er/a.md",
			change: must(func(n string) error { return os.Chmod(n, 0o755) })},
		"a module's file that is one by itself": {path: "agentpack/repo/m/go.md",
			change: write("---\ndescription: new\n---\n")},
		"the same of the same size and time": {path: "agentpack/repo/m/go.md",
			change: sameTimes("---\ndescription: ga\n---\n")},
		"the configuration": {path: "agentpack/repo/" + configName,
			change: write("version: 1\nprofiles: {default: {}}\ntargets: {claude_code: {}}\n")},
		"a broken configuration":     {path: "agentpack/repo/" + configName, change: write("version: [")},
		"a lock file that is broken": {path: "agentpack/repo/" + lockName, change: write("{")},
		"an overlay for all": {path: "agentpack/repo/overlays/" + fsKey("skill:one") + "/new.md",
			change: write("new")},
		"an overlay for this machine": {path: "agentpack/repo/overlays/machines/box/" + fsKey("skill:one") +
			"/new.md", change: write("new")},
		"an overlay for another machine": {path: "agentpack/repo/overlays/machines/other/" + fsKey("skill:one") +
			"/new.md", change: write("new"), quiet: true},
		"a manifest that went": {path: "project/.claude/skills/.agentpack.manifest.claude_code.json",
			change: must(os.Remove), quiet: true},
		"a manifest that knows more": {path: "project/.github/.agentpack.manifest.vscode.json",
			change: write(`{"schema_version":1,"tool":"vscode","managed_files":[{"path":"x.md","sha256":"0"}]}`), quiet: true},
		"a file that only a manifest knows": {path: "project/.github/prompts/x.md", change: write("x"),
			quiet: true},
		"the project's origin, and an overlay for it": {path: "project/.git/config",
			change: write("[remote \"origin\"]\n\turl = https://example.org/a/b.git\n")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, configuredFiles())
			overlay := "agentpack/repo/projects/" + projectID("https://example.org/a/b.git", "") + "/overlays/" +
				fsKey("skill:one") + "/new.md"
			operationtest.WriteFiles(t, b.dir, map[string]string{overlay: "new"})
			git(t, filepath.Join(b.dir, "project"), "init", "-q")
			// so that the files of the test count as settled
			b.settings.Now = func() time.Time { return time.Now().Add(time.Hour) }
			service := NewService(b.settings)
			apply(t, service, fileset.Approval{})
			for range 3 {
				if got := planned(t, service.Plan); len(got) > 0 {
					t.Fatalf("%v", got)
				}
			}
			another := NewService(b.settings)
			if p, _, err := another.planAgain(t.Context(), Request{}); err != nil || runtime.GOOS == "linux" &&
				(p == nil || service.last.desired == nil || !noted(service)) {
				t.Fatalf("the plan is not known: %v, %v", p, err)
			}
			nextTime(t)
			c.change(t, filepath.Join(b.dir, filepath.FromSlash(c.path)))
			want := planned(t, func(ctx context.Context, r Request) (*fileset.Plan, error) {
				d, err := NewService(b.settings).desire(ctx, r, nil)
				if err != nil {
					return nil, err
				}
				p, err := fileset.NewEngine(b.settings.Home, time.Now).Plan(t.Context(), d)
				return p, err
			})
			if (len(want) == 0) != c.quiet {
				t.Fatalf("the test changes other than it should: %v", want)
			}
			for where, s := range map[string]*Service{"the same process": service, "another process": another,
				"a new process": NewService(b.settings)} {
				operationtest.Same(t, where, want, planned(t, s.Plan))
			}
		})
	}
}

// planned returns the changes of a plan, or its error.
func planned(t *testing.T, plan func(context.Context, Request) (*fileset.Plan, error)) (out []string) {
	t.Helper()
	p, err := plan(t.Context(), Request{})
	if err != nil {
		return []string{err.Error()}
	}
	for _, c := range p.Changes {
		out = append(out, string(c.Op)+" "+c.Path+" "+c.Reason)
	}
	return out
}

// noted reports whether a service remembers that nothing has to be changed.
func noted(s *Service) bool {
	stats, _ := s.engine.UnchangedStats(s.last.desired)
	return len(stats) > 0
}

// BenchmarkPlan plans over 1,000 modules of ten files each, 10,000 in all, and runs git status on the tree that they
// are deployed to: cold is a plan before anything was deployed, unchanged one with nothing to change, of files whose
// hashes are remembered.
func BenchmarkPlan(b *testing.B) {
	files := map[string]string{}
	var config strings.Builder
	config.WriteString(
		"version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: {write_repo_skills: " +
			"true}}}\nmodules:\n")
	for i := range 1000 {
		fmt.Fprintf(&config, "- {id: 'skill:s%d', type: skill, tags: [x], source: {local_path: {path: m/s%d}}}\n", i, i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%d\ndescription: d\n---\n", i)
		for j := range 9 {
			files[fmt.Sprintf("agentpack/repo/m/s%d/f%d.md", i, j)] = strings.Repeat(fmt.Sprintf("line %d %d\n", i, j), 100)
		}
	}
	files["agentpack/repo/"+configName] = config.String()
	settings := newBench(b, files).settings
	project := settings.Folder
	git(b, project, "init", "-q")
	git(b, project, "config", "gc.auto", "0") // nothing of git's is left running
	git(b, project, "config", "maintenance.auto", "false")
	service := NewService(settings)
	plan := func(b *testing.B, want int) {
		for b.Loop() {
			p, err := service.Plan(b.Context(), Request{})
			if err != nil || len(p.Changes) != want {
				b.Fatal(len(p.Changes), err)
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
	}
	b.Run("cold", func(b *testing.B) { plan(b, 10_000) })
	if _, _, err := service.Apply(b.Context(), Request{}, fileset.Approval{}, false); err != nil {
		b.Fatal(err)
	}
	git(b, project, "add", "-A")
	git(b, project, "commit", "-q", "-m", "x")
	b.Run("unchanged-first", func(b *testing.B) { plan(b, 0) }) // its first round reads every file, and remembers
	b.Run("unchanged", func(b *testing.B) { plan(b, 0) })
	// As claudeops deploy plan does it: a process that has asked nothing yet.
	b.Run("unchanged-new-process", func(b *testing.B) {
		for b.Loop() {
			if p, err := NewService(settings).Plan(b.Context(), Request{}); err != nil || len(p.Changes) > 0 {
				b.Fatal(p, err)
			}
		}
	})
	b.Run("git-status", func(b *testing.B) {
		for b.Loop() {
			git(b, project, "status", "--porcelain")
		}
	})
}
