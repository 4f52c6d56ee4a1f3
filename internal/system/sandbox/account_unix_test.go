//go:build unix

package sandbox

import (
	"errors"
	"os/user"
	"reflect"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAccountsAreFoundByNameAndNumber(t *testing.T) {
	root, err := user.LookupId("0")
	must.Do(t, err)
	for text, want := range map[string][]Account{
		root.Username: {{Name: root.Username, Home: root.HomeDir}},
		"48612":       {{Name: "48612", UID: 48612, GID: 48612}},
		"48612:7":     {{Name: "48612", UID: 48612, GID: 7}},
		"48612+1":     {{Name: "48612", UID: 48612, GID: 48612}},
		"48612+3": {{Name: "48612", UID: 48612, GID: 48612}, {Name: "48613", UID: 48613, GID: 48613},
			{Name: "48614", UID: 48614, GID: 48614}},
	} {
		if got, err := findAccounts(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"48612:x": "not a group number", "48612:-1": "not a group number", "some:7": "with the number of a user alone",
		"-5:7":    "with the number of a user alone",
		"48612+0": "1 to 64", "48612+65": "1 to 64", "48612+": "1 to 64", "48612+x": "1 to 64", "48612+02": "1 to 64",
		"48612+-2": "1 to 64", "48612+2+2": "1 to 64",
		"0+2": "is the user " + root.Username, "48612:7+2": "48612:7-1",
		"there-is-no-such-user":   "there is no such user",
		"there-is-no-such-user+2": "there-is-no-such-user-1: there is no such user",
	} {
		if got, err := findAccounts(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is %+v, %v; want %q", text, got, err, why)
		}
	}
	if _, err := findAccounts("there-is-no-such-user+2"); !errors.Is(err, ErrNoAccount) {
		t.Error(err)
	}
}
