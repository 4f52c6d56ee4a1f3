//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

const self = ""

// Enter needs Linux.
func Enter() int { return fail(errors.ErrUnsupported) }

// ThisMachine has no boundary: they need Linux.
func ThisMachine() Machine {
	return Machine{
		MaySwitch: errors.New("this system is not Linux"), UID: os.Geteuid(), GID: os.Getegid(),
		Accounts: func(string) ([]Account, error) { return nil, ErrNoAccount },
	}
}

// As runs f: without a boundary there is no account.
func (a *Account) As(f func() error) error { return f() }

// WithGroup runs f: without a boundary there is no account.
func (a *Account) WithGroup(f func() error) error { return f() }

// CanRead needs Linux.
func (a *Account) CanRead(paths []string) []string { return paths }

// RunAs needs Linux.
func RunAs(string, []string, []string) error {
	return errors.New("CLAUDEOPS_RUN_AS needs Linux")
}

// Usable needs Linux.
func (Users) Usable() error { return errors.ErrUnsupported }

// Claim needs Linux.
func (Users) Claim() (*Claim, error) { return nil, errors.ErrUnsupported }

// ClaimOne needs Linux.
func (Users) ClaimOne(int) (*Claim, error) { return nil, nil }

func (*Claim) clean() error { return nil }
