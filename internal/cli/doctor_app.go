package cli

import (
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// installed says in whose name an app acts, and what its installation grants.
func installed(a gitprovider.Access) string {
	which := "chosen repositories"
	if a.Installation.AllRepositories {
		which = "all repositories of the owner"
	}
	out := "we act as " + a.User + ", whose installation grants for " + which + ": " + strings.Join(a.Installation.Permissions, ", ")
	if a.Installation.Settings != "" {
		out += " (" + a.Installation.Settings + ")"
	}
	return out
}
