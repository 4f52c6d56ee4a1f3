package prflow

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// checkTree is gate 4: what the base commit has at a path, and above it, must fit the action.
func checkTree(snap *gitprovider.Snapshot, path gitprovider.Path, action gitprovider.Action, text string) *fault.Violation {
	if v := checkAncestors(snap.Tree, path); v != nil {
		return v
	}
	entry, exists := snap.Tree[path.String()]
	switch {
	case exists && entry.Kind != gitprovider.KindFile:
		return treeDenied(fault.ScopeDenied, path, "not-a-file",
			fmt.Sprintf("%s is a %s on the base branch", path, entry.Kind), "propose a change to a plain file")
	case exists && action != gitprovider.ActionDelete && entry.ID == gitprovider.BlobID([]byte(text), entry.ID):
		return treeDenied(fault.NoChange, path, "identical",
			fmt.Sprintf("%s already has exactly this content on the base branch", path), "leave this file out")
	case exists && action == gitprovider.ActionCreate:
		return treeDenied(fault.Conflict, path, "exists",
			fmt.Sprintf("%s already exists on the base branch", path), "read it and use the action update")
	case !exists && action != gitprovider.ActionCreate:
		return treeDenied(fault.Conflict, path, "missing",
			fmt.Sprintf("%s does not exist on the base branch", path), missingHint(action))
	}
	if twin := snap.Tree.FoldedTwin(path); !exists && twin != "" {
		return treeDenied(fault.Conflict, path, gitprovider.RulePathCollision,
			fmt.Sprintf("%s differs from %s on the base branch only in letter case", path, twin), "use the spelling that exists")
	}
	return nil
}

func checkAncestors(tree gitprovider.Tree, path gitprovider.Path) *fault.Violation {
	for _, dir := range path.Ancestors() {
		entry, exists := tree[dir]
		if exists && entry.Kind != gitprovider.KindDir {
			return treeDenied(fault.ScopeDenied, path, "not-a-folder",
				fmt.Sprintf("%s, above %s, is a %s on the base branch", dir, path, entry.Kind),
				"propose a change to a plain file in a plain folder")
		}
	}
	return nil
}

func missingHint(action gitprovider.Action) string {
	if action == gitprovider.ActionUpdate {
		return "use the action create, or correct the path"
	}
	return "leave this file out: it is gone already"
}

func treeDenied(code fault.Code, path gitprovider.Path, rule, message, suggestion string) *fault.Violation {
	return &fault.Violation{Code: code, Path: path.String(), Rule: rule, Message: message, Suggestion: suggestion}
}
