package local

import (
	"context"
	"fmt"
)

// mergeTree merges two commits. It answers the tree, and the files that conflict, quoted for a message and at most ten;
// a tree with conflicts is of no use. Merge drivers that a repository configures do not take part.
func (w *workspace) mergeTree(ctx context.Context, base, head string) (tree string, conflicts []string, err error) {
	out, code, err := w.run(ctx, nil, []int{1}, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base,
		head)
	if err != nil {
		return "", nil, err
	}
	fields := splitZ(out)
	if len(fields) == 0 {
		return "", nil, failed(&exitError{"merge-tree", code, "no answer"})
	}
	if code == 0 {
		tree, err = w.parseID([]byte(fields[0]))
		return tree, nil, err
	}
	const most = 10
	for _, path := range fields[1:] {
		if len(conflicts) == most {
			conflicts = append(conflicts, "and others")
			break
		}
		conflicts = append(conflicts, fmt.Sprintf("%+q", path))
	}
	if len(conflicts) == 0 {
		conflicts = []string{"files that git does not name"}
	}
	return "", conflicts, nil
}
