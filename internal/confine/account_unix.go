//go:build unix

package confine

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// FindAccount finds a user by its name, by its number, or by number:number with its group. A number needs no entry in the user
// database. ErrNoAccount if there is no such name.
func FindAccount(name string) (*Account, error) {
	first, group, withGroup := strings.Cut(name, ":")
	if uid, err := strconv.ParseUint(first, 10, 31); err == nil {
		return numbered(first, int(uid), group, withGroup)
	}
	if withGroup {
		return nil, errors.New("a group is named with the number of a user alone, as in 10002:10002")
	}
	found, err := user.Lookup(name)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		return nil, ErrNoAccount
	}
	if err != nil {
		return nil, err
	}
	return account(found)
}

func numbered(first string, uid int, group string, withGroup bool) (*Account, error) {
	if withGroup {
		gid, err := strconv.ParseUint(group, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of a group", group)
		}
		a := &Account{Name: first, UID: uid, GID: int(gid)}
		if found, err := user.LookupId(first); err == nil {
			a.Name, a.Home = found.Username, found.HomeDir
		}
		return a, nil
	}
	if found, err := user.LookupId(first); err == nil {
		return account(found)
	}
	return &Account{Name: first, UID: uid, GID: uid}, nil
}

func account(found *user.User) (*Account, error) {
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	return &Account{Name: found.Username, UID: uid, GID: gid, Home: found.HomeDir}, nil
}
