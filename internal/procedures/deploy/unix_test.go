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
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
		_, _, err = s.Apply(context.Background(), Request{}, fileset.Approval{Adopt: true}, false)
	}
	fmt.Printf("%s %v\n", codeOf(err), err)
	return nil
}

func (b *bench) limited(bytesOfFiles uint64, to string) string {
	b.Helper()
	text, err := json.Marshal(limitedProcess{bytesOfFiles, b.settings.Home, b.settings.UserHome, b.settings.Folder,
		b.settings.Git.Path, b.settings.Git.Env, to})
	must.Do(b, err)
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
	first := apply(t, NewService(b.settings), fileset.Approval{Adopt: true})
	deployed := b.withoutState()
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/m/s1/big.md": "small now\n"})
	apply(t, NewService(b.settings), fileset.Approval{})
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
	operationtest.Same(t, "the files", deployed, after)
	if left, err := filepath.Glob(filepath.Join(b.dir, "project", ".claude", "skills", "*",
		".agentpack-new-"+"*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Whatever lies where a file is read, every call ends at once, and says what is wrong, or leaves the file out with a
// warning.
func TestNoFileIsWaitedFor(t *testing.T) {
	t.Parallel()
	key := fsKey("instructions:a")
	for file, want := range map[string]string{ // what the answer has; "" for a call that does without the file
		"agentpack/repo/" + configName:                                  "agentpack.yaml",
		"agentpack/repo/" + lockName:                                    "agentpack.lock.json",
		"agentpack/repo/modules/fix.md":                                 "regular file|exactly one file|escapes",
		"agentpack/repo/modules/a/AGENTS.md":                            "regular file|has no AGENTS.md|escapes",
		"agentpack/repo/overlays/" + key + "/.agentpack/overlay.json":   "overlay.json",
		"agentpack/repo/overlays/" + key + "/more.md":                   "the overlay|",
		"project/.claude/commands/.agentpack.manifest.claude_code.json": "it is treated as missing|",
		"project/AGENTS.md":                                             "is a symbolic link|is a folder|no regular file",
		"agentpack/state/journal.json":                                  "journal",
		"agentpack/state/logs/events.jsonl":                             "",
		"agentpack/state/merges.json":                                   "",
		"agentpack/cache/hashes":                                        "",
		"agentpack/cache/unchanged":                                     "",
		"project/.git/config":                                           "",
		"project/.git/HEAD":                                             "",
	} {
		for kind, make := range operationtest.Special() {
			b := newBench(t, life())
			name := filepath.Join(b.dir, filepath.FromSlash(file))
			must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700), os.RemoveAll(name), make(name))
			for tool, arguments := range map[string]string{ToolPlan: `{}`, ToolDiff: `{}`, ToolStatus: `{}`, ToolDoctor: `{}`,
				ToolApply: `{"yes":true,"dry_run":true}`} {
				out := b.askInTime(file+", "+kind, tool, arguments)
				text, _ := json.Marshal(out)
				if fails := want != "" && !strings.HasSuffix(want, "|"); fails && out.OK && tool != ToolStatus &&
					tool != ToolDoctor {
					t.Errorf("%s, %s, %s: %s", file, kind, tool, text)
				}
				said := want == "" || out.OK
				for _, part := range strings.Split(want, "|") {
					said = said || part != "" && strings.Contains(string(text), part)
				}
				if !said {
					t.Errorf("%s, %s, %s: %s", file, kind, tool, text)
				}
			}
		}
	}
}

// askInTime is ask for a call that waits for nothing.
func (b *bench) askInTime(what, tool, arguments string) (out Envelope[map[string]any]) {
	b.Helper()
	operationtest.InTime(b, time.Minute, what+", "+tool, func() { out = b.ask(tool, arguments) })
	return out
}

// The same for what deployments remember: a snapshot, a kept content, the configuration that a person names.
func TestNoFileOfTheStateIsWaitedFor(t *testing.T) {
	t.Parallel()
	for kind, make := range operationtest.Special() {
		b := newBench(t, life())
		first, _ := b.mustOK(ToolApply, `{"yes":true}`)["snapshot_id"].(string)
		second, _ := b.mustOK(ToolApply, `{"yes":true,"profile":"more"}`)["snapshot_id"].(string)
		put := func(file string) {
			t.Helper()
			name := filepath.Join(b.dir, filepath.FromSlash(file))
			must.Do(t, os.RemoveAll(name))
			must.Do(t, make(name))
		}
		ask := func(tool, arguments string) Envelope[map[string]any] { return b.askInTime(kind, tool, arguments) }
		operationtest.WriteFiles(t, b.dir, map[string]string{"project/AGENTS.md": "drift"})
		put("agentpack/state/objects/" + fileset.Hash([]byte("# Rules\n")))
		if out := ask(ToolRollback, `{"yes":true,"to":"`+first+`"}`); out.OK {
			t.Errorf("%s as a kept content: %+v", kind, out)
		}
		put("agentpack/state/snapshots/" + first + ".json")
		if out := ask(ToolRollback, `{"yes":true,"to":"`+first+`"}`); out.OK ||
			!strings.Contains(out.Errors[0].Message, "the snapshot "+first+" cannot be read") {
			t.Errorf("%s as a snapshot: %+v", kind, out)
		}
		if out := ask(ToolPlan, `{"profile":"more"}`); !out.OK {
			t.Errorf("%s as an old snapshot: %+v", kind, out.Errors)
		}
		put("agentpack/state/snapshots/" + second + ".json")
		ask(ToolPlan, `{}`)
		b.door = record.DoorCLI
		put("project/other")
		if out := ask(ToolPlan, `{"repo":"other"}`); out.OK ||
			(out.Errors[0].Code != ConfigInvalid && out.Errors[0].Code != ConfigMissing) {
			t.Errorf("%s as a repository: %+v", kind, out)
		}
	}
}

func TestNoEntryOfTheCacheIsWaitedFor(t *testing.T) {
	t.Parallel()
	for kind, make := range operationtest.Special() {
		for _, inside := range []string{"", "ask.md"} {
			b := newBench(t, nil)
			url, commit := b.private("far")
			operationtest.WriteFiles(t, b.dir,
				map[string]string{"agentpack/repo/" + configName: moduleOf(url, ", ref: "+commit)})
			name := filepath.Join(b.dir, "agentpack", "cache", "git", fileset.Hash([]byte(url)), commit, inside)
			must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
			must.Do(t, make(name))
			if out := b.askInTime(kind, ToolPlan, `{}`); out.OK {
				t.Errorf("%s at %q: %+v", kind, inside, out)
			}
		}
	}
}
