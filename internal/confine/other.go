//go:build !linux

package confine

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
		MaySwitch: errors.New("this system is no Linux"), UID: os.Geteuid(), GID: os.Getegid(),
		Account: func(string) (*Account, error) { return nil, ErrNoAccount },
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
