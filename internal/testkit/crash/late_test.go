//go:build linux

package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Two find what a killed process left, whether it died just now or long ago. The one that is slower must not undo what
// the other one makes meanwhile under the same branch name.
func TestASlowSettlementLeavesTheWorkOfOthersAlone(t *testing.T) {
	for _, ago := range []time.Duration{0, time.Hour} {
		t.Run("of what was left "+ago.String()+" ago", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := newInodes()
			w.doom(t, doomed{Step: "committed", Ago: ago, Request: r})
			var other *child
			slow, records, err := newFlow(w.config(), func(p gitprovider.Provider) gitprovider.Provider {
				return &pausing{Provider: p, pause: sync.OnceFunc(func() {
					other = w.propose(t, r)
					other.giveTime()
				})}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = records.Close() }()
			raw, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			caller := operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "slow"}}
			result, err := slow.Create(t.Context(), caller, raw)
			other.wait(t)
			a, _, _ := other.said(t)
			if err != nil || result.Number != 1 || a.Number != 1 || result.Reused == a.Reused {
				t.Errorf("want #1 twice, opened and reused: %+v %v, %+v", result, err, a)
			}
			w.assertOne(t, 1, r)
			w.assertSettled(t)
			w.assertWhole(t)
		})
	}
}

// giveTime lets the child end, which it does not if it waits for what the test does next.
func (c *child) giveTime() {
	const enough = 3 * time.Second
	select {
	case <-c.ended():
	case <-time.After(enough):
	}
}

// pausing lets something else happen between a settlement's looks.
type pausing struct {
	gitprovider.Provider
	pause func()
}

func (p *pausing) BranchTip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	p.pause()
	return p.Provider.BranchTip(ctx, repo, branch)
}

// Two changes of different files have the same title, and so the same branch name, and neither saw the other's branch.
// What the one that was killed left must not be taken for the other one's pull request.
func TestATitleThatTwoUseAtOnce(t *testing.T) {
	w := newWorld(t)
	mine := newInodes()
	theirs := newCheck(mine.Title, "checks/other.md", "# Other\n")
	w.doomSlowly(t, doomed{Step: "reserved", Request: mine}, func() {
		if a := w.asked(t, theirs); a.Number != 1 {
			t.Errorf("want #1: %+v", a)
		}
	})
	w.run(t, "pr", "resume")
	if a := w.asked(t, mine); !a.opened() || a.Number != 2 {
		t.Errorf("want #2, opened: %+v", a)
	}
	w.assertOne(t, 1, theirs)
	w.assertOne(t, 2, mine)
	w.assertSettled(t)
	w.assertWhole(t)
}

// A git command goes on when its process is killed. What it still does must be settled like the rest.
func TestAGitCommandThatOutlivesItsProcess(t *testing.T) {
	w := newWorld(t)
	r := newInodes()
	slow := newSlowGit(t, w)
	victim := slow.propose(t, r)
	slow.await(t)
	victim.kill(false)
	victim.wait(t)

	settling := w.start(t, "", "pr", "resume")
	settling.giveTime()
	slow.release(t)
	settling.wait(t)
	if left := outlast(func() []int { return linkedTo("cwd", w.repo) }, patience); len(left) > 0 {
		t.Fatalf("git commands that did not end: %v", left)
	}
	a := w.asked(t, r)
	w.assertOne(t, a.Number, r)
	w.assertSettled(t)
	w.assertWhole(t)
}

// A git command that is killed leaves its locks, which only a person can judge. Until one does, the answer says so, and
// nothing else is left behind.
func TestLocksOfAKilledGitCommand(t *testing.T) {
	w := newWorld(t)
	r := newInodes()
	slow := newSlowGit(t, w)
	victim := slow.propose(t, r)
	slow.await(t)
	victim.kill(true)
	victim.wait(t)
	locks := w.lockFiles(t)
	if len(locks) == 0 {
		t.Fatal("git left no lock: this test shows nothing")
	}
	a := w.asked(t, r)
	if a.Error.Code != "upstream_error" || !strings.Contains(a.Error.Message, ".lock") {
		t.Errorf("the answer does not name a lock: %+v", a)
	}
	w.assertSettled(t)
	for _, lock := range locks {
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
	if a := w.asked(t, r); !a.opened() {
		t.Errorf("not opened after the locks were removed: %+v", a)
	}
	w.assertOne(t, 1, r)
	w.assertSettled(t)
	w.assertWhole(t)
}

// slowGit is a folder with a git that pauses in the middle of writing references: when it was told to commit what it
// has locked and checked, and before it does.
type slowGit struct {
	*world
	dir string
}

const (
	realName     = "real"     // path of the real git
	commitName   = "commit"   // made when git was told to commit
	releasedName = "released" // lets it go on
)

func newSlowGit(t *testing.T, w *world) slowGit {
	t.Helper()
	s := slowGit{w, w.at("slow")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(s.dir, "git")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, realName), []byte(git), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.release(t) })
	return s
}

// propose is world.propose with this git.
func (s slowGit) propose(t *testing.T, r request) *child {
	t.Helper()
	c := &child{}
	c.cmd, c.cancel = s.prepare(t, "claudeops", "mcp-server")
	c.cmd.Env[0] = "PATH=" + s.dir + ":" + os.Getenv("PATH")
	return c.start(t, initialize+"\n"+initialized+"\n"+callOf(2, "create_pr", r)+"\n")
}

// await waits until the references are locked and git was told to commit.
func (s slowGit) await(t *testing.T) {
	t.Helper()
	if !appears(filepath.Join(s.dir, commitName)) || !appears(filepath.Join(s.repo, "refs/heads/main.lock")) {
		t.Fatal("git did not come to a commit")
	}
}

func (s slowGit) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, releasedName), nil, 0o600); err != nil {
		t.Error(err)
	}
}

// appears waits for a file that another process makes.
func appears(path string) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// runSlowGit is the main function of a slow git.
func runSlowGit(dir string, args []string) int {
	real, err := os.ReadFile(filepath.Join(dir, realName))
	if err != nil {
		return complain("%v", err)
	}
	cmd := exec.Command(string(real), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if slices.Contains(args, "update-ref") {
		err = runInTwo(cmd, dir)
	} else {
		err = cmd.Run()
	}
	if cmd.ProcessState == nil {
		return complain("%v", err)
	}
	return cmd.ProcessState.ExitCode()
}

// runInTwo runs git update-ref, and passes the final "commit" on when it is released. Without one git undoes what it
// has prepared.
func runInTwo(cmd *exec.Cmd, dir string) error {
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	script := bufio.NewReader(os.Stdin)
	for line, err := script.ReadString(0); err == nil; line, err = script.ReadString(0) {
		if line == "commit\x00" {
			if err := os.WriteFile(filepath.Join(dir, commitName), nil, 0o600); err != nil {
				return err
			}
			appears(filepath.Join(dir, releasedName))
		}
		_, _ = io.WriteString(in, line)
	}
	_ = in.Close()
	return cmd.Wait()
}
