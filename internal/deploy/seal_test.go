package deploy

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// sealedFiles is a configuration with modules of each kind: a folder in folders, single files, and overlays.
func sealedFiles() map[string]string {
	return map[string]string{
		"agentpack/repo/" + ConfigName: "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: {write_repo_skills: true}}, vscode: {}}\nmodules:\n" +
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

// TestAPlanThatIsKnownNoticesEveryChange plans twice, so that the second plan is one that is known, changes one thing, and holds the next
// plan, in the same process and in another one, against one that believes nothing that is remembered.
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
		"a deployed file that may be executed":      {path: skill + "SKILL.md", change: must(func(n string) error { return os.Chmod(n, 0o755) })},
		"a folder in place of a deployed file":      {path: "project/.claude/commands/go.md", change: must(func(n string) error { return errors.Join(os.Remove(n), os.Mkdir(n, 0o755)) })},
		"a link in place of a deployed file":        {path: "project/.claude/commands/go.md", change: must(func(n string) error { return errors.Join(os.Remove(n), os.Symlink("/etc/hosts", n)) })},
		"a link in place of a deployed folder":      {path: skill + "deep", change: must(func(n string) error { return errors.Join(os.Rename(n, n+"2"), os.Symlink(filepath.Dir(n)+"2", n)) })},
		"a deployed folder that went":               {path: skill + "deep", change: must(os.RemoveAll)},
		"a module's file of the same size and time": {path: source + "deep/er/a.md", change: sameTimes("b\n")},
		"another file in its place": {path: source + "deep/er/a.md", change: must(func(n string) error {
			return errors.Join(os.WriteFile(n+"2", []byte("b\n"), 0o644), os.Rename(n+"2", n))
		})},
		"a new file of a module":                      {path: source + "deep/er/b.md", change: write("b\n")},
		"a new folder of a module":                    {path: source + "new/b.md", change: write("b\n")},
		"a module's file that went":                   {path: source + "deep/er/a.md", change: must(os.Remove)},
		"a module's file that may be executed":        {path: source + "deep/er/a.md", change: must(func(n string) error { return os.Chmod(n, 0o755) })},
		"a module's file that is one by itself":       {path: "agentpack/repo/m/go.md", change: write("---\ndescription: new\n---\n")},
		"the same of the same size and time":          {path: "agentpack/repo/m/go.md", change: sameTimes("---\ndescription: ga\n---\n")},
		"the configuration":                           {path: "agentpack/repo/" + ConfigName, change: write("version: 1\nprofiles: {default: {}}\ntargets: {claude_code: {}}\n")},
		"a broken configuration":                      {path: "agentpack/repo/" + ConfigName, change: write("version: [")},
		"a lock file that is broken":                  {path: "agentpack/repo/" + LockName, change: write("{")},
		"an overlay for all":                          {path: "agentpack/repo/overlays/" + fsKey("skill:one") + "/new.md", change: write("new")},
		"an overlay for this machine":                 {path: "agentpack/repo/overlays/machines/box/" + fsKey("skill:one") + "/new.md", change: write("new")},
		"an overlay for another machine":              {path: "agentpack/repo/overlays/machines/other/" + fsKey("skill:one") + "/new.md", change: write("new"), quiet: true},
		"a manifest that went":                        {path: "project/.claude/skills/.agentpack.manifest.claude_code.json", change: must(os.Remove), quiet: true},
		"a manifest that knows more":                  {path: "project/.github/.agentpack.manifest.vscode.json", change: write(`{"schema_version":1,"tool":"vscode","managed_files":[{"path":"x.md","sha256":"0"}]}`), quiet: true},
		"a file that only a manifest knows":           {path: "project/.github/prompts/x.md", change: write("x"), quiet: true},
		"the project's origin, and an overlay for it": {path: "project/.git/config", change: write("[remote \"origin\"]\n\turl = https://example.org/a/b.git\n")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, sealedFiles())
			overlay := "agentpack/repo/projects/" + ProjectID("https://example.org/a/b.git", "") + "/overlays/" + fsKey("skill:one") + "/new.md"
			operationtest.WriteFiles(t, b.dir, map[string]string{overlay: "new"})
			git(t, filepath.Join(b.dir, "project"), "init", "-q")
			b.settings.Now = func() time.Time { return time.Now().Add(time.Hour) } // so that the files of the test count as settled
			service := NewService(b.settings)
			if _, _, err := service.Apply(t.Context(), Request{}, Approval{}, false); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := planned(t, service.Plan); len(got) > 0 {
					t.Fatalf("%v", got)
				}
			}
			another := NewService(b.settings)
			if p, _, err := another.planAgain(t.Context(), Request{}); err != nil || runtime.GOOS == "linux" && (p == nil || service.last.desired == nil || service.engine.unchanged.plan == nil) {
				t.Fatalf("the plan is not known: %v, %v", p, err)
			}
			c.change(t, filepath.Join(b.dir, filepath.FromSlash(c.path)))
			want := planned(t, func(ctx context.Context, r Request) (*Plan, error) {
				d, err := NewService(b.settings).desire(ctx, r, nil)
				if err != nil {
					return nil, err
				}
				p, _, err := NewEngine(b.settings.Home, time.Now).plan(d, nil)
				return p, err
			})
			if (len(want) == 0) != c.quiet {
				t.Fatalf("the test changes other than it should: %v", want)
			}
			for where, s := range map[string]*Service{"the same process": service, "another process": another, "a new process": NewService(b.settings)} {
				if diff := cmp.Diff(want, planned(t, s.Plan)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
		})
	}
}

// planned is what a plan changes, or its error.
func planned(t *testing.T, plan func(context.Context, Request) (*Plan, error)) (out []string) {
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

// TestASealIsOfFilesThatHaveSettled holds each thing that the system says of a file, and the rule of git's index: a file that was changed
// so shortly before it was asked about that another change could have the same time is not recorded.
func TestASealIsOfFilesThatHaveSettled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is recorded here")
	}
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"m/a.md": "a", "m/deep/b.md": "b"})
	info, err := os.Stat(filepath.Join(dir, "m", "deep", "b.md"))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := identify(info)
	changed := time.Unix(0, max(id.Changed, id.Status))
	for after, want := range map[time.Duration]bool{0: false, time.Second: false, settled - 1: false, settled + time.Second: true} {
		s := newSeal(changed.Add(after))
		if s.tree(dir, "m"); s.whole() != want || s.same() != want {
			t.Errorf("%s after a change: recorded %t", after, s.whole())
		}
	}
	future := time.Now().Add(time.Hour)
	for what, change := range map[string]func(*fileID){
		"size": func(id *fileID) { id.Size++ }, "time of its content": func(id *fileID) { id.Changed++ }, "time of its inode": func(id *fileID) { id.Status++ },
		"inode": func(id *fileID) { id.Inode++ }, "device": func(id *fileID) { id.Device++ }, "mode": func(id *fileID) { id.Mode ^= 0o100 },
	} {
		s := newSeal(future)
		s.tree(dir, "m")
		s.files(newDisk(dir), []string{filepath.Join(dir, "m", "a.md"), filepath.Join(dir, "no", "c.md")})
		if !s.same() {
			t.Fatalf("%s: not recorded", what)
		}
		for i := range s.folders {
			for j := range s.folders[i].files {
				file := &s.folders[i].files[j]
				before := file.id
				if change(&file.id); s.same() {
					t.Errorf("another %s of %s is not noticed", what, file.name)
				}
				file.id = before
			}
		}
	}
}

func TestWhatIsKeptOfAPlanReadsBack(t *testing.T) {
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"m/a.md": "a", "m/deep/b.md": "b"})
	s := newSeal(time.Now().Add(time.Hour))
	s.tree(dir, "m")
	s.tree(dir, "absent")
	s.used = []string{"x"}
	q := quiet{file: filepath.Join(dir, "cache", "unchanged")}
	want := quietPlan{"question", []TargetName{Codex}, []string{"a warning"}, []*seal{s}}
	q.keep(want)
	got := q.read()
	if got == nil || got.question != want.question || !cmp.Equal(got.targets, want.targets) || !cmp.Equal(got.warnings, want.warnings) {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(s.folders, got.seals[0].folders, cmp.AllowUnexported(sealedFolder{}, sealedFile{})); diff != "" || !cmp.Equal(got.seals[0].used, s.used) {
		t.Errorf("%s", diff)
	}
	if p := q.again("another question"); p != nil {
		t.Errorf("%+v", p)
	}
	if p := q.again("question"); runtime.GOOS == "linux" && p == nil {
		t.Error("not known")
	}
}

// FuzzWhatIsKeptOfAPlan reads damaged files, also under a sound checksum.
func FuzzWhatIsKeptOfAPlan(f *testing.F) {
	dir := operationtest.WriteFiles(f, f.TempDir(), map[string]string{"m/a.md": "a"})
	s := newSeal(time.Now().Add(time.Hour))
	s.tree(dir, "m")
	var out packer
	out.text("question")
	out.number(0)
	out.texts([]string{"w"})
	out.number(1)
	out.seal(s)
	f.Add(out.b, true)
	f.Add(out.b[:len(out.b)/2], true)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, body []byte, sound bool) {
		q := quiet{file: filepath.Join(t.TempDir(), "unchanged")}
		sum := sha256.Sum256(body)
		if !sound {
			sum[0]++
		}
		replaceCache(q.file, quietMark(), sum[:], body)
		if p := q.read(); p != nil && (!sound || len(p.seals) == 0) {
			t.Errorf("%+v", p)
		}
	})
}
