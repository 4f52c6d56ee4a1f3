package fileset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
	operationtest.WriteFiles(t, dir, map[string]string{"home/.keep": "", "project/.keep": ""})
	operationtest.WriteFiles(t, m.project, files)
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	m.state = newState(filepath.Join(m.home, ".agentpack"),
		func() time.Time { clock = clock.Add(time.Second); return clock })
	return m
}

func (m *machine) reach() Scope { return Scope{Project: m.project, User: []string{m.home}} }

func (m *machine) engine() *Engine {
	return &Engine{state: m.state}
}

// want are the commands that Claude Code should have in the project.
func (m *machine) want(commands map[string]string) *Desired {
	m.t.Helper()
	d := NewDesired(Agentpack, "repo", m.project, ClaudeCode)
	root := filepath.Join(m.project, ".claude", "commands")
	d.AddRoot(ClaudeCode, root, m.project, true)
	for name, text := range commands {
		name, executable := strings.CutSuffix(name, "*")
		must.Do(m.t, d.Add(ClaudeCode, root, name, TreeFile{Content: Bytes([]byte(text)), Executable: executable},
			"m"))
	}
	return d
}

func (m *machine) plan(commands map[string]string) *Plan {
	m.t.Helper()
	p, err := m.engine().Plan(m.t.Context(), m.want(commands))
	must.Do(m.t, err)
	return p
}

func (m *machine) deploy(commands map[string]string) *Done {
	m.t.Helper()
	_, done, err := m.engine().Apply(m.t.Context(), m.want(commands), Approval{Adopt: true})
	must.Do(m.t, err)
	if done == nil { // nothing to do: the last one is current
		last, err := m.state.Last()
		must.Do(m.t, err)
		return &Done{Snapshot: last}
	}
	if len(done.Changed) > 0 {
		m.t.Fatal(done.Changed)
	}
	return done
}

func (m *machine) rollback(id string) *Done {
	m.t.Helper()
	done, _, err := m.engine().Rollback(m.t.Context(), id, m.reach(), "")
	must.Do(m.t, err)
	return done
}

// files are those of the commands' folder, manifests aside.
func (m *machine) files() map[string]string {
	m.t.Helper()
	root := filepath.Join(m.project, ".claude", "commands")
	if !Exists(root) {
		return map[string]string{}
	}
	out := operationtest.ReadFiles(m.t, root)
	maps.DeleteFunc(out, func(name, _ string) bool { return IsManifest(path.Base(name)) })
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
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine", ".claude/commands/same.md": "same"})
	want := map[string]string{"a.md": "1", "b/c.sh*": "2", "mine.md": "theirs", "same.md": "same"}
	if got := describePlan(m.plan(want)); got != "create a.md, create c.sh, update mine.md adopt_update" {
		t.Error(got)
	}
	m.deploy(want)
	m.has(map[string]string{"a.md": "1", "b/c.sh": "2", "mine.md": "theirs", "same.md": "same"})
	if info, err := os.Stat(filepath.Join(m.project, ".claude/commands/b/c.sh")); err != nil ||
		info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got := describePlan(m.plan(want)); got != "" {
		t.Errorf("again: %s", got)
	}
	next := map[string]string{"a.md": "1b", "b/c.sh*": "2"}
	if got := describePlan(m.plan(next)); got != "update a.md managed_update, update mine.md managed_update" {
		t.Error(got)
	}
	must.Do(t, os.Chmod(filepath.Join(m.project, ".claude/commands/a.md"), 0o664))
	m.deploy(next)
	m.has(map[string]string{"a.md": "1b", "b/c.sh": "2", "mine.md": "mine", "same.md": "same"})
	if info, err := os.Stat(filepath.Join(m.project, ".claude/commands/a.md")); err != nil || info.Mode().Perm() != 0o664 {
		t.Errorf("an update changed the rights: %v, %v", info.Mode(), err)
	}
}

func TestRollbackGivesBackTheBytesOfThatMoment(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine", ".claude/commands/other.md": "a person's"})
	first := m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	second := m.deploy(map[string]string{"a.md": "2", "mine.md": "theirs"})
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/a.md": "drift"})
	back := m.rollback(first.ID)
	m.has(map[string]string{"a.md": "1", "b.md": "1", "mine.md": "mine", "other.md": "a person's"})
	if _, err := m.state.Kept(Hash([]byte("drift"))); err != nil {
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
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/dir.md/x": "x"})
	root := filepath.Join(m.project, ".claude", "commands")
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(root, "link.md")))
	for name, want := range map[string]string{"dir.md": "is a folder", "link.md": "is a symbolic link"} {
		_, err := m.engine().Plan(t.Context(), m.want(map[string]string{name: "x"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	outside := t.TempDir()
	must.Do(t, os.RemoveAll(root))
	must.Do(t, os.Symlink(outside, root))
	if _, _, err := m.engine().Apply(t.Context(), m.want(map[string]string{"a.md": "x"}),
		Approval{}); codeOf(err) != PermissionDenied {
		t.Error("a folder that is a link to elsewhere was written")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("%v was written outside", left)
	}
}

func TestFilesBecomeFoldersAndBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"x.md": "file"})
	m.deploy(map[string]string{"x.md/y.md": "in a folder"})
	m.has(map[string]string{"x.md/y.md": "in a folder"})
	m.deploy(map[string]string{"x.md": "file again"})
	m.has(map[string]string{"x.md": "file again"})
}

// Killed at every step of deployments and rollbacks, and then mended: the files are as before or as after, and nothing
// is lost.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	states := []map[string]string{
		{"a.md": "1", "b.md": "1", "d": "file"}, {"a.md": "2", "c.sh*": "2", "mine.md": "theirs", "d/e.md": "2"},
		{"b.md": "3", "d": "3"},
	}
	expected := []map[string]string{
		{"a.md": "1", "b.md": "1", "d": "file", "mine.md": "mine"},
		{"a.md": "2", "c.sh": "2", "mine.md": "theirs", "d/e.md": "2"}, {"b.md": "3", "d": "3", "mine.md": "mine"},
	}
	for kind := range 3 { // deploy the second, deploy the third, roll back to the first
		for step := 0; ; step++ {
			m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
			first := m.deploy(states[0])
			before, after := expected[0], expected[1]
			act := func(e *Engine) error {
				_, _, err := e.Apply(t.Context(), m.want(states[1]), Approval{Adopt: true})
				return err
			}
			if kind > 0 {
				m.deploy(states[1])
				before, after = expected[1], expected[2]
				act = func(e *Engine) error {
					_, _, err := e.Apply(t.Context(), m.want(states[2]), Approval{Adopt: true})
					return err
				}
			}
			if kind == 2 {
				before, after = expected[1], expected[0]
				act = func(e *Engine) error { _, _, err := e.Rollback(t.Context(), first.ID, m.reach(), ""); return err }
			}
			e, n := m.engine(), 0
			e.dies = func(string) bool { n++; return n > step }
			err := act(e)
			if err == nil {
				if step < 5 {
					t.Errorf("only %d steps were seen", step)
				}
				break
			}
			if !e.died(err) {
				t.Fatal(err)
			}
			said, err := m.engine().mend(t.Context())
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
			if said, err := m.engine().mend(t.Context()); said != "" || err != nil {
				t.Errorf("kind %d, step %d, again: %q, %v", kind, step, said, err)
			}
			m.rollback(first.ID)
			m.has(expected[0])
		}
	}
}

// What a person changes between the kill and the next call stays as it is.
func TestWhatSomebodyChangedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	e, n := m.engine(), 0
	e.dies = func(step string) bool {
		if strings.HasPrefix(step, "step") {
			n++
		}
		return n > 1
	}
	if _, _, err := e.Apply(t.Context(), m.want(map[string]string{"a.md": "2", "b.md": "2"}), Approval{}); !e.died(err) {
		t.Fatal(err)
	}
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/b.md": "a person's"})
	said, err := m.engine().mend(t.Context())
	if err != nil || !strings.Contains(said, "b.md") {
		t.Errorf("%q, %v", said, err)
	}
	m.has(map[string]string{"a.md": "2", "b.md": "a person's"})
}

func TestRandomDeploymentsAndRollbacks(t *testing.T) {
	t.Parallel()
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

// What cannot be done whole is not done: nothing of it is left.
func TestWhatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	m.deploy(map[string]string{"a.md": "1", "b.md": "1"})
	before := m.tree()
	for n := 1; ; n++ {
		e, seen := m.engine(), 0
		e.fails = func(step string) error {
			if step == "end" {
				return nil // it is done by then
			}
			if seen++; seen == n {
				return errors.New("no space left on device")
			}
			return nil
		}
		_, done, err := e.Apply(t.Context(),
			m.want(map[string]string{"a.md": "2", "mine.md": "theirs", "new/deep/x.md": "x"}), Approval{Adopt: true})
		if err == nil {
			if n < 6 {
				t.Errorf("only %d places where it can fail", n)
			}
			_ = done
			return
		}
		if !strings.Contains(err.Error(), "no space left") {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, m.tree()); diff != "" {
			t.Fatalf("failed at %d (-before +after):\n%s", n, diff)
		}
		if j, err := m.state.pending(); j != nil || err != nil {
			t.Fatalf("failed at %d: a journal is left: %v", n, err)
		}
	}
}

// tree are all files and folders of the project.
func (m *machine) tree() map[string]string {
	m.t.Helper()
	return treeOf(m.t, m.project)
}

func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[name] = "a folder"
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out[name], err = os.Readlink(name)
			return err
		}
		text, err := os.ReadFile(name)
		out[name] = string(text)
		return err
	})
	must.Do(t, err)
	return out
}

// unchanged holds the project against what it was.
func (m *machine) unchanged(about string, before map[string]string) {
	m.t.Helper()
	if diff := cmp.Diff(before, m.tree()); diff != "" {
		m.t.Errorf("%s (-before +after):\n%s", about, diff)
	}
}

func TestOwnersAndProjectsAreKeptApart(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1"})
	root := filepath.Join(m.project, ".claude", "commands")
	packages := func(files map[string]string) *Desired {
		d := NewDesired("packages", m.project, m.project, ClaudeCode)
		d.AddRoot(ClaudeCode, root, m.project, true)
		for name, text := range files {
			must.Do(t, d.Add(ClaudeCode, root, name, TreeFile{Content: Bytes([]byte(text))}, "pkg"))
		}
		return d
	}
	apply := func(d *Desired) error {
		t.Helper()
		_, _, err := m.engine().Apply(t.Context(), d, Approval{})
		return err
	}
	if err := apply(packages(map[string]string{"a.md": "theirs"})); codeOf(err) != DesiredStateConflict {
		t.Errorf("a file of another owner: %v", err)
	}
	must.Do(t, apply(packages(map[string]string{"p.md": "p"})))
	if _, err := m.engine().Plan(t.Context(),
		m.want(map[string]string{"p.md": "x"})); codeOf(err) != DesiredStateConflict {
		t.Errorf("the other way: %v", err)
	}
	if got := describePlan(m.plan(map[string]string{"b.md": "2"})); got != "delete a.md, create b.md" {
		t.Error(got)
	}
	if list, _, err := m.engine().Status(t.Context(), m.want(nil)); err != nil || len(list) != 0 {
		t.Errorf("what another owner has put there is reported: %+v, %v", list, err)
	}
	first := m.deploy(map[string]string{"b.md": "2"})
	m.deploy(map[string]string{"c.md": "3"})
	must.Do(t, apply(packages(map[string]string{"q.md": "q"})))
	other := filepath.Join(filepath.Dir(m.project), "other")
	operationtest.WriteFiles(t, other, map[string]string{"x": ""})
	elsewhere := *m
	elsewhere.project = other
	elsewhere.deploy(map[string]string{"a.md": "of the other project"})
	m.rollback(first.ID)
	m.has(map[string]string{"b.md": "2", "q.md": "q"})
	elsewhere.has(map[string]string{"a.md": "of the other project"})
	owned, _, err := m.engine().Owned(t.Context(), "packages")
	if err != nil || len(owned) != 1 || owned[0].Path != filepath.Join(root, "q.md") {
		t.Errorf("%+v, %v", owned, err)
	}
	must.Do(t, apply(NewDesired("packages", m.project, m.project, TargetNames()...)))
	m.has(map[string]string{"b.md": "2"})
	elsewhere.deploy(nil)
	elsewhere.has(map[string]string{})
	m.has(map[string]string{"b.md": "2"})
}

func TestAdoptionIsAskedForAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/mine.md": "mine"})
	before := m.tree()
	_, done, err := m.engine().Apply(t.Context(), m.want(map[string]string{"mine.md": "theirs", "new.md": "x"}),
		Approval{})
	var e *Error
	if !errors.As(err, &e) || e.Code != AdoptConfirmRequired || done != nil ||
		fmt.Sprint(e.Details["sample_paths"]) != "["+filepath.ToSlash(filepath.Join(m.project, ".claude/commands/mine.md"))+
			"]" {
		t.Errorf("%v", err)
	}
	m.unchanged("what waits for a confirmation is written", before)
	p := m.plan(map[string]string{"new.md": "x"})
	operationtest.WriteFiles(t, m.project, map[string]string{".claude/commands/new.md": "another's"})
	if _, _, err := m.engine().Apply(t.Context(), m.want(map[string]string{"new.md": "x"}),
		Approval{Adopt: true, Plan: p.Digest()}); codeOf(err) != PlanChanged {
		t.Errorf("a plan that is no longer true: %v", err)
	}
}

func TestAFolderThatIsNotNamedAnyMoreIsEmptied(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.deploy(map[string]string{"a.md": "1"})
	d := NewDesired(Agentpack, "repo", m.project, ClaudeCode)
	p, done, err := m.engine().Apply(t.Context(), d, Approval{})
	if err != nil || done == nil || describePlan(p) != "delete a.md" {
		t.Fatalf("%v, %v", describePlan(p), err)
	}
	if left := m.tree(); len(left) != 2 { // the project and .keep: the folders were made for the file
		t.Errorf("%v", left)
	}
	if _, done, err := m.engine().Apply(t.Context(), d, Approval{}); done != nil || err != nil {
		t.Errorf("again: %v, %v", done, err)
	}
	m.rollback(done.Previous)
	m.has(map[string]string{"a.md": "1"})
}

// A call whose time ends while files are put in place, or while it mends, halts; the next call goes on to the end.
func TestACallThatPlacesOrMendsEndsWithItsTime(t *testing.T) {
	t.Parallel()
	for name, mends := range map[string]bool{"placing": false, "mending": true} {
		m := newMachine(t, nil)
		want := m.want(map[string]string{"a.md": "a", "b.md": "b", "c.md": "c"})
		e := m.engine()
		if mends {
			e.KillAt(func(step string) bool { return step == "step 1" })
			if _, _, err := e.Apply(t.Context(), want, Approval{}); !WasKilled(err) {
				t.Fatal(err)
			}
			e = m.engine()
		}
		ctx, end := context.WithCancel(t.Context())
		e.KillAt(func(step string) bool {
			if step == "step 2" {
				end()
			}
			return false
		})
		_, _, err := e.Apply(ctx, want, Approval{})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the next call goes on") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(m.project, ".claude", "commands", "c.md")); err == nil {
			t.Errorf("%s: went on after its time", name)
		}
		if _, err := m.engine().Plan(t.Context(), want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.has(map[string]string{"a.md": "a", "b.md": "b", "c.md": "c"})
	}
}

// A call whose time is over ends, whatever it does, and has changed nothing.
func TestACallEndsWithItsTime(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	first := m.deploy(map[string]string{"a.md": "1"})
	m.deploy(map[string]string{"a.md": "2"})
	before := m.tree()
	for name, call := range map[string]func(ctx context.Context, e *Engine, end func()) error{
		"a plan": func(ctx context.Context, e *Engine, end func()) error {
			end()
			_, err := e.Plan(ctx, m.want(map[string]string{"b.md": "b"}))
			return err
		},
		"a deployment that is cut off while files are staged": func(ctx context.Context, e *Engine, end func()) error {
			e.KillAt(func(step string) bool {
				if step == "journal" {
					end()
				}
				return false
			})
			_, _, err := e.Apply(ctx, m.want(map[string]string{"b.md": "b"}), Approval{})
			return err
		},
		"a rollback": func(ctx context.Context, e *Engine, end func()) error {
			end()
			_, err := e.PlanRollback(ctx, first.ID, m.reach())
			return err
		},
	} {
		ctx, end := context.WithCancel(t.Context())
		if err := call(ctx, m.engine(), end); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if j, err := m.state.pending(); j != nil || err != nil {
			t.Errorf("%s: left to the next call: %v, %v", name, j, err)
		}
		end()
		m.unchanged(name, before)
	}
}

// An absolute link in the project is followed as far as it ends there, like a relative one.
func TestAnAbsoluteLinkThatStaysInsideIsFollowed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{"real/.keep": ""})
	must.Do(t, os.Symlink(filepath.Join(m.project, "real"), filepath.Join(m.project, ".claude")))
	done := m.deploy(map[string]string{"a.md": "1", "more/b.md": "2"})
	for name, want := range map[string]string{"a.md": "1", "more/b.md": "2"} {
		if got, err := os.ReadFile(filepath.Join(m.project, "real", "commands", name)); string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if p := m.plan(map[string]string{"a.md": "1", "more/b.md": "2"}); len(p.Changes) > 0 {
		t.Errorf("again: %+v", p.Changes)
	}
	m.deploy(map[string]string{"a.md": "3"})
	m.rollback(done.ID)
	if got, err := os.ReadFile(filepath.Join(m.project, "real", "commands", "more", "b.md")); string(got) != "2" {
		t.Errorf("rolled back: %q, %v", got, err)
	}
}

func TestAFileWhereAFolderHasToBe(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/commands/x": "a person's"})
	must.Do(t, os.Symlink("nowhere", filepath.Join(m.project, ".claude/commands/y")))
	for _, name := range []string{"x/a.md", "y/a.md"} {
		before := m.tree()
		_, err := m.engine().Plan(t.Context(), m.want(map[string]string{"b.md": "b", name: "a"}))
		var e *Error
		if !errors.As(err, &e) || e.Code != DesiredStateConflict || e.Details["reason_code"] != "path_in_the_way" {
			t.Errorf("%s: %v", name, err)
		}
		m.unchanged(name, before)
	}
}
