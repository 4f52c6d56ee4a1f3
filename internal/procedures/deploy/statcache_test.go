package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

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
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			operationtest.WriteFiles(t, filepath.Dir(name), map[string]string{filepath.Base(name): text})
		}
	}
	must := func(f func(name string) error) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			if err := f(name); err != nil {
				t.Fatal(err)
			}
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
			if _, _, err := service.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
				t.Fatal(err)
			}
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
			c.change(t, filepath.Join(b.dir, filepath.FromSlash(c.path)))
			want := planned(t, func(ctx context.Context, r Request) (*change.Plan, error) {
				d, err := NewService(b.settings).desire(ctx, r, nil)
				if err != nil {
					return nil, err
				}
				p, err := change.NewEngine(b.settings.Home, time.Now).Plan(t.Context(), d)
				return p, err
			})
			if (len(want) == 0) != c.quiet {
				t.Fatalf("the test changes other than it should: %v", want)
			}
			for where, s := range map[string]*Service{"the same process": service, "another process": another,
				"a new process": NewService(b.settings)} {
				if diff := cmp.Diff(want, planned(t, s.Plan)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
		})
	}
}

// planned is what a plan changes, or its error.
func planned(t *testing.T, plan func(context.Context, Request) (*change.Plan, error)) (out []string) {
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
