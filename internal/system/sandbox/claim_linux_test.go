package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/testkit/testusers"
)

func testUsers(t *testing.T, count int) Users {
	t.Helper()
	u := Users{Folder: filepath.Join(t.TempDir(), "claims")}
	for i := range count {
		u.Accounts = append(u.Accounts, Account{Name: "agent", UID: claimedID + i, GID: claimedID + i})
	}
	return u
}

func mustClaim(t *testing.T, u Users) *Claim {
	t.Helper()
	c, err := u.Claim()
	must.Do(t, err)
	return c
}

func release(t *testing.T, c *Claim) {
	t.Helper()
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}

// Who may not switch users can claim none, so that the boundary lacks that.
func TestOnlyWhoMaySwitchUsersCanClaimOne(t *testing.T) {
	err := testUsers(t, 1).Usable()
	if (err == nil) != (maySwitch() == nil) {
		t.Errorf("%v; may switch: %v", err, maySwitch())
	}
}

// claudeops need not be root for it: the right to switch users is enough, as it is for all else of this boundary.
func TestTheRightToSwitchUsersIsEnoughToClaimOne(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	w := newWorld(t)
	parent := publicFolder(t)
	claims := filepath.Join(parent, "claims")
	for _, capabilities := range [][]uintptr{nil, {unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}} {
		cmd := exec.Command(w.binary, "claim", claims, strconv.Itoa(claimedID)) //nolint:noctx // it ends by itself
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: supervisorUser(), AmbientCaps: capabilities}
		said, err := cmd.CombinedOutput()
		want := fmt.Sprintf("claimed %d 1 <nil>\n", claimedID)
		if (err == nil) != (capabilities != nil) || err == nil && string(said) != want {
			t.Errorf("with the capabilities %v: %v: %s", capabilities, err, said)
		}
	}
	info, err := os.Stat(claims)
	must.Do(t, err)
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is of user %d, %v", owner, info.Mode())
	}
}

func TestAUserIsClaimedByOneSessionAtATime(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	u := testUsers(t, 2)
	first, second := mustClaim(t, u), mustClaim(t, u)
	if first.Account.UID == second.Account.UID {
		t.Errorf("both are user %d", first.Account.UID)
	}
	if c, err := u.Claim(); !errors.Is(err, ErrAllClaimed) {
		t.Errorf("a third is %+v, %v", c, err)
	}
	if c, err := u.ClaimOne(first.Account.UID); c != nil || err != nil {
		t.Errorf("the first again is %+v, %v", c, err)
	}
	release(t, first)
	third := mustClaim(t, u)
	if third.Account.UID != first.Account.UID {
		t.Errorf("the third is user %d", third.Account.UID)
	}
	release(t, third)
	release(t, second)
}

// What keeps the file, as the process above a session's does, keeps the claim.
func TestAClaimLastsAsLongAsItsFileIsKept(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	u := testUsers(t, 1)
	c := mustClaim(t, u)
	keeper := exec.Command("/bin/sleep", "1000") //nolint:noctx // it is killed below
	keeper.ExtraFiles = c.Keeps()
	must.Do(t, keeper.Start())
	release(t, c)
	if c, err := u.Claim(); !errors.Is(err, ErrAllClaimed) {
		t.Errorf("%+v, %v", c, err)
	}
	_ = keeper.Process.Kill()
	_ = keeper.Wait()
	release(t, mustClaim(t, u))
}

func TestTheUserThatRestedLongestIsClaimedFirst(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	u := testUsers(t, 3)
	age := func(i int, ago time.Duration) {
		at := time.Now().Add(-ago)
		must.Do(t, os.Chtimes(u.claimPath(u.Accounts[i]), at, at))
	}
	for range u.Accounts {
		release(t, mustClaim(t, u))
	}
	age(0, time.Hour)
	age(1, 3*time.Hour)
	age(2, 2*time.Hour)
	for _, want := range []int{1, 2, 0} {
		c := mustClaim(t, u)
		if c.Account.UID != claimedID+want {
			t.Errorf("got user %d, want %d", c.Account.UID, claimedID+want)
		}
		defer release(t, c)
	}
}

// A folder that others can write, or that does not exist, is unsuitable for claims: then there are none, and the
// boundary says so.
func TestClaimsNeedAFolderThatOnlyRootCanWrite(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	for name, spoil := range map[string]func(u *Users) error{
		"of another user": func(u *Users) error {
			return errors.Join(os.Mkdir(u.Folder, 0o700),
				os.Chown(u.Folder, claimedID, 0))
		},
		"that others may write": func(u *Users) error {
			return errors.Join(os.Mkdir(u.Folder, 0o700),
				os.Chmod(u.Folder, 0o1777))
		},
		"a link": func(u *Users) error { return os.Symlink("/run", u.Folder) },
		"a file": func(u *Users) error { return os.WriteFile(u.Folder, nil, 0o600) },
		"in one of another user": func(u *Users) error {
			return os.Chown(filepath.Dir(u.Folder), claimedID, 0)
		},
		"nowhere": func(u *Users) error { u.Folder = "/proc/claims"; return nil },
	} {
		u := testUsers(t, 1)
		must.Do(t, spoil(&u))
		if err := u.Usable(); err == nil {
			t.Errorf("%s: it is usable", name)
		}
		if c, err := u.Claim(); err != nil || c.Keeps() != nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// leave has a user leave things in a folder, and a process that hides from its end.
func leave(t *testing.T, a Account, folder string) *exec.Cmd {
	t.Helper()
	const script = `
mkdir -p "$0/mine/deep" && echo x > "$0/mine/deep/file" && chmod 0 "$0/mine/deep" && chmod 0 "$0/mine"
echo x > "$0/open/also"; ln -s /etc/hostname "$0/link"; ln -s "$0/theirs" "$0/open/link"
echo ready; exec sleep 1000
`
	cmd := exec.Command("/bin/sh", "-c", script, folder)                                                                          //nolint:noctx // it is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}, Setsid: true} //nolint:gosec // more than 0
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	if n, err := out.Read(make([]byte, 5)); n != 5 || err != nil {
		t.Fatalf("it said %d bytes, %v", n, err)
	}
	return cmd
}

// shared is a folder that everybody may write, with things in it that are not the agents'.
func shared(t *testing.T) string {
	t.Helper()
	dir := publicFolder(t)
	//nolint:gosec // others look
	must.Do(t, os.Mkdir(dir+"/open", 0o700), os.Mkdir(dir+"/closed", 0o755), os.WriteFile(dir+"/theirs", nil, 0o600),
		os.WriteFile(dir+"/open/theirs", nil, 0o600), os.Chmod(dir+"/open", 0o1777), os.Chmod(dir, 0o1777))
	return dir
}

func inside(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, dir))
		return err
	}); err != nil {
		t.Error(err)
	}
	return strings.Join(names, " ")
}

func TestWhatAUserLeftIsGoneBeforeTheNextSessionHasIt(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	const whole = " /closed /open /open/theirs /theirs"
	u := testUsers(t, 1)
	dir := shared(t)
	u.Leavings = []string{dir, dir + "/not-there"}
	before := leave(t, u.Accounts[0], dir) // a session of a killed supervisor
	c := mustClaim(t, u)
	if err := before.Wait(); err == nil || inside(t, dir) != whole {
		t.Errorf("its process ended with %v, and it left%s", err, inside(t, dir))
	}
	during := leave(t, u.Accounts[0], dir)
	release(t, c)
	if err := during.Wait(); err == nil || inside(t, dir) != whole {
		t.Errorf("its process ended with %v, and it left%s", err, inside(t, dir))
	}
}

// The group of all agents is theirs beside their own, and no other.
func TestAUserHasTheCommonGroupBesideItsOwn(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	common := supervisorID + testusers.Size - 1
	for _, group := range []int{0, common} {
		w := newWorld(t)
		p := ownUser(0)
		p.Account.Common = group
		w.giveTo(t, p.Account)
		must.Do(t, os.WriteFile(w.dir+"/for-agents", []byte("text"), 0o600))
		must.Do(t, os.Chown(w.dir+"/for-agents", 0, common))
		must.Do(t, os.Chmod(w.dir+"/for-agents", 0o640)) //nolint:gosec // for the group
		answer := w.run(t, p, "/bin/sh", "-c", "id -G; cat "+w.dir+"/for-agents")
		want := fmt.Sprintf("%d\n", agentID)
		if group != 0 {
			want = fmt.Sprintf("%d %d\ntext", agentID, common)
		}
		if answer.Out != want {
			t.Errorf("it said %q, %q; want %q", answer.Out, answer.Err, want)
		}
		readable := p.Account.CanRead([]string{w.dir + "/for-agents"})
		if (len(readable) == 1) != (group != 0) {
			t.Errorf("with group %d it can read %v", group, readable)
		}
	}
	if n, err := unix.Getgroups(); err != nil || len(n) > 0 && n[0] == common {
		t.Errorf("this process has %v, %v", n, err)
	}
}

// What the supervisor does as the agents' user has that user's rights and no other, and the rest of the process keeps
// its own.
func TestFilesAreThoseOfTheAccount(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	dir := publicFolder(t)
	//nolint:gosec // another user writes there
	must.Do(t, os.Chmod(dir, 0o777), os.WriteFile(dir+"/secret", []byte("x"), 0o600))
	a := &Account{Name: "agent", UID: agentID, GID: agentID}
	owner := func(path string) (int, int) {
		info, err := os.Lstat(path)
		must.Do(t, err)
		s := info.Sys().(*syscall.Stat_t)
		return int(s.Uid), int(s.Gid)
	}
	var wg sync.WaitGroup
	for range 20 { // the thread that the process began with is among those that are tried
		wg.Go(func() {
			err := a.As(func() error {
				if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link")); err != nil &&
					!errors.Is(err, fs.ErrExist) {
					return err
				}
				if _, err := os.ReadFile(filepath.Join(dir, "link")); !errors.Is(err, fs.ErrPermission) {
					t.Errorf("a secret of ours was read: %v", err)
				}
				return os.MkdirAll(filepath.Join(dir, "own"), 0o700)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil {
				t.Errorf("we lost our rights: %v", err)
			}
		})
	}
	wg.Wait()
	if uid, gid := owner(dir + "/own"); uid != agentID || gid != agentID {
		t.Errorf("owned by %d:%d", uid, gid)
	}
	if err := a.WithGroup(func() error { return os.WriteFile(dir+"/shared", nil, 0o640) }); err != nil { //nolint:gosec // the group reads it
		t.Fatal(err)
	}
	if uid, gid := owner(dir + "/shared"); uid != os.Getuid() || gid != agentID {
		t.Errorf("owned by %d:%d", uid, gid)
	}
	if open := a.CanRead([]string{dir + "/secret", dir + "/shared", dir + "/missing"}); len(open) != 1 || open[0] != dir+
		"/shared" {
		t.Errorf("it may read %v", open)
	}
	var none *Account
	if err := none.As(func() error { return os.WriteFile(dir+"/ours", nil, 0o600) }); err != nil {
		t.Fatal(err)
	}
	if uid, _ := owner(dir + "/ours"); uid != os.Getuid() {
		t.Errorf("owned by %d", uid)
	}
}
