package local

import (
	"fmt"
	"strings"
	"time"
)

// identity is an author or committer.
type identity struct{ name, email string }

// newIdentity takes out what would end the field in a commit's header: angle brackets, line ends, NUL.
func newIdentity(name, email string) identity {
	clean := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, s))
	}
	return identity{clean(name), clean(email)}
}

// stamp is the identity with a time, in the raw form of commit headers.
func (i identity) stamp(t time.Time) string {
	return fmt.Sprintf("%s <%s> %d +0000", i.name, i.email, t.Unix())
}

// environ gives the variables by which git takes the identity; role is AUTHOR or COMMITTER.
func (i identity) environ(role string) []string {
	return []string{"GIT_" + role + "_NAME=" + i.name, "GIT_" + role + "_EMAIL=" + i.email}
}
