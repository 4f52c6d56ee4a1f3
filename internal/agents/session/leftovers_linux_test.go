package session

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// hidden lists what the agent of this world left, wherever it is.
func (w *world) hidden() []int {
	word := hiddenBy(w.dir)
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []int
	for _, name := range lines {
		line, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && strings.Contains(string(line), word) {
			out = append(out, pid)
		}
	}
	return out
}

func TestWhatAnAgentHidesIsGoneBeforeTheEndIsRecorded(t *testing.T) {
	for _, act := range []string{"hides", "hides-and-hangs"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, act)
			impatient(&w.runner.Settings)
			ctx, cancel := context.WithCancel(t.Context())
			var seen, left atomic.Int32
			w.saved = func(r sessions.Record) {
				if r.State != sessions.StateRunning {
					left.Add(int32(len(w.hidden()))) //nolint:gosec // a handful
				}
			}
			go func() {
				w.until(t, "hidden")
				for act != "hides" && seen.Load() == 0 {
					seen.Store(int32(len(w.hidden()))) //nolint:gosec // a handful
				}
				if act != "hides" {
					cancel()
				}
			}()
			ran, err := NewSupervisor(w.runner).Run(ctx, Spec{Tier: 1})
			cancel()
			if err != nil || len(ran) != 1 || strings.Contains(ran[0].Reason, "processes") {
				t.Errorf("%+v, %v", ran, err)
			}
			if left.Load() > 0 || len(w.hidden()) > 0 {
				t.Errorf("%d processes are left when the end is recorded, %v afterwards", left.Load(), w.hidden())
			}
			w.clean(t)
		})
	}
}

func TestTheNextSessionWaitsForWhatAKilledSupervisorLeft(t *testing.T) {
	w := newWorld(t, "good")
	cmd := exec.Command("/proc/self/exe", "supervise", w.dir, "hides-and-hangs") //nolint:gosec // this binary
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for said := ""; !strings.Contains(said, "hidden"); {
		if !lines.Scan() {
			t.Fatalf("the supervisor said %q", said)
		}
		said += lines.Text() + "\n"
	}
	for len(w.hidden()) == 0 { // it forks before it is what we look for
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var left atomic.Int32
	_, err = NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1, Admit: func(context.Context, string) error {
		left.Store(int32(len(w.hidden()))) //nolint:gosec // a handful
		return nil
	}})
	if err != nil || left.Load() > 0 {
		t.Errorf("%v; %d processes were left when the next session began", err, left.Load())
	}
	w.clean(t)
}

func TestNoSessionStartsBesideProcessesOfTheLast(t *testing.T) {
	w := newWorld(t, "good")
	w.runner.Settings.Limits.Clear = 50 * time.Millisecond
	other, err := os.OpenFile(filepath.Join(w.runner.Settings.Folders.State, processLockName), os.O_RDWR|os.O_CREATE,
		0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil { // as the process above them does
		t.Fatal(err)
	}
	s := NewSupervisor(w.runner)
	_, err = s.Run(t.Context(), Spec{Tier: 1})
	wantCode(t, err, fault.Conflict, "processes of the last session")
	if len(w.records) > 0 {
		t.Errorf("recorded %+v", w.records)
	}
	_ = other.Close()
	if _, err := s.Run(t.Context(), Spec{Tier: 1}); err != nil {
		t.Error(err)
	}
}

func TestAKilledReaperFailsTheSession(t *testing.T) {
	w := newWorld(t, "kills-its-reaper")
	record, err := w.run(t, Spec{Tier: 1})
	if err != nil || record.State != sessions.StateFailed || !strings.Contains(record.Reason, "was killed") {
		t.Errorf("%+v, %v", record, err)
	}
}
