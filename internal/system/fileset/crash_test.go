package fileset

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestMain lets the tests start this program as a process that deploys until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DEPLOY_UNTIL_KILLED"); dir != "" {
		if err := deployUntilKilled(dir, os.Getenv("DEPLOY_TIMES")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashSets are the two states between which processes change. The second adopts a person's file, turns a file into a
// folder, and has more.
func crashSets() [2]map[string]string {
	sets := [2]map[string]string{{"d": "file"}, {"d/e.md": "inner", "mine.md": "theirs"}}
	for i := range 12 {
		sets[0][fmt.Sprintf("a%d.md", i)] = "first " + strings.Repeat("x", i*400)
		sets[1][fmt.Sprintf("a%d.md", i+6)] = "second " + strings.Repeat("y", i*400)
	}
	return sets
}

func crashDesired(project string, files map[string]string) (*Desired, error) {
	d := NewDesired(Agentpack, "repo", project, ClaudeCode)
	root := filepath.Join(project, ".claude", "commands")
	d.AddRoot(ClaudeCode, root, project, true)
	for name, text := range files {
		if err := d.Add(ClaudeCode, root, name, TreeFile{Content: Bytes([]byte(text))}, "m"); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// deployUntilKilled deploys the two sets by turns, and rolls back now and then; times "" is for ever.
func deployUntilKilled(dir, times string) error {
	project := filepath.Join(dir, "project")
	e := NewEngine(filepath.Join(dir, "agentpack"), time.Now)
	most, _ := strconv.Atoi(times)
	fmt.Println("begun")
	for i := 0; most == 0 || i < most; i++ {
		if ids, err := e.state.IDs(); i%5 == 4 && err == nil && len(ids) > 1 {
			if _, _, err := e.Rollback(context.Background(), ids[max(0, len(ids)-1-rand.IntN(4))], Scope{Project: project},
				""); err != nil {
				return err
			}
			continue
		}
		d, err := crashDesired(project, crashSets()[rand.IntN(2)])
		if err != nil {
			return err
		}
		if _, _, err := e.Apply(context.Background(), d, Approval{Adopt: true}); err != nil {
			return err
		}
	}
	return nil
}

func startDeploying(t *testing.T, dir, times string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DEPLOY_UNTIL_KILLED="+dir, "DEPLOY_TIMES="+times)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatal(line, err)
	}
	return cmd
}

// CRASH_ROUNDS is the number of times that a process is killed; `make crash` has 300.
func crashRounds(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("CRASH_ROUNDS")); err == nil {
		return n
	}
	return 15
}

func TestProcessesKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	dir := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{"project/.claude/commands/mine.md": "mine", "project/.claude/commands/other.md": "a person's"})
	mended := 0
	for range crashRounds(t) {
		cmd := startDeploying(t, dir, "")
		time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond)
		must.Do(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if checkAfterKill(t, dir) {
			mended++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d processes were killed, %d of them in the middle of a deployment", crashRounds(t), mended)
}

// checkAfterKill looks as the next call does: files are of one of the two states, the ledger is true, and nothing of a
// person's is lost.
func checkAfterKill(t *testing.T, dir string) (mended bool) {
	t.Helper()
	e := NewEngine(filepath.Join(dir, "agentpack"), time.Now)
	said, err := e.mend(t.Context())
	must.Do(t, err)
	root := filepath.Join(dir, "project", ".claude", "commands")
	files := map[string]string{}
	for name, text := range operationtest.ReadFiles(t, filepath.Join(dir, "project")) {
		if strings.HasPrefix(path.Base(name), temporary) {
			t.Errorf("%s is left", name)
		}
		if !IsManifest(path.Base(name)) {
			files[strings.TrimPrefix(name, ".claude/commands/")] = text
		}
	}
	last, err := e.state.Last()
	must.Do(t, err)
	if files["other.md"] != "a person's" {
		t.Errorf("a person's file: %q", files["other.md"])
	}
	delete(files, "other.md")
	if last.ID == "" {
		if len(files) != 1 || files["mine.md"] != "mine" {
			t.Errorf("before the first deployment: %v", files)
		}
		return said != ""
	}
	if kept, err := e.state.Kept(Hash([]byte("mine"))); files["mine.md"] != "mine" &&
		(err != nil || string(kept) != "mine") {
		t.Errorf("the adopted file is lost: %v", err)
	}
	if files["mine.md"] == "mine" {
		delete(files, "mine.md")
	}
	for _, f := range last.Managed {
		rel, _ := filepath.Rel(root, f.Path)
		if Hash([]byte(files[filepath.ToSlash(rel)])) != f.SHA256 {
			t.Errorf("the ledger has %s with another content", rel)
		}
		delete(files, filepath.ToSlash(rel))
	}
	for name := range files {
		t.Errorf("%s is in no state", name)
	}
	m, _, err := readManifest(newDisk(filepath.Join(dir, "project")), RootDir{Target: ClaudeCode, Dir: root})
	if m == nil && err == nil && len(last.Managed) == 0 {
		return said != "" // a rollback to what was there before the first deployment leaves no manifest
	}
	if err != nil || m == nil || m.SnapshotID != last.ID || len(m.Managed) != len(last.Managed) {
		t.Errorf("the manifest is not that of the snapshot %s: %+v, %v", last.ID, m, err)
	}
	return said != ""
}

func TestEightProcessesAtOnce(t *testing.T) {
	t.Parallel()
	dir := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{"project/.claude/commands/mine.md": "mine", "project/.claude/commands/other.md": "a person's"})
	var processes []*exec.Cmd
	for range 8 {
		processes = append(processes, startDeploying(t, dir, "6"))
	}
	for _, p := range processes {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	checkAfterKill(t, dir)
	ids, err := newState(filepath.Join(dir, "agentpack"), time.Now).IDs()
	if err != nil || len(ids) < 10 {
		t.Errorf("%d snapshots, %v", len(ids), err)
	}
}
