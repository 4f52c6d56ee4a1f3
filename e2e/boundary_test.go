//go:build e2e && linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// works are ways that must work where there is no boundary, as "attack: beginning of the way": they show that the
// attacks are attacks.
func works() []string {
	return []string{
		"another_server: server at tier 3", "another_server: server at tier 3 by flags",
		"another_server: server with records of its own",
		"another_server: approve", "another_server: merge", "another_server: token create", "another_server: backup",
		"another_server: audit list",
		"inherited: abstract socket", "inherited: core of the other program",
		"left_behind: System V's memory", "left_behind: System V's semaphores", "left_behind: System V's messages",
		"read_files: read ", "read_files: read by a link ", "read_files: hard link to ", "read_files: mapped ",
		"read_files: path descriptor of ",
		"read_files: copied with cat ", "read_files: renamed ", "read_files: listed ", "read_files: entered ",
		"read_files: listed through dot dot ",
		"read_processes: environ of ", "read_processes: mem of ", "read_processes: process_vm_readv of ",
		"read_processes: ptrace attach of ",
		"read_processes: pidfd_getfd of ", "read_processes: root of ", "read_processes: cwd of ",
		"read_processes: token in the environment of ",
		"signals: signal 0 to ", "signals: SIGCONT to ", "signals: pidfd_send_signal to ", "signals: tgkill of ",
		"signals: rlimit of ", "signals: oom score of ",
		"spawn_race: ",
		"surroundings: working copy", "surroundings: write ", "surroundings: the operator's folder for temporary files",
		"write_records: opened to append ", "write_records: opened to write ", "write_records: a neighbour of ",
		"write_records: mode of ",
		"write_records: times of ", "write_records: records by SQLite", "write_records: git update-ref",
		"write_records: git push",
		"write_records: git hook", "write_records: git object", "write_records: repository moved",
		"write_records: state folder moved",
	}
}

// remains is the beginning of what works behind a boundary all the same: Landlock has no rule for a file's times
// (landlock(7)).
func remains(boundary string) string {
	if boundary == "landlock" {
		return "write_records: times of "
	}
	return "nothing"
}

// An agent with a shell that is restricted by nothing tries what docs/explain/attacks.md says is impossible: each way
// of testdata/attacks. Behind a boundary none works; without one they do.
func TestAnAgentWithAShell(t *testing.T) {
	for _, boundary := range []string{"user", "landlock"} {
		t.Run(boundary, func(t *testing.T) {
			f := newFortress(t, boundary)
			f.serve(t)
			before := f.snapshot(t)
			f.vars["CLAUDEOPS_AGENT_NET"] = "model" // the CLI does with that; the attacks below have the whole network
			first := f.assault(t, []attack{theft(t)})
			delete(f.vars, "CLAUDEOPS_AGENT_NET")
			if !strings.HasSuffix(first.record.Boundary.Net, "; no UDP") {
				t.Errorf("the network of the first session: %+v", first.record.Boundary)
			}
			f.earlier = strings.Fields(first.results["theft"])
			got := f.assault(t, attacks(t))
			opened := slices.DeleteFunc(got.opened(), func(way string) bool { return strings.HasPrefix(way, remains(boundary)) })
			if len(opened) > 0 {
				t.Errorf("%d ways worked:\n%s", len(opened), strings.Join(opened, "\n"))
			}
			for _, answer := range []string{"tier_denied", "SOCKET: "} {
				if !strings.Contains(got.results["own_door"], answer) {
					t.Errorf("the attacks on the door did not reach it: %s", got.results["own_door"])
				}
			}
			if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
				t.Errorf("files of the operator have changed:\n%s", diff)
			}
			f.assertWhole(t, got)
			if left := leftBehind(t); len(left) > 0 {
				t.Errorf("left for the next session: %v", left)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Cleanup(func() {
			for _, path := range leftBehind(t) {
				_ = os.RemoveAll(path)
			}
		})
		f := newFortress(t, "none")
		f.serve(t)
		opened := f.assault(t, attacks(t)).opened()
		for _, way := range works() {
			if !slices.ContainsFunc(opened, func(o string) bool { return strings.HasPrefix(o, way) }) {
				t.Errorf("without a boundary this should work, and does not: %s", way)
			}
		}
	})
}

// leftBehind lists what the attacks have left in folders of everybody.
func leftBehind(t *testing.T) (out []string) {
	t.Helper()
	for _, folder := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		found, err := filepath.Glob(folder + "/claudeops-left-*")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

func TestThePageOfTheBoundaryNamesEveryAttack(t *testing.T) {
	page := readFile(t, "../docs/explain/attacks.md")
	for _, a := range attacks(t) {
		if !strings.Contains(page, "| `"+a.name+"` |") {
			t.Errorf("docs/explain/attacks.md does not name the attack %s", a.name)
		}
	}
}
