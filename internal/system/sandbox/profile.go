package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// helperInput is the helper's input: the command to become, and its rules.
type helperInput struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	Profile
	filterCount
}

// filterCount is how many filters of system calls the helper had before its own.
type filterCount struct {
	status  *os.File // of the thread
	filters int
	counted bool // the kernel tells the number
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
	text, err := json.Marshal(helperInput{Path: c.Path, Args: c.Args, Env: append([]string{}, c.Env...), Dir: c.Dir,
		Profile: p})
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

// mostPaths bounds the number of rules for one command. What lies beyond is not permitted.
const mostPaths = 4000

// carve returns paths that together cover everything below root except hidden. Rules of Landlock only permit, so a
// folder that contains something hidden is replaced by its other contents. All paths must be resolved; root is not
// followed if it is a link.
func carve(root string, hidden []string) []string {
	return carver{hidden}.below(root, nil)
}

type carver struct{ hidden []string }

func (c carver) below(path string, out []string) []string {
	inside := false
	for _, h := range c.hidden {
		if contains(h, path) {
			return out
		}
		inside = inside || contains(path, h)
	}
	if !inside {
		return append(out, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return out
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 { // its target counts
			continue
		}
		if len(out) >= mostPaths {
			return out
		}
		out = c.below(filepath.Join(path, entry.Name()), out)
	}
	return out
}

// contains reports whether path is folder or lies below it.
func contains(folder, path string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return path == folder || strings.HasPrefix(path, folder+"/") || folder == ""
}

// resolved returns the paths without links; those that are not there are left out.
func resolved(paths []string) (out []string) {
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(real) {
			out = append(out, real)
		}
	}
	return out
}

// resolvedAsFar returns the paths without links as far as they exist, so that what is made there later counts as well.
func resolvedAsFar(paths []string) (out []string) {
	for _, path := range paths {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) {
			continue
		}
		for rest, at := "", path; ; rest, at = filepath.Join(filepath.Base(at), rest), filepath.Dir(at) {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				out = append(out, filepath.Join(real, rest))
				break
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return out
}

// ClaimFolder holds the claims on users of agents: one file for each, which only root can make and lock. It is the same
// for every claudeops on a machine, whatever its state folder and its own user.
const ClaimFolder = "/run/claudeops-agents"

// ErrAllClaimed says that sessions run as each of the users.
var ErrAllClaimed = errors.New("every user of agents is taken by another session on this machine")

// Users are the users that agents run as: each by one session at a time on this machine.
type Users struct {
	Accounts []Account
	Folder   string // ClaimFolder
	// Leavings are folders that every user may write, in which files of a user are removed before and after a session.
	Leavings []string
}

// Claim is the right to run processes as a user.
type Claim struct {
	Account  Account
	lock     *os.File // nil where users cannot be claimed
	leavings []string
}

// Keeps returns the files that keep the claim as long as any process has them open.
func (c *Claim) Keeps() []*os.File {
	if c == nil || c.lock == nil {
		return nil
	}
	return []*os.File{c.lock}
}

// Release ends what the user still runs, removes what it left, and gives the claim up. Processes that keep the file of
// Keeps keep the claim.
func (c *Claim) Release() error {
	if c == nil || c.lock == nil {
		return nil
	}
	return errors.Join(c.clean(), c.lock.Close())
}

// RemoveAll is like os.RemoveAll, but also removes folders whose owner has taken away the rights to them.
func RemoveAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(at, 0o700) //nolint:gosec // it is about to be removed
		}
		return nil
	})
	return os.RemoveAll(path)
}
