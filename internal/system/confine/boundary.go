package confine

import (
	"fmt"
	"strings"
)

// Kind is the kind of a boundary.
type Kind string

// The kinds, the strongest first.
const (
	User     Kind = "user"     // the tree runs as another user
	Landlock Kind = "landlock" // the tree runs as our user, under rules of Landlock
	None     Kind = "none"     // what our user may do, the tree may do
)

// Boundary describes the separation of a process tree from us. Its zero value is that of records without this
// information.
type Boundary struct {
	Kind Kind `json:"kind" enum:"user,landlock,none" doc:"user: the processes run as another user. landlock: as our user, under rules of Landlock. none: nothing keeps them from what our user may do"`
	// Account is the user's name, or its number where it has no name; before a session begins, all that there are; "" but
	// for User.
	Account string `json:"user,omitempty" doc:"The user that the processes run as, where it is another"`
	// ABI is the version of the kernel's Landlock whose rules hold, with User in addition; 0: none hold.
	ABI int `json:"landlock_abi,omitempty" doc:"The version of Landlock whose rules hold; with user they hold in addition"`
	// Net describes where the processes may connect to, in a few words; "" without a boundary and of older records.
	Net string `json:"net,omitempty" doc:"Where the processes may connect to, such as TCP to ports 53, 443; UDP to anywhere"`
	// Missing lists what the boundary lacks on this machine, one clause each. If it is not empty, the boundary does not
	// satisfy an operator who requires one.
	Missing []string `json:"missing,omitempty" doc:"What the boundary lacks on this machine"`
	// Why says why none better holds; "" for User.
	Why string `json:"why,omitempty" doc:"Why no better one holds"`
}

func (b *Boundary) lacks(format string, args ...any) {
	b.Missing = append(b.Missing, fmt.Sprintf(format, args...))
}

// Whole reports whether there is a boundary that lacks nothing.
func (b Boundary) Whole() bool { return b.Held() && len(b.Missing) == 0 }

// Held reports whether there is a boundary, even one that lacks something.
func (b Boundary) Held() bool { return b.Kind == User || b.Kind == Landlock }

// String returns the boundary in a few words, such as "landlock (ABI 7)".
func (b Boundary) String() string {
	text := string(b.Kind)
	switch {
	case b.Kind == User && b.ABI > 0:
		text = fmt.Sprintf("user %s, with landlock (ABI %d)", b.Account, b.ABI)
	case b.Kind == User:
		text = "user " + b.Account
	case b.Kind == Landlock:
		text = fmt.Sprintf("landlock (ABI %d)", b.ABI)
	case b.Kind == "":
		text = "not recorded"
	}
	if b.Net != "" && b.Net != "any" {
		text += ", network: " + b.Net
	}
	if len(b.Missing) > 0 {
		text += ", lacking: " + strings.Join(b.Missing, "; ")
	}
	return text
}

// Account is a user that processes run as.
type Account struct {
	Name string // or the number, where it has no name
	UID  int    // more than 0
	GID  int    // more than 0
	Home string // of the user database; "" where that says none
	// Common is a group that all users of agents have beside their own, so that files can be opened for all of them; 0 for
	// none.
	Common int
}

// groups returns the user's groups beside its own.
func (a *Account) groups() []int {
	if a.Common > 0 {
		return []int{a.Common}
	}
	return nil
}

// Groups returns all groups of the user.
func (a *Account) Groups() []int { return append([]int{a.GID}, a.groups()...) }
