package doctor

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// judge says what we may do in a repository: enough to propose, and no more.
func (d *Doctor) judge(name, provider string, a gitprovider.Access) []Finding {
	out := []Finding{{Name: name, Status: OK, Detail: whose(provider, a) + "; the base branch is " + a.Base}}
	stops := func(applies bool, detail, do string) {
		if applies {
			out = append(out, blocks(name, detail, do))
		}
	}
	warns := func(applies bool, detail, do string) {
		if applies {
			out = append(out, Finding{Name: name, Status: Warning, Detail: detail, Do: do})
		}
	}
	stops(a.Archived, "it is archived and takes no changes", "unarchive it, or take it off the list")
	stops(a.Fork && !d.Rules.Policy.Targets.AllowForks, "it is a fork",
		"set allow_forks in the policy if it may be targeted")
	stops(len(a.Lacks) > 0, "the token lacks "+strings.Join(a.Lacks, ", ")+", so no pull request can be opened",
		"give the token "+strings.Join(a.Lacks, ", "))
	stops(len(a.Lacks) == 0 && is(a.CanPush, false), "the token's user may not push, so no branch can be made",
		"give that user write access")
	warns(len(a.LacksForLabels) > 0,
		"the token lacks "+strings.Join(a.LacksForLabels, ", ")+", so pull requests get no labels",
		"give the token "+strings.Join(a.LacksForLabels, ", "))
	warns(is(a.CanPushToBase, true), "the token may write to "+a.Base+" without a pull request; it should not",
		"protect the branch, or give another token")
	warns(is(a.CanMerge, true) && !a.Reviewed,
		"the token may merge pull requests into "+a.Base+"; it should not: a person merges",
		"require a review there, or give another token")
	warns(is(a.CanMerge, true) && a.Reviewed,
		"the token may merge pull requests into "+a.Base+" once they are approved; it should not: a person merges",
		"leave its user out of those who may merge there, or give another token")
	warns(is(a.BaseProtected, false), a.Base+" is not protected",
		"protect it, so that changes come by pull requests alone")
	warns(len(a.MissingLabels) > 0 && !d.Rules.Policy.Pulls.CreateLabels,
		"it lacks the labels "+strings.Join(a.MissingLabels, ", "),
		"create them, or set pull_requests.create_labels in the policy")
	warns(len(a.BranchRules) > 0, "rules for the branches "+gitprovider.BranchPrefix+"** restrict "+
		strings.Join(a.BranchRules, ", ")+": a proposal is refused unless the token may bypass them",
		"have these branches exempted")
	warns(a.Unsigned != "", "commits must be signed, and "+a.Unsigned+" would not be; such a proposal is refused, or "+
		"cannot be merged", "")
	warns(d.namesTeam() && a.Installation != nil && !slices.ContainsFunc(a.Installation.Permissions, isMembers),
		"the policy names a team as a reviewer, and the installation lacks \"Members: read\", so no team is asked",
		"add it in the app's settings, and have the owner accept it")
	for _, d := range a.Defects {
		stops(d.Stops, d.What, d.Do)
		warns(!d.Stops, d.What, d.Do)
	}
	warns(is(a.ChecksRun, false), "no CI is set up to run on our pull requests", "")
	return out
}

// namesTeam reports whether the policy asks a team for reviews.
func (d *Doctor) namesTeam() bool {
	isTeam := func(name string) bool { return strings.Contains(name, "/") }
	return slices.ContainsFunc(d.Rules.Policy.Pulls.Reviewers, isTeam)
}

func isMembers(permission string) bool { return strings.HasPrefix(permission, "members: ") }

// whose says in whose name we act.
func whose(provider string, a gitprovider.Access) string {
	switch {
	case provider == "local":
		return "it is there, and can be written"
	case a.Installation != nil:
		return installed(a)
	case a.User == "":
		return "the host does not say whom it takes us for" + scopesOf(a)
	}
	return "the token is " + a.User + "'s" + scopesOf(a)
}

// installed says in whose name an app acts, and what its installation grants.
func installed(a gitprovider.Access) string {
	which := "chosen repositories"
	if a.Installation.AllRepositories {
		which = "all repositories of the owner"
	}
	out := "we act as " + a.User + ", whose installation grants for " + which + ": " +
		strings.Join(a.Installation.Permissions, ", ")
	if a.Installation.Settings != "" {
		out += " (" + a.Installation.Settings + ")"
	}
	return out
}

func scopesOf(a gitprovider.Access) string {
	if len(a.Scopes) == 0 {
		return ""
	}
	return ", with the scopes " + strings.Join(a.Scopes, ", ")
}

// is reports whether the host said so.
func is(said *bool, want bool) bool { return said != nil && *said == want }
