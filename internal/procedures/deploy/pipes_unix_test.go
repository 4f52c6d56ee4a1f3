//go:build unix

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/change"
)

// strange are things that may lie where a file or a folder is read. Package files tests all kinds; here it is which
// files are read by it.
func strange() map[string]func(name string) error {
	return map[string]func(name string) error{
		"a named pipe": func(name string) error { return unix.Mkfifo(name, 0o600) },
		"a device":     func(name string) error { return os.Symlink("/dev/zero", name) },
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
		for kind, make := range strange() {
			b := newBench(t, life())
			name := filepath.Join(b.dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(name)
			if err := make(name); err != nil {
				t.Fatal(err)
			}
			for tool, arguments := range map[string]string{ToolPlan: `{}`, ToolDiff: `{}`, ToolStatus: `{}`, ToolDoctor: `{}`,
				ToolApply: `{"yes":true,"dry_run":true}`} {
				out := inTime(t, file+", "+kind+", "+tool, func() Envelope[map[string]any] { return b.ask(tool, arguments) })
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

func inTime[T any](t *testing.T, what string, f func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case out := <-done:
		return out
	case <-time.After(time.Minute):
		t.Fatalf("%s: the call waits", what)
		panic("not reached")
	}
}

// The same for what deployments remember: a snapshot, a kept content, the configuration that a person names.
func TestNoFileOfTheStateIsWaitedFor(t *testing.T) {
	t.Parallel()
	for kind, make := range strange() {
		b := newBench(t, life())
		first, _ := b.mustOK(ToolApply, `{"yes":true}`)["snapshot_id"].(string)
		second, _ := b.mustOK(ToolApply, `{"yes":true,"profile":"more"}`)["snapshot_id"].(string)
		put := func(file string) {
			t.Helper()
			name := filepath.Join(b.dir, filepath.FromSlash(file))
			if err := os.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
			if err := make(name); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(tool, arguments string) Envelope[map[string]any] {
			return inTime(t, kind+", "+tool, func() Envelope[map[string]any] { return b.ask(tool, arguments) })
		}
		operationtest.WriteFiles(t, b.dir, map[string]string{"project/AGENTS.md": "drift"})
		put("agentpack/state/objects/" + change.Hash([]byte("# Rules\n")))
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
	for kind, make := range strange() {
		for _, inside := range []string{"", "ask.md"} {
			b := newBench(t, nil)
			url, commit := b.private("far")
			operationtest.WriteFiles(t, b.dir,
				map[string]string{"agentpack/repo/" + configName: moduleOf(url, ", ref: "+commit)})
			name := filepath.Join(b.dir, "agentpack", "cache", "git", change.Hash([]byte(url)), commit, inside)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(name); err != nil {
				t.Fatal(err)
			}
			if out := inTime(t, kind, func() Envelope[map[string]any] { return b.ask(ToolPlan, `{}`) }); out.OK {
				t.Errorf("%s at %q: %+v", kind, inside, out)
			}
		}
	}
}
