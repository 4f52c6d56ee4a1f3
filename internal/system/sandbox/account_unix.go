//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// maxAccounts limits the users for agents.
const maxAccounts = 64

// findAccounts finds the users that agents run as: one for each session at a time. text is a name, a number,
// number:number with its group, or one of these forms for several users:
//
//	NAME+COUNT    the users NAME-1 to NAME-COUNT, which all have to exist; they get the group NAME, if there is one
//	NUMBER+COUNT  COUNT users from NUMBER on, each with the group of its number; none may be in the user database
//
// "" stands for the users DefaultAccount-1, -2 and so on, as many as exist, or else for DefaultAccount. A number needs
// no entry in the user database. ErrNoAccount if there is no such user.
func findAccounts(text string) ([]Account, error) {
	if text == "" {
		return defaultAccounts()
	}
	base, count, several := strings.Cut(text, "+")
	if !several {
		a, err := findAccount(text)
		if err != nil {
			return nil, err
		}
		return []Account{*a}, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxAccounts || strconv.Itoa(n) != count {
		return nil, fmt.Errorf("what follows the + is how many users there are, 1 to %d", maxAccounts)
	}
	if first, err := strconv.ParseUint(base, 10, 31); err == nil {
		return unnamed(int(first), n)
	}
	out := make([]Account, 0, n)
	for i := 1; i <= n; i++ {
		name := base + "-" + strconv.Itoa(i)
		a, err := lookupAccount(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, *a)
	}
	return withCommonGroup(out, base), nil
}

// withCommonGroup gives users the group of a name beside their own, if there is one that is not root's.
func withCommonGroup(accounts []Account, name string) []Account {
	found, err := user.LookupGroup(name)
	if err != nil {
		return accounts
	}
	gid, err := strconv.Atoi(found.Gid)
	if err != nil || gid <= 0 {
		return accounts
	}
	for i := range accounts {
		if accounts[i].GID != gid {
			accounts[i].Common = gid
		}
	}
	return accounts
}

func defaultAccounts() (out []Account, err error) {
	for i := 1; i <= maxAccounts; i++ {
		a, err := lookupAccount(DefaultAccount + "-" + strconv.Itoa(i))
		if errors.Is(err, ErrNoAccount) {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, *a)
	}
	if len(out) > 0 {
		return withCommonGroup(out, DefaultAccount), nil
	}
	a, err := lookupAccount(DefaultAccount)
	if err != nil {
		return nil, err
	}
	return []Account{*a}, nil
}

// unnamed returns the users of numbers without an entry in the user database.
func unnamed(first, count int) (out []Account, err error) {
	for uid := first; uid < first+count; uid++ {
		number := strconv.Itoa(uid)
		if found, err := user.LookupId(number); err == nil {
			return nil, fmt.Errorf("%s is the user %s; name numbers that belong to nobody", number, found.Username)
		}
		out = append(out, Account{Name: number, UID: uid, GID: uid})
	}
	return out, nil
}

func findAccount(name string) (*Account, error) {
	first, group, withGroup := strings.Cut(name, ":")
	if uid, err := strconv.ParseUint(first, 10, 31); err == nil {
		return numbered(first, int(uid), group, withGroup)
	}
	if withGroup {
		return nil, errors.New("a group is named with the number of a user alone, as in 10002:10002")
	}
	return lookupAccount(name)
}

func lookupAccount(name string) (*Account, error) {
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
			return nil, fmt.Errorf("%q is not a group number", group)
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
