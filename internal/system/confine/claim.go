package confine

import (
	"errors"
	"os"
)

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
