package prflow

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// diff returns the unified diff of the changes against the base commit.
func diff(changes []gitprovider.Change, snapshot *gitprovider.Snapshot) string {
	var b strings.Builder
	for _, change := range changes {
		b.WriteString(fileDiff(change, snapshot))
	}
	return b.String()
}

// capped cuts a diff at maxDiff.
func capped(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	return strings.ToValidUTF8(diff[:maxDiff], "") + fmt.Sprintf("\n[cut: the diff has %d bytes]\n", len(diff))
}

func fileDiff(change gitprovider.Change, snap *gitprovider.Snapshot) string {
	path := change.Path.String()
	oldName, newName := "a/"+path, "b/"+path
	switch change.Action {
	case gitprovider.ActionCreate:
		oldName = "/dev/null"
	case gitprovider.ActionDelete:
		newName = "/dev/null"
	}
	before, known := snap.Contents[change.Path]
	if !known && change.Action != gitprovider.ActionCreate {
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: the file on the base branch is larger than %d bytes]\n",
			oldName, newName, gitprovider.MaxContentRead)
	}
	return udiff.Unified(oldName, newName, string(before), change.Content)
}

// maxDiff bounds the diff in a preview, in bytes, so that an answer stays readable for a model.
const maxDiff = 64 << 10
