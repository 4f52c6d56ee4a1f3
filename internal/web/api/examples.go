package api

// bodyExamples returns example bodies for the types of requests, by the ids of the operations. A test compares them
// with the description.
func bodyExamples() map[string]any {
	return map[string]any{
		"createPR": map[string]any{
			"repo_owner": "demo", "repo_name": "home-cluster", "title": "Watch the inodes",
			"body": "The disk had room, and no inode was left.", "change_type": "check",
			"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create",
				"content": "# Inodes\n\n- Run `df -i`.\n"}},
		},
		"openConnection": map[string]any{"claudeops": 1, "tier": 1},
		"checkPolicy":    map[string]any{"paths": []any{"checks/disk.md", "prompts/observe.md"}, "tier": 2},
		"startSession":   map[string]any{"tier": 1, "note": "Look at the disk of node 3."},
		"signIn":         map[string]any{"token": "the token that `claudeops token create` has printed"},
		"createToken":    map[string]any{"name": "ann", "scopes": []any{"read", "review"}, "max_tier": 2},
		"reviewPR": map[string]any{
			"repo_owner": "joe", "repo_name": "home-cluster", "event": "request-changes", "body": "Say which disk.",
			"comments": []any{map[string]any{"path": "checks/disk.md", "line": 12, "body": "Which one?"}},
		},
		"mergePR": map[string]any{"repo_owner": "joe", "repo_name": "home-cluster",
			"head": "9f2c1d4e5b6a7988f0e1d2c3b4a5968778695a4b"},
		"closePR": map[string]any{"repo_owner": "joe", "repo_name": "home-cluster", "comment": "Not now."},
	}
}
