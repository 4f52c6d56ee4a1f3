package definitions

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"definitions agent list": "claudeops definitions agent list\nclaudeops definitions agent list --source local " +
			"--tags demo --json",
		"definitions agent info": "claudeops definitions agent info reviewer",
		"definitions agent validate": "claudeops definitions agent validate reviewer\n" +
			"claudeops definitions agent validate .claude/agents/reviewer.md --strict",
		"definitions tool list":            "claudeops definitions tool list --limit 20",
		"definitions tool info":            "claudeops definitions tool info grep --version ^1.0.0",
		"definitions tool validate":        "claudeops definitions tool validate .fractary/tools/grep.yaml --strict",
		"definitions cache stats":          "claudeops definitions cache stats",
		"definitions cache clear":          "claudeops definitions cache clear --type manifests",
		"definitions config get":           "claudeops definitions config get registries.0.url",
		"definitions config show":          "claudeops definitions config show --format yaml",
		"definitions config registry-list": "claudeops definitions config registry-list",
		"definitions fork list":            "claudeops definitions fork list --type agent",
		"definitions fork info":            "claudeops definitions fork info my-reviewer",
		"definitions fork diff":            "claudeops definitions fork diff my-reviewer --format unified",
		"definitions fork check":           "claudeops definitions fork check\nclaudeops definitions fork check my-reviewer",
		"definitions plugin list":          "claudeops definitions plugin list",
		"definitions plugin info":          "claudeops definitions plugin info @fractary/faber",
		"definitions plugin search":        "claudeops definitions plugin search review --limit 5",
	}
}
