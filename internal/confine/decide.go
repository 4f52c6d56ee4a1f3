package confine

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultAccount is the user that agents run as where nobody says otherwise, if there is one of that name.
const DefaultAccount = "claudeops-agent"

// The versions of the kernel's Landlock that the boundary relies on.
const (
	abiMove     = 2 // Linux 5.19: moving files from folder to folder
	abiTruncate = 3 // Linux 6.2: cutting files off
	abiNetwork  = 4 // Linux 6.7: TCP by port
	abiDevices  = 5 // Linux 6.10: controlling devices
	abiScopes   = 6 // Linux 6.12: signals and abstract sockets
	abiSockets  = 9 // Linux 7.1: sockets that have a path
	abiNewest   = 11
)

// Choice is what the operator says of the boundary.
type Choice struct {
	Kind    Kind   // "" for the best that there is
	Account string // the agents' user: a name, a number, or number:number with its group; "" for DefaultAccount, if there is one
	Ports   bool   // whether TCP is to be limited to some ports
}

// Machine is what Decide asks of this machine.
type Machine struct {
	// ABI is the version of the kernel's Landlock; 0 where it has none.
	ABI int
	// Filter says whether this program can filter system calls here.
	Filter bool
	// MaySwitch is nil if this process may start processes as another user, and otherwise says why not.
	MaySwitch error
	UID, GID  int // ours
	// Account finds a user by name or number. ErrNoAccount if there is none.
	Account func(name string) (*Account, error)
	// Doors are sockets that our user may connect to and whose owners run commands on request, such as a service manager's.
	Doors []string
}

// ErrNoAccount says that there is no such user.
var ErrNoAccount = errors.New("there is no such user")

// Decide says which boundary holds. An error says why the one that was asked for cannot hold, or that the account is no good.
func Decide(c Choice, m Machine) (Boundary, *Account, error) {
	account, notUser, err := m.user(c)
	if err != nil {
		return Boundary{}, nil, err
	}
	landlock := m.landlock(c)
	switch c.Kind {
	case None:
		return Boundary{Kind: None, Why: "CLAUDEOPS_BOUNDARY is none"}, nil, nil
	case User:
		if account == nil {
			return Boundary{}, nil, fmt.Errorf("CLAUDEOPS_BOUNDARY is user, which cannot hold: %s", notUser)
		}
	case Landlock:
		if landlock.Kind != Landlock {
			return Boundary{}, nil, fmt.Errorf("CLAUDEOPS_BOUNDARY is landlock, which cannot hold: %s", landlock.Why)
		}
		landlock.Why = "CLAUDEOPS_BOUNDARY is landlock"
		return landlock, nil, nil
	}
	if account != nil {
		return Boundary{Kind: User, Account: account.Name, ABI: min(m.ABI, abiNewest)}, account, nil
	}
	landlock.Why = strings.TrimSuffix(notUser+"; "+landlock.Why, "; ")
	return landlock, nil, nil
}

// user finds the agents' account, or says why they cannot have one of their own.
func (m Machine) user(c Choice) (account *Account, why string, err error) {
	name := c.Account
	if name == "" {
		name = DefaultAccount
	}
	account, err = m.Account(name)
	switch {
	case errors.Is(err, ErrNoAccount) && c.Account == "":
		return nil, "there is no user " + DefaultAccount + " for agents, and CLAUDEOPS_AGENT_USER names no other", nil
	case err != nil:
		return nil, "", fmt.Errorf("CLAUDEOPS_AGENT_USER is %s: %w", name, err)
	case account.UID <= 0 || account.GID <= 0:
		return nil, "", fmt.Errorf("the agents' user %s is root, or in root's group; give agents a user without rights (CLAUDEOPS_AGENT_USER)", name)
	case account.UID == m.UID:
		return nil, "", fmt.Errorf("the agents' user %s is the user of claudeops itself; give agents one of their own (CLAUDEOPS_AGENT_USER)", name)
	case account.GID == m.GID:
		return nil, "", fmt.Errorf("the agents' user %s has the group of claudeops; give agents a group of their own (CLAUDEOPS_AGENT_USER)", name)
	case m.MaySwitch != nil:
		return nil, fmt.Sprintf("agents cannot run as %s: %s", name, m.MaySwitch), nil
	}
	return account, "", nil
}

// landlock is what Landlock offers.
func (m Machine) landlock(c Choice) Boundary {
	if m.ABI < 1 {
		return Boundary{Kind: None, Why: "this system has no Landlock (Linux 5.13 or newer, with landlock among its security modules)"}
	}
	b := Boundary{Kind: Landlock, ABI: min(m.ABI, abiNewest)}
	lacks := func(what string) { b.Missing = append(b.Missing, what) }
	if m.ABI < abiTruncate {
		lacks("files can be cut off (needs ABI 3, Linux 6.2)")
	}
	if c.Ports && m.ABI < abiNetwork {
		lacks("TCP is not limited to CLAUDEOPS_AGENT_NET (needs ABI 4, Linux 6.7)")
	}
	if m.ABI < abiScopes {
		lacks("processes of claudeops can be signalled and abstract sockets reached (needs ABI 6, Linux 6.12)")
	}
	if !m.Filter {
		lacks("modes of files and limits of processes can be changed (system calls are filtered on amd64 and arm64 alone)")
	}
	if m.UID == 0 {
		lacks("agents run as root; set CLAUDEOPS_AGENT_USER")
	}
	if m.ABI < abiSockets && len(m.Doors) > 0 {
		lacks(fmt.Sprintf("commands can be run outside by way of %s (needs ABI 9, Linux 7.1)", strings.Join(m.Doors, " and ")))
	}
	return b
}
