package fakegitea

import (
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// fileDiff is the change of one file.
type fileDiff struct {
	path, oldPath        string // oldPath: of a renamed file
	added, removed       bool
	additions, deletions int
}

// diff compares two trees, sorted by path. A file that vanished and one that appeared and is at least half the same are
// one renamed file, as git sees it.
func diff(before, after map[string]memhost.File) []fileDiff {
	paths := maps.Clone(before)
	if paths == nil {
		paths = map[string]memhost.File{}
	}
	maps.Copy(paths, after)
	var out []fileDiff
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, was := before[path]
		now, is := after[path]
		if was && is && old == now {
			continue
		}
		d := fileDiff{path: path, added: !was, removed: !is}
		d.additions, d.deletions = changedLines(old.Content, now.Content)
		out = append(out, d)
	}
	return pairRenames(out, before, after)
}

func pairRenames(list []fileDiff, before, after map[string]memhost.File) []fileDiff {
	gone := map[string]bool{}
	for i := range list {
		if !list[i].added {
			continue
		}
		for _, from := range list {
			if !from.removed || gone[from.path] || before[from.path].Kind != after[list[i].path].Kind {
				continue
			}
			old, now := before[from.path].Content, after[list[i].path].Content
			additions, deletions := changedLines(old, now)
			if old == "" || 2*(additions+deletions) > len(lines(old))+len(lines(now)) {
				continue
			}
			gone[from.path] = true
			list[i].oldPath, list[i].added = from.path, false
			list[i].additions, list[i].deletions = additions, deletions
			break
		}
	}
	return slices.DeleteFunc(list, func(d fileDiff) bool { return d.removed && gone[d.path] })
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// changedLines counts the lines outside the longest common subsequence.
func changedLines(before, after string) (additions, deletions int) {
	a, b := lines(before), lines(after)
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	common := row[len(b)]
	return len(b) - common, len(a) - common
}

func totals(list []fileDiff) (additions, deletions int) {
	for _, d := range list {
		additions, deletions = additions+d.additions, deletions+d.deletions
	}
	return additions, deletions
}
