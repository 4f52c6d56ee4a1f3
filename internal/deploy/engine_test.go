package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machine is a home and a project with the state of their deployments.
type machine struct {
	t       testing.TB
	home    string
	project string
	state   State
}

func newMachine(t testing.TB, files map[string]string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project")}
	write(t, dir, map[string]string{"home/.keep": "", "project/.keep": ""})
	write(t, m.project, files)
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	m.state = NewState(filepath.Join(m.home, ".agentpack"), func() time.Time { clock = clock.Add(time.Second); return clock })
	return m
}

func (m *machine) engine() *Engine {
	return &Engine{state: m.state, disk: newDisk(m.project, m.home)}
}

// want are the commands that Claude Code should have in the project.
func (m *machine) want(commands map[string]string) *Desired {
	d := &Desired{Files: map[fileKey]DesiredFile{}}
	root := filepath.Join(m.project, ".claude", "commands")
	d.Roots = append(d.Roots, RootDir{ClaudeCode, root, true})
	for name, text := range commands {
		name, executable := strings.CutSuffix(name, "*")
		d.Files[fileKey{ClaudeCode, filepath.Join(root, filepath.FromSlash(name))}] = DesiredFile{Content: []byte(text), Executable: executable, Modules: []string{"m"}}
	}
	return d
}

func (m *machine) plan(commands map[string]string) *Plan {
	m.t.Helper()
	p, err := makePlan(m.engine().disk, m.want(commands), []TargetName{ClaudeCode})
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m *machine) deploy(commands map[string]string) *Done {
	m.t.Helper()
	done, err := m.engine().apply(m.plan(commands))
	if err != nil || len(done.Changed) > 0 {
		m.t.Fatal(done, err)
	}
	return done
}

func (m *machine) rollback(id string) *Done {
	m.t.Helper()
	to, err := m.state.Snapshot(id)
	if err != nil {
		m.t.Fatal(err)
	}
	done, err := m.engine().rollback(to)
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

// files are those of the commands' folder, manifests aside.
func (m *machine) files() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	root := filepath.Join(m.project, ".claude", "commands")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || isManifest(d.Name())) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(root, name)
		out[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *machine) has(want map[string]string) {
	m.t.Helper()
	if diff := cmp.Diff(want, m.files()); diff != "" {
		m.t.Errorf("files (-want +got):\n%s", diff)
	}
}

func describePlan(p *Plan) string {
	var out []string
	for _, c := range p.Changes {
		out = append(out, strings.TrimSpace(string(c.Op)+" "+filepath.Base(c.Path)+" "+c.UpdateKind))
	}
	return strings.Join(out, ", ")
}

func TestPlanApplyAndPlanAgain(t *testing.T) {
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine", ".claude/commands/same.md": "same"})
	want := map[string]string{"a.md": "1", "b/c.sh*": "2", "mine.md": "theirs", "same.md": "same"}
	if got := describePlan(m.plan(want)); got != "create a.md, create c.sh, update mine.md adopt_update" {
		t.Error(got)
	}
	m.deploy(want)
	m.has(map[string]string{"a.md": "1", "b/c.sh": "2", "mine.md": "theirs", "same.md": "same"})
	if info, err := os.Stat(filepath.Join(m.project, ".claude/commands/b/c.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got := describePlan(m.plan(want)); got != "" {
		t.Errorf("again: %s", got)
	}
	next := map[string]string{"a.md": "1b", "b/c.sh*": "2"}
	if got := describePlan(m.plan(next)); got != "update a.md managed_update, delete mine.md, delete same.md" {
		t.Error(got)
	}
	if err := os.Chmod(filepath.Join(m.project, ".claude/commands/a.md"), 0o664); err != nil {
		t.Fatal(err)
	}
	m.deploy(next)
	m.has(map[string]string{"a.md": "1b", "b/c.sh": "2"})
	if info, err := os.Stat(filepath.Join(m.project, ".claude/commands/a.md")); err != nil || info.Mode().Perm() != 0o664 {
		t.Errorf("an update changed the rights: %v, %v", info.Mode(), err)
	}
}

func TestRollbackGivesBackTheBytesOfThatMoment(t *testing.T) {
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine", ".claude/commands/other.md": "a person's"})
	first := m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	second := m.deploy(map[string]string{"a.md": "2", "mine.md": "theirs"})
	write(t, m.project, map[string]string{".claude/commands/a.md": "drift"})
	back := m.rollback(first.ID)
	m.has(map[string]string{"a.md": "1", "b.md": "1", "mine.md": "mine", "other.md": "a person's"})
	if _, err := m.state.kept(hashOf([]byte("drift"))); err != nil {
		t.Errorf("the drift is lost: %v", err)
	}
	if got := describePlan(m.plan(map[string]string{"a.md": "1", "b.md": "1"})); got != "" {
		t.Errorf("after the rollback: %s", got)
	}
	m.rollback(second.ID)
	m.has(map[string]string{"a.md": "2", "mine.md": "theirs", "other.md": "a person's"})
	m.rollback(back.ID)
	m.has(map[string]string{"a.md": "1", "b.md": "1", "mine.md": "mine", "other.md": "a person's"})
	for _, id := range []string{"../../x", "1", "", "latest"} {
		if _, err := m.state.Snapshot(id); codeOf(err) != SnapshotNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestWhatIsInTheWayIsSaid(t *testing.T) {
	m := newMachine(t, map[string]string{".claude/commands/dir.md/x": "x"})
	root := filepath.Join(m.project, ".claude", "commands")
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"dir.md": "is a folder", "link.md": "is a symbolic link"} {
		_, err := makePlan(m.engine().disk, m.want(map[string]string{name: "x"}), []TargetName{ClaudeCode})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	outside := t.TempDir()
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, root); err != nil {
		t.Fatal(err)
	}
	if _, err := m.engine().apply(m.planOrNil(map[string]string{"a.md": "x"})); err == nil {
		t.Error("a folder that is a link to elsewhere was written")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("%v was written outside", left)
	}
}

func (m *machine) planOrNil(commands map[string]string) *Plan {
	p, err := makePlan(m.engine().disk, m.want(commands), []TargetName{ClaudeCode})
	if err != nil {
		return &Plan{desired: m.want(commands), Targets: []TargetName{ClaudeCode}}
	}
	return p
}

func TestFilesBecomeFoldersAndBack(t *testing.T) {
	m := newMachine(t, nil)
	m.deploy(map[string]string{"x.md": "file"})
	m.deploy(map[string]string{"x.md/y.md": "in a folder"})
	m.has(map[string]string{"x.md/y.md": "in a folder"})
	m.deploy(map[string]string{"x.md": "file again"})
	m.has(map[string]string{"x.md": "file again"})
}

// errKilled stands for the end of the process: nothing more is done.
var errKilled = errors.New("killed")

// Killed at every step of deployments and rollbacks, and then mended: the files are as before or as after, and nothing is lost.
func TestKilledAtEveryStep(t *testing.T) {
	states := []map[string]string{
		{"a.md": "1", "b.md": "1", "d": "file"}, {"a.md": "2", "c.sh*": "2", "mine.md": "theirs", "d/e.md": "2"}, {"b.md": "3", "d": "3"},
	}
	expected := []map[string]string{
		{"a.md": "1", "b.md": "1", "d": "file", "mine.md": "mine"}, {"a.md": "2", "c.sh": "2", "mine.md": "theirs", "d/e.md": "2"}, {"b.md": "3", "d": "3"},
	}
	for kind := range 3 { // deploy the second, deploy the third, roll back to the first
		for step := 0; ; step++ {
			m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
			first := m.deploy(states[0])
			before, after := expected[0], expected[1]
			act := func(e *Engine) error { _, err := e.apply(m.plan(states[1])); return err }
			if kind > 0 {
				m.deploy(states[1])
				before, after = expected[1], expected[2]
				act = func(e *Engine) error { _, err := e.apply(m.plan(states[2])); return err }
			}
			if kind == 2 {
				before, after = expected[1], expected[0]
				act = func(e *Engine) error { _, err := e.rollback(first.Snapshot); return err }
			}
			e, n := m.engine(), 0
			e.fault = func(string) error {
				if n++; n > step {
					return errKilled
				}
				return nil
			}
			err := act(e)
			if err == nil {
				if step < 5 {
					t.Errorf("only %d steps were seen", step)
				}
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			said, err := m.engine().Recover()
			if err != nil {
				t.Fatalf("kind %d, step %d: %v", kind, step, err)
			}
			want := before
			if said != "" {
				want = after
			}
			if diff := cmp.Diff(want, m.files()); diff != "" {
				t.Errorf("kind %d, step %d: %q (-want +got):\n%s", kind, step, said, diff)
			}
			if said, err := m.engine().Recover(); said != "" || err != nil {
				t.Errorf("kind %d, step %d, again: %q, %v", kind, step, said, err)
			}
			m.rollback(first.ID)
			m.has(expected[0])
		}
	}
}

// What a person changes between the kill and the next call stays as it is.
func TestWhatSomebodyChangedMeanwhileIsLeftAlone(t *testing.T) {
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	e, n := m.engine(), 0
	e.fault = func(step string) error {
		if strings.HasPrefix(step, "step") {
			if n++; n > 1 {
				return errKilled
			}
		}
		return nil
	}
	if _, err := e.apply(m.plan(map[string]string{"a.md": "2", "b.md": "2"})); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	write(t, m.project, map[string]string{".claude/commands/b.md": "a person's"})
	said, err := m.engine().Recover()
	if err != nil || !strings.Contains(said, "b.md") {
		t.Errorf("%q, %v", said, err)
	}
	m.has(map[string]string{"a.md": "2", "b.md": "a person's"})
}

func TestRandomDeploymentsAndRollbacks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := newMachine(t, map[string]string{".claude/commands/f3.md": "a person's"})
	type moment struct {
		id    string
		files map[string]string
	}
	var moments []moment
	for range 60 {
		if len(moments) > 0 && random.IntN(3) == 0 {
			to := moments[random.IntN(len(moments))]
			done := m.rollback(to.id)
			m.has(to.files)
			moments = append(moments, moment{done.ID, to.files})
			continue
		}
		commands := map[string]string{}
		for i := range 6 {
			if random.IntN(2) == 0 {
				commands[fmt.Sprintf("f%d.md", i)] = fmt.Sprint(random.IntN(3))
			}
		}
		done := m.deploy(commands)
		moments = append(moments, moment{done.ID, m.files()})
	}
}
