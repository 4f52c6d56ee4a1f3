package store

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/prflow"
)

// childFlag, as the first argument, makes this test binary run one of the parts below instead of the tests.
const childFlag = "-store-child"

// child is a command that runs a part in a process of its own.
func child(t testing.TB, part string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		binary = "/proc/self/exe" // works for another user too, who may not look into the folder of the binary
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{childFlag, part}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"} // the race detector lets a process linger for a second at its end
	return cmd
}

func runChild(part string, args []string) error {
	ctx := context.Background()
	switch part {
	case "open-under-umask":
		mask, err := strconv.ParseInt(args[1], 8, 32)
		if err != nil {
			return err
		}
		syscall.Umask(int(mask))
		s, err := Open(ctx, args[0], Options{})
		if err != nil {
			return err
		}
		return s.Record(ctx, attempt("u"), nil) // left open, so that -wal and -shm stay
	case "open-and-print-error":
		_, err := Open(ctx, args[0], Options{})
		fmt.Println(err)
		return nil
	case "race":
		return childRace(ctx, args[0], args[1], args[2])
	case "finish-forever":
		return childFinishForever(ctx, args[0])
	}
	return fmt.Errorf("unknown part %q", part)
}

// childRace tries to reserve the same path as all its siblings, and appends to the audit in between.
func childRace(ctx context.Context, dir, name, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	for round := range n {
		id := fmt.Sprintf("%s-%d", name, round)
		p := proposal(id, fmt.Sprintf("checks/%d.md", round), fmt.Sprintf("checks/%s.md", id))
		taken, err := s.Reserve(ctx, p, 0)
		if err != nil {
			return err
		}
		if taken == nil {
			fmt.Println("won", round)
		}
		if err := s.Record(ctx, attempt(id), nil); err != nil {
			return err
		}
	}
	return s.Close()
}

// childFinishForever opens proposals until it is killed, and says so after each.
func childFinishForever(ctx context.Context, dir string) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	_, hash, err := s.Head(ctx)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", hash[:8], i)
		p := proposal(id, "checks/a-"+id+".md", "checks/b-"+id+".md")
		if _, err := s.Reserve(ctx, p, 0); err != nil {
			return err
		}
		to := prflow.Progress{State: prflow.StateOpened, PRNumber: i + 1}
		if err := s.Finish(ctx, id, to, attempt(id)); err != nil {
			return err
		}
		fmt.Println(id)
	}
}
