package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// HelperCommand is the argument by which a program that uses Profile.Wrap is called again: its main function must then
// call Enter and exit with what that returns.
const HelperCommand = "session-confined"

// ExitNotConfined is the exit code of a command that was not started, since it could not be confined. Its stderr says
// why.
const ExitNotConfined = 125

// Profile lists what a confined command may reach. Paths are absolute; missing ones are left out. Profile does not
// change what the files' own modes permit: it only takes away.
type Profile struct {
	Boundary Boundary
	Account  *Account // for User
	// Read are files and folders to read and execute, Write those to change as well. With Landlock nothing else can be
	// opened.
	Read, Write []string
	// Devices are files to read, write and control.
	Devices []string
	// Hidden are files and folders that are out of reach, wherever they are. With User, and Landlock in addition, all else
	// is left to the files' modes.
	Hidden []string
	// Sockets are files of sockets outside that may be connected to. Before ABI 9 of Landlock, the sockets' own modes
	// alone decide.
	Sockets []string
	// Ports are the ports that TCP connections may be made to, and that of name servers unless NoUDP; nil for all. If set,
	// listening on sockets of any kind is refused, and so are all other protocols of the internet except UDP. Needs
	// Landlock.
	Ports []uint16
	// NoUDP refuses UDP too where there are Ports: no name has to be looked up.
	NoUDP  bool
	Limits Limits
	// Modes leaves modes, owners and attributes of files to the command: its umask is ours, and it may change them by
	// path, of hidden files too, as far as its user may. Without it that is refused within landlock.
	Modes bool
}

// Limits of a confined process tree.
type Limits struct {
	Threads   int   // at the same time
	FileBytes int64 // of one file that it writes
}

// DefaultLimits returns the limits that apply unless configured otherwise.
func DefaultLimits() Limits { return Limits{Threads: 1024, FileBytes: 1 << 30} }

// entry is the helper's input: the command to become, and its rules.
type entry struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	Profile
}

// Wrap returns the command, confined. With None it is the command as it is.
func (p Profile) Wrap(c processtree.Command) (processtree.Command, error) {
	if !p.Boundary.Held() {
		return c, nil
	}
	if (p.Boundary.Kind == User) != (p.Account != nil) {
		return c, errors.New("a boundary with a user needs the user, and another has none")
	}
	if c.Extra != nil {
		return c, errors.New("a confined command has no extra file")
	}
	text, err := json.Marshal(entry{Path: c.Path, Args: c.Args, Env: append([]string{}, c.Env...), Dir: c.Dir, Profile: p})
	if err != nil {
		return c, err
	}
	c.Path, c.Args, c.Env, c.Dir, c.Extra = self, []string{"claudeops", HelperCommand}, []string{}, "/", text
	return c, nil
}

// Options adds to those of the process tree what is the boundary's.
func (p Profile) Options(o processtree.Options) processtree.Options {
	if !p.Boundary.Held() {
		return o
	}
	o.MostThreads = p.Limits.Threads
	if p.Account != nil {
		o.UID = p.Account.UID
	}
	return o
}

// fail says why a command was not started.
func fail(err error) int {
	fmt.Fprintf(os.Stderr, "it could not be confined, so it was not started: %s\n", err)
	return ExitNotConfined
}
