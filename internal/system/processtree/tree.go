package processtree

import (
	"io"
	"os"
	"time"
)

// ReaperCommand is the argument by which a program that uses Start is called again to be the reaper: its main function
// must then call Reap before anything else and exit with what that returns.
const ReaperCommand = "session-reaper"

// Command is the command to run.
type Command struct {
	Path           string    // of the executable file
	Args           []string  // with the name as the first
	Env            []string  // all of the environment, the Mark included
	Dir            string    // working folder
	Stdin          io.Reader // nil for none
	Stdout, Stderr *os.File  // not closed by Start; nil for none
	// Extra is the content of the command's file 3, to be read to its end; nil for no such file. On Linux alone.
	Extra []byte
}

// Options say how a tree is kept and ended.
type Options struct {
	// Grace is the time from SIGTERM to SIGKILL.
	Grace time.Duration
	// Mark is an entry of the environment, NAME=value, by which what is left is looked for if the reaper was killed.
	Mark string
	// Group is a control group for the tree, as MakeGroup has made it; "" for none. It is removed at the tree's end.
	Group string
	// MostProcesses limits the processes of the tree at the same time; 0 means no limit. A tree that has more is ended.
	// The number is checked some ten times a second; on Linux alone.
	MostProcesses int
	// MostThreads limits the threads of the tree; 0 means no limit. The kernel enforces it where the tree has a control
	// group with that controller, and otherwise counts the threads of all users when the command starts. More cannot be
	// started. On Linux alone.
	MostThreads int
	// UID is the user that the command becomes, where that is not ours: its processes are then ended by that, too, all of
	// its user that are left after the grace. 0 for ours. On Linux alone.
	UID int
	// Keep are files that stay open until the tree has ended, even if this process is killed: a lock, for instance.
	Keep []*os.File
}

// Exit says how a command ended.
type Exit struct {
	Code int    // -1 if it was ended by a signal, or is not known
	Text string // such as "signal: killed"; "" for code 0
}

// End says how a tree ended.
type End struct {
	Exit Exit
	// Remaining are processes that could not be ended: they belong to another user, or the kernel does not let them go.
	// On Linux they are tried again, and Options.Keep is kept, until they have ended.
	Remaining []int
	// ReaperLost says that the reaper was killed or did not answer. What could be found by group and mark was killed.
	ReaperLost bool
	// TooMany says that the tree was ended because it had more than Options.MostProcesses.
	TooMany bool
}
