package session

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/confine"
)

// usersOfTests are users that nobody else has.
func usersOfTests(t *testing.T, count int) confine.Users {
	t.Helper()
	u := confine.Users{Folder: filepath.Join(t.TempDir(), "claims")}
	for i := range count {
		const first = 48_630
		u.Accounts = append(u.Accounts, confine.Account{Name: string(rune('a' + i)), UID: first + i, GID: first + i})
	}
	return u
}

// withUsers has the sessions of a world run as users of their own, who find the fake CLI, and can leave something in a
// folder.
func (w *world) withUsers(t *testing.T, users confine.Users) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	claude := filepath.Join(w.dir, "bin", "claude")
	left := filepath.Join(w.dir, "left")
	if err := errors.Join(os.Mkdir(filepath.Dir(claude), 0o755), os.Mkdir(left, 0o700), os.Chmod(left, 0o1777), os.Chmod(filepath.Join(w.dir, "tmp"), 0o1777)); err != nil { //nolint:gosec // another user looks
		t.Fatal(err)
	}
	for at := w.dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	program, err := os.OpenFile(claude, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // as above
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(program, self)
	if err := errors.Join(err, program.Close()); err != nil {
		t.Fatal(err)
	}
	w.withDoors(tells)
	users.Leavings = []string{left}
	s := &w.runner.Settings
	s.Claude.Binary = claude
	s.Claude.Env = slices.DeleteFunc(s.Claude.Env,
		func(variable string) bool { return strings.HasPrefix(variable, fakeArg+"=") })
	s.Claude.Env = append(s.Claude.Env, fakeArg+"="+left)
	s.Confinement = Confinement{Profile: confine.Profile{Boundary: confine.Boundary{Kind: confine.User, Account: "a to b"},
		Limits: confine.DefaultLimits()}, Users: users}
}

// mayHaveUsers says how the tests are run that need root.
func mayHaveUsers(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("users of their own for agents need root; `make e2e` runs as root")
	}
	return os.Getuid() == 0
}

func TestASessionRunsAsAUserOfItsOwnAndLeavesNothing(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	w := newWorld(t, "leaves-behind")
	users := usersOfTests(t, 2)
	w.withUsers(t, users)
	for _, name := range []string{"a", "b"} { // the one that rested longest
		ran, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1})
		if err != nil || len(ran) != 1 || ran[0].State != sessions.StateSucceeded || ran[0].Boundary.Account != name {
			t.Fatalf("%+v, %v: %s", ran, err, w.text())
		}
		if text := w.text(); !strings.Contains(text, " left\n") || strings.Contains(text, "denied") {
			t.Errorf("it said %s", text)
		}
		entries, err := os.ReadDir(filepath.Join(w.dir, "left"))
		if err != nil || len(entries) > 0 {
			t.Errorf("%s left %v, %v", name, entries, err)
		}
	}
	w.clean(t)
}

// Two supervisors know nothing of each other's state folders, and give agents different users all the same.
func TestSessionsOfTwoStateFoldersNeverShareAUser(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	for name, count := range map[string]int{"two users": 2, "one user": 1} {
		t.Run(name, func(t *testing.T) {
			users := usersOfTests(t, count)
			first, second := newWorld(t, "leaves-behind"), newWorld(t, "leaves-behind")
			first.withUsers(t, users)
			second.withUsers(t, users)
			var beside []sessions.Record
			var refused error
			ran, err := NewSupervisor(first.runner).Run(t.Context(),
				Spec{Tier: 1, Admit: func(ctx context.Context, _ string) error {
					beside, refused = NewSupervisor(second.runner).Run(ctx, Spec{Tier: 1})
					return nil
				}})
			if err != nil || len(ran) != 1 || ran[0].State != sessions.StateSucceeded {
				t.Fatalf("%+v, %v", ran, err)
			}
			if count == 1 {
				wantCode(t, refused, fault.Conflict, "no user is left for the agent", "CLAUDEOPS_AGENT_USER")
				if len(second.records) > 0 {
					t.Errorf("recorded %+v", second.records)
				}
				if _, err := NewSupervisor(second.runner).Run(t.Context(), Spec{Tier: 1}); err != nil {
					t.Errorf("after the first has ended: %v", err)
				}
				return
			}
			if refused != nil || len(beside) != 1 || beside[0].State != sessions.StateSucceeded ||
				beside[0].Boundary.Account == ran[0].Boundary.Account {
				t.Errorf("%+v, %v, beside %+v", beside, refused, ran)
			}
		})
	}
}

// What a killed supervisor left of a user is gone before its user is used again.
func TestWhatAKilledSupervisorLeftOfAUserIsRemoved(t *testing.T) {
	if !mayHaveUsers(t) {
		return
	}
	w := newWorld(t, "leaves-behind")
	users := usersOfTests(t, 1)
	w.withUsers(t, users)
	a := users.Accounts[0]
	id := "01ABCDEFGHJKMNPQRSTVWXYZ01"
	folder := w.runner.Settings.Folders.folderOf(id)
	if err := a.As(func() error {
		return errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(filepath.Join(folder, "closed"), 0o000))
	}); err != nil {
		t.Fatal(err)
	}
	l, err := w.runner.Settings.Folders.takeLock()
	if err != nil {
		t.Fatal(err)
	}
	// as a kill leaves it
	if err := errors.Join(l.write(lockContent{Session: id, Folder: folder, UID: a.UID, GID: a.GID}),
		l.file.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1}); err != nil {
		t.Error(err)
	}
	w.clean(t)
}
