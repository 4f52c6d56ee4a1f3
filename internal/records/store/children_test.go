package store

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
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
	case "race":
		return childRace(ctx, args[0], args[1], args[2])
	case "race-for-places":
		return childRaceForPlaces(ctx, args[0], args[1], args[2])
	case "hold":
		return childHold(ctx, args[0], args[1])
	case "see-merged":
		return childSeeMerged(ctx, args[0])
	case "use":
		return childUse(ctx, args[0], args[1], "")
	case "write-for-long":
		return childUse(ctx, args[0], args[1], "writes")
	case "finish-forever":
		return childFinishForever(ctx, args[0])
	}
	return runEngineChild(ctx, part, args)
}

// childRace tries to reserve the same path as all its siblings, and appends to the audit in between.
func childRace(ctx context.Context, place, name, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	for round := range n {
		id := fmt.Sprintf("%s-%d", name, round)
		p := proposal(id, fmt.Sprintf("checks/%d.md", round), fmt.Sprintf("checks/%s.md", id))
		taken, err := s.Ledger.Reserve(ctx, p, record.Claim{})
		if err != nil {
			return err
		}
		if taken == nil {
			fmt.Println("won", round)
		}
		if err := s.Ledger.Record(ctx, attempt(id), nil); err != nil {
			return err
		}
	}
	return s.Close()
}

// childFinishForever opens proposals until it is killed, and says so after each.
func childFinishForever(ctx context.Context, place string) error {
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	_, hash, err := s.Audit.Head(ctx)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", hash[:8], i)
		p := proposal(id, "checks/a-"+id+".md", "checks/b-"+id+".md")
		if _, err := s.Ledger.Reserve(ctx, p, record.Claim{}); err != nil {
			return err
		}
		to := record.Progress{State: record.StateOpened, PRNumber: i + 1}
		if err := s.Ledger.Finish(ctx, id, to, attempt(id)); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// childUse opens a place as a process of a version, or begins to write there and does not end, says so, and waits until
// it is killed or its stdin is closed.
func childUse(ctx context.Context, place, version, writes string) error {
	s, err := openPlace(ctx, place, Options{Process: Process{Version: version, Command: "serve"}})
	if err != nil {
		return err
	}
	wait := func() error {
		fmt.Println("there")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	if writes == "" {
		return wait()
	}
	return s.db.write(ctx, func(context.Context, *sql.Tx) error {
		waitUntilNoted(s)
		return wait()
	})
}

// childHold reserves a path, prints the name of its lock, and waits until it is killed or its stdin is closed.
func childHold(ctx context.Context, place, id string) error {
	s, err := openPlace(ctx, place, Options{})
	if err != nil {
		return err
	}
	if taken, err := s.Ledger.Reserve(ctx, proposal(id, "checks/"+id+".md"), record.Claim{}); err != nil || taken != nil {
		return fmt.Errorf("taken by %v, %w", taken, err)
	}
	fmt.Println(s.Ledger.held.name(id))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
