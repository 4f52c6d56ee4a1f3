package prflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// filesDigest identifies what a change does to files, whatever its title, its body and the order of its files:
// SHA-256 over the JSON list of [path, action, SHA-256 of the content], sorted by path, in hex.
func filesDigest(files []gitprovider.FileChange) string {
	entries := make([][3]string, len(files))
	for i, f := range files {
		sum := sha256.Sum256([]byte(f.Content))
		entries[i] = [3]string{f.Path, string(f.Action), hex.EncodeToString(sum[:])}
	}
	slices.SortFunc(entries, func(a, b [3]string) int { return strings.Compare(a[0], b[0]) })
	return hashJSON(entries)
}

// changeDigest identifies a change at a place: provider, repository (letter case aside), base branch and files. Two
// requests with the same digest are the same change.
func changeDigest(provider string, repo gitprovider.RepoRef, base, files string) string {
	return hashJSON([]string{provider, strings.ToLower(repo.Owner), strings.ToLower(repo.Name), base, files})
}

func hashJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // strings always marshal
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// suffixLength is how many hex digits of a digest a branch name carries when the plain one is taken.
const suffixLength = 8

// branchNames are the names that the branch may take, in order of preference: the plain one, one with a digest of the
// change, one with a digest of this very request. nil if the title gives none.
func (c *creation) branchNames() []string {
	plain, err := gitprovider.BranchName(gitprovider.ChangeType(c.req.ChangeType), c.leaving.title)
	if err != nil {
		return nil
	}
	return []string{
		plain,
		gitprovider.BranchWithSuffix(plain, c.filesDigest[:suffixLength]),
		gitprovider.BranchWithSuffix(plain, hashJSON([]string{c.filesDigest, c.requestID})[:suffixLength]),
	}
}

// chooseBranch takes the first name that is free in the snapshot.
func (c *creation) chooseBranch() string {
	names := c.branchNames()
	for _, name := range names {
		if _, taken := c.snapshot.Tips[name]; !taken {
			return name
		}
	}
	return names[len(names)-1]
}
