package confine

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// TestMain runs what this binary is started as by the tests: a supervisor, its reaper, the helper, and what an agent's
// shell may try.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case processtree.ReaperCommand:
			os.Exit(processtree.Reap())
		case HelperCommand:
			os.Exit(Enter())
		case "supervise":
			os.Exit(supervise())
		case "claim":
			os.Exit(claimIn(os.Args[2]))
		case "attack":
			os.Exit(attackAll(os.Args[2]))
		case "attack-one":
			os.Exit(attackOne(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// order is a test's request to a supervisor.
type order struct {
	Profile Profile
	Command []string
	Dir     string
	Targets targets
}

// told is a supervisor's report of a run.
type told struct {
	Out, Err string
	Code     int
	Left     []int
	Problem  string
}

// claimIn claims a user in a folder, and says which.
func claimIn(folder string) int {
	u := Users{Folder: folder, Accounts: []Account{{Name: "agent", UID: claimedID, GID: claimedID}}}
	c, err := u.Claim()
	if err == nil {
		err = u.Usable()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("claimed", c.Account.UID, len(c.Keeps()), c.Release())
	return 0
}

// supervise runs a command in a tree, confined, as claudeops does with an agent. Its memory and environment hold a
// secret, it holds a secret file open, and listens on an abstract socket.
func supervise() int {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Println(err)
		return 1
	}
	answer := superviseOne(o)
	_ = json.NewEncoder(os.Stdout).Encode(answer)
	return 0
}

func superviseOne(o order) (answer told) {
	runtime.LockOSThread() // a keyring is joined by one thread
	secret, err := os.Open(o.Targets.State + "/secret")
	if err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _ = secret.Close() }()
	listener, err := net.Listen("unix", "@"+o.Targets.Abstract)
	if err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _ = listener.Close() }()
	const ofSession, ofUser = -3, -4
	_, _ = unix.KeyctlJoinSessionKeyring("claudeops-attack") // not that of the user who runs the tests
	o.Targets.Key, o.Targets.UserKey = addKey(ofSession), addKey(ofUser)
	if o.Targets.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600); err != nil {
		return told{Problem: err.Error()}
	}
	defer func() { _, _ = unix.SysvShmCtl(o.Targets.Memory, unix.IPC_RMID, nil) }()
	o.Targets.Supervisor, o.Targets.File = os.Getpid(), int(secret.Fd())
	seen, _ := json.Marshal(o.Targets)
	if err := os.WriteFile(o.Targets.File0, seen, 0o644); err != nil { //nolint:gosec // another user reads it
		return told{Problem: err.Error()}
	}
	out, outEnd, _ := os.Pipe()
	errs, errEnd, _ := os.Pipe()
	command, err := o.Profile.Wrap(processtree.Command{
		Path: o.Command[0], Args: o.Command, Env: []string{"PATH=/usr/bin:/bin"}, Dir: o.Dir, Stdout: outEnd, Stderr: errEnd,
	})
	if err != nil {
		return told{Problem: err.Error()}
	}
	tree, err := processtree.Start(command, o.Profile.Options(processtree.Options{Grace: time.Second}))
	_, _ = outEnd.Close(), errEnd.Close()
	if err != nil {
		return told{Problem: err.Error()}
	}
	texts := make(chan string, 2)
	read := func(f *os.File) {
		text, _ := io.ReadAll(f)
		texts <- string(text)
	}
	go read(out)
	<-tree.Exited()
	end := tree.End()
	answer.Out = <-texts
	go read(errs)
	answer.Err = strings.TrimSpace(<-texts)
	answer.Code, answer.Left = end.Exit.Code, end.Remaining
	return answer
}
