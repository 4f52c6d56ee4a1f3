package githubapp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// permissions maps GitHub's name of a permission to "read", "write" or "admin", as an installation grants it or a token
// has it.
type permissions map[string]string

// required returns the permissions that a request needs, and optional those that it makes use of if the installation
// grants them: what CI said, and whether it is set up. Labels, reviewers and assignees of pull requests need no
// permission of their own.
func required(use transport.Use) permissions {
	out := permissions{"contents": "read", "pull_requests": "read"}
	if use.Write {
		out = permissions{"contents": "write", "pull_requests": "write"}
	}
	if use.Members {
		out["members"] = "read" // without it GitHub does not find a team
	}
	return out
}

func optional(use transport.Use) []string {
	if use.Write {
		return nil
	}
	return []string{"actions", "checks", "statuses"}
}

// wanted selects the permissions to request for a token from those that the installation grants. GitHub refuses the
// whole token for one permission that is not granted, so a missing one is reported here instead: provider_disabled.
func wanted(granted permissions, use transport.Use) (permissions, error) {
	out := permissions{"metadata": "read"}
	var lacks []string
	for name, level := range required(use) {
		if !granted.covers(name, level) {
			lacks = append(lacks, shown(name, level))
		}
		out[name] = level
	}
	for _, name := range optional(use) {
		if granted.covers(name, "read") {
			out[name] = "read"
		}
	}
	if len(lacks) > 0 {
		slices.Sort(lacks)
		return nil, fault.New(fault.ProviderDisabled,
			"the installation of the GitHub App for %s lacks the permission %s; add it in the "+
				"app's settings, and have the owner accept it in the installation's", use.Owner, strings.Join(lacks, " and "))
	}
	return out, nil
}

func (p permissions) covers(name, level string) bool {
	levels := []string{"", "read", "write", "admin"}
	return slices.Index(levels, p[name]) >= slices.Index(levels, level)
}

// shown returns a permission as GitHub's pages name it: "Pull requests: read and write".
func shown(name, level string) string {
	words := strings.ReplaceAll(name, "_", " ")
	if level == "write" {
		level = "read and write"
	}
	return fmt.Sprintf("%q", strings.ToUpper(words[:1])+words[1:]+": "+level)
}

// list gives the permissions as "name: level", sorted.
func (p permissions) list() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		out = append(out, name+": "+p[name])
	}
	return out
}
