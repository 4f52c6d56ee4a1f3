package prflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/textedit"
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

// askedDigest tells requests apart before their edits are made: the digest of the files, with the edits.
func askedDigest(files []FileRequest, digest string) string {
	edits := map[string][]textedit.Edit{}
	for _, f := range files {
		if len(f.Edits) > 0 {
			edits[f.Path] = f.Edits
		}
	}
	if len(edits) == 0 {
		return digest
	}
	return hashJSON([]any{digest, edits})
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

// contentDigest identifies what files are after a change: SHA-256 over the JSON list of [path, SHA-256 of the content],
// sorted by path, in hex; a file that is gone has "".
func contentDigest(changes []gitprovider.Change) string {
	entries := make([][2]string, len(changes))
	for i, c := range changes {
		entries[i][0] = c.Path.String()
		if c.Action != gitprovider.ActionDelete {
			sum := sha256.Sum256([]byte(c.Content))
			entries[i][1] = hex.EncodeToString(sum[:])
		}
	}
	slices.SortFunc(entries, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return hashJSON(entries)
}
