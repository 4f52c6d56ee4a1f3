//go:build unix

package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// limitedProcess does its work in a process of its own that may write a limited number of bytes, as on a full disk.
type limitedProcess struct {
	Bytes                       uint64
	Home, UserHome, Folder, Git string
	GitEnv                      []string
	To                          string // a snapshot to roll back to; "" to deploy
}

// limitedIfAsked is the process; it does not return if it is one.
func limitedIfAsked() {
	text := os.Getenv("DEPLOY_LIMITED")
	if text == "" {
		return
	}
	var l limitedProcess
	err := json.Unmarshal([]byte(text), &l)
	if err == nil {
		err = l.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run prints the code of the error.
func (l limitedProcess) run() error {
	limit := unix.Rlimit{Cur: l.Bytes, Max: l.Bytes}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := NewService(Settings{Home: l.Home, UserHome: l.UserHome, Folder: l.Folder,
		Git: GitCommand{Path: l.Git, Env: l.GitEnv}, Now: time.Now}), error(nil)
	if l.To != "" {
		_, _, err = s.Rollback(context.Background(), l.To, "")
	} else {
		_, _, err = s.Apply(context.Background(), Request{}, change.Approval{Adopt: true}, false)
	}
	fmt.Printf("%s %v\n", codeOf(err), err)
	return nil
}

func (b *bench) limited(bytesOfFiles uint64, to string) string {
	b.Helper()
	text, err := json.Marshal(limitedProcess{bytesOfFiles, b.settings.Home, b.settings.UserHome, b.settings.Folder,
		b.settings.Git.Path, b.settings.Git.Env, to})
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DEPLOY_LIMITED="+string(text))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %s", err, problems.String())
	}
	return string(out)
}

// withoutState is the tree without what is kept, which a failure may add to.
func (b *bench) withoutState() map[string]string {
	b.Helper()
	files := b.tree()
	for name := range files {
		if strings.HasPrefix(name, "agentpack/state/") || strings.HasPrefix(name, "agentpack/cache/") {
			delete(files, name)
		}
	}
	return files
}

// TestADiskThatIsFullChangesNothing lets writing fail at many sizes: of contents, of the journal, of the new files, of
// manifests and of the snapshot. Whatever fails, the files are as before, and the next call does what this one could
// not.
func TestADiskThatIsFullChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, manyFiles())
	big := strings.Repeat("x", 200<<10)
	operationtest.WriteFiles(t, b.dir, map[string]string{
		"agentpack/repo/m/s1/big.md": big, "project/.claude/skills/s1/a.md": "a person's\n",
		"project/.claude/skills/s2/SKILL.md": "another\n",
	})
	before := b.withoutState()
	for _, limit := range []uint64{0, 1, 4 << 10, 20 << 10, 60 << 10, 100 << 10, 199 << 10} {
		said := b.limited(limit, "")
		if !strings.HasPrefix(said, "E_UNEXPECTED ") || !strings.Contains(said, "file too large") ||
			strings.Contains(said, "taken back") {
			t.Errorf("%d bytes: %s", limit, said)
		}
		if diff := cmp.Diff(before, b.withoutState()); diff != "" {
			t.Fatalf("%d bytes: something was changed (-before +after):\n%s", limit, diff)
		}
	}
	_, first, err := NewService(b.settings).Apply(t.Context(), Request{}, change.Approval{Adopt: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	deployed := b.withoutState()
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/m/s1/big.md": "small now\n"})
	if _, _, err := NewService(b.settings).Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	before = b.withoutState()
	for _, limit := range []uint64{0, 4 << 10, 100 << 10, 199 << 10} {
		said := b.limited(limit, first.ID)
		if !strings.HasPrefix(said, "E_UNEXPECTED ") || !strings.Contains(said, "file too large") ||
			strings.Contains(said, "taken back") {
			t.Errorf("a rollback with %d bytes: %s", limit, said)
		}
		if diff := cmp.Diff(before, b.withoutState()); diff != "" {
			t.Fatalf("a rollback with %d bytes has changed something (-before +after):\n%s", limit, diff)
		}
	}
	if _, _, err := NewService(b.settings).Rollback(t.Context(), first.ID, ""); err != nil {
		t.Fatal(err)
	}
	after := b.withoutState()
	for _, files := range []map[string]string{deployed, after} {
		delete(files, "agentpack/repo/m/s1/big.md")
		delete(files, "project/.claude/skills/.agentpack.manifest.claude_code.json")
	}
	if diff := cmp.Diff(deployed, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(b.dir, "project", ".claude", "skills", "*",
		".agentpack-new-"+"*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
