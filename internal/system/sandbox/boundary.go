// Package sandbox keeps a process tree, such as that of an agent, out of what belongs to the process that started it.
//
// There are two boundaries. With "user", the tree runs as a separate user, so that the kernel's ordinary permissions
// keep it from our files and processes. With "landlock", it runs as our user under rules of Landlock (landlock(7)): it
// reads and writes only what a Profile names, and cannot signal, trace or inspect processes outside. "none" sets no
// boundary. Decide says which applies on this machine, and why not a better one.
//
// Profile.Wrap turns a command into one that is confined. Between the two stands this program, called again with
// HelperCommand: it gives up what it may do, step by step, checks that it is gone, and becomes the command. Nothing in
// it gives anybody a right: who calls it has the rights already.
package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// DefaultAccount is the user that agents run as unless configured otherwise, if it exists; see findAccounts.
const DefaultAccount = "claudeops-agent"

// The versions of the kernel's Landlock that the boundary relies on.
const (
	abiMove     = 2 // Linux 5.19: moving files from folder to folder
	abiTruncate = 3 // Linux 6.2: cutting files off
	abiNetwork  = 4 // Linux 6.7: TCP by port
	abiDevices  = 5 // Linux 6.10: controlling devices
	abiScopes   = 6 // Linux 6.12: signals and abstract sockets
	abiSockets  = 9 // Linux 7.1: sockets that have a path
	abiUDP      = 10
	abiNewest   = 11
)

// Choice is the operator's configuration of the boundary.
type Choice struct {
	Kind    Kind     // "" for the best that there is
	Account string   // the agents' users, as findAccounts takes them
	Ports   []uint16 // that TCP is to be limited to; nil for no limit
	NoUDP   bool     // with Ports: no UDP either
}

// Machine describes this machine for Decide.
type Machine struct {
	// ABI is the version of the kernel's Landlock; 0 where it has none.
	ABI int
	// Filter says whether this program can filter system calls here.
	Filter bool
	// MaySwitch is nil if this process may start processes as another user, and otherwise says why not.
	MaySwitch error
	UID, GID  int // ours
	// Accounts finds the agents' users; see findAccounts. ErrNoAccount if there is none.
	Accounts func(text string) ([]Account, error)
	// Claims is nil if users can be claimed for one session, and otherwise says why not. It is asked where MaySwitch is
	// nil.
	Claims func() error
	// Doors are sockets that our user may connect to and whose owners run commands on request, such as a service
	// manager's.
	Doors []string
}

// ErrNoAccount says that there is no such user.
var ErrNoAccount = errors.New("there is no such user")

// Decide says which boundary applies, and with User the users that agents run as. An error says why the requested one
// cannot apply, or that a user cannot be used.
func Decide(c Choice, m Machine) (Boundary, []Account, error) {
	accounts, notUser, err := m.users(c)
	if err != nil {
		return Boundary{}, nil, err
	}
	landlock := m.landlock(c)
	switch c.Kind {
	case None:
		return Boundary{Kind: None, Why: "CLAUDEOPS_BOUNDARY is none"}, nil, nil
	case User:
		if accounts == nil {
			return Boundary{}, nil, fmt.Errorf("CLAUDEOPS_BOUNDARY is user, which cannot hold: %s", notUser)
		}
	case Landlock:
		if landlock.Kind != Landlock {
			return Boundary{}, nil, fmt.Errorf("CLAUDEOPS_BOUNDARY is landlock, which cannot hold: %s", landlock.Why)
		}
		landlock.Why = "CLAUDEOPS_BOUNDARY is landlock"
		return landlock, nil, nil
	}
	if accounts != nil {
		return m.ofUsers(c, accounts), accounts, nil
	}
	landlock.Why = strings.TrimSuffix(notUser+"; "+landlock.Why, "; ")
	return landlock, nil, nil
}

// users finds the agents' users, or says why they cannot have any of their own.
func (m Machine) users(c Choice) (accounts []Account, why string, err error) {
	accounts, err = m.Accounts(c.Account)
	if errors.Is(err, ErrNoAccount) && c.Account == "" {
		return nil, "there is no user " + DefaultAccount + "-1 or " + DefaultAccount +
			" for agents, and CLAUDEOPS_AGENT_USER names no other", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("CLAUDEOPS_AGENT_USER is %s: %w", c.Account, err)
	}
	for _, a := range accounts {
		switch {
		case a.UID <= 0 || a.GID <= 0:
			return nil, "",
				fmt.Errorf("the agents' user %s is root, or in root's group; give agents users without rights "+
					"(CLAUDEOPS_AGENT_USER)", a.Name)
		case a.UID == m.UID:
			return nil, "",
				fmt.Errorf("the agents' user %s is the user of claudeops itself; give agents users of their own "+
					"(CLAUDEOPS_AGENT_USER)", a.Name)
		case a.GID == m.GID || a.Common == m.GID && a.Common != 0:
			return nil, "",
				fmt.Errorf("the agents' user %s has the group of claudeops; give agents groups of their own (CLAUDEOPS_AGENT_USER)",
					a.Name)
		case slices.ContainsFunc(accounts, func(other Account) bool {
			return a != other &&
				(a.UID == other.UID || a.GID == other.GID)
		}):
			return nil, "",
				fmt.Errorf("the agents' user %s shares its number or its group with another one of them; give each its own "+
					"(CLAUDEOPS_AGENT_USER)", a.Name)
		}
	}
	if m.MaySwitch != nil {
		return nil, fmt.Sprintf("agents cannot run as %s: %s", label(accounts), m.MaySwitch), nil
	}
	return accounts, "", nil
}

// label names users in a few words.
func label(accounts []Account) string {
	first, last := accounts[0].Name, accounts[len(accounts)-1].Name
	if first == last {
		return first
	}
	return first + " to " + last
}

// ofUsers returns the boundary of agents with users of their own.
func (m Machine) ofUsers(c Choice, accounts []Account) Boundary {
	b := Boundary{Kind: User, Account: label(accounts), ABI: min(m.ABI, abiNewest)}
	if m.Claims != nil {
		if err := m.Claims(); err != nil {
			b.lacks("two claudeops on this machine could give agents the same user at the same time (%s)", err)
		}
	}
	m.network(c, &b)
	if !m.Filter {
		b.lacks("shared memory, queues and keys of the kernel are left to the next session (system calls are filtered on " +
			"amd64 and arm64 alone)")
	}
	return b
}

// network sets where the processes of a boundary may connect to, and what the boundary lacks for a limit.
func (m Machine) network(c Choice, b *Boundary) {
	switch {
	case c.Ports == nil:
		b.Net = "any"
	case m.ABI < abiNetwork:
		b.Net = "any"
		b.lacks("TCP is not limited to CLAUDEOPS_AGENT_NET (needs Landlock with ABI 4, Linux 6.7)")
	case !m.Filter:
		b.Net = "any"
		b.lacks("CLAUDEOPS_AGENT_NET holds for TCP alone, and other protocols pass (system calls are filtered on amd64 and " +
			"arm64 alone)")
	case c.NoUDP:
		b.Net = "TCP to " + ports(c.Ports) + "; no UDP"
	case m.ABI < abiUDP:
		b.Net = "TCP to " + ports(append(slices.Clone(c.Ports), namePort)) + "; UDP to anywhere"
	default:
		b.Net = "TCP to " + ports(append(slices.Clone(c.Ports), namePort)) + "; UDP to " + ports([]uint16{namePort})
	}
}

// namePort is the port of name servers.
const namePort = 53

func ports(all []uint16) string {
	slices.Sort(all)
	var text []string
	for _, port := range slices.Compact(all) {
		text = append(text, strconv.Itoa(int(port)))
	}
	if len(text) == 1 {
		return "port " + text[0]
	}
	return "ports " + strings.Join(text, ", ")
}

// landlock returns the boundary that Landlock offers.
func (m Machine) landlock(c Choice) Boundary {
	if m.ABI < 1 {
		return Boundary{Kind: None,
			Why: "this system has no Landlock (Linux 5.13 or newer, with landlock among its security modules)"}
	}
	b := Boundary{Kind: Landlock, ABI: min(m.ABI, abiNewest)}
	if m.ABI < abiTruncate {
		b.lacks("files can be cut off (needs ABI 3, Linux 6.2)")
	}
	m.network(c, &b)
	if m.ABI < abiScopes {
		b.lacks("processes of claudeops can be signalled and abstract sockets reached (needs ABI 6, Linux 6.12)")
	}
	if !m.Filter {
		b.lacks("modes of files, limits of processes, keys and shared memory can be changed (system calls are filtered on " +
			"amd64 and arm64 alone)")
	}
	if m.UID == 0 {
		b.lacks("agents run as root; set CLAUDEOPS_AGENT_USER")
	}
	if m.ABI < abiSockets && len(m.Doors) > 0 {
		b.lacks("commands can be run outside by way of %s (needs ABI 9, Linux 7.1)", strings.Join(m.Doors, " and "))
	}
	return b
}

// LimitsPorts reports whether TCP can be limited to ports within the boundary.
func (b Boundary) LimitsPorts() bool { return b.ABI >= abiNetwork }
