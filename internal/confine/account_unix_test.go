//go:build unix

package confine

import (
	"errors"
	"os/user"
	"testing"
)

func TestAccountsAreFoundByNameAndNumber(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := FindAccount(root.Username); err != nil || a.UID != 0 || a.Home != root.HomeDir {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := FindAccount("48612"); err != nil || a.UID != 48612 || a.GID != 48612 || a.Name != "48612" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := FindAccount("48612:7"); err != nil || a.UID != 48612 || a.GID != 7 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, name := range []string{"48612:x", "48612:-1", "some:7", "-5:7"} {
		if a, err := FindAccount(name); err == nil {
			t.Errorf("%s is %+v", name, a)
		}
	}
	if _, err := FindAccount("there-is-no-such-user"); !errors.Is(err, ErrNoAccount) {
		t.Error(err)
	}
}
