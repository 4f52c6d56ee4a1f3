package forge

import (
	"math"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// CheckNumber refuses numbers that no pull request can have, before a request with such a number is made.
func CheckNumber(repo gitprovider.RepoRef, number int) error {
	if number < 1 || number > math.MaxInt32 {
		return NoPullRequest(repo, number)
	}
	return nil
}

// NoPullRequest is the error for a number without a pull request.
func NoPullRequest(repo gitprovider.RepoRef, number int) error {
	return fault.New(fault.NotFound, "the repository %s has no pull request #%d", repo, number)
}

// NoBase is the error for a base branch that does not exist. defaultBranch is the repository's, "" if that is not
// known.
func NoBase(repo gitprovider.RepoRef, branch, defaultBranch string) error {
	return gitprovider.NoBase(repo, Clean(branch), Clean(defaultBranch))
}

// NoFirstCommit is the error for an empty repository.
func NoFirstCommit(repo gitprovider.RepoRef) error {
	return fault.New(fault.NotFound, "the repository %s has no commit yet; make a first one on its base branch", repo)
}

// NoCommit is the error for a commit that the repository lacks.
func NoCommit(repo gitprovider.RepoRef, id string) error {
	return fault.New(fault.NotFound, "the repository %s has no commit %s", repo, Clean(id))
}

// BaseMoved is the error for a base branch that is not at the snapshot's commit. cause may be nil.
func BaseMoved(s *gitprovider.Snapshot, cause error) error {
	return fault.Wrap(cause, fault.Conflict,
		"the base branch %s of %s has moved since it was read; look at it again, and "+
			"propose against what is there now", Clean(s.Base), s.Repo)
}

// NothingToPropose is the error for a head branch whose commits the base has.
func NothingToPropose(spec gitprovider.PullRequestSpec) error {
	return fault.New(fault.NoChange, "the branch %s of %s holds nothing that %s does not have already", Clean(spec.Head),
		spec.Repo, Clean(spec.Base))
}

// NoLabels is the error for missing labels that are not to be made.
func NoLabels(repo gitprovider.RepoRef, missing []string) error {
	return fault.New(fault.NotFound,
		"the repository %s has no label %s; have it created there, or let the policy allow that "+
			"labels are created", repo, Clean(strings.Join(missing, ", ")))
}

// NotBuilt is the error for a request that could not be built: a mistake of ours.
func NotBuilt(err error) error {
	return fault.Wrap(err, fault.Internal, "a request to the forge could not be built")
}

// NotItsAPI is the error for an answer that is not what the forge's API promises. address is the variable that leads
// there.
func NotItsAPI(err error, name, address string) error {
	return fault.Wrap(err, fault.UpstreamError,
		"%s answered with something else than its API promises; check %s, and proxies "+
			"in between", name, address)
}

// maxQuoted bounds, in characters, what a message quotes of a forge's words.
const maxQuoted = 240

// Clean makes text of others fit for a message: printable, on one line, capped.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "..."
	}
	return string(runes)
}

// Mentions reports whether a forge's words hold one of the phrases, which are in lower case. Phrases choose the advice
// of a message; none decides alone whether something was done.
func Mentions(said string, phrases ...string) bool {
	said = strings.ToLower(said)
	for _, phrase := range phrases {
		if strings.Contains(said, phrase) {
			return true
		}
	}
	return false
}
